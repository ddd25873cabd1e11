//! The `git` module on real repositories in temporary directories.

#![allow(clippy::unwrap_used, reason = "the helpers of tests may fail like tests")]

#[macro_use]
mod support;

mod commits;
mod in_process;
mod interrupted_slots;
mod left_behind;
mod merges;
mod nested;
mod pool;
mod private;
mod provision;
mod publish;
mod publish_killed;
mod refusals;
mod remote;
mod removed_worktrees;
mod repository;
mod snapshots;
mod stale_checkouts;
mod undone;
mod unseen_changes;
mod worktrees;
