. agents/common.sh
mkdir -p site
step "reading what the other lanes made"
step "building the site"
cat api/health.txt docs/guide.md search/index.txt >site/index.txt
