//! Measures what a lane changed, for the user who is asked to approve it.

use std::sync::Arc;

use lanewright_git::{FileChange, GitError, Repository};
use lanewright_model::event::{Event, RunStarted};
use lanewright_model::ownership::Protection;
use lanewright_model::{ChangeSize, CommitId, LaneIndex};
use lanewright_schedule::RunState;

use super::{Executor, Prepared, Result, lane_head};

impl Executor {
    pub(super) fn size_between(&self, from: &CommitId, to: &CommitId) -> Result<ChangeSize, GitError> {
        Ok(size_of(&self.repository.changes(from.as_str(), to.as_str())?))
    }

    pub(super) fn measure_changes(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let (head, base) = (lane_head(state, lane)?, state.lane(lane).first_base().cloned());
        Ok(self.task(lane, state, move |executor| {
            let facts = &executor.facts;
            let (changes, protected) = measured(&executor.repository, facts, base.as_ref(), &head)?;
            Ok(vec![Event::ChangesMeasured { lane: executor.id(lane), head: head.clone(), changes, protected }])
        }))
    }

    /// The changes of a lane as they are to be approved if the merge of its head onto a commit changes protected files that
    /// are not `asked_about`: git carries a change into a file that was renamed meanwhile.
    pub(super) fn more_protected(
        &self,
        lane: LaneIndex,
        (changes, asked_about): &(Option<ChangeSize>, Vec<String>),
        [onto, head, merge]: [&CommitId; 3],
    ) -> Result<Option<Event>> {
        let Some(changes) = changes.filter(|_| !self.facts.options.protect.is_empty()) else { return Ok(None) };
        let found = protected(&self.facts, self.repository.changed_paths(onto, merge)?.iter());
        let mut all = asked_about.clone();
        all.extend(found.into_iter().filter(|path| !asked_about.contains(path)));
        let is_more = all.len() > asked_about.len();
        let (lane, head) = (self.id(lane), head.clone());
        Ok(is_more.then_some(Event::ChangesMeasured { lane, head, changes, protected: all }))
    }
}

/// Those of the `changed` paths that only a person lets a lane change.
fn protected<'p>(started: &RunStarted, changed: impl Iterator<Item = &'p String>) -> Vec<String> {
    let protection = Protection::new(&started.options.protect);
    changed.filter(|path| protection.covers(path)).cloned().collect()
}

/// What `head` changes since the newest state of the integration branch that it holds, and which protected files are among that.
pub(crate) fn measured(
    repository: &Repository,
    started: &RunStarted,
    base: Option<&CommitId>,
    head: &CommitId,
) -> Result<(ChangeSize, Vec<String>), GitError> {
    let integration = repository.branch_commit(&started.base_branch)?;
    let from = repository.starting_point(head, base, integration.as_ref())?;
    let files = repository.changes(from.as_str(), head.as_str())?;
    let protected = protected(started, files.iter().map(|file| &file.path));
    Ok((size_of(&files), protected))
}

fn size_of(files: &[FileChange]) -> ChangeSize {
    let sum = |count: fn(&FileChange) -> Option<u64>| files.iter().filter_map(count).sum();
    ChangeSize { files: files.len() as u64, added: sum(|file| file.added), removed: sum(|file| file.removed) }
}
