//! Events: facts about a run. The run log is a list of them, and the state of a run is nothing but their fold.
//!
//! An event is never changed once it is written; fields may be added with a default. `docs/run-log.md` describes all
//! fields. A `lane` of `None` is the phase, an `agent` of `None` the lane itself.

mod agent_report;
mod facts;
mod lane_stage;
mod log;
mod record;
mod run_end;
mod run_moved;
mod run_started;
mod snapshot_reason;
mod texts;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{millis, optional_millis};
use crate::{
    AgentName, Budget, ChangeSize, Checkpoint, CommitId, Diagnosis, Failure, HumanGate, JobExit, JobId, LaneId, Outage,
    ProcessId, PullRequest, RetryLevel, TaskId, Timestamp, Transcript, Verdict,
};

pub use agent_report::AgentReport;
pub use facts::{Facts, RecordStatus};
pub use lane_stage::{LaneStage, stage_in_words};
pub use log::Log;
pub use record::{Incoming, Record};
pub use run_end::{RunOutcome, StopReason};
pub use run_moved::{Place, RunMoved, relocate};
pub use run_started::{Owner, RunOptions, RunStarted};
pub use snapshot_reason::SnapshotReason;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run began; always the first event.
    RunStarted(Box<RunStarted>),
    /// Another Lanewright took the run up again. Failed and blocked lanes get another chance.
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
        /// Only these lanes go on, the others stay as they are; empty: all go on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lanes: Vec<LaneId>,
        /// Those of them that the user asked to retry. The message reaches these alone, and their agents start before a
        /// gate that failed runs again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        retried: Vec<LaneId>,
    },
    /// The run was asked to stop, or one lane of it.
    StopRequested {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        reason: StopReason,
        /// Kill instead of asking the agents.
        force: bool,
    },
    /// An agent came to a task that is a person's; the lane waits there.
    PersonAsked {
        lane: LaneId,
        agent: AgentName,
        task: TaskId,
    },
    /// A person answered a human gate.
    GateAnswered {
        lane: LaneId,
        gate: HumanGate,
        approved: bool,
        /// What the person said; reaches the agent.
        #[serde(default)]
        message: String,
    },
    /// A lane went from one stage of its life to the next.
    LaneMoved {
        lane: LaneId,
        from: LaneStage,
        to: LaneStage,
    },
    /// The preconditions of a lane hold; it will start from `base`.
    LaneBased {
        lane: LaneId,
        /// The integration branch as it is now.
        base: CommitId,
        /// The first of the lane's ports.
        port: u16,
    },
    /// A worktree is checked out and held by a lane or one of its agents.
    WorktreeOpened {
        lane: LaneId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        worktree: Worktree,
    },
    /// A worktree was missing, or replaced by something else, and was opened again on its branch: what was uncommitted
    /// in it is in snapshots only.
    WorktreeLost {
        lane: LaneId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// What is checked out in it now; `None`: an older version wrote the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<CommitId>,
    },
    /// An agent's worktree went back to the pool; what was in it is merged or kept in a snapshot.
    WorktreeReleased {
        lane: LaneId,
        agent: AgentName,
    },
    /// A required checkpoint; what it guards has not begun.
    CheckpointReached {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        #[serde(flatten)]
        checkpoint: Checkpoint,
    },
    /// A job is about to be started; its name will not be used again.
    JobPlanned {
        job: JobId,
    },
    JobStarted {
        job: JobId,
        supervisor: ProcessId,
    },
    JobExited {
        job: JobId,
        exit: JobExit,
        /// The agent's report, if there is one.
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
        lane: LaneId,
        agent: AgentName,
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
    /// A worktree's whole state is saved in a commit.
    SnapshotTaken {
        lane: LaneId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        reason: SnapshotReason,
        commit: CommitId,
        reference: String,
    },
    /// A snapshot could not be taken; the work continues.
    SnapshotFailed {
        lane: LaneId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        reason: SnapshotReason,
        error: String,
    },
    /// A snapshot, or a commit to continue from, can no longer be read; an older one is used.
    SnapshotDamaged {
        lane: LaneId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        commit: CommitId,
        /// The ref that leads to it; empty: none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reference: String,
        error: String,
    },
    /// A person moved the branch of a lane, or of an agent with a worktree of its own, while nothing of the run was at
    /// work there, or its head was lost and it was made again: the lane has what it holds now, and is judged again.
    BranchMoved {
        lane: LaneId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        head: CommitId,
    },
    /// An agent's work is in the lane branch.
    AgentMerged {
        lane: LaneId,
        agent: AgentName,
        head: CommitId,
    },
    /// Something failed that a retry may fix. Written before what follows from it.
    FailureNoted {
        lane: LaneId,
        /// The agent that is to fix it; `None`: none can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// The task in which it failed, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        failure: Failure,
    },
    /// A retry is about to begin; the `retry_attempt` checkpoint of seed 004.
    RetryPlanned {
        lane: LaneId,
        agent: AgentName,
        /// What the attempt is for.
        #[serde(default = "first_level")]
        level: RetryLevel,
        not_before: Timestamp,
        #[serde(flatten)]
        checkpoint: Checkpoint,
    },
    /// An agent's worktree was put onto a new base for a retry; what was in it is kept in a snapshot.
    AgentReset {
        lane: LaneId,
        agent: AgentName,
        head: CommitId,
    },
    /// A lane was put onto a new base to be built again; what was in it is kept in a snapshot.
    LaneReset {
        lane: LaneId,
        base: CommitId,
    },
    /// The lane's merge with the integration branch is made and not yet published.
    MergeStaged {
        lane: LaneId,
        /// The integration branch it was made for.
        onto: CommitId,
        commit: CommitId,
        /// Whether the integration branch holds work that the lane's tests have not seen.
        moved: bool,
    },
    /// The integration branch moved before the merge could be published; it is made again.
    MergeSuperseded {
        lane: LaneId,
    },
    /// The integration branch holds the lane's work.
    LaneMerged {
        lane: LaneId,
        /// The integration branch now (with `--merge none` and `pr`: the lane's head).
        commit: CommitId,
        /// The integration branch before.
        onto: CommitId,
    },
    /// The merge was searched that broke the lane's tests, or the final gate.
    MergesBisected {
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
        lane: LaneId,
        /// The lane's head that was looked at.
        head: CommitId,
        /// What became of each thing that was asked for, in the order of the plan.
        verdicts: Vec<Verdict>,
    },
    /// How much the lane changed was found out, for the user who is asked to approve it.
    ChangesMeasured {
        lane: LaneId,
        /// The lane's head that was measured.
        head: CommitId,
        /// Since the newest state of the integration branch that the lane holds.
        changes: ChangeSize,
    },
    /// The lane is to work on a cluster from now on.
    LaneOffered {
        lane: LaneId,
        /// Which placement of the lane this is; counts from 1.
        number: u32,
        /// The executor's name.
        executor: String,
        /// What its agents may use there: its part of what was left of the run's budget.
        #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
        budget: Budget,
    },
    /// A job was submitted for it.
    LanePlaced {
        lane: LaneId,
        /// Which placement.
        number: u32,
        /// The state of the lane's own run that the job may claim.
        offer: CommitId,
        /// The engine's own name of the job.
        ticket: String,
    },
    /// The job began to work on it.
    LaneClaimed {
        lane: LaneId,
        /// The machine.
        host: String,
        /// Its worktrees were opened there; else its work was resumed in those that it had.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        moved: bool,
    },
    /// Its agents are done and its gates passed, or they have used up what they may use: the run that placed it takes it from
    /// here.
    LaneReturned {
        lane: LaneId,
        /// Its branch's head.
        head: CommitId,
    },
    /// No job has it any more.
    PlacementEnded {
        lane: LaneId,
        /// Which placement.
        number: u32,
        /// How the lane's own run ended; `None`: it was cut off, and goes on from its last pushed state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<RunOutcome>,
        /// What became of the job.
        reason: String,
    },
    /// What the lane no longer needs is gone.
    LaneCleaned {
        lane: LaneId,
        /// What was kept, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<String>,
    },
    /// A lane ended without success.
    LaneFailed {
        lane: LaneId,
        failure: Failure,
    },
    /// A lane cannot continue until something outside of it changes.
    LaneBlocked {
        lane: LaneId,
        /// What must change, and how.
        reason: String,
    },
    /// The user leaves the lane out from now on: what depends on it goes on as if it had no work. Its work is kept.
    LaneSkipped {
        lane: LaneId,
        /// Why, in the user's words; may be empty.
        reason: String,
    },
    /// A lane is about to be rolled back; nothing was changed yet. The run cannot continue before that is finished.
    RollbackBegun {
        lane: LaneId,
    },
    /// A lane was reset to its starting point; its work is saved in snapshots.
    LaneRolledBack {
        lane: LaneId,
        /// The head of the integration branch after the lane's merge was undone, if it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        integration: Option<CommitId>,
        /// The refs that hold what was there.
        kept: Vec<String>,
    },
    /// The worktree for the final gate is checked out.
    FinalOpened {
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
        lane: LaneId,
        /// What the user calls the remote.
        remote: String,
        /// The branch, there and here, without `refs/heads/`.
        branch: String,
        head: CommitId,
    },
    /// A pull request asks for the lane's work to be merged.
    PullRequestOpened {
        lane: LaneId,
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
        lane: LaneId,
        outage: Outage,
    },
    /// Lanewright was asleep until now: the machine slept, or the process did not run for another reason. No limit counts
    /// that time.
    Slept {
        #[serde(rename = "duration_ms", with = "millis")]
        duration: Duration,
    },
    /// Something that is worth telling and moves nothing.
    Noted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        message: String,
    },
    /// The run came to an end, for now or for ever.
    RunFinished {
        outcome: RunOutcome,
        /// The exit code that says so.
        code: u8,
    },
    /// The run was taken to another clone; no job that ran before runs any more.
    RunMoved(Box<RunMoved>),
    /// Git, or the program of a forge, worked until now.
    GitWorked {
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

crate::word_enum! {
    /// How much of the work of an agent that is to change files changed none.
    #[derive(Default)]
    Idle {
        /// The task changed something, or may change nothing, or the record is older than this field.
        #[default]
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
