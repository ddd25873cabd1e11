//! The report as JSON. `docs/schemas/report.schema.json` is made of these types, `docs/report.md` describes it.

use std::borrow::Cow;

use lanewright_model::event::{AgentReport, LaneStage, RunOutcome, RunStarted, StopReason};
use lanewright_model::job::JobKind;
use lanewright_model::{
    AgentName, Budget, CommitId, Diagnosis, ExitCause, LaneId, MergeMode, Outage, PhaseId, PullRequest,
    PullRequestStatus, RetryLevel, RunId, TaskId, Timestamp, Transcript, Usage, Verdict,
};
use serde::Serialize;

use super::ExecutionReport;
use super::lanes::{JobReport, LaneReport, PlacementReport};
use super::timeline::{Timeline, Times};
use crate::answers::escalation::Escalation;
use crate::answers::next_steps::NextStep;
use crate::history::{
    AgentMove, AnswerView, CandidateView, CheckpointView, Elsewhere, FailureView, InterfaceView, LaneState, MergeView,
    NoteView, PauseView, PlacementView, Retry, SnapshotView, WaitingFor,
};
use crate::status::interfaces::interfaces;
use crate::status::run_state::RunState;
use crate::status::summary::milliseconds;

/// `major.minor`: fields may be added with a minor version.
const VERSION: &str = "1.0";

/// What `lanewright report --format json` writes, and `report.json` holds (`docs/report.md`). Durations are milliseconds.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunReport<'a> {
    /// The version of this form, `major.minor`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERSION)))]
    version: &'static str,
    /// The version of the program that started the run.
    lanewright: Option<&'a str>,
    run_id: Option<&'a RunId>,
    phase: Option<&'a PhaseId>,
    /// The title of the phase.
    title: Option<&'a str>,
    plan_path: Option<Cow<'a, str>>,
    /// The SHA-256 of the plan file and its prompt files.
    plan_sha256: Option<&'a str>,
    /// The integration branch.
    base_branch: &'a str,
    /// The commit that the integration branch was at.
    base_commit: Option<&'a CommitId>,
    /// The head of the integration branch, as far as this run moved it.
    integration: Option<&'a CommitId>,
    options: Option<ReportedOptions<'a>>,
    /// How the run ended; null while it is active or after it was interrupted.
    outcome: Option<RunOutcome>,
    standing: RunState,
    exit_code: Option<u8>,
    /// Why a stop was requested.
    stop: Option<StopReason>,
    /// The machine that worked on it last.
    host: Option<&'a str>,
    started: Option<Timestamp>,
    finished: Option<Timestamp>,
    /// How often it was resumed.
    resumes: u32,
    times: &'a Times,
    lanes: Vec<ReportedLane<'a>>,
    final_gate: Vec<ReportedJob<'a>>,
    interfaces: Vec<InterfaceView>,
    /// Accounts of runners whose attempts wait.
    pauses: Vec<&'a PauseView>,
    /// What the agents of all lanes used.
    usage: Usage,
    timeline: &'a Timeline,
    /// The lanes that are not done.
    left: Vec<UnfinishedLane<'a>>,
    /// What the user can do.
    next_steps: &'a [NextStep],
    /// What the user has to decide.
    escalations: &'a [Escalation],
    notes: &'a [NoteView],
    /// Lines of the run log that cannot be read and are not in here.
    damaged_lines: usize,
}

/// The command line and settings of a run, as far as they concern a report.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReportedOptions<'a> {
    /// How many agents run at once.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    max_parallel: u32,
    merge: MergeMode,
    /// Whether the first failed lane stops the run.
    fail_fast: bool,
    /// The lanes to run; empty: all.
    lanes: &'a [LaneId],
    /// The directory of the worktrees.
    worktree_root: Cow<'a, str>,
    /// The time limit of the whole run; null: none.
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    budget: Budget,
}

/// A lane that is not done.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UnfinishedLane<'a> {
    lane: &'a LaneId,
    state: LaneState,
    /// Why it is in this state, or what runs.
    note: &'a str,
}

