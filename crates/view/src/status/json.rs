//! A run and its lanes as JSON: `status --format json`, and the end of a run.

use std::collections::BTreeMap;

use lanewright_model::event::{LaneStage, RunOutcome};
use lanewright_model::job::JobKind;
use lanewright_model::{
    AgentName, AgentPhase, CommitId, LaneId, PhaseId, PullRequest, PullRequestStatus, RetryLevel, RunId, TaskId,
    Timestamp, Usage, Verdict,
};
use serde::Serialize;

use crate::answers::escalation::Escalation;
use crate::answers::next_steps::NextStep;
use crate::history::{
    CandidateView, Elsewhere, FailureView, InterfaceView, JobHistory, LaneState, PauseView, PlacementView, Retry,
    SnapshotView, WaitingFor,
};
use crate::status::interfaces::interfaces;
use crate::status::lane_page::LanePage;
use crate::status::lane_row::{LaneSummary, agents};
use crate::status::summary::{Summary, milliseconds};

/// What `lanewright status --format json` writes, also line by line with `--watch`, and a run at its end with `--format
/// json`. Durations are milliseconds.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStatus<'a> {
    pub run_id: Option<&'a RunId>,
    pub phase: Option<&'a PhaseId>,
    /// The title of the phase.
    pub title: Option<&'a str>,
    /// The integration branch.
    pub base_branch: &'a str,
    /// The head of the integration branch, as far as this run moved it.
    pub integration: Option<&'a CommitId>,
    /// How the run ended; null while it is active or after it was interrupted.
    pub outcome: Option<RunOutcome>,
    /// Whether a stop was requested and the run has not ended.
    pub stopping: bool,
    /// Whether a live process works on it.
    pub held: bool,
    pub started: Option<Timestamp>,
    pub finished: Option<Timestamp>,
    /// From the start to the end, or until now, without idle time.
    pub elapsed_ms: Option<u64>,
    /// All attempts of agents, added up.
    pub work_ms: u64,
    /// While at least one lane waited for the user.
    pub waiting_ms: u64,
    /// While no process worked on the run.
    pub idle_ms: u64,
    /// How often it was resumed.
    pub resumes: u32,
    pub lanes: Vec<LaneStatus<'a>>,
    /// What the agents of these lanes used.
    pub usage: Usage,
    pub interfaces: Vec<InterfaceView>,
    /// Accounts of runners whose attempts wait.
    pub pauses: Vec<&'a PauseView>,
    /// What the user can do.
    pub next_steps: &'a [NextStep],
    /// What the user has to decide; empty while a process works on the run.
    pub escalations: &'a [Escalation],
    /// The lane, if the run was started for a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<&'a LaneId>,
}

/// The state of a lane.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneStatus<'a> {
    lane: &'a LaneId,
    name: Option<&'a str>,
    state: LaneState,
    stage: LaneStage,
    /// The agents that work now, or if none does, those that have worked.
    agents: Vec<&'a AgentName>,
    /// Its candidates, if it has several for the same work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateView<'a>>,
    /// The phase of the work of each agent that has begun.
    agent_states: BTreeMap<&'a AgentName, AgentPhase>,
    running: Vec<RunningJob<'a>>,
    /// How often an agent was started.
    attempts: usize,
    usage: Usage,
    retries: Vec<CountedRetry<'a>>,
    started: Option<Timestamp>,
    finished: Option<Timestamp>,
    elapsed_ms: Option<u64>,
    waiting_for: Option<&'a WaitingFor>,
    /// Why it failed or is blocked.
    reason: Option<&'a str>,
    branch: Option<&'a str>,
    /// The path of its worktree.
    worktree: Option<&'a str>,
    elsewhere: Option<Elsewhere<'a>>,
    /// The head of its branch.
    head: Option<&'a CommitId>,
    /// The integration branch after its merge.
    merge_commit: Option<&'a CommitId>,
    pull_request: Option<&'a PullRequest>,
    /// What the forge says of it, where it is followed.
    pull_request_status: Option<&'a PullRequestStatus>,
    snapshots: &'a [SnapshotView],
    must_haves: &'a [Verdict],
    /// The protected files that it changes: it is merged once a person has approved them.
    protected: &'a [String],
    /// What was kept at cleanup or rollback, each with the reason.
    kept: &'a [String],
    /// Why it is in this state, or what runs.
    note: &'a str,
}

