//! What is known of every event: one table, without an arm for the rest.

use super::{Event, LaneStage, RunOutcome};
use crate::must_haves::any_broken;
use crate::{AgentName, Checkpoint, Failure, JobId, JobRole, LaneId, TaskId};

/// What everybody who handles events needs to know of one, whatever it is.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The lane that it is about, if it is about one.
    pub lane: Option<&'a LaneId>,
    /// The agent whose work it changes.
    pub agent: Option<&'a AgentName>,
    /// The task that it is about, if it is about one.
    pub task: Option<&'a TaskId>,
    /// The contract's `status` column (SPEC §4).
    pub status: RecordStatus,
    /// The column `cmd` of the run log.
    pub command: Option<&'a str>,
    /// The column `exit_code` of the run log.
    pub exit_code: Option<i32>,
    /// The column `notes` of the run log; empty: there are none.
    pub notes: &'a str,
    /// The state of the run after it, if it has one; the inner `None`: the run is active. A lane that was put back is there
    /// to be run again, and one that is being put back is not finished.
    pub run_outcome: Option<Option<RunOutcome>>,
    /// Whether it ends or begins something that a push of the run's state is worth.
    pub is_milestone: bool,
    /// Whether the own run of a lane on a cluster may say so about it. Answers come from the user of the run that placed
    /// it, which merges the lane, and knows alone where it is.
    pub is_of_lane: bool,
}

impl<'a> Facts<'a> {
    /// Of an event of the run.
    const OF_RUN: Self = Self {
        lane: None,
        agent: None,
        task: None,
        status: RecordStatus::Ok,
        command: None,
        exit_code: None,
        notes: "",
        run_outcome: None,
        is_milestone: false,
        is_of_lane: false,
    };

    /// Of an event of a lane that its own run cannot have.
    fn about(lane: &'a LaneId) -> Self {
        Self { lane: Some(lane), ..Self::OF_RUN }
    }

    /// Of an event of a lane at work.
    fn of(lane: &'a LaneId) -> Self {
        Self { is_of_lane: true, ..Self::about(lane) }
    }

    /// Of an event about `lane`, or about the run.
    fn of_any(lane: Option<&'a LaneId>) -> Self {
        Self { lane, is_of_lane: true, ..Self::OF_RUN }
    }

    fn of_job(job: &'a JobId) -> Self {
        let is_of_lane = job.role != JobRole::MergedTests;
        Self { lane: job.lane.as_ref(), task: job.task(), is_of_lane, ..Self::OF_RUN }
    }

    fn by(self, agent: &'a AgentName) -> Self {
        Self { agent: Some(agent), ..self }
    }

    fn by_any(self, agent: Option<&'a AgentName>) -> Self {
        Self { agent, ..self }
    }

    fn milestone(self) -> Self {
        Self { is_milestone: true, ..self }
    }

    fn with(self, status: RecordStatus, notes: &'a str) -> Self {
        Self { status, notes, ..self }
    }

    fn at(self, checkpoint: &'a Checkpoint) -> Self {
        let (command, exit_code) = (checkpoint.command.as_deref(), checkpoint.exit_code);
        Self { command, exit_code, notes: &checkpoint.context, ..self }
    }

    fn failed(self, failure: &'a Failure) -> Self {
        let (command, exit_code) = (failure.command.as_deref(), failure.exit_code);
        Self { command, exit_code, ..self.with(RecordStatus::Error, &failure.message).milestone() }
    }
}

