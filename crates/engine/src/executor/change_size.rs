//! Measures what a lane changed, for the user who is asked to approve it.

use std::sync::Arc;

use lanewright_git::{FileChange, GitError, Repository};
use lanewright_model::event::{Event, RunStarted};
use lanewright_model::ownership::names_file;
use lanewright_model::{ChangeSize, CommitId, LaneIndex};
use lanewright_schedule::RunState;

use super::{Executor, Prepared, Result, lane_head};

impl Executor {
    pub(super) fn measure_changes(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let (head, base) = (lane_head(state, lane)?, state.lane(lane).base().cloned());
        Ok(self.task(lane, state, move |executor| {
            let facts = &executor.facts;
            let (changes, protected) = measured(&executor.repository, facts, base.as_ref(), &head)?;
            Ok(vec![Event::ChangesMeasured { lane: executor.id(lane), head: head.clone(), changes, protected }])
        }))
    }
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
    let is_protected = |path: &&str| started.options.protect.iter().any(|glob| names_file(glob, path));
    let protected = files.iter().map(|file| file.path.as_str()).filter(is_protected).map(str::to_owned).collect();
    Ok((size_of(&files), protected))
}

fn size_of(files: &[FileChange]) -> ChangeSize {
    let sum = |count: fn(&FileChange) -> Option<u64>| files.iter().filter_map(count).sum();
    ChangeSize { files: files.len() as u64, added: sum(|file| file.added), removed: sum(|file| file.removed) }
}
