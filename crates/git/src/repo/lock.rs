//! Locks between threads and between Lanewright processes. They are the kernel's, so they cannot go stale.
//!
//! Order, where more than one is taken: one worktree, then pool, then admin, references or publish, then settings.

use std::fs::File;
use std::path::{Path, PathBuf};

use lanewright_files::directory;
use lanewright_files::lock::exclusively;

use crate::command::Result;
use crate::repo::{Repository, git_directory};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Guarded {
    /// Git's list of worktrees: of 24 concurrent `git worktree add` without it, 12 % fail. Checkouts happen outside.
    Admin,
    /// The claims on slots.
    Pool,
    /// Lanewright's branches and snapshots, where they are moved or deleted.
    References,
    /// Moving the integration branch.
    Publish,
    /// Removing the git directories of agents whose worktrees are gone.
    Private,
    /// Writing the files in Lanewright's directory of the repository: the configuration of libgit2, `published.json`.
    Settings,
}

impl Repository {
    /// Runs `act` while no other thread or process holds the repository's lock for `guarded`; the file is the lock's, to be
    /// handed to every git command that must not outlive it.
    pub(crate) fn holding<T>(&self, guarded: Guarded, act: impl FnOnce(&File) -> Result<T>) -> Result<T> {
        let name = match guarded {
            Guarded::Admin => "admin.guard",
            Guarded::Pool => "pool.guard",
            Guarded::References => "references.guard",
            Guarded::Publish => "publish.guard",
            Guarded::Private => "private.guard",
            Guarded::Settings => "settings.guard",
        };
        holding(&self.own_directory()?.join(name), act)
    }

    /// `<common>/lanewright`, made if it does not exist.
    pub(crate) fn own_directory(&self) -> Result<PathBuf> {
        let path = self.common_dir().join("lanewright");
        directory::create_directory(&path)?;
        Ok(path)
    }
}

/// Runs `act` while no other thread or process of Lanewright works on the index or the files of `worktree`.
pub(crate) fn holding_worktree<T>(worktree: &Path, act: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    holding(&git_directory(worktree)?.join("lanewright.lock"), act)
}

/// Runs `act` while no other thread or process holds the lock `path`.
pub(crate) fn holding<T>(path: &Path, act: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    exclusively(path, act)?
}
