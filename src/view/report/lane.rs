//! What a report tells of one lane.

use std::path::PathBuf;

use serde::Serialize;

use crate::event::{AgentReport, LaneStage};
use crate::model::{
    AgentName, CheckpointStatus, CommitId, Diagnosis, ExitCause, Failure, HumanGate, LaneId, Outage, PullRequest,
    RetryLevel, Stage, TaskId, Timestamp, Transcript, Usage, Verdict,
};
use crate::view::lane_view::{LaneState, SnapshotView, WaitingFor};

/// A lane.
#[derive(Debug, Clone, Serialize)]
pub struct LaneReport {
    /// The lane.
    pub lane: LaneId,
    /// What people call it.
    pub name: Option<String>,
    /// How it stands, in one or a few words.
    pub state: LaneState,
    /// Where it stands in its life.
    pub stage: LaneStage,
    /// Why it failed or is blocked.
    pub reason: Option<String>,
    /// What it waits for.
    pub waiting_for: Option<WaitingFor>,
    /// The remark that goes with its state.
    pub note: String,
    /// The lanes that must be merged first.
    pub depends_on: Vec<LaneId>,
    /// Whether a command judges its work before it is merged; absent where the plan is not known.
    pub has_gate: Option<bool>,
    /// Its agents that have done something.
    pub agents: Vec<AgentName>,
    /// When it left the queue.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// How long it took or has taken, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// How long at least one agent or gate of it ran, in milliseconds.
    pub busy_ms: u64,
    /// Where the rest of its time went.
    #[serde(flatten)]
    pub times: LaneTimes,
    /// Its branch.
    pub branch: Option<String>,
    /// Its worktree.
    pub worktree: Option<PathBuf>,
    /// Its branch's head.
    pub head: Option<CommitId>,
    /// The integration branch after its merge.
    pub merge_commit: Option<CommitId>,
    /// Its pull request.
    pub pull_request: Option<PullRequest>,
    /// What its agents used.
    pub usage: Usage,
    /// Every attempt of an agent, in the order in which they began.
    pub attempts: Vec<JobReport>,
    /// Every run of a gate, of tests and of set-up commands, in the same order.
    pub gates: Vec<JobReport>,
    /// What ended it, where it failed.
    pub failure: Option<FailureReport>,
    /// Everything that failed on the way, mended or not.
    pub failures: Vec<FailureReport>,
    /// Merges into the lane and of the lane.
    pub merges: Vec<MergeReport>,
    /// The checkpoints that it reached.
    pub checkpoints: Vec<CheckpointReport>,
    /// The snapshots that were taken.
    pub snapshots: Vec<SnapshotView>,
    /// What became of its must-haves.
    pub must_haves: Vec<Verdict>,
    /// What people said.
    pub answers: Vec<AnswerReport>,
    /// What was left at cleanup or rollback, each with the reason.
    pub kept: Vec<String>,
}

/// An attempt of an agent, or one run of a gate.
#[derive(Debug, Clone, Serialize)]
pub struct JobReport {
    /// `attempt`, `verify`, `setup`, `checkpoint`, `tests`, `merged-tests` or `final`.
    pub kind: &'static str,
    /// Whose work it is.
    pub agent: Option<AgentName>,
    /// At what.
    pub task: Option<TaskId>,
    /// From 1 for each of its kind.
    pub number: u32,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; `None` while it runs, or where nobody will ever know.
    pub finished: Option<Timestamp>,
    /// How long it took or has taken, in milliseconds.
    pub elapsed_ms: u64,
    /// Whether it passed.
    pub passed: Option<bool>,
    /// What ended it.
    pub cause: Option<ExitCause>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The command that ended it, or of several the last one.
    pub command: Option<String>,
    /// More about the cause.
    pub notes: Option<String>,
    /// Where it did not pass: its last lines of output, oldest first.
    pub tail: Vec<String>,
    /// What a failed gate complained about.
    pub diagnosis: Option<Diagnosis>,
    /// What was out, where something outside was.
    pub outage: Option<Outage>,
    /// What the agent said of itself.
    pub said: Option<AgentReport>,
    /// What its event stream came to, where its runner has one: what it used, its own session, its last words.
    pub transcript: Option<Transcript>,
    /// Why it is a retry, where it is one.
    pub retry: Option<RetryReport>,
}

