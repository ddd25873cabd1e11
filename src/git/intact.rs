//! Whether what a commit holds can still be read: a power cut or a bad disk may take objects that refs lead to.

use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::path::Path;

use super::error::{GitError, io_error};
use super::own_index::forget_tree;
use super::program::Git;
use super::repository::Repository;
use crate::model::CommitId;

/// Which of `commits` cannot be read any more, each with what is wrong: the commit itself, a directory or a file in it
/// is missing or empty. What came before a commit is not looked at, nor every byte of every file.
///
/// # Errors
/// When git cannot be started, or [`GitError::Io`].
pub fn damaged(repository: &Repository, commits: &[CommitId]) -> Result<BTreeMap<CommitId, String>, GitError> {
    if commits.is_empty() || look(repository, commits)?.is_none() {
        return Ok(BTreeMap::new());
    }
    let mut damaged = BTreeMap::new();
    for commit in commits {
        if let Some(reason) = look(repository, std::slice::from_ref(commit))? {
            damaged.insert(commit.clone(), reason);
        }
    }
    Ok(damaged)
}

/// Makes `index` an index that knows nothing, so that everything is read from `worktree` anew.
///
/// # Errors
/// What git says.
pub fn empty_index(worktree: &Path, index: &Path) -> Result<(), GitError> {
    forget_tree(index)?;
    Git::new(worktree).variable("GIT_INDEX_FILE", index).args(["read-tree", "--empty"]).run()?;
    Ok(())
}

/// What is wrong with the first of `commits` with which something is.
fn look(repository: &Repository, commits: &[CommitId]) -> Result<Option<String>, GitError> {
    let git = || Git::new(repository.main_worktree());
    let names = commits.iter().map(CommitId::as_str);
    let listing = git().args(["rev-list", "--objects", "--no-walk"]).args(names).attempt()?;
    if !listing.status.success() {
        return Ok(Some(complaint(&listing.stderr)));
    }
    let place = repository.common_dir();
    let mut objects = tempfile::tempfile().map_err(io_error("list what is in", place))?;
    objects.write_all(&listing.stdout).and_then(|()| objects.rewind()).map_err(io_error("list what is in", place))?;
    let kinds = git().args(["cat-file", "--batch-check=%(objecttype) %(rest)"]).stdin(&objects).attempt()?;
    if !kinds.status.success() {
        return Ok(Some(complaint(&kinds.stderr)));
    }
    let text = String::from_utf8_lossy(&kinds.stdout);
    let there = |line: &&str| ["commit ", "tree ", "blob "].iter().any(|kind| line.starts_with(kind));
    Ok(text.lines().find(|line| !there(line)).map(str::to_owned))
}

fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("git cannot read it");
    line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned()
}
