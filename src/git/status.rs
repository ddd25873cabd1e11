//! What is uncommitted in a worktree.

use std::path::Path;

use super::error::GitError;
use super::hook::as_hook_left;
use super::pristine::is_pristine;
use super::program::{Git, nul_separated, path_text};
use crate::model::CommitId;

/// The paths that are uncommitted in `worktree`: changed, staged, untracked; neither ignored ones nor what a hook left
/// there before anybody worked in it. Git may note in the index what it found out: files as old as the index would be
/// read again and again.
pub(crate) fn uncommitted(worktree: &Path) -> Result<Vec<String>, GitError> {
    let from_hook = as_hook_left(worktree)?;
    if from_hook.is_empty() {
        return Ok(listed(worktree, "normal")?.iter().map(|path| path_text(path)).collect());
    }
    let paths = differing_from_head(worktree)?.into_iter().filter(|path| !from_hook.contains(path));
    Ok(paths.map(|path| path_text(&path)).collect())
}

/// The same whoever left it, every untracked file by itself.
pub(crate) fn differing_from_head(worktree: &Path) -> Result<Vec<Vec<u8>>, GitError> {
    listed(worktree, "all")
}

fn listed(worktree: &Path, untracked: &str) -> Result<Vec<Vec<u8>>, GitError> {
    let git = Git::new(worktree).args(["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=none"]);
    let listing = git.arg(format!("--untracked-files={untracked}")).run()?;
    Ok(nul_separated(&listing).map(|entry| entry.get(3..).unwrap_or_default().to_vec()).collect())
}

/// Refuses a worktree with uncommitted work.
pub(crate) fn refuse_uncommitted(worktree: &Path) -> Result<(), GitError> {
    if is_pristine(worktree) {
        return Ok(());
    }
    let paths = uncommitted(worktree)?;
    if paths.is_empty() { Ok(()) } else { Err(GitError::Dirty { path: worktree.to_owned(), paths }) }
}

/// The paths in which `worktree`, uncommitted and untracked files included, differs from `base`; sorted.
pub(crate) fn worktree_changes(worktree: &Path, base: &CommitId) -> Result<Vec<String>, GitError> {
    let changed = Git::new(worktree).reading_only().args(["diff", "--name-only", "-z", "--no-renames", base.as_str()]);
    let changed = changed.run()?;
    let untracked = untracked(worktree)?;
    let all = nul_separated(&changed).chain(untracked.iter().map(Vec::as_slice));
    let mut paths: Vec<String> = all.map(path_text).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The files that are neither tracked nor ignored. A repository within the worktree is one entry that ends with `/`.
pub(crate) fn untracked(worktree: &Path) -> Result<Vec<Vec<u8>>, GitError> {
    let listing = Git::new(worktree).reading_only().args(["ls-files", "-z", "--others", "--exclude-standard"]).run()?;
    Ok(nul_separated(&listing).map(<[u8]>::to_vec).collect())
}
