answer=$(cat api/health.txt)
[ "$answer" = "200 OK" ] && exit
echo "the health check is wrong"
echo "expected: 200 OK"
echo "found:    $answer"
exit 1
