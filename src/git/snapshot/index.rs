//! The files of a worktree as a tree, by way of a private copy of its index.
//!
//! The copy is made afresh each time, so no snapshot depends on what an earlier one found. Git compares the files with it
//! as carefully as it can, whatever the user's settings are.

use std::fs::File;
use std::path::Path;

use crate::fs::atomic;
use crate::fs::directory::with_suffix;
use crate::git::command::{Git, Result};
use crate::git::history::add_everything;
use crate::git::query::{clear_flags_in, copy_index, distrust_times};
use crate::git::repo::{git_directory, holding};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The worktree's index: only files that differ from it are read.
    Index,
    /// The paths of the worktree's index: every file is read and stored, also one whose object git has lost.
    Paths,
}

/// The tree that `worktree` would be.
pub(crate) fn tree_of(worktree: &Path, start: Start) -> Result<String> {
    let file = git_directory(worktree)?.join("lanewright.snapshot");
    holding(&with_suffix(&file, ".guard"), |guard| {
        // A git that died may have left them.
        atomic::remove(&with_suffix(&file, ".lock"))?;
        atomic::remove(&file)?;
        let tree = SnapshotIndex { worktree, file: &file, guard }.tree(start);
        atomic::remove(&file)?;
        tree
    })
}

/// The tree that a worktree would be with all that is not committed in it.
pub fn present_tree(worktree: &Path) -> Result<String> {
    tree_of(worktree, Start::Index)
}

struct SnapshotIndex<'a> {
    worktree: &'a Path,
    file: &'a Path,
    guard: &'a File,
}

impl<'a> SnapshotIndex<'a> {
    fn tree(&self, start: Start) -> Result<String> {
        match start {
            Start::Index => copy_index(self.worktree, self.file)?,
            Start::Paths => self.list_paths()?,
        }
        clear_flags_in(self.worktree, self.file, || self.git())?;
        distrust_times(self.worktree, self.file);
        add_everything(self.worktree, || self.git(), &[])?;
        Ok(self.git().arg("write-tree").line()?)
    }

    fn git(&self) -> Git<'a> {
        let git = Git::new(self.worktree).comparing_carefully().unsynced().without_hooks();
        git.configured("core.splitIndex=false").variable("GIT_INDEX_FILE", self.file).stdin(self.guard)
    }

    /// Makes an index without any file's time, which has every file read.
    fn list_paths(&self) -> Result<()> {
        let listing = Git::new(self.worktree).reading_only().args(["ls-files", "-z", "--stage"]).run()?;
        self.git().input(listing).args(["update-index", "-z", "--index-info"]).run()?;
        Ok(())
    }
}
