//! The worktrees that a repository knows, read from its files: git's own listing fails while another process adds one.

use std::fs;
use std::path::{Path, PathBuf};

use super::along::Advance;
use super::error::{GitError, io_error};
use super::repository::Repository;
use super::slot::{git_directory, same_place};
use crate::fs::regular_file;
use crate::model::CommitId;

/// What a repository knows of one worktree.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
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

    /// The checkouts that a Lanekeeper was moving along when it died, unless one of ours moves them now.
    pub(crate) fn half_moved(&self) -> Result<Vec<(PathBuf, Advance)>, GitError> {
        let here = self.all_worktrees()?.into_iter().filter(Entry::is_there);
        Ok(here.filter_map(|entry| Some((entry.worktree, Advance::under_way(&entry.directory)?))).collect())
    }

    fn all_worktrees(&self) -> Result<Vec<Entry>, GitError> {
        let main = Entry { directory: self.common_dir().to_owned(), worktree: self.main_worktree().to_owned() };
        Ok(std::iter::once(main).chain(self.linked_worktrees()?).collect())
    }

    /// Where the worktree at `path` last stood, if it is on `branch`, whether or not that exists: one that is on no branch
    /// stands at a merge that is being tested.
    pub(crate) fn last_head_on(&self, path: &Path, branch: &str) -> Option<CommitId> {
        let entry = self.linked_worktrees().ok()?.into_iter().find(|entry| entry.worktree == path)?;
        entry.holds(branch).then(|| self.last_head(path)).flatten()
    }

    /// Every linked worktree that is registered completely enough to have a place.
    pub(crate) fn linked_worktrees(&self) -> Result<Vec<Entry>, GitError> {
        let entries = directories_in(&self.common_dir().join("worktrees"))?;
        Ok(entries
            .into_iter()
            .filter_map(|directory| {
                let worktree = registered_place(&directory)?;
                Some(Entry { directory, worktree })
            })
            .collect())
    }
}

impl Entry {
    /// Whether the worktree is where it should be; it may be gone, and something else be in its place.
    fn is_there(&self) -> bool {
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

/// Where the files of the worktree registered in `directory` should be.
pub(crate) fn registered_place(directory: &Path) -> Option<PathBuf> {
    let link = directory.join(read_line(&directory.join("gitdir"))?);
    Some(link.parent()?.to_owned())
}

/// The first line of a small file; `None`: there is none to read.
pub(crate) fn read_line(path: &Path) -> Option<String> {
    let text = regular_file::read_text(path).ok()?;
    Some(text.lines().next().unwrap_or_default().to_owned())
}

/// The directories in `path`, symbolic links not counted; none if `path` does not exist.
pub(crate) fn directories_in(path: &Path) -> Result<Vec<PathBuf>, GitError> {
    let listing = match fs::read_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing.map_err(io_error("list", path))?,
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(io_error("list", path))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
