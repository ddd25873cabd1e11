//! Checkouts that stayed where they were while another program moved their branch: `git update-ref`, or a push into the
//! repository. Head and branch are at the new commit, index and files at the old one: `git status` shows the difference as
//! staged, and a commit would revert it.
//!
//! The head's log has the last commit to which a command moved the checkout itself, index and files included. Where the
//! branch is at another one by now, and the index still has files of that commit, the checkout was left behind. What a
//! user stages, also with `git reset --soft` or `git revert --no-commit`, is nothing like it: there the log ends with the
//! commit at which the branch is.

use std::path::{Path, PathBuf};

use lanewright_model::CommitId;

use crate::command::Result;
use crate::history::{Blockers, index_lock, moving};
use crate::query::operation_in;
use crate::repo::{Repository, git_directory, head_log};

/// What the entries of commands begin with that move the head, the index and the files of a checkout together.
const OWN_MOVES: [&str; 12] = [
    "am",
    "checkout",
    "cherry-pick",
    "clone",
    "commit",
    "initial",
    "lanewright",
    "merge",
    "pull",
    "rebase",
    "reset",
    "revert",
];

/// How much of the end of a checkout's reflog is read, in bytes.
const TAIL: u64 = 1 << 16;

/// The commit at which index and files of `worktree` still are, whose branch another program moved to `tip`.
pub(crate) fn stale_since_move(repository: &Repository, worktree: &Path, tip: &CommitId) -> Result<Option<CommitId>> {
    let stands_at_tip = || -> Result<bool> { Ok(repository.head_at(worktree)?.commit == *tip) };
    let own = head_log(&git_directory(worktree)?, Some(TAIL))?.into_iter().find(|(_, message)| is_own_move(message));
    let Some(last) = own.map(|(last, _)| last).filter(|last| last != tip) else { return Ok(None) };
    if !stands_at_tip()? || !repository.has_commit(&last)? {
        return Ok(None);
    }
    let staged = |commit: &CommitId| repository.staged(worktree, None, commit).map(moving);
    let moved = moving(repository.differences(&last, tip)?);
    let (now, before) = (staged(tip)?, staged(&last)?);
    // A push with `updateInstead` takes index and files along: then old files are what a user staged since.
    let is_left = moved.is_subset(&now) && !moved.is_subset(&before);
    // A command of the user's may have moved it meanwhile.
    Ok(if is_left && stands_at_tip()? { Some(last) } else { None })
}

/// What to do about the first of the checkouts of `branch` that was left behind.
pub fn first_stale_checkout(repository: &Repository, branch: &str) -> Result<Option<(PathBuf, Blockers)>> {
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(None) };
    for worktree in repository.all_checked_out(branch)? {
        if operation_in(&worktree)?.is_some() || index_lock(&worktree)?.is_some() {
            continue;
        }
        if let Some(at) = stale_since_move(repository, &worktree, &tip)? {
            let blockers = Blockers::left_behind(branch, &worktree, &at);
            return Ok(Some((worktree, blockers)));
        }
    }
    Ok(None)
}

/// Whether the command that left `message` in a head's log moved index and files as well.
fn is_own_move(message: &str) -> bool {
    let command = message.split(|it: char| !it.is_ascii_alphanumeric() && it != '-').next();
    command.is_some_and(|command| OWN_MOVES.contains(&command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::git_dir::log_entry;

    #[test]
    fn reflog_entries_of_plumbing_are_not_own_moves() {
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        let moved = |message: &str| {
            let entry = log_entry(format!("{old} {new} N <n@e> 1 +0000{message}").as_bytes());
            entry.filter(|(_, message)| is_own_move(message)).map(|(commit, _)| commit)
        };
        for own in [
            "commit: x",
            "commit (amend): x",
            "checkout: moving from a to b",
            "pull --rebase (finish): x",
            "lanewright: publish",
            "merge x: Fast-forward",
            "reset: moving to HEAD~1",
        ] {
            assert_eq!(moved(&format!("\t{own}")).map(|it| it.to_string()), Some(new.clone()), "{own}");
        }
        for plumbing in ["", "\t", "\tpush", "\tbranch: Reset to x", "\tcommitted by hand"] {
            assert_eq!(moved(plumbing), None, "{plumbing:?}");
        }
    }
}