/// A lane.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReportedLane<'a> {
    lane: &'a LaneId,
    name: Option<&'a str>,
    state: LaneState,
    stage: LaneStage,
    /// Why it failed or is blocked.
    reason: Option<&'a str>,
    waiting_for: Option<&'a WaitingFor>,
    /// Why it is in this state, or what runs.
    note: &'a str,
    depends_on: &'a [LaneId],
    /// Whether a command judges its work before it is merged; null if the plan is not known.
    has_gate: Option<bool>,
    /// The agents that have worked.
    agents: Vec<&'a AgentName>,
    /// Its candidates, if it has several for the same work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateView<'a>>,
    /// How the phases of their work changed, oldest first.
    agent_moves: &'a [AgentMove],
    started: Option<Timestamp>,
    finished: Option<Timestamp>,
    elapsed_ms: Option<u64>,
    /// How long at least one agent or gate of it ran.
    busy_ms: u64,
    /// How long it was in progress.
    active_ms: u64,
    /// How long git worked for it.
    git_ms: u64,
    /// How long it waited for something other than Lanewright.
    waited_ms: u64,
    /// How long none of its agents and gates ran, git did not work for it, and it waited for nothing.
    overhead_ms: u64,
    elsewhere: Option<Elsewhere<'a>>,
    /// Its jobs on clusters, in the order of their offers.
    placements: Vec<ReportedPlacement<'a>>,
    branch: Option<&'a str>,
    /// The path of its worktree.
    worktree: Option<&'a str>,
    /// The head of its branch.
    head: Option<&'a CommitId>,
    /// The integration branch after its merge.
    merge_commit: Option<&'a CommitId>,
    pull_request: Option<&'a PullRequest>,
    /// What the forge says of it, where it is followed.
    pull_request_status: Option<&'a PullRequestStatus>,
    usage: Usage,
    /// In the order in which they began.
    attempts: Vec<ReportedJob<'a>>,
    /// Runs of gates, tests and set-up commands, in the order in which they began.
    gates: Vec<ReportedJob<'a>>,
    /// What ended it, if it failed.
    failure: Option<&'a FailureView>,
    /// Every failure, also those that a retry fixed.
    failures: &'a [FailureView],
    merges: &'a [MergeView],
    checkpoints: &'a [CheckpointView],
    snapshots: &'a [SnapshotView],
    must_haves: &'a [Verdict],
    /// The protected files that it changes: it is merged once a person has approved them.
    protected: &'a [String],
    /// What the user approved or rejected.
    answers: &'a [AnswerView],
    /// What was kept at cleanup or rollback, each with the reason.
    kept: &'a [String],
}

/// A lane's job on a cluster.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReportedPlacement<'a> {
    /// Which of the lane's placements, from 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    number: u32,
    /// The name of the executor.
    executor: &'a str,
    /// The job, as its executor calls it; null: it was not submitted yet.
    job: Option<&'a str>,
    /// The machine that works on the lane.
    host: Option<&'a str>,
    /// What was noted about the job, such as why it waits.
    note: Option<&'a str>,
    offered: Timestamp,
    /// When the job began to work on the lane.
    claimed: Option<Timestamp>,
    /// When it was clear that no job has the lane any more.
    ended: Option<Timestamp>,
    /// From the offer until the job began or was gone, or until now.
    waited_ms: u64,
    /// How the lane's own run ended; null after the end: it was cut off.
    outcome: Option<RunOutcome>,
    /// What became of the job.
    reason: Option<&'a str>,
}

/// An attempt of an agent, or one run of a gate.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReportedJob<'a> {
    kind: JobKind,
    agent: Option<&'a AgentName>,
    task: Option<&'a TaskId>,
    /// From 1 for each kind.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    number: u32,
    started: Timestamp,
    finished: Option<Timestamp>,
    elapsed_ms: u64,
    /// Whether every command exited with 0; null: it has not ended, or its end is not known.
    passed: Option<bool>,
    cause: Option<ExitCause>,
    exit_code: Option<i32>,
    /// Why it counts as failed although its program exited with 0.
    rejected: Option<&'a str>,
    /// The command that ended it.
    command: Option<&'a str>,
    /// More about the cause.
    notes: Option<&'a str>,
    /// If it did not pass, its last lines of output, oldest first.
    tail: &'a [String],
    diagnosis: Option<&'a Diagnosis>,
    outage: Option<&'a Outage>,
    said: Option<&'a AgentReport>,
    transcript: Option<&'a Transcript>,
    /// The runner of the agent's `fallback` that made the attempt; null: its own.
    runner: Option<&'a str>,
    retry: Option<ReportedRetry<'a>>,
}

/// Why an attempt is a retry.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReportedRetry<'a> {
    level: RetryLevel,
    /// Which retry, from 1; null: it is not counted.
    number: Option<u32>,
    /// How many there may be.
    of: Option<u32>,
    /// What failed before.
    reason: &'a str,
    planned: Timestamp,
    not_before: Timestamp,
}

pub(super) fn report<'a>(report: &'a ExecutionReport<'_>) -> RunReport<'a> {
    let run = &report.history.run;
    let start = run.start.as_deref();
    RunReport {
        version: VERSION,
        lanewright: start.map(|start| start.lanewright.as_str()),
        run_id: run.run_id(),
        phase: run.phase.as_ref(),
        title: run.title.as_deref(),
        plan_path: start.map(|start| start.plan_path.to_string_lossy()),
        plan_sha256: start.map(|start| start.plan_sha256.as_str()),
        base_branch: run.base_branch(),
        base_commit: start.map(|start| &start.base_commit),
        integration: run.integration.as_ref(),
        options: start.map(options),
        outcome: run.outcome,
        standing: report.summary.state(),
        exit_code: run.code,
        stop: run.stop,
        host: run.owner.as_ref().map(|owner| owner.host.as_str()),
        started: run.started,
        finished: run.finished,
        resumes: run.resumes,
        times: &report.times,
        lanes: report.lanes.iter().map(lane).collect(),
        final_gate: jobs(&report.final_gate),
        interfaces: interfaces(report.history),
        pauses: report.history.run.pauses.iter().collect(),
        usage: report.summary.usage(),
        timeline: &report.timeline,
        left: report.lanes.iter().filter_map(unfinished).collect(),
        next_steps: &report.summary.next_steps,
        escalations: &report.summary.escalations,
        notes: &run.notes,
        damaged_lines: report.damaged_lines,
    }
}

