//! Events: facts about a run. The run log is a list of them, and the state of a run is nothing but their fold.
//!
//! An event is never changed once it is written; fields may be added with a default. What an event's fields mean is
//! told in `docs/run-log.md`.

mod agent_report;
mod lane_stage;
mod run_end;
mod run_moved;
mod run_started;
mod snapshot_reason;
mod texts;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::must_haves::any_broken;
use crate::model::time::optional_millis;
use crate::model::{
    AgentName, Budget, Checkpoint, CommitId, Diagnosis, Failure, HumanGate, JobExit, JobId, LaneId, Outage, ProcessId,
    PullRequest, RetryLevel, TaskId, Timestamp, Transcript, Verdict,
};

pub use agent_report::AgentReport;
pub use lane_stage::LaneStage;
pub use run_end::{RunOutcome, StopReason};
pub use run_moved::{Place, RunMoved, relocate};
pub use run_started::{Owner, RunOptions, RunStarted};
pub use snapshot_reason::SnapshotReason;

/// One line of the run log.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// From 1, without gaps.
    pub seq: u64,
    /// When it was appended.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run began; always the first event.
    RunStarted(Box<RunStarted>),
    /// Another Lanekeeper took the run up again. Failed and blocked lanes get another chance.
    RunResumed {
        /// From 1.
        number: u32,
        /// Who works on it now.
        owner: Owner,
        /// The time limit of the whole run from now on, where another one was given; zero: none.
        #[serde(default, with = "optional_millis", skip_serializing_if = "Option::is_none")]
        timeout: Option<Duration>,
        /// The SHA-256 of the plan's file (see [`RunStarted::plan_sha256`]), where another plan was accepted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan_sha256: Option<String>,
        /// The SHA-256 of `plan.json` from now on, where it changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pinned_sha256: Option<String>,
        /// What the agents of the run may use from now on, where that changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Budget>,
        /// What the person said who resumed it; reaches the agents' next prompts.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// The lane whose agents are meant; `None`: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_for: Option<LaneId>,
    },
    /// The run was asked to stop, or one lane of it.
    StopRequested {
        /// The lane, or `None` for the whole run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        /// Who asked.
        reason: StopReason,
        /// Kill instead of asking the agents.
        force: bool,
    },
    /// An agent came to a task that is a person's; the lane waits there.
    PersonAsked {
        /// Which lane.
        lane: LaneId,
        /// Whose task comes next.
        agent: AgentName,
        /// The task.
        task: TaskId,
    },
    /// A person answered a human gate.
    GateAnswered {
        /// Of which lane.
        lane: LaneId,
        /// Which gate.
        gate: HumanGate,
        /// Yes or no.
        approved: bool,
        /// What the person said; reaches the agent.
        #[serde(default)]
        message: String,
    },
    /// A lane went from one stage of its life to the next.
    LaneMoved {
        /// Which lane.
        lane: LaneId,
        /// From where.
        from: LaneStage,
        /// To where.
        to: LaneStage,
    },
    /// The preconditions of a lane hold; it will start from `base`.
    LaneBased {
        /// Which lane.
        lane: LaneId,
        /// The integration branch as it is now.
        base: CommitId,
        /// The first of the lane's ports.
        port: u16,
    },
    /// A worktree is checked out and held by a lane or one of its agents.
    WorktreeOpened {
        /// Which lane.
        lane: LaneId,
        /// Which agent; `None`: the lane itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// Where.
        worktree: Worktree,
    },
    /// A worktree was gone, or something else was in its place, and was opened anew on its branch: what was uncommitted
    /// in it is in snapshots only.
    WorktreeLost {
        /// Which lane.
        lane: LaneId,
        /// Which agent; `None`: the lane itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
    },
    /// An agent's worktree went back to the pool; what was in it is merged or kept in a snapshot.
    WorktreeReleased {
        /// Which lane.
        lane: LaneId,
        /// Which agent.
        agent: AgentName,
    },
    /// A required checkpoint; what it guards has not begun.
    CheckpointReached {
        /// Which lane; `None`: the phase.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        /// What it says.
        #[serde(flatten)]
        checkpoint: Checkpoint,
    },
    /// A job is about to be started; its name will not be used again.
    JobPlanned {
        /// Its name.
        job: JobId,
    },
    /// A job's supervisor runs.
    JobStarted {
        /// Its name.
        job: JobId,
        /// Its supervisor.
        supervisor: ProcessId,
    },
    /// A job ended.
    JobExited {
        /// Its name.
        job: JobId,
        /// How.
        exit: JobExit,
        /// What the agent said of itself, where it said something.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<AgentReport>,
        /// What its output was read as, where it ended without success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reading: Option<Box<Reading>>,
        /// What its event stream came to, where its runner has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transcript: Option<Box<Transcript>>,
    },
    /// What an agent left uncommitted is committed on its branch.
    WorkCommitted {
        /// Which lane.
        lane: LaneId,
        /// Which agent.
        agent: AgentName,
        /// Its branch's head now.
        head: CommitId,
        /// Files changed against the lane since the agent's worktree was opened, or since the agent before it ended where they
        /// share one.
        changed: Vec<String>,
        /// Those of them that the agent may not change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        prohibited: Vec<String>,
        /// How much of the work changed no file, although it is to change some. What the plan asked for then counts, also
        /// where it was changed since.
        #[serde(default, skip_serializing_if = "Idle::is_no")]
        idle: Idle,
    },
    /// A worktree's whole state is kept in a commit of its own.
    SnapshotTaken {
        /// Which lane.
        lane: LaneId,
        /// Whose worktree; `None`: the lane's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// Why.
        reason: SnapshotReason,
        /// The commit.
        commit: CommitId,
        /// The ref that keeps it.
        reference: String,
    },
    /// A snapshot could not be taken; the work goes on.
    SnapshotFailed {
        /// Which lane.
        lane: LaneId,
        /// Whose worktree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// Why it was wanted.
        reason: SnapshotReason,
        /// What went wrong.
        error: String,
    },
    /// A snapshot, or a commit that work was to go on from, cannot be read any more; an older one is used.
    SnapshotDamaged {
        /// Which lane.
        lane: LaneId,
        /// Whose worktree; `None`: the lane's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// The commit.
        commit: CommitId,
        /// The ref that leads to it; empty: none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reference: String,
        /// What is wrong with it.
        error: String,
    },
    /// An agent's work is in the lane branch.
    AgentMerged {
        /// Which lane.
        lane: LaneId,
        /// Whose work.
        agent: AgentName,
        /// The lane's head now.
        head: CommitId,
    },
    /// Something failed that a retry may mend. Written before what follows from it.
    FailureNoted {
        /// Which lane.
        lane: LaneId,
        /// Who is to mend it; `None`: nobody can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// Which task, for a failure within one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// What.
        failure: Failure,
    },
    /// A retry is about to begin; the `retry_attempt` checkpoint of seed 004.
    RetryPlanned {
        /// Which lane.
        lane: LaneId,
        /// Who tries again.
        agent: AgentName,
        /// What the attempt is for.
        #[serde(default = "first_level")]
        level: RetryLevel,
        /// Not before this moment.
        not_before: Timestamp,
        /// The checkpoint.
        #[serde(flatten)]
        checkpoint: Checkpoint,
    },
    /// An agent's worktree was put onto a new base for a retry; what was in it is kept in a snapshot.
    AgentReset {
        /// Which lane.
        lane: LaneId,
        /// Which agent.
        agent: AgentName,
        /// Its branch's head now.
        head: CommitId,
    },
    /// A lane was put onto a new base to be built again; what was in it is kept in a snapshot.
    LaneReset {
        /// Which lane.
        lane: LaneId,
        /// Its branch's head now.
        base: CommitId,
    },
    /// The lane's merge with the integration branch is made and not yet published.
    MergeStaged {
        /// Which lane.
        lane: LaneId,
        /// The integration branch it was made for.
        onto: CommitId,
        /// The merge.
        commit: CommitId,
        /// Whether the integration branch holds work that the lane's tests have not seen.
        moved: bool,
    },
    /// The integration branch moved before the merge could be published; it is made again.
    MergeSuperseded {
        /// Which lane.
        lane: LaneId,
    },
    /// The integration branch holds the lane's work.
    LaneMerged {
        /// Which lane.
        lane: LaneId,
        /// The integration branch now (with `--merge none` and `pr`: the lane's head).
        commit: CommitId,
        /// The integration branch before.
        onto: CommitId,
    },
    /// The merge was searched that broke the lane's tests, or the final gate.
    MergesBisected {
        /// Which lane; `None`: the phase.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        /// Whose merge it is: an agent's, or for the phase a lane's; `None`: the gate failed before any merge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        culprit: Option<String>,
        /// The first commit that fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
    },
    /// What must be true of the lane's work was looked for in it.
    MustHavesChecked {
        /// Which lane.
        lane: LaneId,
        /// The lane's head that was looked at.
        head: CommitId,
        /// What became of each thing that was asked for, in the order of the plan.
        verdicts: Vec<Verdict>,
    },
    /// What the lane no longer needs is gone.
    LaneCleaned {
        /// Which lane.
        lane: LaneId,
        /// What was kept, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<String>,
    },
    /// A lane ended without success.
    LaneFailed {
        /// Which lane.
        lane: LaneId,
        /// Why.
        failure: Failure,
    },
    /// A lane cannot go on until something outside of it changes.
    LaneBlocked {
        /// Which lane.
        lane: LaneId,
        /// What must change, and how.
        reason: String,
    },
    /// A lane is about to be put back; nothing of it was touched yet. Until it is, the run cannot go on.
    RollbackBegun {
        /// Which lane.
        lane: LaneId,
    },
    /// A lane was put back to where it had not begun; its work is kept in snapshots.
    LaneRolledBack {
        /// Which lane.
        lane: LaneId,
        /// Where the integration branch stands now, if the lane's merge was undone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        integration: Option<CommitId>,
        /// The refs that hold what was there.
        kept: Vec<String>,
    },
    /// The worktree for the final gate is checked out.
    FinalOpened {
        /// Where.
        worktree: Worktree,
    },
    /// The phase cannot be brought to its end until something outside of it changes.
    PhaseBlocked {
        /// What must change, and how.
        reason: String,
    },
    /// Written by earlier versions, which created worktrees in advance; without effect.
    WorktreeMadeAhead {
        /// How many there are, those that lanes hold included.
        at_hand: u32,
        /// Why none could be made; empty: one was, or none was needed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        error: String,
    },
    /// The pool's free slots are gone.
    PoolEmptied {
        /// What was kept, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<String>,
    },
    /// A lane's branch is on the remote.
    BranchPushed {
        /// Which lane.
        lane: LaneId,
        /// What the user calls the remote.
        remote: String,
        /// The branch, there and here, without `refs/heads/`.
        branch: String,
        /// Its head, there and here.
        head: CommitId,
    },
    /// A pull request asks for the lane's work to be merged.
    PullRequestOpened {
        /// Which lane.
        lane: LaneId,
        /// The pull request.
        #[serde(flatten)]
        pull_request: PullRequest,
        /// The head of the lane's branch that it is about.
        head: CommitId,
        /// There was one already, which now says what a new one would.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        updated: bool,
    },
    /// The remote or the forge could not be reached; it is tried again, a few times.
    ForgeUnavailable {
        /// Which lane.
        lane: LaneId,
        /// What is out.
        outage: Outage,
    },
    /// Something that is worth telling and moves nothing.
    Noted {
        /// About which lane.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        /// What.
        message: String,
    },
    /// The run came to an end, for now or for ever.
    RunFinished {
        /// How.
        outcome: RunOutcome,
        /// The exit code that says so.
        code: u8,
    },
    /// The run was taken to another clone; no job that ran before runs any more.
    RunMoved(Box<RunMoved>),
    /// Git, or the program of a forge, worked until now.
    GitWorked {
        /// For which lane; `None`: the phase.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        /// How long, in milliseconds, since the line before that says so.
        took_ms: u64,
    },
}

