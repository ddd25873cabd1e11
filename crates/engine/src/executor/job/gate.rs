//! What a gate finds in a lane's worktree, and what it leaves there.

use std::path::Path;

use lanewright_git::{self as git, GitError};
use lanewright_model::event::Event;
use lanewright_model::{CommitId, JobId, JobRole};

use crate::executor::{Executor, ExecutorError, Moment};

/// A worktree in which a setup or a gate may leave files.
pub(super) struct Leaves {
    /// Nothing can be uncommitted there when it begins.
    pub(super) clean: bool,
    /// What differs since then was changed by the agent, also where a gate rewrites it.
    pub(super) since: Option<CommitId>,
}

pub(super) fn judges_the_lane(job: &JobId) -> bool {
    sees_committed_work_only(job) || job.role == JobRole::MergedTests
}

fn sees_committed_work_only(job: &JobId) -> bool {
    matches!(job.role, JobRole::Tests | JobRole::Checkpoint { .. })
}

impl Executor {
    /// Notes what a setup or a gate wrote, if it is known what was uncommitted `before`.
    pub(super) fn note_left_behind(
        &self,
        worktree: &Path,
        leaves: &Leaves,
        before: Option<Result<git::Contents, GitError>>,
    ) -> Result<(), ExecutorError> {
        let before = match before {
            Some(before) => before?,
            None if leaves.clean => git::Contents::new(),
            None => return Ok(()),
        };
        let agents = match &leaves.since {
            Some(since) => self.repository.changed_paths(since, &self.repository.head_at(worktree)?.commit)?,
            None => Vec::new(),
        };
        Ok(git::note_left_behind(worktree, &before, &agents)?)
    }

    /// A lane's gates and tests see committed work only (SPEC §3.1): what others changed in tracked files of its
    /// worktree, an earlier gate perhaps, is put aside.
    pub(super) fn clear_for_gate(
        &self,
        job: &JobId,
        worktree: &Path,
        moment: &Moment,
        tell: &dyn Fn(Event),
    ) -> Result<(), ExecutorError> {
        if sees_committed_work_only(job) {
            self.refuse_other_head(worktree, moment)?;
            if git::has_changes(worktree)? {
                self.keep_worktree(&moment.making_room(None), worktree)?;
                git::put_back(worktree)?;
            }
        }
        self.record_put_aside(job, Some(moment), tell)
    }

    /// Refuses to have a gate judge another commit than the one that is merged; a resume takes it in.
    fn refuse_other_head(&self, worktree: &Path, moment: &Moment) -> Result<(), ExecutorError> {
        let Some((branch, recorded)) = moment.holding(worktree).and_then(|holding| holding.branch.as_ref()) else {
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

    /// Records what was put aside for a gate and is not in the run log yet.
    pub(super) fn record_put_aside(
        &self,
        job: &JobId,
        moment: Option<&Moment>,
        tell: &dyn Fn(Event),
    ) -> Result<(), ExecutorError> {
        if let Some(moment) = moment.filter(|_| sees_committed_work_only(job)) {
            let kept = self.unrecorded(moment, None)?;
            kept.into_iter().for_each(|kept| tell(self.put_aside(moment.lane, None, kept)));
        }
        Ok(())
    }
}
