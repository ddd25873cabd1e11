//! Checkouts that stayed where they were while another program moved their branch: `git update-ref`, or a push into the
//! repository. Head and branch are at the new commit, index and files at the old one: `git status` shows the difference as
//! staged, and a commit would revert it.
//!
//! The head's log has the last commit to which a command moved the checkout itself, index and files included. Where the
//! branch is at another one by now, and the index still has files of that commit, the checkout was left behind. What a
//! user stages, also with `git reset --soft` or `git revert --no-commit`, is nothing like it: there the log ends with the
//! commit at which the branch is.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use lanewright_files::regular_file;
use lanewright_model::CommitId;

use crate::command::{Result, io_error};
use crate::history::{Blockers, index_lock, moving};
use crate::query::operation_in;
use crate::repo::{Repository, git_directory};

/// How much of the end of a head's log is read, in bytes.
const TAIL: u64 = 1 << 16;

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

/// The commit at which index and files of `worktree` still are, whose branch another program moved to `tip`.
pub(crate) fn left_at(repository: &Repository, worktree: &Path, tip: &CommitId) -> Result<Option<CommitId>> {
    let stands_at_tip = || -> Result<bool> { Ok(repository.head_at(worktree)?.commit == *tip) };
    let Some(last) = last_own_move(worktree)?.filter(|last| last != tip) else { return Ok(None) };
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
pub fn first_left_behind(repository: &Repository, branch: &str) -> Result<Option<(PathBuf, Blockers)>> {
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(None) };
    for worktree in repository.all_checked_out(branch)? {
        if operation_in(&worktree)?.is_some() || index_lock(&worktree)?.is_some() {
            continue;
        }
        if let Some(at) = left_at(repository, &worktree, &tip)? {
            let blockers = Blockers::left_behind(branch, &worktree, &at);
            return Ok(Some((worktree, blockers)));
        }
    }
    Ok(None)
}

/// The commit to which a command last moved the head of `worktree` together with its index; `None`: its log does not say.
fn last_own_move(worktree: &Path) -> Result<Option<CommitId>> {
    let path = git_directory(worktree)?.join("logs").join("HEAD");
    let Ok(log) = regular_file::open(&path) else { return Ok(None) };
    let length = log.metadata().map_err(io_error("read", &path))?.len();
    let mut tail = vec![0; usize::try_from(length.min(TAIL)).unwrap_or_default()];
    log.read_exact_at(&mut tail, length.saturating_sub(TAIL)).map_err(io_error("read", &path))?;
    Ok(tail.split(|&byte| byte == b'\n').rev().find_map(own_move))
}

/// The commit to which an entry moves the head, if its command moved index and files as well.
fn own_move(line: &[u8]) -> Option<CommitId> {
    let text = String::from_utf8_lossy(line);
    let (names, message) = text.split_once('\t')?;
    let command = message.split(|it: char| !it.is_ascii_alphanumeric() && it != '-').next()?;
    let moved = OWN_MOVES.contains(&command);
    CommitId::new(names.split(' ').nth(1)?).ok().filter(|_| moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_plumbing_are_no_moves_of_the_checkout() {
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        let moved = |message: &str| own_move(format!("{old} {new} N <n@e> 1 +0000{message}").as_bytes());
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