/// Why an attempt is a retry.
#[derive(Debug, Clone, Serialize)]
pub struct RetryReport {
    /// Of what kind.
    pub level: RetryLevel,
    /// Which one, from 1; `None` where it is not counted.
    pub number: Option<u32>,
    /// How many there may be.
    pub of: Option<u32>,
    /// What had failed.
    pub reason: String,
    /// When it was planned.
    pub planned: Timestamp,
    /// Before which moment it did not begin.
    pub not_before: Timestamp,
}

/// Something that failed.
#[derive(Debug, Clone, Serialize)]
pub struct FailureReport {
    /// When.
    pub at: Timestamp,
    /// Who was to mend it.
    pub agent: Option<AgentName>,
    /// In which task.
    pub task: Option<TaskId>,
    /// What.
    #[serde(flatten)]
    pub failure: Failure,
}

/// Where the time of a lane went, in milliseconds, from its beginning to its end or until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LaneTimes {
    /// All of it.
    pub active_ms: u64,
    /// While git worked for it.
    pub git_ms: u64,
    /// While it waited for something that is no fault of Lanekeeper's.
    pub waited_ms: u64,
    /// While neither was so and no agent or gate of it ran.
    pub overhead_ms: u64,
}

/// A merge.
#[derive(Debug, Clone, Serialize)]
pub struct MergeReport {
    /// When.
    pub at: Timestamp,
    /// Whose work went into the lane; `None`: the lane's went into the integration branch.
    pub agent: Option<AgentName>,
    /// The branch after it.
    pub commit: CommitId,
    /// The branch before it, where that is known.
    pub onto: Option<CommitId>,
}

/// A checkpoint.
#[derive(Debug, Clone, Serialize)]
pub struct CheckpointReport {
    /// When.
    pub at: Timestamp,
    /// Which.
    pub stage: Stage,
    /// How the lane stood there.
    pub status: CheckpointStatus,
    /// What was noted.
    pub notes: String,
}

/// What a person said.
#[derive(Debug, Clone, Serialize)]
pub struct AnswerReport {
    /// When.
    pub at: Timestamp,
    /// To which question.
    pub gate: HumanGate,
    /// Yes or no.
    pub approved: bool,
    /// In which words.
    pub message: String,
}

impl LaneReport {
    /// Attempts and gates, in the order in which they began.
    pub fn jobs(&self) -> Vec<&JobReport> {
        let mut jobs: Vec<&JobReport> = self.attempts.iter().chain(&self.gates).collect();
        jobs.sort_by_key(|job| job.started);
        jobs
    }

    /// Gates as they stand: of each the last run, in the order in which they first ran.
    pub fn last_gates(&self) -> Vec<(&JobReport, usize)> {
        last_runs(&self.gates)
    }
}

/// Of each gate the last run, and how often it ran.
pub(super) fn last_runs(gates: &[JobReport]) -> Vec<(&JobReport, usize)> {
    let mut last: Vec<(&JobReport, usize)> = Vec::new();
    for gate in gates {
        match last.iter_mut().find(|(known, _)| known.names_the_same(gate)) {
            Some((known, runs)) => (*known, *runs) = (gate, *runs + 1),
            None => last.push((gate, 1)),
        }
    }
    last
}

impl JobReport {
    /// Whether two runs are of the same gate.
    fn names_the_same(&self, other: &Self) -> bool {
        (self.kind, &self.agent, &self.task) == (other.kind, &other.agent, &other.task)
    }

    /// `attempt 2 of engineer at task 1`, `tests`, `checkpoint of engineer`; of gates without the number of the run.
    pub fn label(&self) -> String {
        let mut text = if self.kind == "attempt" { format!("attempt {}", self.number) } else { self.kind.to_owned() };
        if let Some(agent) = &self.agent {
            text.push_str(&format!(" of {agent}"));
        }
        if let Some(task) = &self.task {
            text.push_str(&format!(" at task {task}"));
        }
        text
    }

    /// How it ended, in a few words.
    pub fn ending(&self) -> String {
        match (self.cause, self.exit_code) {
            (None, _) if self.finished.is_none() => "has not ended".to_owned(),
            (Some(ExitCause::Exited), Some(0)) => "passed".to_owned(),
            (Some(ExitCause::Exited), Some(code)) => format!("exit code {code}"),
            (Some(ExitCause::TimedOut), _) => "ran out of time".to_owned(),
            (Some(ExitCause::Stopped), _) => "was stopped".to_owned(),
            (Some(ExitCause::NotStarted), _) => "could not be started".to_owned(),
            (Some(ExitCause::Lost) | None, _) | (Some(ExitCause::Exited), None) => "ended unseen".to_owned(),
        }
    }
}