impl Event {
    /// What everybody needs to know of the event.
    #[deny(clippy::wildcard_enum_match_arm, reason = "the compiler names this table where an event is added")]
    pub fn facts(&self) -> Facts<'_> {
        use RecordStatus::{Blocked, Error, Skipped};
        match self {
            Self::RunStarted(_) | Self::RunMoved(_) | Self::Slept { .. } | Self::FinalOpened { .. } => Facts::OF_RUN,
            Self::PoolEmptied { .. } | Self::WorktreeMadeAhead { .. } => Facts::OF_RUN,
            Self::RunnerPaused { outage, .. } => Facts::OF_RUN.with(Blocked, &outage.line),
            Self::RunnerContinued { .. } => Facts::OF_RUN,
            Self::PullRequestsChecked { error } if error.is_empty() => Facts::OF_RUN,
            Self::PullRequestsChecked { error } => Facts::OF_RUN.with(Error, error),
            Self::RunResumed { message, .. } => {
                Facts { notes: message, run_outcome: Some(None), ..Facts::OF_RUN }.milestone()
            }
            Self::PhaseBlocked { .. } => Facts::OF_RUN.with(Blocked, "").milestone(),
            Self::RunFinished { outcome, .. } => {
                let status = match outcome {
                    RunOutcome::Failed => Error,
                    RunOutcome::Blocked => Blocked,
                    RunOutcome::Done | RunOutcome::Stopped | RunOutcome::RolledBack => RecordStatus::Ok,
                };
                Facts { status, run_outcome: Some(Some(*outcome)), ..Facts::OF_RUN }.milestone()
            }
            Self::StopRequested { lane, .. } | Self::MergesBisected { lane, .. } | Self::GitWorked { lane, .. } => {
                Facts::of_any(lane.as_ref())
            }
            Self::Noted { lane, message } => Facts { notes: message, ..Facts::of_any(lane.as_ref()) },
            Self::EventLogged { lane, name, .. } => Facts { notes: name.as_str(), ..Facts::of_any(lane.as_ref()) },
            Self::CheckpointReached { lane, checkpoint } => Facts::of_any(lane.as_ref()).at(checkpoint).milestone(),
            Self::JobPlanned { job, .. } | Self::JobStarted { job, .. } => Facts::of_job(job),
            Self::JobExited { job, exit, .. } => {
                let status = if exit.passed() { RecordStatus::Ok } else { Error };
                let (command, exit_code) = (Some(exit.command.as_str()), Some(exit.exit_code));
                Facts { status, command, exit_code, notes: &exit.notes, ..Facts::of_job(job) }
            }
            Self::PersonAsked { lane, agent, task } => {
                Facts { task: Some(task), ..Facts::of(lane).by(agent).milestone() }
            }
            Self::GateAnswered { lane, message, .. } => Facts { notes: message, ..Facts::about(lane).milestone() },
            Self::CandidatePicked { lane, .. } => Facts::about(lane).milestone(),
            Self::CandidateChosen { lane, .. } => Facts::of(lane).milestone(),
            Self::MessageSent { lane, message } => Facts { notes: message, ..Facts::about(lane).milestone() },
            Self::LaneMoved { lane, to, .. } => {
                Facts { is_of_lane: *to <= LaneStage::AwaitingUserApproval, ..Facts::about(lane) }
            }
            Self::WorktreeOpened { lane, agent, .. } | Self::WorktreeLost { lane, agent, .. } => {
                Facts::of(lane).by_any(agent.as_ref())
            }
            Self::WorktreeReleased { lane, agent } | Self::AgentReset { lane, agent, .. } => Facts::of(lane).by(agent),
            Self::AgentMoved { lane, agent, .. } => Facts::of(lane).by(agent),
            Self::WorkCommitted { lane, agent, .. } | Self::AgentMerged { lane, agent, .. } => {
                Facts::of(lane).by(agent).milestone()
            }
            Self::SnapshotTaken { lane, agent, .. } => Facts::of(lane).by_any(agent.as_ref()).milestone(),
            Self::SnapshotFailed { lane, agent, error, .. } => {
                Facts::of(lane).by_any(agent.as_ref()).with(Error, error)
            }
            Self::SnapshotDamaged { lane, error, .. } => Facts::of(lane).with(Error, error),
            Self::FailureNoted { lane, agent, task, failure } => {
                Facts { task: task.as_ref(), ..Facts::of(lane).by_any(agent.as_ref()).failed(failure) }
            }
            Self::RetryPlanned { lane, agent, checkpoint, .. } => Facts::of(lane).by(agent).at(checkpoint),
            Self::MustHavesChecked { lane, verdicts, .. } => {
                let status = if any_broken(verdicts) { Error } else { RecordStatus::Ok };
                Facts { status, ..Facts::of(lane) }
            }
            Self::LaneBased { lane, .. } | Self::ChangesMeasured { lane, .. } | Self::LaneReturned { lane, .. } => {
                Facts::of(lane)
            }
            Self::BranchMoved { lane, .. } | Self::LaneReset { lane, .. } => Facts::of(lane).milestone(),
            Self::LaneFailed { lane, failure } => Facts::of(lane).failed(failure),
            Self::LaneBlocked { lane, reason } => Facts::of(lane).with(Blocked, reason).milestone(),
            Self::LaneSkipped { lane, reason } => Facts::about(lane).with(Skipped, reason).milestone(),
            Self::MergeStaged { lane, .. } | Self::MergeSuperseded { lane } => Facts::about(lane),
            Self::LaneMerged { lane, .. } | Self::LaneCleaned { lane, .. } => Facts::about(lane).milestone(),
            Self::BranchPushed { lane, .. } | Self::PullRequestOpened { lane, .. } => Facts::about(lane),
            Self::ForgeUnavailable { lane, .. } => Facts::about(lane).with(Error, ""),
            Self::PullRequestChanged { lane, .. } | Self::FeedbackReceived { lane, .. } => {
                Facts::about(lane).milestone()
            }
            Self::PullRequestRefused { lane, reason } => Facts::about(lane).with(Error, reason),
            Self::LaneOffered { lane, .. } | Self::LanePlaced { lane, .. } | Self::LaneClaimed { lane, .. } => {
                Facts::about(lane)
            }
            Self::PlacementEnded { lane, .. } => Facts::about(lane),
            Self::RollbackBegun { lane, .. } => Facts { run_outcome: Some(None), ..Facts::about(lane) },
            Self::LaneRolledBack { lane, .. } => Facts { run_outcome: Some(None), ..Facts::about(lane).milestone() },
        }
    }

    /// The lane that the event is about, if it is about one.
    pub fn lane(&self) -> Option<&LaneId> {
        self.facts().lane
    }

    /// Whether it is a request to stop the whole run without waiting for its jobs.
    pub fn is_forced_stop(&self) -> bool {
        matches!(self, Self::StopRequested { lane: None, force: true, .. })
    }
}

crate::word_enum! {
    // SPEC §4.
    /// How it went.
    RecordStatus {
        /// Nothing went wrong.
        Ok = "ok",
        /// Something failed.
        Error = "error",
        /// Something outside must change first.
        Blocked = "blocked",
        /// The user leaves it out.
        Skipped = "skipped",
    }
}
