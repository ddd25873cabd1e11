//! What the tools are given, and what of it makes sense.

use lanewright_model::{AgentName, LaneId, RunId};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::{ExitStatus, Hint, Result};

/// `ExecutePhase`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExecutePhase {
    /// The path of the plan, the directory of a GSD phase, or a roadmap; from the directory of the server.
    pub(crate) plan: String,
    /// Only these lanes and what they depend on; if left out all lanes.
    #[serde(default)]
    pub(crate) lanes: Vec<String>,
    /// The integration branch; if left out the plan's, else the current branch.
    #[serde(default)]
    pub(crate) base: Option<String>,
    /// The runner of every agent without its own command, for example claude, codex or gemini.
    #[serde(default)]
    pub(crate) runner: Option<String>,
}

/// `ReadLogs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReadLogs {
    /// The run, as RUN, or one of its lanes, as RUN/LANE.
    pub(super) task_id: String,
    /// Only this agent of the lane.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// How many lines, the last ones. Default: 200.
    #[serde(default)]
    #[schemars(range(min = 1, max = 2000))]
    pub(crate) lines: Option<u32>,
}

/// `ReadDiff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReadDiff {
    /// The lane, as RUN/LANE.
    pub(super) task_id: String,
    /// Only the changes of this agent of the lane.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// Only the names of the changed files and how many lines changed.
    #[serde(default)]
    pub(crate) stat: bool,
}

/// `ResumeTask`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ResumeTask {
    /// The run, as RUN, or one of its lanes, as RUN/LANE. A lane is resumed with its run; the context is for it alone then.
    pub(super) task_id: String,
    /// Text to add to the next prompt of each agent, for example what changed or what to do differently.
    #[serde(default)]
    #[schemars(length(max = 16384))]
    pub(super) additional_context: Option<String>,
}

/// `RunStatus`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunStatus {
    /// The run, as RUN, or one of its lanes, as RUN/LANE; if left out the newest unfinished run, else the newest.
    #[serde(default)]
    pub(super) task_id: Option<String>,
    /// How many seconds to wait at most until no process works on the run (`held` is false), up to 600. Default: 0.
    #[serde(default)]
    pub(super) wait: u32,
}

/// `RollbackLane`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RollbackLane {
    /// The lane, as RUN/LANE.
    pub(super) task_id: String,
    /// The point to take it back to: after_lane_start, after_lane_tests, pre_pr, a task, or a snapshot. Default: its start.
    #[serde(default)]
    pub(super) to: Option<String>,
    /// Whether its work may be taken out of the integration branch again, if it is merged. Only where the user said yes
    /// to that.
    #[serde(default)]
    pub(super) undo_merged: bool,
}

/// `Rollback`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rollback {
    /// The run, as RUN, for all its lanes, or one of them, as RUN/LANE.
    pub(super) task_id: String,
    /// The point to take them back to: after_lane_start, after_lane_tests, pre_pr, a task, or a snapshot. Default: their start.
    #[serde(default)]
    pub(super) to: Option<String>,
    /// Only report what would be done.
    #[serde(default)]
    pub(super) dry_run: bool,
    /// Whether work may be taken out of the integration branch again, if it is merged. Only where the user said yes to that.
    #[serde(default)]
    pub(super) undo_merged: bool,
}

/// `Approve` and `Reject`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Answer {
    /// The lane that waits, as RUN/LANE.
    pub(super) task_id: String,
    /// What is answered: setup, plan, changes, or a task. May be left out if the lane waits for one answer only.
    #[serde(default)]
    pub(super) gate: Option<String>,
    /// Text for the agents, in the user's words; a rejection needs one: what to change.
    #[serde(default)]
    #[schemars(length(max = 16384))]
    pub(super) message: Option<String>,
    /// Whether the run is resumed at once, in the background. Default: true.
    #[serde(default)]
    pub(super) resume: Option<bool>,
}

/// `Tell`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Tell {
    /// The lane, as RUN/LANE.
    pub(super) task_id: String,
    /// What to tell its agents, in the user's words.
    #[schemars(length(max = 16384))]
    pub(super) message: String,
}

/// `Pick`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pick {
    /// The lane, as RUN/LANE.
    pub(super) task_id: String,
    /// The number of the candidate.
    #[schemars(range(min = 1))]
    pub(super) candidate: u32,
}

/// `Retry`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Retry {
    /// The lane, as RUN/LANE.
    pub(super) task_id: String,
    /// Text to add to the next prompts of the lane's agents: what to do differently.
    #[serde(default)]
    #[schemars(length(max = 16384))]
    pub(super) message: Option<String>,
    /// The runner of the agent that failed, from now on.
    #[serde(default)]
    pub(super) runner: Option<String>,
}

