//! Git's own lock files, which stay behind when git is killed.

use std::path::{Path, PathBuf};

use crate::git::command::error::GitError;
use crate::git::history::references::reference_lock;
use crate::git::repo::git_dir::{git_directory, read_line};
use crate::git::repo::state_file;

/// Where the lock on the index of `worktree` is, if there is one.
pub(crate) fn index_lock(worktree: &Path) -> Result<Option<PathBuf>, GitError> {
    let lock = git_directory(worktree)?.join("index.lock");
    Ok(std::fs::symlink_metadata(&lock).is_ok().then_some(lock))
}

/// Removes the locks on the index of `worktree`, on its head and on the branch it has checked out. Their owners, gits
/// of ours or of an agent, are known to be dead.
pub(crate) fn remove_dead_locks(worktree: &Path) -> Result<(), GitError> {
    let own = git_directory(worktree)?;
    for name in ["index.lock", "HEAD.lock"] {
        state_file::remove(&own.join(name))?;
    }
    let common = own.join(read_line(&own.join("commondir")).unwrap_or_default());
    match read_line(&own.join("HEAD")).as_deref().and_then(|head| head.strip_prefix("ref: ")) {
        Some(reference) => state_file::remove(&reference_lock(&common, reference)),
        None => Ok(()),
    }
}
