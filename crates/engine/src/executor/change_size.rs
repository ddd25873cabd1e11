//! Measures what a lane changed, for the user who is asked to approve it.

use std::sync::Arc;

use lanewright_git::{FileChange, GitError, Repository};
use lanewright_model::event::Event;
use lanewright_model::{ChangeSize, CommitId, LaneIndex};
use lanewright_schedule::RunState;

use super::{Executor, Prepared, Result, lane_head};

impl Executor {
    pub(super) fn measure_changes(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let (head, base) = (lane_head(state, lane)?, state.lane(lane).base().cloned());
        Ok(self.task(lane, state, move |executor| {
            let changes = measured(&executor.repository, &executor.facts.base_branch, base.as_ref(), &head)?;
            Ok(vec![Event::ChangesMeasured { lane: executor.id(lane), head: head.clone(), changes }])
        }))
    }
}

/// What `head` changes since the newest state of the integration branch that it holds.
pub(crate) fn measured(
    repository: &Repository,
    integration: &str,
    base: Option<&CommitId>,
    head: &CommitId,
) -> Result<ChangeSize, GitError> {
    let integration = repository.branch_commit(integration)?;
    let from = repository.starting_point(head, base, integration.as_ref())?;
    Ok(size_of(&repository.changes(from.as_str(), head.as_str())?))
}

fn size_of(files: &[FileChange]) -> ChangeSize {
    let sum = |count: fn(&FileChange) -> Option<u64>| files.iter().filter_map(count).sum();
    ChangeSize { files: files.len() as u64, added: sum(|file| file.added), removed: sum(|file| file.removed) }
}
