//! Claims on slots that were removed or damaged. Called when a resume or a task finds one, and by the doctor.

use std::path::{Path, PathBuf};

use lanewright_files::atomic;
use lanewright_files::directory::{create_directory, sync_directory, with_suffix};
use lanewright_model::event::Worktree;

use crate::command::{GitError, Result};
use crate::query::Head;
use crate::repo::Guarded;
use crate::worktree::{Checkout, Claim, Holder, Pool, Progress, branch_of, is_untouched, unchanged_since_release};

/// What became of a claim that the run log expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFound {
    Held,
    /// It was missing or damaged, and was written again.
    Restored,
    /// The slot was given back: the claim is rightly missing.
    Released,
}

impl Pool {
    /// Writes the claim of `holder` on the slot of `worktree` again where it is missing or damaged, unless the slot was
    /// given back. According to the run log `holder` holds the slot.
    ///
    /// # Errors
    /// [`GitError::NotOurs`] when another holder claims the slot at the same moment.
    pub fn restore_claim(&self, holder: &Holder, worktree: &Worktree) -> Result<ClaimFound> {
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
        Ok(ClaimFound::Restored)
    }

    /// Whether the slot was given back: a slot is detached before its claim is removed. So is one that is being made again.
    fn is_given_back(&self, worktree: &Worktree) -> bool {
        let entry = self.repository.own_entry(&worktree.path).filter(|entry| !is_untouched(&worktree.path, entry));
        let Some(entry) = entry else { return false };
        match self.repository.head_at(&worktree.path) {
            Ok(Head { branch: None, commit }) => {
                !worktree.branch.is_empty() || unchanged_since_release(&entry, &commit)
            }
            _ => false,
        }
    }

    /// Notes again that `holder` holds the slot `worktree`, and makes its link. A claim that cannot be read is kept beside
    /// it.
    pub fn reclaim(&self, holder: &Holder, worktree: &Worktree) -> Result<()> {
        create_directory(&self.slots())?;
        let file = self.claim_file(worktree.slot);
        let claim = self.opened_claim(holder, worktree);
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&file) {
            Ok(Some(known)) if known.holder == *holder => Ok(()),
            Ok(Some(_)) => Err(GitError::NotOurs { path: file.clone() }),
            Ok(None) => claim.create(&file).map(drop),
            Err(_) => {
                set_damaged_aside(&file)?;
                claim.create(&file).map(drop)
            }
        })?;
        self.link(holder, &worktree.path)
    }

    /// What the claim of `holder` says once `worktree` is open.
    pub(crate) fn opened_claim(&self, holder: &Holder, worktree: &Worktree) -> Claim {
        Claim {
            repository: self.repository.common_dir().to_owned(),
            holder: holder.clone(),
            progress: Progress::Opened { branch: branch_of(worktree), head: worktree.head.clone() },
        }
    }

    /// Sets a claim aside that cannot be read and that belongs to no run; the slot stays as it is. Returns its new path.
    pub fn drop_claim(&self, file: &Path) -> Result<PathBuf> {
        self.repository.holding(Guarded::Pool, |_| set_damaged_aside(file))
    }

    /// Gives `holder` the slot `worktree` back, which is gone or whose claim is, with its branch, which exists.
    pub fn reopen(&self, holder: &Holder, worktree: &Worktree) -> Result<()> {
        self.reclaim(holder, worktree)?;
        let opened = self.open(holder, &Checkout::again(worktree))?;
        match opened.path == worktree.path {
            true => Ok(()),
            false => Err(GitError::NotOurs { path: worktree.path.clone() }),
        }
    }
}

/// Renames a file that cannot be read to a name that nothing reads.
fn set_damaged_aside(file: &Path) -> Result<PathBuf> {
    let aside = with_suffix(file, ".damaged");
    atomic::rename(file, &aside)?;
    file.parent().map_or(Ok(()), sync_directory)?;
    Ok(aside)
}
