. agents/common.sh
mkdir -p site
cat api/health.txt docs/guide.md search/index.txt >site/index.txt
