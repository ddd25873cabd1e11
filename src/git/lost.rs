//! Worktrees that are gone, or have become something else, while somebody held them.

use std::fs;
use std::path::{Path, PathBuf};

use super::admin_lock::Guarded;
use super::claim::{Claim, Holder, Progress};
use super::error::{GitError, io_error};
use super::pool::Pool;
use super::program::Git;
use super::repository::commit_id;
use super::slot::{Occupant, clear_half_made, occupant};
use super::worktrees::directories_in;
use super::worktrees::registered_place;
use crate::model::{CommitId, Timestamp};

/// What goes between a slot's number and the time in the name of what was found in its place.
const ASIDE: &str = ".aside-";

/// A worktree that is not there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Who holds the slot still; there is nothing in it.
    pub holder: Holder,
    /// The branch that was checked out when it was opened.
    pub branch: Option<String>,
    /// Where it stood when it was opened.
    pub opened: CommitId,
    /// Where its head was last, if git still knew.
    pub head: Option<CommitId>,
    /// Where what was in its place is now; `None`: nothing was.
    pub aside: Option<PathBuf>,
}

impl Pool {
    /// Makes room in the slot at `path` if its worktree is gone or replaced: whatever is there is moved aside, never
    /// deleted, under a name with `at` in it, and git forgets the worktree. `None`: it is there, or nobody holds it.
    ///
    /// # Errors
    /// [`GitError::Io`], or what git says.
    pub fn set_lost_aside(&self, path: &Path, at: Timestamp) -> Result<Option<Lost>, GitError> {
        if let Occupant::Ours(_) = occupant(self.repository(), path) {
            return Ok(None);
        }
        let held = self.own_claims()?.into_iter().find(|(number, _)| self.slot(*number) == path);
        let Some((_, Claim { holder, progress: Progress::Opened { branch, head: opened }, .. })) = held else {
            return Ok(None);
        };
        self.repository().holding(Guarded::Admin, |_| {
            let head = self.last_head(path)?;
            let aside = self.move_aside(path, at)?;
            clear_half_made(self.repository(), path)?;
            Ok(Some(Lost { holder, branch, opened, head, aside }))
        })
    }

    /// What was moved aside, of whichever run.
    pub(crate) fn set_aside(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.slots()).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> =
            entries.filter(|entry| entry.file_name().to_string_lossy().contains(ASIDE)).map(|it| it.path()).collect();
        found.sort();
        found
    }

    fn move_aside(&self, path: &Path, at: Timestamp) -> Result<Option<PathBuf>, GitError> {
        if matches!(occupant(self.repository(), path), Occupant::Nothing) {
            return Ok(None);
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{ASIDE}{}", at.compact()));
        let names = std::iter::once(PathBuf::from(&name)).chain((2..).map(|number| {
            let mut name = name.clone();
            name.push(format!("-{number}"));
            name.into()
        }));
        let Some(aside) = names.into_iter().find(|aside| fs::symlink_metadata(aside).is_err()) else { return Ok(None) };
        fs::rename(path, &aside).map_err(io_error("move", path))?;
        Ok(Some(aside))
    }

    /// The head of the worktree that is registered at `path`, whatever is there.
    fn last_head(&self, path: &Path) -> Result<Option<CommitId>, GitError> {
        let entries = directories_in(&self.repository().common_dir().join("worktrees"))?;
        let Some(entry) = entries.into_iter().find(|entry| registered_place(entry).as_deref() == Some(path)) else {
            return Ok(None);
        };
        let git = Git::new(self.repository().main_worktree()).arg("--git-dir").arg(&entry);
        let output = git.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).attempt()?;
        output.status.success().then(|| commit_id(&output.stdout)).transpose()
    }
}
