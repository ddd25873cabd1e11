. agents/common.sh
mkdir -p api
step "reading the task"
# Guesses at first, and knows better only from what the failed test said.
if was_told "expected: 200 OK"; then
    step "correcting the answer: 200 OK, as the test expects"
    echo "200 OK" >api/health.txt
    work_until_released
else
    step "guessing the answer: 404 Not Found"
    echo "404 Not Found" >api/health.txt
fi