fn options(start: &RunStarted) -> ReportedOptions<'_> {
    let options = &start.options;
    ReportedOptions {
        max_parallel: options.max_parallel,
        merge: options.merge,
        fail_fast: options.fail_fast,
        lanes: &options.lanes,
        worktree_root: options.worktree_root.to_string_lossy(),
        timeout_ms: milliseconds(options.timeout),
        budget: options.budget,
    }
}

fn unfinished<'a>(report: &'a LaneReport<'_>) -> Option<UnfinishedLane<'a>> {
    let state = report.lane.state;
    let is_left = !state.is_done() && state != LaneState::Skipped;
    is_left.then_some(UnfinishedLane { lane: &report.lane.id, state, note: &report.summary.note })
}

fn lane<'a>(report: &'a LaneReport<'_>) -> ReportedLane<'a> {
    let (lane, times) = (report.lane, &report.times);
    ReportedLane {
        lane: &lane.id,
        name: lane.name.as_deref(),
        state: lane.state,
        stage: lane.stage,
        reason: lane.reason(),
        waiting_for: report.summary.waiting_for.as_ref(),
        note: &report.summary.note,
        depends_on: &lane.depends_on,
        has_gate: lane.has_gate,
        agents: lane.agents.iter().map(|agent| &agent.name).collect(),
        candidates: lane.candidates(),
        agent_moves: &lane.agent_moves,
        started: lane.started,
        finished: lane.finished,
        elapsed_ms: milliseconds(report.summary.elapsed),
        busy_ms: report.busy_ms,
        active_ms: times.active_ms,
        git_ms: times.git_ms,
        waited_ms: times.waited_ms,
        overhead_ms: times.overhead_ms,
        elsewhere: lane.elsewhere().map(PlacementView::elsewhere),
        placements: report.placements.iter().map(placement).collect(),
        branch: lane.workplace.branch(),
        worktree: report.summary.worktree.as_deref(),
        head: lane.workplace.head.as_ref(),
        merge_commit: lane.merge_commit.as_ref(),
        pull_request: lane.pull_request.as_ref(),
        pull_request_status: lane.pull_request_status.as_ref(),
        usage: lane.usage(),
        attempts: jobs(&report.attempts),
        gates: jobs(&report.gates),
        failure: report.failure(),
        failures: &lane.failures,
        merges: &lane.merges,
        checkpoints: &lane.checkpoints,
        snapshots: &lane.snapshots,
        must_haves: &lane.must_haves,
        protected: &lane.protected,
        answers: &lane.answers,
        kept: &lane.kept,
    }
}

fn placement<'a>(report: &'a PlacementReport<'_>) -> ReportedPlacement<'a> {
    let it = report.placement;
    ReportedPlacement {
        number: it.number,
        executor: &it.executor,
        job: it.job.as_deref(),
        host: it.host.as_deref(),
        note: it.note.as_deref(),
        offered: it.offered,
        claimed: it.claimed,
        ended: it.ended,
        waited_ms: report.waited_ms,
        outcome: it.outcome,
        reason: it.reason.as_deref(),
    }
}

fn jobs<'a>(reports: &'a [JobReport<'_>]) -> Vec<ReportedJob<'a>> {
    reports.iter().map(job).collect()
}

fn job<'a>(report: &'a JobReport<'_>) -> ReportedJob<'a> {
    let (job, exit) = (report.job, report.job.exit.as_ref());
    ReportedJob {
        kind: job.job.role.kind(),
        agent: job.job.agent(),
        task: job.job.task(),
        number: job.job.number,
        started: report.started,
        finished: exit.map(|exit| exit.finished_at),
        elapsed_ms: report.elapsed_ms,
        passed: job.passed(),
        cause: exit.map(|exit| exit.cause),
        exit_code: exit.map(|exit| exit.exit_code),
        rejected: job.rejected.as_deref(),
        command: exit.map(|exit| exit.command.as_str()),
        notes: exit.map(|exit| exit.notes.as_str()).filter(|notes| !notes.is_empty()),
        tail: job.failed_tail(),
        diagnosis: job.diagnosis(),
        outage: job.outage(),
        said: job.report.as_deref(),
        transcript: job.transcript.as_deref(),
        runner: job.fallback().map(String::as_str),
        retry: job.retry.as_deref().map(retry),
    }
}

fn retry(retry: &Retry) -> ReportedRetry<'_> {
    let Retry { level, number, of, reason, planned, not_before, .. } = retry;
    ReportedRetry { level: *level, number: *number, of: *of, reason, planned: *planned, not_before: *not_before }
}