/// An attempt of an agent, or a gate, that runs now.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RunningJob<'a> {
    role: JobKind,
    agent: Option<&'a AgentName>,
    task: Option<&'a TaskId>,
    /// Which attempt or run it is.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    attempt: u32,
    since: Timestamp,
}

/// A retry that counts.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CountedRetry<'a> {
    agent: &'a AgentName,
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["retry", "rollback"])))]
    level: RetryLevel,
    /// Which retry; of the last attempt, how many there were.
    attempt: u32,
    /// How many there may be.
    max: u32,
    /// What failed before.
    reason: &'a str,
    at: Timestamp,
}

/// What `lanewright status RUN LANE --format json` writes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneDetails<'a> {
    #[serde(flatten)]
    lane: LaneStatus<'a>,
    run_id: Option<&'a RunId>,
    /// All attempts of agents, added up.
    work_ms: u64,
    /// While it waited for the user.
    waiting_ms: u64,
    /// While no process worked on the run.
    idle_ms: u64,
    failures: &'a [FailureView],
    escalation: Option<&'a Escalation>,
}

impl Summary<'_> {
    /// The run for programs.
    pub fn status(&self) -> RunStatus<'_> {
        let (run, times) = (&self.history.run, self.history.times(self.until));
        RunStatus {
            run_id: run.run_id(),
            phase: run.phase.as_ref(),
            title: run.title.as_deref(),
            base_branch: run.base_branch(),
            integration: run.integration.as_ref(),
            outcome: run.outcome,
            stopping: self.stopping(),
            held: self.held,
            started: run.started,
            finished: run.finished,
            elapsed_ms: milliseconds(self.elapsed()),
            work_ms: times.work,
            waiting_ms: times.waiting,
            idle_ms: times.idle,
            resumes: run.resumes,
            lanes: self.lanes.iter().map(LaneStatus::of).collect(),
            usage: self.usage(),
            interfaces: interfaces(self.history),
            pauses: self.history.run.pauses.iter().collect(),
            next_steps: &self.next_steps,
            escalations: &self.escalations,
            lane: None,
        }
    }
}

impl<'a> LaneStatus<'a> {
    fn of(summary: &'a LaneSummary<'_>) -> Self {
        let lane = summary.lane;
        Self {
            lane: &lane.id,
            name: lane.name.as_deref(),
            state: lane.state,
            stage: lane.stage,
            agents: agents(lane),
            candidates: lane.candidates(),
            agent_states: lane.agent_phases(),
            running: lane.jobs.running.iter().map(RunningJob::of).collect(),
            attempts: lane.attempts(),
            usage: lane.usage(),
            retries: lane.counted_retries().map(CountedRetry::of).collect(),
            started: lane.started,
            finished: lane.finished,
            elapsed_ms: milliseconds(summary.elapsed),
            waiting_for: summary.waiting_for.as_ref(),
            reason: lane.reason(),
            branch: lane.workplace.branch(),
            worktree: summary.worktree.as_deref(),
            elsewhere: lane.elsewhere().map(PlacementView::elsewhere),
            head: lane.workplace.head.as_ref(),
            merge_commit: lane.merge_commit.as_ref(),
            pull_request: lane.pull_request.as_ref(),
            pull_request_status: lane.pull_request_status.as_ref(),
            snapshots: &lane.snapshots,
            must_haves: &lane.must_haves,
            protected: &lane.protected,
            kept: &lane.kept,
            note: &summary.note,
        }
    }
}

impl<'a> RunningJob<'a> {
    fn of(running: &'a JobHistory) -> Self {
        let JobHistory { job, since, .. } = running;
        Self { role: job.role.kind(), agent: job.agent(), task: job.task(), attempt: job.number, since: *since }
    }
}

impl<'a> CountedRetry<'a> {
    fn of(retry: &'a Retry) -> Self {
        let Retry { agent, level, of, reason, planned, .. } = retry;
        let (attempt, max) = (retry.attempt(), of.unwrap_or_default());
        Self { agent, level: *level, attempt, max, reason, at: *planned }
    }
}

impl LanePage<'_, '_> {
    /// The lane for programs.
    pub fn details(&self) -> LaneDetails<'_> {
        let (lane, history) = (self.lane.lane, self.summary.history);
        let times = history.lane_times(lane, self.summary.until);
        LaneDetails {
            lane: LaneStatus::of(self.lane),
            run_id: history.run.run_id(),
            work_ms: times.work,
            waiting_ms: times.waiting,
            idle_ms: times.idle,
            failures: &lane.failures,
            escalation: self.escalation(),
        }
    }
}
