//! The lane and the job of an event, and its columns in the run log.

use super::{Event, RunOutcome};
use crate::must_haves::any_broken;
use crate::{LaneId, TaskId};

impl Event {
    /// The state of the run after the event, if it has one; the inner `None`: it is active. A lane that was put
    /// back is there to be run again, and one that is being put back is not finished.
    pub fn run_outcome(&self) -> Option<Option<RunOutcome>> {
        match self {
            Self::RunFinished { outcome, .. } => Some(Some(*outcome)),
            Self::RunResumed { .. } | Self::RollbackBegun { .. } | Self::LaneRolledBack { .. } => Some(None),
            _ => None,
        }
    }

    /// Whether it is a request to stop the whole run without waiting for its jobs.
    pub fn is_forced_stop(&self) -> bool {
        matches!(self, Self::StopRequested { lane: None, force: true, .. })
    }

    /// The lane that the event is about, if it is about one.
    pub fn lane(&self) -> Option<&LaneId> {
        match self {
            Self::RunStarted(_) | Self::RunResumed { .. } | Self::RunMoved(_) | Self::RunFinished { .. } => None,
            Self::FinalOpened { .. } | Self::PhaseBlocked { .. } => None,
            Self::PoolEmptied { .. } | Self::WorktreeMadeAhead { .. } | Self::Slept { .. } => None,
            Self::StopRequested { lane, .. }
            | Self::CheckpointReached { lane, .. }
            | Self::MergesBisected { lane, .. }
            | Self::GitWorked { lane, .. }
            | Self::Noted { lane, .. } => lane.as_ref(),
            Self::JobPlanned { job } | Self::JobStarted { job, .. } | Self::JobExited { job, .. } => job.lane.as_ref(),
            Self::PersonAsked { lane, .. }
            | Self::GateAnswered { lane, .. }
            | Self::LaneMoved { lane, .. }
            | Self::LaneBased { lane, .. }
            | Self::WorktreeOpened { lane, .. }
            | Self::WorktreeReleased { lane, .. }
            | Self::WorktreeLost { lane, .. }
            | Self::WorkCommitted { lane, .. }
            | Self::SnapshotTaken { lane, .. }
            | Self::SnapshotFailed { lane, .. }
            | Self::SnapshotDamaged { lane, .. }
            | Self::BranchMoved { lane, .. }
            | Self::AgentMerged { lane, .. }
            | Self::FailureNoted { lane, .. }
            | Self::RetryPlanned { lane, .. }
            | Self::AgentReset { lane, .. }
            | Self::LaneReset { lane, .. }
            | Self::MergeStaged { lane, .. }
            | Self::MergeSuperseded { lane }
            | Self::LaneMerged { lane, .. }
            | Self::MustHavesChecked { lane, .. }
            | Self::ChangesMeasured { lane, .. }
            | Self::BranchPushed { lane, .. }
            | Self::PullRequestOpened { lane, .. }
            | Self::ForgeUnavailable { lane, .. }
            | Self::LaneCleaned { lane, .. }
            | Self::LaneOffered { lane, .. }
            | Self::LanePlaced { lane, .. }
            | Self::LaneClaimed { lane, .. }
            | Self::LaneReturned { lane, .. }
            | Self::PlacementEnded { lane, .. }
            | Self::LaneFailed { lane, .. }
            | Self::LaneBlocked { lane, .. }
            | Self::LaneSkipped { lane, .. }
            | Self::RollbackBegun { lane }
            | Self::LaneRolledBack { lane, .. } => Some(lane),
        }
    }

    /// The task that the event is about, if it is about one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::JobPlanned { job } | Self::JobStarted { job, .. } | Self::JobExited { job, .. } => job.task(),
            Self::FailureNoted { task, .. } => task.as_ref(),
            Self::PersonAsked { task, .. } => Some(task),
            _ => None,
        }
    }

    /// The contract's `status` column (SPEC §4).
    pub fn status(&self) -> RecordStatus {
        match self {
            Self::JobExited { exit, .. } if !exit.passed() => RecordStatus::Error,
            Self::SnapshotFailed { .. } | Self::SnapshotDamaged { .. } => RecordStatus::Error,
            Self::FailureNoted { .. } | Self::LaneFailed { .. } => RecordStatus::Error,
            Self::ForgeUnavailable { .. } => RecordStatus::Error,
            Self::MustHavesChecked { verdicts, .. } if any_broken(verdicts) => RecordStatus::Error,
            Self::RunFinished { outcome: RunOutcome::Failed, .. } => RecordStatus::Error,
            Self::LaneBlocked { .. } | Self::PhaseBlocked { .. } => RecordStatus::Blocked,
            Self::LaneSkipped { .. } => RecordStatus::Skipped,
            Self::RunFinished { outcome: RunOutcome::Blocked, .. } => RecordStatus::Blocked,
            _ => RecordStatus::Ok,
        }
    }
}

crate::word_enum! {
    /// The `status` column of a run log line (SPEC §4).
    RecordStatus {
        Ok = "ok",
        Error = "error",
        /// It waits for something outside.
        Blocked = "blocked",
        Skipped = "skipped",
    }
}
