//! Checkouts that are behind their branch: the head is at the branch's tip, index and files are at an earlier tip.
//!
//! `git switch` looks up the branch, writes files and index, and moves the head last. A branch that is published in
//! between leaves such a checkout: `git status` shows the published work as staged deletions, and a commit would revert
//! it. Only a branch that no checkout has can move in that way, so those moves are noted, and only noted branches are
//! examined.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::durable;
use super::error::{GitError, io_error};
use super::head::staged;
use super::program::Git;
use super::repository::{Repository, commit_id};
use crate::model::CommitId;
use crate::regular_file;

/// How many earlier tips are compared with an index. Each publication moves the checkouts along first or is blocked, so a
/// checkout is rarely behind by more than one.
const MAX_EARLIER_TIPS: &str = "256";

/// Branches that moved while no checkout had them, each with its tip before the first such move.
type MovedAlone = BTreeMap<String, CommitId>;

/// Records that `branch` is about to move away from `tip` while no checkout has it. The caller holds the publish lock.
pub(super) fn note(repository: &Repository, branch: &str, tip: &CommitId) -> Result<(), GitError> {
    let mut moved = read(repository)?;
    if moved.contains_key(branch) {
        return Ok(());
    }
    moved.insert(branch.to_owned(), tip.clone());
    write(repository, &moved)
}

/// Whether a checkout may be behind `branch`.
pub(super) fn is_noted(repository: &Repository, branch: &str) -> Result<bool, GitError> {
    Ok(read(repository)?.contains_key(branch))
}

/// Drops the note on `branch`. The caller holds the publish lock.
pub(super) fn forget(repository: &Repository, branch: &str) -> Result<(), GitError> {
    let mut moved = read(repository)?;
    if moved.remove(branch).is_some() { write(repository, &moved) } else { Ok(()) }
}

/// The earlier tip of `branch` that the index of `worktree` holds, if it is behind `tip`, where its head is: every path
/// in which the two tips differ is staged as the earlier one has it. Only tips since the branch moved alone count.
pub(super) fn earlier_tip(
    repository: &Repository,
    worktree: &Path,
    branch: &str,
    tip: &CommitId,
) -> Result<Option<CommitId>, GitError> {
    let Some(first) = read(repository)?.remove(branch) else { return Ok(None) };
    let differing = |commit: &CommitId| -> Result<BTreeSet<String>, GitError> {
        Ok(staged(repository, worktree, commit)?.into_iter().collect())
    };
    let now = differing(tip)?;
    if now.is_empty() {
        return Ok(None);
    }
    let tips = earlier_tips(repository, tip)?;
    let Some(oldest) = tips.iter().position(|tip| *tip == first) else { return Ok(None) };
    for earlier in tips.into_iter().take(oldest + 1).rev() {
        let published: BTreeSet<String> = repository.changed_paths(&earlier, tip)?.into_iter().collect();
        if !published.is_empty() && published.is_subset(&now) && published.is_disjoint(&differing(&earlier)?) {
            return Ok(Some(earlier));
        }
    }
    Ok(None)
}

fn earlier_tips(repository: &Repository, tip: &CommitId) -> Result<Vec<CommitId>, GitError> {
    let git = Git::new(repository.main_worktree()).args(["rev-list", "--first-parent", "--skip=1", "--max-count"]);
    let listing = git.args([MAX_EARLIER_TIPS, tip.as_str()]).run()?;
    listing.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(commit_id).collect()
}

fn file(repository: &Repository) -> PathBuf {
    repository.common_dir().join("lanekeeper").join("moved-alone.json")
}

fn read(repository: &Repository) -> Result<MovedAlone, GitError> {
    let file = file(repository);
    match regular_file::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| io_error("read", &file)(error.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(MovedAlone::new()),
        Err(error) => Err(io_error("read", &file)(error)),
    }
}

fn write(repository: &Repository, moved: &MovedAlone) -> Result<(), GitError> {
    let file = file(repository);
    if moved.is_empty() {
        return durable::remove(&file);
    }
    repository.own_directory()?;
    let bytes = serde_json::to_vec(moved).map_err(|error| io_error("write", &file)(error.into()))?;
    durable::write(&file, &bytes)
}
