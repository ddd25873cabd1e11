//! Worktrees that another program removed, replaced or emptied. Called before every task, so also when a run resumes.

use std::path::{Path, PathBuf};

use lanewright_files::atomic;
use lanewright_files::directory::free_name;
use lanewright_model::event::Worktree;
use lanewright_model::{CommitId, Timestamp};

use crate::command::{Git, Result};
use crate::repo::{Guarded, Repository, commit_id, holding_worktree};
use crate::worktree::{
    ASIDE, Holder, Occupant, Pool, Progress, clear_half_made, has_only_link, is_untouched, occupant,
};

/// A worktree that is not in its slot any more, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The last head that git recorded for it.
    pub head: Option<CommitId>,
    /// The new path of what was found in the slot; `None`: no files were.
    pub aside: Option<PathBuf>,
}

impl Repository {
    /// Writes the files of a worktree of the pool again if nothing but `.git` is left of it, although its head has files
    /// and nothing is staged: a commit there would delete them. Returns whether it did.
    pub fn refill_if_emptied(&self, path: &Path) -> Result<bool> {
        if !has_only_link(path) || self.own_entry(path).is_none() {
            return Ok(false);
        }
        holding_worktree(path, |lock| {
            // What is staged may be nowhere else.
            let staged = Git::new(path).reading_only().args(["diff", "--cached", "--name-only", "-z"]).paths()?;
            if staged.is_empty() && has_only_link(path) {
                Git::new(path).stdin(lock).args(["checkout-index", "--all", "--quiet"]).run()?;
            }
            // The head may have no files, or none that are selected.
            Ok(staged.is_empty() && !has_only_link(path))
        })
    }
}

impl Pool {
    /// Makes room in the slot of `holder` at `path` if its worktree is missing or replaced: what is in its place is moved
    /// aside, never deleted, to a name that contains `at`, and git forgets the worktree. `None`: the worktree is intact,
    /// or `holder` does not hold the slot.
    pub fn set_lost_aside(&self, holder: &Holder, path: &Path, at: Timestamp) -> Result<Option<Lost>> {
        match self.repository.own_entry(path) {
            Some(_) => Ok(None),
            None => self.move_aside(holder, path, at),
        }
    }

    /// Moves aside what is in the slot, whatever it is.
    pub(crate) fn move_aside(&self, holder: &Holder, path: &Path, at: Timestamp) -> Result<Option<Lost>> {
        let held = self.own_claims()?.into_iter().find(|(number, _)| self.slot(*number) == path);
        if held.is_none_or(|(_, claim)| claim.holder != *holder || claim.progress == Progress::Claimed) {
            return Ok(None);
        }
        self.repository.holding(Guarded::Admin, |_| {
            let head = self.registered_head(path)?;
            let aside = match occupant(&self.repository, path) {
                Occupant::Nothing => None,
                Occupant::Ours(_) | Occupant::HalfMade | Occupant::Foreign => {
                    let aside = free_name(path, &format!("{ASIDE}{}", at.compact()));
                    atomic::rename(path, &aside)?;
                    Some(aside)
                }
            };
            clear_half_made(&self.repository, path)?;
            Ok(Some(Lost { head, aside }))
        })
    }

    /// The worktree of `holder` if it was made, again, and never checked out.
    pub fn never_checked_out(&self, worktree: &Worktree) -> Result<Option<Lost>> {
        let entry = self.repository.own_entry(&worktree.path);
        match entry.is_some_and(|entry| is_untouched(&worktree.path, &entry)) {
            true => Ok(Some(Lost { head: self.registered_head(&worktree.path)?, aside: None })),
            false => Ok(None),
        }
    }

    /// Whether a checkout in the worktree of `holder` was not completed. It holds no work then.
    pub fn is_half_checked_out(&self, holder: &Holder, worktree: &Worktree) -> Result<bool> {
        Ok(matches!(self.read_claim(worktree.slot, holder)?.progress, Progress::Started { .. }))
    }

    /// Removes what a checkout that failed has written into the slot at `path`, which was missing before.
    pub fn discard_unfinished(&self, path: &Path) -> Result<()> {
        let Some(entry) = self.repository.own_entry(path) else { return Ok(()) };
        self.repository.holding(Guarded::Admin, |_| self.discard(path, &entry))
    }

    /// The head of the worktree that is registered at `path`, whatever is there.
    fn registered_head(&self, path: &Path) -> Result<Option<CommitId>> {
        let Some(entry) = self.repository.entry_at(path)? else { return Ok(None) };
        let git = self.repository.git().arg("--git-dir").arg(&entry.directory);
        let output = git.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).attempt()?;
        output.status.success().then(|| commit_id(&output.stdout)).transpose()
    }
}
