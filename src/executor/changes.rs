//! Measures what a lane changed, for the user who is asked to approve it.

use std::sync::Arc;

use super::{Executor, Prepared, lane_head};
use crate::event::Event;
use crate::git::FileChange;
use crate::model::{ChangeSize, LaneIndex};
use crate::schedule::RunState;

impl Executor {
    pub(super) fn measure_changes(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let (head, base) = (lane_head(state, lane)?, state.lane(lane).base().cloned());
        Ok(self.task(lane, state, move |executor| {
            let repository = &executor.repository;
            let integration = repository.branch_commit(&executor.facts.base_branch)?;
            let from = repository.starting_point(&head, base.as_ref(), integration.as_ref())?;
            let changes = size_of(&repository.changes(from.as_str(), head.as_str())?);
            Ok(vec![Event::ChangesMeasured { lane: executor.id(lane), head: head.clone(), changes }])
        }))
    }
}

fn size_of(files: &[FileChange]) -> ChangeSize {
    let sum = |count: fn(&FileChange) -> Option<u64>| files.iter().filter_map(count).sum();
    ChangeSize { files: files.len() as u64, added: sum(|file| file.added), removed: sum(|file| file.removed) }
}