/// `Doctor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Doctor {
    /// Only this run; if left out all of them.
    #[serde(default)]
    pub(super) task_id: Option<String>,
    /// Whether to repair what can be repaired with certainty. Only where the user said yes to that.
    #[serde(default)]
    pub(super) fix: bool,
}

/// `Gate`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Gate {
    /// The lane, as RUN/LANE; the run, as RUN, for the gate `final`.
    pub(super) task_id: String,
    /// atomic, checkpoint, tests or final.
    pub(super) gate: JudgedGate,
    /// The agent whose worktree is judged, with the gate `atomic`.
    #[serde(default)]
    pub(super) agent: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
pub(super) enum JudgedGate {
    Atomic,
    Checkpoint,
    Tests,
    Final,
}

impl JudgedGate {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Checkpoint => "checkpoint",
            Self::Tests => "tests",
            Self::Final => "final",
        }
    }
}

/// `ListCheckpoints`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListCheckpoints {
    /// The run, as RUN, or one of its lanes, as RUN/LANE.
    pub(super) task_id: String,
}

/// `CreateCheckpoint`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateCheckpoint {
    /// The lane, as RUN/LANE.
    pub(super) task_id: String,
    /// The agent whose worktree is kept; if left out the lane's own.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// What to say about it.
    #[serde(default)]
    pub(crate) message: Option<String>,
    /// What was decided, what stands in the way, and the next task: an object with `decisions`, `blockers` and `next_task`.
    #[serde(default)]
    pub(crate) context: Option<Map<String, Value>>,
}

/// A run, or a lane of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskId {
    pub(crate) run: RunId,
    pub(crate) lane: Option<LaneId>,
}

impl TaskId {
    /// The run and the lane, where a lane is named.
    pub(super) fn with_lane(self) -> Result<(RunId, LaneId)> {
        let Self { run, lane } = self;
        let missing = || usage(format!("taskId `{run}` names no lane")).hint(format!("name it as {run}/LANE"));
        lane.ok_or_else(missing).map(|lane| (run, lane))
    }
}

pub(crate) fn taken(task: &str) -> Result<TaskId> {
    let (run, lane) = task.split_once('/').map_or((task, None), |(run, lane)| (run, Some(lane)));
    let wrong = |error: String| usage(format!("taskId: {error}")).hint("a task is RUN, or RUN/LANE");
    let run = RunId::new(run).map_err(|error| wrong(error.to_string()))?;
    let lane = lane.map(LaneId::new).transpose().map_err(|error| wrong(error.to_string()))?;
    Ok(TaskId { run, lane })
}

pub(crate) fn agent(name: &str) -> Result<String> {
    AgentName::new(name).map(String::from).map_err(|error| usage(format!("agent: {error}")))
}

pub(crate) fn lane(name: &str) -> Result<LaneId> {
    LaneId::new(name).map_err(|error| usage(format!("lanes: {error}")))
}

/// The longest context, in bytes: it becomes part of every prompt.
pub(super) const LONGEST_CONTEXT: usize = 16 << 10;

/// The context without blanks around it; `None`: there is none.
pub(crate) fn context(text: Option<&str>) -> Result<Option<&str>> {
    match text.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) if text.len() > LONGEST_CONTEXT => {
            Err(usage(format!("additionalContext has {} bytes, and may have {LONGEST_CONTEXT}", text.len())))
        }
        text => Ok(text),
    }
}

pub(crate) fn usage(message: String) -> anyhow::Error {
    ExitStatus::Usage.error(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::error::CliError;

    #[test]
    fn task_id_is_a_run_or_a_lane() {
        let task = taken("r1/SL-1").unwrap();
        assert_eq!(task.with_lane().unwrap(), (RunId::new("r1").unwrap(), LaneId::new("SL-1").unwrap()));
        assert_eq!(CliError::from(taken("r1").unwrap().with_lane().unwrap_err()).status, ExitStatus::Usage);
        for wrong in ["", "/", "r1/", "/SL-1", "r1/SL-1/x", "--help", "../r1", "r1/-x", "a b"] {
            assert_eq!(CliError::from(taken(wrong).unwrap_err()).status, ExitStatus::Usage, "{wrong}");
        }
    }

    #[test]
    fn overlong_context_is_refused() {
        assert_eq!(context(Some(" x\n")).unwrap(), Some("x"));
        assert_eq!(context(Some(" ")).unwrap(), None);
        context(Some(&"x".repeat(LONGEST_CONTEXT + 1))).unwrap_err();
    }
}
