. agents/common.sh
mkdir -p api
# Guesses at first, and knows better only from what the failed test said.
if was_told "expected: 200 OK"; then
    echo "200 OK" >api/health.txt
    work_until_released
else
    echo "404 Not Found" >api/health.txt
fi
