//! The files of a worktree as a tree, by way of a private copy of its index.
//!
//! The copy is made afresh each time, so no snapshot depends on what an earlier one found. Git compares the files with it
//! as carefully as it can, whatever the user's settings say.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::fs::atomic;
use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::{Git, temporary};
use crate::git::history::commit::{add_all, embedded_in};
use crate::git::query::file_system::distrust_times;
use crate::git::query::index_copy::{beside, copy_index};
use crate::git::query::index_flags::clear_flags_in;
use crate::git::query::status::refuse_unreadable_in;
use crate::git::repo::lock::holding;

/// What a snapshot's index is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The worktree's index: only files that differ from it are read.
    Index,
    /// The paths of the worktree's index: every file is read and stored, also one whose object git has lost.
    Paths,
}

/// The tree that `worktree` would be, made with the private index `file`.
pub(crate) fn tree_of(worktree: &Path, file: &Path, start: Start) -> Result<String, GitError> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(io_error("create", parent))?;
    }
    holding(&beside(file, ".guard"), |guard| {
        // What was copied may be damaged.
        SnapshotIndex { worktree, file, guard }.tree(start).inspect_err(|_| drop(fs::remove_file(file)))
    })
}

struct SnapshotIndex<'a> {
    worktree: &'a Path,
    file: &'a Path,
    /// The lock on it.
    guard: &'a File,
}

impl<'a> SnapshotIndex<'a> {
    fn tree(&self, start: Start) -> Result<String, GitError> {
        atomic::remove(&beside(self.file, ".lock"))?;
        atomic::remove(self.file)?;
        match start {
            Start::Index => copy_index(self.worktree, self.file)?,
            Start::Paths => self.list_paths()?,
        }
        clear_flags_in(self.worktree, self.file, || self.git())?;
        distrust_times(self.worktree, self.file);
        self.add_everything()?;
        let tree = self.git().arg("write-tree").line()?;
        // It names what is in the worktree, and git gives it the permissions of any file of its own.
        let private = fs::set_permissions(self.file, Permissions::from_mode(0o600));
        private.map_err(io_error("write", self.file)).map(|()| tree)
    }

    fn git(&self) -> Git<'a> {
        let git = Git::new(self.worktree).comparing_carefully().unsynced().without_hooks();
        git.configured("core.splitIndex=false").variable("GIT_INDEX_FILE", self.file).stdin(self.guard)
    }

    /// Makes an index that knows no file's time, and so has every file read.
    fn list_paths(&self) -> Result<(), GitError> {
        let listing = Git::new(self.worktree).reading_only().args(["ls-files", "-z", "--stage"]).run()?;
        let entries = temporary(self.worktree, &listing)?;
        self.git().stdin(&entries).args(["update-index", "-z", "--index-info"]).run()?;
        Ok(())
    }

    /// Adds every file that is tracked or not ignored.
    fn add_everything(&self) -> Result<(), GitError> {
        let mut tries = 1;
        // A repository within the worktree that has no commit makes git give up, so it must be looked for then.
        let mut embedded = Vec::new();
        loop {
            let git = add_all(self.git(), &embedded);
            let output = git.attempt()?;
            // Git leaves out what it cannot read, and only warns.
            refuse_unreadable_in(self.worktree, &output)?;
            if output.status.success() {
                return Ok(());
            }
            if tries == TRIES {
                return Err(git.failure(&output).into());
            }
            tries += 1;
            embedded = embedded_in(self.worktree)?;
        }
    }
}

/// How often everything is added: an agent at work may remove a file between the listing and the reading.
const TRIES: u32 = 3;
