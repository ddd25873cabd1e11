//! The files of a worktree as a tree, by way of a private copy of its index.
//!
//! The copy is made afresh each time, so no snapshot depends on what an earlier one found. Git compares the files with it
//! as carefully as it can, whatever the user's settings are.

use std::fs::File;
use std::path::Path;

use lanewright_files::atomic;
use lanewright_files::directory::{create_directory, with_suffix};

use crate::command::{Git, Result, io_error};
use crate::history::{add_everything, unstage};
use crate::query::{LeftOutReason, clear_flags_in, copy_index, distrust_times, entries_in, restore_untouched};
use crate::repo::{LeftOutRules, Repository, git_directory, holding};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The worktree's index: only files that differ from it are read.
    Index,
    /// The paths of the worktree's index: every file is read and stored, also one whose object git has lost.
    Paths,
}

/// Which new files a tree has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Those that are committed as work.
    Work,
    /// Those of editors and large ones, too: only what programs make again, and what was copied, is left out.
    Everything,
}

/// The tree that `worktree` would be.
pub(crate) fn tree_of(repository: &Repository, worktree: &Path, start: Start, extent: Extent) -> Result<String> {
    let file = git_directory(worktree)?.join("lanewright.snapshot");
    holding(&with_suffix(&file, ".guard"), |guard| {
        // A git that died may have left them.
        atomic::remove(&with_suffix(&file, ".lock"))?;
        atomic::remove(&file)?;
        let index = SnapshotIndex { worktree, file: &file, guard, objects: None };
        let tree = index.tree(start, &repository.left_out_rules, extent);
        atomic::remove(&file)?;
        tree
    })
}

/// Writes the objects of every file of `worktree`, and those of its index as far as its files make them, into an empty
/// directory, which `take` is given and which is removed then.
pub(crate) fn write_all_objects<T>(worktree: &Path, take: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let directory = git_directory(worktree)?;
    let (file, made) = (directory.join("lanewright.snapshot"), directory.join("lanewright.objects"));
    holding(&with_suffix(&file, ".guard"), |guard| {
        let remove = || atomic::remove_all(&made).map_err(io_error("remove", &made));
        remove()?;
        create_directory(&made)?;
        let index = SnapshotIndex { worktree, file: &file, guard, objects: Some(&made) };
        for start in [Start::Paths, Start::Index] {
            atomic::remove(&with_suffix(&file, ".lock"))?;
            atomic::remove(&file)?;
            if start == Start::Index {
                // What is staged, or the head where nothing is.
                copy_index(worktree, &file)?;
                index.git().args(["write-tree", "--missing-ok"]).attempt()?;
            } else {
                index.list_paths()?;
                let entries = clear_flags_in(worktree, &file, || index.git())?;
                add_everything(worktree, || index.git(), &entries, &[])?;
                index.git().args(["write-tree", "--missing-ok"]).run()?;
            }
        }
        atomic::remove(&file)?;
        let taken = take(&made)?;
        remove()?;
        Ok(taken)
    })
}

/// The tree that a worktree would be with all work that is not committed in it.
pub fn present_tree(repository: &Repository, worktree: &Path) -> Result<String> {
    tree_of(repository, worktree, Start::Index, Extent::Work)
}

struct SnapshotIndex<'a> {
    worktree: &'a Path,
    file: &'a Path,
    guard: &'a File,
    /// Where objects are written; `None`: into the repository.
    objects: Option<&'a Path>,
}

impl<'a> SnapshotIndex<'a> {
    fn tree(&self, start: Start, rules: &LeftOutRules, extent: Extent) -> Result<String> {
        match start {
            Start::Index => copy_index(self.worktree, self.file)?,
            Start::Paths => self.list_paths()?,
        }
        let before = clear_flags_in(self.worktree, self.file, || self.git())?;
        distrust_times(self.worktree, self.file);
        add_everything(self.worktree, || self.git(), &before, &[])?;
        let mut after = entries_in(self.file, &|| self.git())?;
        restore_untouched(self.worktree, || self.git(), (&before, &mut after), || Ok(true))?;
        let mut left_out = rules.left_out_of_addition(self.worktree, [&before, &after], || self.git())?;
        left_out
            .retain(|it| extent == Extent::Work || matches!(it.reason, LeftOutReason::Tree | LeftOutReason::Copied));
        unstage(|| self.git(), &left_out, &[])?;
        Ok(self.git().arg("write-tree").line()?)
    }

    fn git(&self) -> Git<'a> {
        let git = Git::new(self.worktree).comparing_carefully().unsynced().without_hooks();
        let git = git.configured("core.splitIndex=false").variable("GIT_INDEX_FILE", self.file).stdin(self.guard);
        match self.objects {
            Some(objects) => git.variable("GIT_OBJECT_DIRECTORY", objects),
            None => git,
        }
    }

    /// Makes an index without any file's time, which has every file read.
    fn list_paths(&self) -> Result<()> {
        let listing = Git::new(self.worktree).reading_only().args(["ls-files", "-z", "--stage"]).run()?;
        self.git().input(listing).args(["update-index", "-z", "--index-info"]).run()?;
        Ok(())
    }
}
