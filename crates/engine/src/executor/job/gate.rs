//! What a gate finds in a lane's worktree, and what it leaves there.

use std::path::Path;

use lanewright_git::{self as git, GitError};
use lanewright_model::event::Event;
use lanewright_model::{CommitId, JobId, JobRole};

use crate::executor::{Executor, ExecutorError, LaneContext, Result};

/// A worktree in which a setup or a gate may leave files.
pub(super) struct GateWorktree {
    /// Nothing can be uncommitted there when it begins.
    pub(super) clean: bool,
    /// What differs since then was changed by the agent, also where a gate rewrites it.
    pub(super) since: Option<CommitId>,
}

pub(super) fn judges_lane(job: &JobId) -> bool {
    sees_committed_work_only(job) || job.role == JobRole::MergedTests
}

fn sees_committed_work_only(job: &JobId) -> bool {
    matches!(job.role, JobRole::Tests | JobRole::Checkpoint { .. })
}

impl Executor {
    /// Notes what a setup or a gate wrote, if it is known what was uncommitted `before`.
    pub(super) fn note_generated(
        &self,
        worktree: &Path,
        gate_worktree: &GateWorktree,
        before: Option<Result<git::Contents, GitError>>,
    ) -> Result<()> {
        let before = match before {
            Some(before) => before?,
            None if gate_worktree.clean => git::Contents::new(),
            None => return Ok(()),
        };
        let agents = match &gate_worktree.since {
            Some(since) => self.repository.changed_paths(since, &self.repository.head_at(worktree)?.commit)?,
            None => Vec::new(),
        };
        Ok(git::note_generated(worktree, &before, &agents)?)
    }

    /// A lane's gates and tests see committed work only (SPEC §3.1): what others changed in tracked files of its
    /// worktree, an earlier gate perhaps, is saved and reset.
    pub(super) fn clear_for_gate(
        &self,
        job: &JobId,
        worktree: &Path,
        context: &LaneContext,
        emit: &dyn Fn(Event),
    ) -> Result<()> {
        if sees_committed_work_only(job) {
            self.refuse_other_head(worktree, context)?;
            if git::has_changes(worktree)? {
                self.keep_worktree(&context.before_reset(None), worktree)?;
                git::reset_to_head(worktree)?;
            }
        }
        self.record_put_aside(job, Some(context), emit)
    }

    /// Refuses to have a gate judge another commit than the one that is merged; a resume takes it in.
    fn refuse_other_head(&self, worktree: &Path, context: &LaneContext) -> Result<()> {
        let Some((branch, recorded)) = context.holding(worktree).and_then(|holding| holding.branch.as_ref()) else {
            return Ok(());
        };
        let found = self.repository.head_at(worktree)?.commit;
        if found == *recorded {
            return Ok(());
        }
        let (place, found, recorded) = (worktree.display(), found.short(), recorded.short());
        Err(ExecutorError::Precondition(format!(
            "{place} was moved by hand from {recorded} to {found}; to have that judged and merged, make sure that \
             {branch} is checked out there, and resume"
        )))
    }

    /// Records what was saved for a gate and is not in the run log yet.
    pub(super) fn record_put_aside(
        &self,
        job: &JobId,
        context: Option<&LaneContext>,
        emit: &dyn Fn(Event),
    ) -> Result<()> {
        if let Some(context) = context.filter(|_| sees_committed_work_only(job)) {
            let kept = self.unrecorded(context, None)?;
            kept.into_iter().for_each(|kept| emit(self.put_aside(context.lane, None, kept)));
        }
        Ok(())
    }
}
