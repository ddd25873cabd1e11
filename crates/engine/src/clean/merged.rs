//! Which commits of runs are in their integration branches.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_git::{GitError, Repository};
use lanewright_model::CommitId;

use crate::doctor::Expected;

/// The commits that the logs of runs name, found in one walk of each integration branch: with one walk for each commit,
/// the time would grow with the lanes times the history.
#[derive(Debug, Default)]
pub struct MergedCommits(BTreeMap<CommitId, Known>);

/// What is known of the history of one commit.
#[derive(Debug, Default)]
struct Known {
    asked: BTreeSet<CommitId>,
    merged: BTreeSet<CommitId>,
}

impl MergedCommits {
    /// Walks the history of each integration branch once, for all commits that the logs of `runs` name.
    ///
    /// # Errors
    /// Git cannot read a branch or its history.
    pub fn find<'r>(repository: &Repository, runs: impl IntoIterator<Item = &'r Expected>) -> Result<Self, GitError> {
        let mut by_branch: BTreeMap<&str, BTreeSet<CommitId>> = BTreeMap::new();
        for run in runs {
            by_branch.entry(&run.started.base_branch).or_default().extend(named(run).cloned());
        }
        let mut found = Self::default();
        for (branch, asked) in by_branch {
            if let Some(tip) = repository.branch_commit(branch)? {
                let merged = repository.held_by(&tip, &asked)?;
                found.0.insert(tip, Known { asked, merged });
            }
        }
        Ok(found)
    }

    /// Whether `tip` holds `commit`; `None`: no log names the commit, or the branch was not at `tip`.
    pub(super) fn contains(&self, tip: &CommitId, commit: &CommitId) -> Option<bool> {
        let known = self.0.get(tip).filter(|known| known.asked.contains(commit))?;
        Some(known.merged.contains(commit))
    }
}

/// The merges of a run, and where its branches last stood.
fn named(run: &Expected) -> impl Iterator<Item = &CommitId> {
    run.history.lanes().iter().flat_map(|lane| {
        let workplaces = std::iter::once(&lane.workplace).chain(lane.agents.iter().map(|agent| &agent.workplace));
        lane.merge_commit.iter().chain(workplaces.filter_map(|workplace| workplace.head.as_ref()))
    })
}
