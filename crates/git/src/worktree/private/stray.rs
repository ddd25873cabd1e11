//! Keeps the commits of agents whose worktrees are gone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lanewright_model::CommitId;

use super::files::head_in;
use super::home::{Home, Record, Stage, discard, private_git_directory, record_in};
use super::references::References;
use crate::command::Result;
use crate::fast::durable;
use crate::history::references::force_reference;
use crate::repo::{Repository, holding};

/// Below it are commits of agents that no branch has and whose worktrees were removed.
const RESCUED: &str = "refs/lanewright/rescued";

/// Removes the git directory of an agent with its record; commits that only it has are kept. The caller holds the lock of the
/// entry, if there is one.
pub(super) fn discard_home(repository: &Repository, place: &Path) -> Result<()> {
    if let Some(mut stray) = Stray::in_place(repository, place)? {
        stray.bring_over_now()?;
    }
    discard(repository, place)
}

/// The git directory of an agent whose work was not taken over, whether or not its worktree is there.
pub(super) struct Stray<'a> {
    home: Home<'a>,
    record: Record,
}

impl<'a> Stray<'a> {
    pub(super) fn in_place(repository: &'a Repository, place: &'a Path) -> Result<Option<Self>> {
        let record = record_in(place)?.filter(|record| record.stage == Stage::Working);
        let (Some(record), Some(name)) = (record, place.file_name()) else { return Ok(None) };
        let entry = repository.entries_directory().join(name);
        let home = Home { repository, worktree: place, entry, place: place.to_owned() };
        Ok(Some(Self { home, record }))
    }

    /// The worktree that leads there.
    pub(super) fn worktree(&self) -> Option<PathBuf> {
        let worktree = crate::repo::registered_place(&self.home.entry)?;
        private_git_directory(&worktree).filter(|git| *git == self.home.git()).map(|_| worktree)
    }

    pub(super) fn bring_over(mut self) -> Result<()> {
        if self.home.entry.exists() {
            let lock = self.home.entry.join("lanewright.lock");
            holding(&lock, |_| self.bring_over_now())
        } else {
            self.bring_over_now()
        }
    }

    fn bring_over_now(&mut self) -> Result<()> {
        let (git, repository) = (self.home.git(), self.home.repository);
        let Ok(references) = References::of(&git, &[]) else { return Ok(()) };
        let named = |name: &str| CommitId::new(references.named.get(name)?.object.as_str()).ok();
        let head = head_in(&git).and_then(|head| match head.strip_prefix("ref: ") {
            Some(name) => named(name),
            None => CommitId::new(&head).ok(),
        });
        let branch = self.record.branch.clone();
        let tip = branch.as_deref().and_then(named);
        let tips: BTreeSet<CommitId> =
            tip.iter().chain(&head).filter(|tip| self.record.base.as_ref() != Some(tip)).cloned().collect();
        if tips.is_empty() || self.home.copy_objects(&self.record, &tips.iter().collect::<Vec<_>>(), None).is_err() {
            return Ok(());
        }
        for tip in &tips {
            durable::objects(repository, tip, self.record.base.iter())?;
        }
        if let (Some(name), Some(tip)) = (&branch, &tip) {
            self.home.move_branch(&mut self.record, name, tip)?;
        }
        for tip in tips.iter().filter(|tip| !repository.is_in_any_reference_or_lost(tip)) {
            force_reference(repository, &format!("{RESCUED}/{tip}"), tip)?;
        }
        Ok(())
    }
}
