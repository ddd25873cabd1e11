//! Checkouts that are behind their branch: the head is at the branch's tip, index and files are at an earlier tip.
//!
//! `git switch` looks up the branch, writes files and index, and moves the head last. A branch that is published in
//! between leaves such a checkout: `git status` shows the published work as staged deletions, and a commit would revert
//! it. So publications are noted until a later look finds a checkout of the branch in step, and only noted branches are
//! examined. After a power failure no `git switch` is under way, so the note need not survive one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanewright_files::{atomic, regular_file, remove_unfinished};
use lanewright_model::CommitId;
use serde::{Deserialize, Serialize};

use crate::command::{Result, io_error};
use crate::history::moving;
use crate::repo::{Guarded, Repository, commit_ids};

/// How many earlier tips are compared with an index. Each publication moves the checkouts along first or is blocked, so a
/// checkout is rarely behind by more than one.
const MAX_EARLIER_TIPS: usize = 256;

type Published = BTreeMap<String, Publications>;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Publications {
    /// Its tip before the first of them, and after each.
    Tips(Vec<CommitId>),
    /// As older versions noted them: the tip before the first one.
    From(CommitId),
}

/// Records that `branch` is about to move from `onto` to `commit`. The caller holds the publish lock.
pub(crate) fn note(repository: &Repository, branch: &str, onto: &CommitId, commit: &CommitId) -> Result<()> {
    let mut published = read(repository)?;
    let mut tips = match published.remove(branch) {
        Some(Publications::Tips(tips)) => tips,
        Some(Publications::From(first)) => vec![first, onto.clone()],
        None => vec![onto.clone()],
    };
    if !tips.contains(commit) {
        tips.push(commit.clone());
    }
    tips.drain(..tips.len().saturating_sub(MAX_EARLIER_TIPS));
    published.insert(branch.to_owned(), Publications::Tips(tips));
    write(repository, &published)
}

/// Records that a checkout of `branch`, which is at `commit`, is still at `onto`. The time of the last publication stays as
/// it is where that is known. The caller holds the publish lock.
pub(crate) fn note_checkout(repository: &Repository, branch: &str, onto: &CommitId, commit: &CommitId) -> Result<()> {
    if read(repository)?.contains_key(branch) { Ok(()) } else { note(repository, branch, onto, commit) }
}

/// How long ago the last publication was, if a checkout may be behind `branch`.
pub(crate) fn since_publication(repository: &Repository, branch: &str) -> Result<Option<Duration>> {
    if !read(repository)?.contains_key(branch) {
        return Ok(None);
    }
    let written = fs::metadata(file(repository)).and_then(|file| file.modified());
    // A clock that was set back must not make anything wait.
    Ok(Some(written.ok().and_then(|written| written.elapsed().ok()).unwrap_or(Duration::MAX)))
}

/// Drops the note on `branch`. The caller holds the publish lock.
pub(crate) fn forget(repository: &Repository, branch: &str) -> Result<()> {
    let mut published = read(repository)?;
    if published.remove(branch).is_some() { write(repository, &published) } else { Ok(()) }
}

/// The earlier tip of `branch` that the index of `worktree` holds, if it is behind `tip`, where its head is: every path
/// in which the two tips differ is staged as the earlier one has it. Only tips that were published since the note count:
/// to where another program moved the branch no checkout follows.
pub(crate) fn earlier_tip(
    repository: &Repository,
    worktree: &Path,
    branch: &str,
    tip: &CommitId,
) -> Result<Option<CommitId>> {
    let first = match read(repository)?.remove(branch) {
        Some(Publications::Tips(tips)) if tips.contains(tip) => tips.into_iter().next(),
        Some(Publications::From(first)) => Some(first),
        Some(Publications::Tips(_)) | None => None,
    };
    let Some(first) = first else { return Ok(None) };
    let differing = |commit: &CommitId| repository.staged(worktree, None, commit).map(moving);
    let now = differing(tip)?;
    if now.is_empty() {
        return Ok(None);
    }
    let tips = earlier_tips(repository, tip)?;
    let Some(oldest) = tips.iter().position(|tip| *tip == first) else { return Ok(None) };
    for earlier in tips.into_iter().take(oldest + 1).rev() {
        let brought = moving(repository.differences(&earlier, tip)?);
        if !brought.is_empty() && brought.is_subset(&now) && brought.is_disjoint(&differing(&earlier)?) {
            return Ok(Some(earlier));
        }
    }
    Ok(None)
}

fn earlier_tips(repository: &Repository, tip: &CommitId) -> Result<Vec<CommitId>> {
    let git = repository.git().args(["rev-list", "--first-parent", "--skip=1", "--max-count"]);
    commit_ids(&git.args([&MAX_EARLIER_TIPS.to_string(), tip.as_str()]).run()?)
}

fn file(repository: &Repository) -> PathBuf {
    repository.common_dir().join("lanewright").join("published.json")
}

fn read(repository: &Repository) -> Result<Published> {
    let bytes = regular_file::read_if_there(&file(repository))?.unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

fn write(repository: &Repository, published: &Published) -> Result<()> {
    let file = file(repository);
    if published.is_empty() {
        return Ok(atomic::remove(&file)?);
    }
    let own = repository.own_directory()?;
    let text = serde_json::to_vec(published).map_err(|error| io_error("write", &file)(error.into()))?;
    repository.holding(Guarded::Settings, |_| {
        remove_unfinished(&own)?;
        Ok(atomic::replace(&file, &text)?)
    })
}
