//! Events: facts about a run. The run log is a list of them, and the state of a run is nothing but their fold.
//!
//! An event is never changed once it is written; fields may be added with a default. A `lane` of `None` is the phase, an
//! `agent` of `None` the lane itself.
//!
//! The comments of variants and fields are for the readers of the log: the schemas of the log and the tables of
//! `docs/run-log.md` are made of them, in this order.

mod agent_report;
mod columns;
mod facts;
mod lane_point;
mod lane_stage;
mod log;
mod made_with;
mod record;
mod run_end;
mod run_moved;
mod run_started;
mod snapshot_reason;
mod texts;
mod work;
mod worktree;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::{millis, optional_millis};
use crate::{
    AgentName, AgentPhase, Budget, ChangeSize, Checkpoint, CommitId, EventName, Failure, Follow, HumanGate, JobExit,
    JobId, LaneId, Outage, ProcessId, PullRequest, PullRequestStatus, Remark, RetryLevel, TaskId, Timestamp,
    Transcript, Verdict,
};

pub use agent_report::{AgentReport, Decision, GivenContext};
pub use columns::{Columns, LogColumns};
pub use facts::{Facts, RecordStatus};
pub use lane_point::{LanePoint, OpenedWorktree};
pub use lane_stage::{LaneStage, stage_in_words};
pub use log::Log;
pub use made_with::MadeWith;
pub use record::{Incoming, Record};
pub use run_end::{RunOutcome, StopReason};
pub use run_moved::{Place, RunMoved, relocate};
pub use run_started::{AGENT_BRANCHES, LANE_BRANCHES, Owner, PLANNING, RunOptions, RunStarted, SPECIALIST_ERRORS};
pub use snapshot_reason::{CheckedOut, SnapshotReason};
pub use work::{ChosenBy, Idle, Reading};
pub use worktree::Worktree;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    // The run.
    /// Always the first line.
    RunStarted(Box<RunStarted>),
    /// Another Lanewright resumed the run; failed and blocked lanes are retried.
    RunResumed {
        /// Which resume, from 1.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        number: u32,
        owner: Owner,
        /// The time limit of the whole run from now on, if another one was given; 0: none.
        #[serde(default, with = "optional_millis", skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
        timeout: Option<Duration>,
        /// The SHA-256 of the plan file and its prompt files, if another plan was accepted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan_sha256: Option<String>,
        /// The SHA-256 of `plan.json` from now on, if it changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pinned_sha256: Option<String>,
        /// What the agents may use from now on, if that changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Budget>,
        /// Text of the user for the agents' next prompts.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// The lane whose agents get the message, if not all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_for: Option<LaneId>,
        /// The lanes that go on, if not all; the others stay as they are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lanes: Vec<LaneId>,
        /// Those of them that the user asked to retry: only they get the message, and their agents start before a gate
        /// that failed runs again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        retried: Vec<LaneId>,
        /// How pull requests are followed until the next resume, if not as when the run began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        follow: Option<Follow>,
        /// What their next attempt is for, if `recover` chose that: `rollback` resets the agent that failed to its last
        /// state that passed, for one attempt with a different approach.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<RetryLevel>,
    },
    /// The machine slept until now, or the process did not run for another reason; no limit counts that time.
    Slept {
        /// How long.
        #[serde(rename = "duration_ms", with = "millis")]
        #[cfg_attr(feature = "schema", schemars(with = "u64", range(min = 1)))]
        duration: Duration,
    },
    /// No attempt of the runners with this account begins: their service is out, takes no more requests or refuses them.
    RunnerPaused {
        /// The runners' account: `account` of their settings, else their name; the command where an agent has its own.
        account: String,
        outage: Outage,
        /// Since when attempts have failed for it.
        since: Timestamp,
        /// When one attempt finds out whether it is over; absent: a person has to change something first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// Attempts of the runners with this account begin again.
    RunnerContinued { account: String },
    /// A stop of the run, or of one lane, was requested.
    StopRequested {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        reason: StopReason,
        /// Kill instead of asking the agents to stop.
        force: bool,
    },
    /// The forge was asked about the pull requests that are followed; what is new follows from events before this one.
    PullRequestsChecked {
        /// Why it did not answer; it is asked again.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        error: String,
    },
    /// The worktree for the final gate is checked out.
    FinalOpened { worktree: Worktree },
    /// The phase cannot finish until something outside of it changes.
    PhaseBlocked {
        /// What must change, and how.
        reason: String,
    },
    /// The worktrees without a holder were removed.
    PoolEmptied {
        /// What was kept, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<String>,
    },
    /// Only in logs of earlier versions, which created worktrees in advance; without effect.
    WorktreeMadeAhead {
        /// How many there were, including those that lanes held.
        at_hand: u32,
        /// Why none could be created; absent: one was, or none was needed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        error: String,
    },
    /// The run was moved to another clone (`state.md`). Jobs from before no longer run, and paths before this line are
    /// those of `from`.
    RunMoved(Box<RunMoved>),
    /// A message that changes no state.
    Noted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        message: String,
    },
    /// A script or an agent recorded an event of its own (`lanewright log-event`); it changes no state.
    EventLogged {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        /// The name of the event.
        name: EventName,
        /// Its data, any JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// The run ended, until a resume or permanently.
    RunFinished {
        outcome: RunOutcome,
        /// The exit code of the command.
        code: u8,
    },

    // A lane.
    /// It changed its stage.
    LaneMoved { lane: LaneId, from: LaneStage, to: LaneStage },
    /// The work of an agent changed its phase; `INITIALIZED` again: new work, as after a rollback.
    AgentMoved { lane: LaneId, agent: AgentName, from: AgentPhase, to: AgentPhase },
    /// Its preconditions are met.
    LaneBased {
        lane: LaneId,
        /// The commit of the integration branch that it starts from.
        base: CommitId,
        /// The first of its ports.
        port: u16,
        /// The variables of its `user_setup` that are not set in the environment of its agents.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
    },
    /// A required checkpoint (`checkpoints.md`); the step that it guards has not started. `lane` is `-` for the phase.
    CheckpointReached {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        #[serde(flatten)]
        checkpoint: Checkpoint,
    },
    /// An agent reached a task for the user; the lane waits.
    PersonAsked { lane: LaneId, agent: AgentName, task: TaskId },
    /// The user approved or rejected.
    GateAnswered {
        lane: LaneId,
        /// `setup`, `plan`, `changes` or `task:ID`.
        gate: HumanGate,
        approved: bool,
        /// What the user wrote; the agents get it.
        #[serde(default)]
        message: String,
    },
    /// The user said something to its agents, also while one works; later prompts have it as well.
    MessageSent { lane: LaneId, message: String },
    /// The user chose another of its candidates; it takes effect before the lane is merged.
    CandidatePicked { lane: LaneId, agent: AgentName },
    /// One of its candidates continues as the lane's agent; the work of the others is kept. Before that all of them have
    /// passed their gates or failed, or the one that was chosen has failed.
    CandidateChosen {
        lane: LaneId,
        agent: AgentName,
        /// What decided.
        by: ChosenBy,
    },
    /// Its merge with the integration branch is created and not yet published.
    MergeStaged {
        lane: LaneId,
        /// The commit of the integration branch that it is based on.
        onto: CommitId,
        /// The merge, or the last of the commits that bring the lane's work.
        commit: CommitId,
        /// Whether the integration branch has work that the lane's tests have not seen.
        moved: bool,
    },
    /// The integration branch moved meanwhile; the merge is created again.
    MergeSuperseded { lane: LaneId },
    /// The integration branch contains its work; with `--merge none` and `pr` its own branch does.
    LaneMerged {
        lane: LaneId,
        /// That branch now.
        commit: CommitId,
        /// That branch before.
        onto: CommitId,
        /// The digest of what the lane was to do, by which a later run of the plan knows that it is merged; empty: without
        /// a lane that it depends on, which was skipped; absent: recorded by an older version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<String>,
    },
    /// It is built again on a new base; its previous work is in a snapshot.
    LaneReset {
        lane: LaneId,
        /// The new base.
        base: CommitId,
    },
    /// It ended without success.
    LaneFailed { lane: LaneId, failure: Failure },
    /// Something outside of it must change first.
    LaneBlocked {
        lane: LaneId,
        /// What must change, and how.
        reason: String,
    },
    /// The user leaves it out; what depends on it goes on as if it had no work, and its work is kept.
    LaneSkipped {
        lane: LaneId,
        /// Why, in the user's words; may be empty.
        reason: String,
    },
    /// Its rollback starts; until `lane_rolled_back` the run cannot be resumed.
    RollbackBegun {
        lane: LaneId,
        /// What it is to be taken back to; empty: its start.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        to: String,
    },
    /// It was reset to its starting point, or to an earlier point of its own.
    LaneRolledBack {
        lane: LaneId,
        /// The integration branch now, if a merge was undone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        integration: Option<CommitId>,
        /// The refs that hold its work.
        kept: Vec<String>,
        /// Where it stands again; absent: it has not begun.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        point: Option<Box<LanePoint>>,
    },
    /// The merge that broke the lane's tests, or without a lane the final gate, was searched.
    MergesBisected {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        /// The agent or the lane whose merge it is; absent: the gate failed before any merge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        culprit: Option<String>,
        /// The first commit that fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
    },
    /// Its must-haves were checked in its work.
    MustHavesChecked {
        lane: LaneId,
        /// The commit that was checked.
        head: CommitId,
        /// The result for each must-have, in the order of the plan.
        verdicts: Vec<Verdict>,
    },
    /// How much it changed, before the user is asked to approve that; an empty change needs no approval, and one of a
    /// protected file needs one also where the plan asks for none.
    ChangesMeasured {
        lane: LaneId,
        /// The commit that was measured.
        head: CommitId,
        /// Since the newest state of the integration branch that the lane contains.
        changes: ChangeSize,
        /// The files among them that only a person lets a lane change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        protected: Vec<String>,
    },
    /// Its branch is on the remote.
    BranchPushed {
        lane: LaneId,
        /// The name of the remote.
        remote: String,
        /// The branch, there and here.
        branch: String,
        head: CommitId,
    },
    /// A pull request for its work is open.
    PullRequestOpened {
        lane: LaneId,
        #[serde(flatten)]
        pull_request: PullRequest,
        /// The pushed commit.
        head: CommitId,
        /// Whether it existed before and was updated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        updated: bool,
    },
    /// The remote or the forge could not be reached; it is tried again, a few times.
    ForgeUnavailable { lane: LaneId, outage: Outage },
    /// The forge says something else about its pull request than before.
    PullRequestChanged {
        lane: LaneId,
        #[serde(flatten)]
        status: PullRequestStatus,
    },
    /// Checks of its pull request failed, or reviewers commented: it continues from its branch.
    FeedbackReceived {
        lane: LaneId,
        /// What its branch holds on the remote, also of other people, and holds here from now on.
        head: CommitId,
        remarks: Vec<Remark>,
    },
    /// The forge does not merge its pull request; it is asked again when something has changed.
    PullRequestRefused {
        lane: LaneId,
        /// What it says.
        reason: String,
    },
    /// Everything that it no longer needs was removed.
    LaneCleaned {
        lane: LaneId,
        /// What was kept, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<String>,
    },
    /// It is to work on a cluster from now on, and is offered on the exchange.
    LaneOffered {
        lane: LaneId,
        /// Which of its placements, from 1.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        number: u32,
        /// The name of the executor.
        executor: String,
        /// What its agents may use there: its part of what was left of the run's budget.
        #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
        budget: Budget,
    },
    /// A job was submitted for it.
    LanePlaced {
        lane: LaneId,
        /// Which of its placements.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        number: u32,
        /// The state of its own run that the job may claim.
        offer: CommitId,
        /// The job, as its executor calls it.
        ticket: String,
    },
    /// A job begins to work on it.
    LaneClaimed {
        lane: LaneId,
        /// The machine.
        host: String,
        /// Whether its worktrees are new there, and what was not committed is gone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        moved: bool,
    },
    /// No job has it any more.
    PlacementEnded {
        lane: LaneId,
        /// Which of its placements.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        number: u32,
        /// How its own run ended; absent: it was cut off, and continues from its last pushed state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<RunOutcome>,
        /// What became of the job.
        reason: String,
    },
    /// In a lane's own log: its gates have passed, or its budget is used up; the run that placed it continues with it.
    LaneReturned {
        lane: LaneId,
        /// The head of its branch.
        head: CommitId,
    },
    /// Git, or the program of a forge, worked for it until now. `lane` is `-` for the phase.
    GitWorked {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<LaneId>,
        /// How long, since the previous line of this event.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        took_ms: u64,
    },

    // Agents and their work.
    /// A worktree is checked out.
    WorktreeOpened {
        lane: LaneId,
        /// Its holder; absent: the lane.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        worktree: Worktree,
    },
    /// A worktree was gone or replaced and was opened again on its branch; uncommitted work is in snapshots only, which
    /// outlive the merge.
    WorktreeLost {
        lane: LaneId,
        /// Its holder; absent: the lane.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// What is checked out in it now; absent: an older version wrote the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<CommitId>,
    },
    /// An agent's worktree was returned to the pool; its work is merged or in a snapshot.
    WorktreeReleased { lane: LaneId, agent: AgentName },
    /// An agent's changes are committed on its branch.
    WorkCommitted {
        lane: LaneId,
        agent: AgentName,
        head: CommitId,
        /// Files changed since the agent's worktree was opened, or since the previous agent ended if they share one.
        changed: Vec<String>,
        /// Those of them that the agent may not change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        prohibited: Vec<String>,
        /// How much of the work changed no file, if the plan requires changes.
        #[serde(default, skip_serializing_if = "Idle::is_no")]
        #[cfg_attr(feature = "schema", schemars(extend("enum" = ["task", "agent"])))]
        idle: Idle,
        /// Of idle work: what commits leave out and what git ignores in the worktree, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignored: Vec<String>,
        /// How much a candidate changed; absent: no candidate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<ChangeSize>,
    },
    /// A person moved the branch while nothing of the run was at work there, or its head was lost and it was made again
    /// from the files of its worktree. The lane has what the branch holds now, and is judged again.
    BranchMoved {
        lane: LaneId,
        /// Whose branch; absent: the lane's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        head: CommitId,
        /// What other people pushed to the remote's branch, and is merged in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        theirs: Option<CommitId>,
    },
    /// A worktree's whole state is saved in a commit (`checkpoints.md`).
    SnapshotTaken {
        lane: LaneId,
        /// Whose worktree; absent: the lane's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        reason: SnapshotReason,
        commit: CommitId,
        /// Its ref.
        reference: String,
        /// Whether it holds only what the attempt began with.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unchanged: bool,
        /// What its taker gave with `checkpoints create --context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Box<GivenContext>>,
        /// What was checked out, if the worktree stays as it is saved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checked_out: Option<Box<CheckedOut>>,
    },
    /// A snapshot could not be taken; the work continues.
    SnapshotFailed {
        lane: LaneId,
        /// Whose worktree; absent: the lane's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        reason: SnapshotReason,
        error: String,
    },
    /// A snapshot, or a commit from which work was to continue, can no longer be read; an older one is used.
    SnapshotDamaged {
        lane: LaneId,
        /// Whose work; absent: the lane's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        commit: CommitId,
        /// The ref that leads to it, if there is one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reference: String,
        /// What is wrong with it.
        error: String,
    },
    /// An agent's work is in the lane branch.
    AgentMerged {
        lane: LaneId,
        agent: AgentName,
        /// The lane's head now.
        head: CommitId,
    },
    /// A failure that a retry may fix. Written before what follows from it.
    FailureNoted {
        lane: LaneId,
        /// The agent that is to fix it; absent: none can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        failure: Failure,
    },
    /// A retry is about to start; also a required checkpoint.
    RetryPlanned {
        lane: LaneId,
        agent: AgentName,
        /// What the attempt is for.
        #[serde(default = "first_level")]
        #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "added_later"))]
        level: RetryLevel,
        /// The attempt does not start before this time.
        not_before: Timestamp,
        #[serde(flatten)]
        checkpoint: Checkpoint,
    },
    /// An agent's worktree was reset to a new base for a retry; its previous state is in a snapshot.
    AgentReset {
        lane: LaneId,
        agent: AgentName,
        /// The new base.
        head: CommitId,
    },

    // Jobs.
    /// It is about to be started.
    JobPlanned {
        job: JobId,
        /// What an attempt is made with; absent: a command, or what the plan says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        made_with: Option<Box<MadeWith>>,
    },
    /// Its supervisor runs.
    JobStarted { job: JobId, supervisor: ProcessId },
    /// It ended.
    JobExited {
        job: JobId,
        exit: JobExit,
        /// The agent's own report, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<AgentReport>,
        /// The interpretation of its output, if it ended without success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reading: Option<Box<Reading>>,
        /// The summary of an agent's event stream, if its runner has one (`runners.md`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transcript: Option<Box<Transcript>>,
    },
}

impl Event {
    /// A job of which nothing else is to be said.
    pub fn planned(job: JobId) -> Self {
        Self::JobPlanned { job, made_with: None }
    }

    /// A snapshot as most are: of work, without what a user gave along with it, of no worktree that stays as it is.
    pub fn snapshot(
        lane: LaneId,
        agent: Option<AgentName>,
        reason: SnapshotReason,
        commit: CommitId,
        reference: String,
    ) -> Self {
        Self::SnapshotTaken {
            lane,
            agent,
            reason,
            commit,
            reference,
            unchanged: false,
            context: None,
            checked_out: None,
        }
    }
}

/// Of a field that logs of earlier versions do not have.
#[cfg(feature = "schema")]
fn added_later<T>(_: &T) -> bool {
    true
}

/// The level of retries in logs that were written before there were levels.
fn first_level() -> RetryLevel {
    RetryLevel::Retry
}