/// What the output of a job that ended without success was read as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Something outside was out.
    Outage(Outage),
    /// What a gate complained about.
    Diagnosis(Diagnosis),
}

/// The level of retries in logs that were written before there were levels.
fn first_level() -> RetryLevel {
    RetryLevel::Retry
}

/// A worktree that a lane or an agent holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The slot's number in the pool.
    pub slot: u32,
    /// The slot's directory; absolute.
    pub path: PathBuf,
    /// The branch that is checked out, without `refs/heads/`; empty: none (detached).
    pub branch: String,
    /// Its head when it was opened.
    pub head: CommitId,
}

impl Event {
    /// How the run stands once this happened, where it says so; the inner `None`: it is to go on. A lane that was put
    /// back is there to be run again.
    pub fn run_outcome(&self) -> Option<Option<RunOutcome>> {
        match self {
            Self::RunFinished { outcome, .. } => Some(Some(*outcome)),
            Self::RunResumed { .. } | Self::LaneRolledBack { .. } => Some(None),
            _ => None,
        }
    }

    /// The lane that the event is about, if it is about one.
    pub fn lane(&self) -> Option<&LaneId> {
        match self {
            Self::RunStarted(_) | Self::RunResumed { .. } | Self::RunMoved(_) | Self::RunFinished { .. } => None,
            Self::FinalOpened { .. } | Self::PhaseBlocked { .. } => None,
            Self::PoolEmptied { .. } | Self::WorktreeMadeAhead { .. } => None,
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
            | Self::AgentMerged { lane, .. }
            | Self::FailureNoted { lane, .. }
            | Self::RetryPlanned { lane, .. }
            | Self::AgentReset { lane, .. }
            | Self::LaneReset { lane, .. }
            | Self::MergeStaged { lane, .. }
            | Self::MergeSuperseded { lane }
            | Self::LaneMerged { lane, .. }
            | Self::MustHavesChecked { lane, .. }
            | Self::BranchPushed { lane, .. }
            | Self::PullRequestOpened { lane, .. }
            | Self::ForgeUnavailable { lane, .. }
            | Self::LaneCleaned { lane, .. }
            | Self::LaneFailed { lane, .. }
            | Self::LaneBlocked { lane, .. }
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
            Self::RunFinished { outcome: RunOutcome::Blocked, .. } => RecordStatus::Blocked,
            _ => RecordStatus::Ok,
        }
    }
}

crate::model::word_enum! {
    /// How much of the work of an agent that is to change files changed none.
    Idle {
        /// The task changed something, or may change nothing, or the record is older than this field.
        No = "no",
        /// The task changed nothing; an earlier one of the agent changed something.
        Task = "task",
        /// Nothing has changed since the agent's worktree was opened or put onto a new base.
        Agent = "agent",
    }
}

impl Idle {
    fn is_no(&self) -> bool {
        *self == Self::No
    }
}

#[expect(clippy::derivable_impls, reason = "the enum is declared by a macro")]
impl Default for Idle {
    fn default() -> Self {
        Self::No
    }
}

crate::model::word_enum! {
    /// The `status` column of a run log line (SPEC §4).
    RecordStatus {
        /// It went well.
        Ok = "ok",
        /// It failed.
        Error = "error",
        /// It waits for something outside.
        Blocked = "blocked",
        /// It was not done.
        Skipped = "skipped",
    }
}
