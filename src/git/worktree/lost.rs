//! Worktrees and claims that were removed or replaced while a run held them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::event::Worktree;
use crate::fs::atomic;
use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::Git;
use crate::git::query::head::Head;
use crate::git::repo::git_dir::{directories_in, registered_place};
use crate::git::repo::lock::Guarded;
use crate::git::repo::repository::commit_id;
use crate::git::worktree::claim::{Claim, Holder, Progress};
use crate::git::worktree::condition::rests_since_release;
use crate::git::worktree::examine::Standing;
use crate::git::worktree::pool::Pool;
use crate::git::worktree::slot::{Occupant, clear_half_made, occupant};
use crate::model::{CommitId, Timestamp};

/// What goes between a slot's number and the time in the name of what was found in its place.
const ASIDE: &str = ".aside-";

/// A worktree that is not in its slot any more, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    /// The last head that git recorded for it.
    pub head: Option<CommitId>,
    /// The new path of what was found in the slot; `None`: the slot was empty.
    pub aside: Option<PathBuf>,
}

/// What became of a claim that the run log expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFound {
    /// The claim exists.
    Held,
    /// It was missing or damaged, and was written again.
    Restored,
    /// The slot was given back: the claim is rightly missing.
    Released,
}

impl Pool {
    /// Makes room in the slot of `holder` at `path` if its worktree is missing or replaced: what is in its place is moved
    /// aside, never deleted, to a name that contains `at`, and git forgets the worktree. `None`: the worktree is intact,
    /// or `holder` does not hold the slot.
    pub(crate) fn set_lost_aside(&self, holder: &Holder, path: &Path, at: Timestamp) -> Result<Option<Lost>, GitError> {
        if let Occupant::Ours(_) = occupant(self.repository(), path) {
            return Ok(None);
        }
        let held = self.own_claims()?.into_iter().find(|(number, _)| self.slot(*number) == path);
        if held.is_none_or(|(_, claim)| claim.holder != *holder || claim.progress == Progress::Claimed) {
            return Ok(None);
        }
        self.repository().holding(Guarded::Admin, |_| {
            let head = self.last_head(path)?;
            let aside = self.move_aside(path, at)?;
            clear_half_made(self.repository(), path)?;
            Ok(Some(Lost { head, aside }))
        })
    }

    /// Writes the claim of `holder` on the slot of `worktree` again where it is missing or damaged, unless the slot was
    /// given back. The run log says that `holder` holds the slot.
    ///
    /// # Errors
    /// [`GitError::File`]; [`GitError::NotOurs`] when another holder claims the slot at the same moment.
    pub fn restore_claim(&self, holder: &Holder, worktree: &Worktree) -> Result<ClaimFound, GitError> {
        match Claim::read(&self.claim_file(worktree.slot)) {
            Ok(Some(claim)) if claim.holder == *holder => {
                self.note_holder(worktree.slot, holder);
                return Ok(ClaimFound::Held);
            }
            // Only a slot that was given back can be claimed by another holder.
            Ok(Some(_)) => return Ok(ClaimFound::Released),
            _ if self.is_given_back(worktree) => return Ok(ClaimFound::Released),
            _ => {}
        }
        self.reclaim(holder, worktree)?;
        self.note_holder(worktree.slot, holder);
        self.link(holder, &worktree.path)?;
        Ok(ClaimFound::Restored)
    }

    /// Whether the slot was given back: a slot is detached before its claim is removed.
    fn is_given_back(&self, worktree: &Worktree) -> bool {
        let Occupant::Ours(entry) = occupant(self.repository(), &worktree.path) else { return false };
        match self.repository().head_at(&worktree.path) {
            Ok(Head { branch: None, commit }) => !worktree.branch.is_empty() || rests_since_release(&entry, &commit),
            _ => false,
        }
    }

    /// Makes git know the worktree in its slot again, with every file as it is, where only git's own record of it was
    /// removed or is wrong. Returns whether it did.
    pub(crate) fn register_again(&self, worktree: &Worktree) -> Result<bool, GitError> {
        let (path, branch) = (&worktree.path, &worktree.branch);
        if let Occupant::Ours(_) = occupant(self.repository(), path) {
            return Ok(false);
        }
        match self.repository().standing(path, branch)? {
            Standing::Forgotten(entry) => self.register(worktree, &entry)?,
            Standing::Misplaced => self.place(path)?,
            Standing::Moved(from) => self.bring_back(&from, path)?,
            _ => return Ok(false),
        }
        Ok(true)
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
        atomic::rename(path, &aside).map_err(io_error("move", path))?;
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
