. agents/common.sh
mkdir -p docs
step "reading the table of orders"
# Both authors begin the same file, so the later merge conflicts; whoever is told so adds to what is there.
if was_told "docs/guide.md"; then
    step "adding a chapter to the guide of the other author"
    echo "The chapter of the $LANEWRIGHT_AGENT." >>docs/guide.md
    work_until_released
else
    step "beginning the guide"
    echo "The chapter of the $LANEWRIGHT_AGENT." >docs/guide.md
fi
