. agents/common.sh
mkdir -p docs
# Both authors begin the same file, so the later merge conflicts; whoever is told so adds to what is there.
if was_told "docs/guide.md"; then
    echo "The chapter of the $LANEKEEPER_AGENT." >>docs/guide.md
    work_until_released
else
    echo "The chapter of the $LANEKEEPER_AGENT." >docs/guide.md
fi
