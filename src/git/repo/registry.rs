//! The worktrees that a repository knows, read from its files: git's own listing fails while another process adds one.

use std::path::{Path, PathBuf};

use crate::git::command::error::GitError;
use crate::git::repo::git_dir::{directories_in, git_directory, read_line, registered_place, same_place};
use crate::git::repo::repository::Repository;
use crate::model::CommitId;

/// What a repository knows of one worktree.
#[derive(Debug, Clone)]
pub(crate) struct WorktreeEntry {
    /// Git's own directory for it: the common directory, or one in `<common>/worktrees/`.
    pub(crate) directory: PathBuf,
    /// Where its files should be; they may be gone.
    pub(crate) worktree: PathBuf,
}

impl Repository {
    /// The worktree that has `branch` checked out, or will have it when its rebase ends.
    ///
    /// # Errors
    /// [`GitError::File`], or what git says.
    pub fn where_checked_out(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        Ok(self.all_checked_out(branch)?.into_iter().next())
    }

    /// The same for every worktree: `--ignore-other-worktrees` allows more than one.
    pub(crate) fn all_checked_out(&self, branch: &str) -> Result<Vec<PathBuf>, GitError> {
        let mut places = Vec::new();
        for entry in self.all_worktrees()? {
            if entry.holds(branch) && entry.is_there() {
                places.push(entry.worktree);
            }
        }
        Ok(places)
    }

    /// The main worktree and all linked ones.
    pub(crate) fn all_worktrees(&self) -> Result<Vec<WorktreeEntry>, GitError> {
        let main = WorktreeEntry { directory: self.common_dir().to_owned(), worktree: self.main_worktree().to_owned() };
        Ok(std::iter::once(main).chain(self.linked_worktrees()?).collect())
    }

    /// Where the worktree at `path` last stood, if it is on `branch`, whether or not that exists: one that is on no branch
    /// stands at a merge that is being tested.
    pub(crate) fn last_head_on(&self, path: &Path, branch: &str) -> Option<CommitId> {
        let entry = self.linked_worktrees().ok()?.into_iter().find(|entry| entry.worktree == path)?;
        entry.holds(branch).then(|| self.last_head(path)).flatten()
    }

    /// Every linked worktree that is registered completely enough to have a place.
    pub(crate) fn linked_worktrees(&self) -> Result<Vec<WorktreeEntry>, GitError> {
        let entries = directories_in(&self.common_dir().join("worktrees"))?;
        Ok(entries
            .into_iter()
            .filter_map(|directory| {
                let worktree = registered_place(&directory)?;
                Some(WorktreeEntry { directory, worktree })
            })
            .collect())
    }
}

impl WorktreeEntry {
    /// Whether the worktree is where it should be; it may be gone, or something else may be in its place.
    pub(crate) fn is_there(&self) -> bool {
        git_directory(&self.worktree).is_ok_and(|named| same_place(&named, &self.directory))
    }

    /// Whether the worktree is on `branch`, or will be when its rebase ends.
    pub(crate) fn holds(&self, branch: &str) -> bool {
        let full = format!("refs/heads/{branch}");
        let rebasing = ["rebase-merge/head-name", "rebase-apply/head-name"];
        let says = |file: &str, line: &str| read_line(&self.directory.join(file)).as_deref() == Some(line);
        rebasing.iter().any(|file| says(file, &full)) || says("HEAD", &format!("ref: {full}"))
    }
}
