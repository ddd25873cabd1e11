# What all agents of the demo do. Every start is written down outside of the repository, where nothing can undo it.
set -eu
echo "$LANEWRIGHT_LANE $LANEWRIGHT_AGENT $LANEWRIGHT_ATTEMPT" >>"$DEMO_DIRECTORY/starts.log"

# Says what comes next, and takes the time for it that a reader needs.
step() {
    echo "$1"
    sleep "$DEMO_PAUSE"
}

# Works until the demo lets this lane's agents finish.
work_until_released() {
    while [ ! -e "$DEMO_DIRECTORY/released/$LANEWRIGHT_LANE" ]; do
        sleep 0.05
    done
}

# Whether this attempt was told that an earlier one failed with these words.
was_told() {
    grep -q -- "$1" "$LANEWRIGHT_FAILURE_CONTEXT_FILE"
}
