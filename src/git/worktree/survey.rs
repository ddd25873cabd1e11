//! Looking at the pool without touching it: what is held, by whom, and what is in it.

use std::path::{Path, PathBuf};

use super::claim::{Claim, Holder};
use super::condition::{SET_ASIDE, blocker};
use super::pool::{Checkout, Mode, Pool};
use super::slot::{Occupant, is_untouched, occupant};
use crate::git::command::error::GitError;
use crate::git::command::program::path_text;
use crate::git::history::commit::embedded_in;
use crate::git::query::status::uncommitted;
use crate::model::{CommitId, RunId};

/// A slot that a run holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSlot {
    /// The exact holder.
    pub holder: Holder,
    /// The slot's directory.
    pub path: PathBuf,
    /// Whether there is a worktree in which the holder may have worked: its checkout was completed.
    pub provisioned: bool,
}

/// A slot as it lies on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolSlot {
    pub path: PathBuf,
    /// Who holds it, whichever repository's run that is.
    pub holder: Option<Holder>,
    /// Why it may not be removed although nobody holds it.
    pub blocker: Option<String>,
}

impl Pool {
    /// The slots that `run` holds, those included that a crash left half-made.
    ///
    /// # Errors
    /// [`GitError::BadClaim`], [`GitError::File`].
    pub fn held_by(&self, run: &RunId) -> Result<Vec<HeldSlot>, GitError> {
        let mut held = Vec::new();
        for number in self.numbers()? {
            let claim = Claim::read(&self.claim_file(number))?;
            held.extend(
                claim.filter(|claim| claim.holder.run == *run && self.owns(claim)).map(|it| self.held(number, it)),
            );
        }
        Ok(held)
    }

    fn held(&self, number: u32, claim: Claim) -> HeldSlot {
        let path = self.slot(number);
        let provisioned = match occupant(self.repository(), &path) {
            Occupant::Ours(entry) => claim.progress.is_opened() && !is_untouched(&path, &entry),
            Occupant::Nothing | Occupant::HalfMade | Occupant::Stranger => false,
        };
        HeldSlot { holder: claim.holder, path, provisioned }
    }

    /// Every slot that exists, and what was moved aside from one.
    pub(crate) fn survey(&self) -> Result<Vec<PoolSlot>, GitError> {
        let mut slots = Vec::new();
        for number in self.numbers()? {
            let path = self.slot(number);
            let holder = Claim::read(&self.claim_file(number))?.map(|claim| claim.holder);
            let blocker = match occupant(self.repository(), &path) {
                Occupant::Ours(entry) => blocker(self.repository(), &path, &entry, None),
                Occupant::Stranger => Some(GitError::NotOurs { path: path.clone() }.to_string()),
                Occupant::Nothing | Occupant::HalfMade => None,
            };
            slots.push(PoolSlot { path, holder, blocker });
        }
        let aside = self.set_aside().into_iter();
        slots.extend(aside.map(|path| PoolSlot { path, holder: None, blocker: Some(SET_ASIDE.to_owned()) }));
        Ok(slots)
    }

    /// Takes the slot of `holder` back and throws away what is in it, ignored files excepted; it then stands at
    /// `commit`, on no branch.
    pub(crate) fn throw_away(&self, slot: &HeldSlot, commit: &CommitId) -> Result<(), GitError> {
        if slot.provisioned {
            let want = Checkout { branch: None, start: commit.clone(), mode: Mode::Reset, adopt: true };
            self.open(&slot.holder, &want)?;
        }
        self.release(&slot.holder, std::slice::from_ref(commit))
    }
}

/// The repositories within `worktree` that it does not track. No snapshot can hold them.
pub(crate) fn embedded_repositories_in(worktree: &Path) -> Result<Vec<String>, GitError> {
    Ok(embedded_in(worktree)?.iter().map(|path| path_text(path)).collect())
}

/// The paths that are uncommitted in `worktree`: changed, staged, untracked; not ignored ones.
///
/// # Errors
/// What git says.
pub fn uncommitted_paths(worktree: &Path) -> Result<Vec<String>, GitError> {
    uncommitted(worktree)
}
