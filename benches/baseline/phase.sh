#!/bin/sh
# What a careful user writes to run the lanes of a phase side by side, without Lanewright:
#
#     phase.sh REPOSITORY WORKTREES LANES PARALLEL AGENT
#
# Each lane gets a worktree and a branch, runs `sh -c AGENT` in it, commits what that left, merges it into the branch
# that REPOSITORY has checked out, and removes the worktree. Git does not let two processes change its list of worktrees
# or merge in one checkout at once, hence the lock. Nothing here is durable, and nothing is taken up again. NAME is what
# lanes are called, `lane` by default.
set -eu

lane() {
    name=${NAME:-lane}-$1
    worktree=$worktrees/$name
    flock "$lock" git -C "$repository" worktree add --quiet --no-track -b "$name" "$worktree"
    (
        cd "$worktree"
        LANE=$name sh -c "$agent"
        git add --all
        git commit --quiet --message "$name"
    )
    flock "$lock" git -C "$repository" merge --quiet --no-ff --message "Merge $name" "$name"
    flock "$lock" git -C "$repository" worktree remove "$worktree"
}

if [ "${1:-}" = lane ]; then
    lane "$2"
    exit
fi
[ $# = 5 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
export repository=$1 worktrees=$2 agent=$5 lock=$1/.git/phase.lock
mkdir -p "$worktrees"
seq "$3" | xargs -P "$4" -I '{}' sh "$0" lane '{}'
