//! What an agent gets besides its prompt: files and an environment (SPEC §6). Pure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanewright_model::{Agent, Lane, PhaseId, Task};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub struct BriefFiles {
    pub directory: PathBuf,
    pub status: PathBuf,
}

/// Where an agent of the requirements round leaves its report, below its [`exchange`].
const REPORT: &str = "report.md";

/// The directory of an attempt's own that its agent writes to: what Lanewright itself keeps of the attempt lies beside it, where an
/// agent in a sandbox cannot write.
fn exchange(attempt: &Path) -> PathBuf {
    attempt.join("exchange")
}

/// The file called `name` that the agent of an attempt wrote. Before there was a directory for them it was beside the others.
fn left(attempt: &Path, name: &str) -> PathBuf {
    let (own, earlier) = (exchange(attempt).join(name), attempt.join(name));
    if own.symlink_metadata().is_err() && earlier.symlink_metadata().is_ok() { earlier } else { own }
}

/// The report that the agent of the attempt in this directory left, or would leave.
pub fn report_left(attempt: &Path) -> PathBuf {
    left(attempt, REPORT)
}

/// What the user said to the agent of the attempt in this directory while it worked, one JSON text a line.
pub fn messages(attempt: &Path) -> PathBuf {
    attempt.join("messages.jsonl")
}

impl BriefFiles {
    pub const PROMPT: &str = "prompt.md";
    pub const TASK: &str = "task.json";
    pub const FAILURE_CONTEXT: &str = "failure_context.json";

    pub fn prompt(&self) -> PathBuf {
        self.directory.join(Self::PROMPT)
    }

    pub fn result(&self) -> PathBuf {
        left(&self.directory, "result.json")
    }

    /// Where the agent's tool calls may be written, one JSON object a line.
    pub fn tool_calls(&self) -> PathBuf {
        left(&self.directory, "tool_calls.jsonl")
    }

    /// The directories that the agent writes to, besides its worktree.
    pub(super) fn exchange(&self) -> impl Iterator<Item = PathBuf> {
        [Some(exchange(&self.directory)), self.status.parent().map(Path::to_owned)].into_iter().flatten()
    }

    /// What git commands of the attempt in `directory` did, as git tells it.
    pub(super) fn git_trace(directory: &Path) -> PathBuf {
        exchange(directory).join("git_trace.jsonl")
    }

    /// Which of them changed other checkouts.
    pub(super) fn outside_calls(directory: &Path) -> PathBuf {
        directory.join("outside_calls.json")
    }

    /// What an attempt's environment has besides that of its lane, each name with its prefix (SPEC §6).
    pub(super) fn environment(
        &self,
        (agent, task): (&Agent, &Task),
        attempt: u32,
        max_retries: u32,
    ) -> BTreeMap<String, String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut environment = agent.env.clone();
        environment.extend(prefixed([
            ("AGENT", agent.name.to_string()),
            ("TASK", task.id.to_string()),
            ("ATTEMPT", attempt.to_string()),
            ("MAX_RETRIES", max_retries.to_string()),
            ("PROMPT_FILE", path(&self.prompt())),
            ("TASK_FILE", path(&self.directory.join(Self::TASK))),
            ("STATUS_FILE", path(&self.status)),
            ("RESULT_FILE", path(&self.result())),
            ("REPORT_FILE", path(&report_left(&self.directory))),
            ("TOOL_CALLS_FILE", path(&self.tool_calls())),
            ("MESSAGES_FILE", path(&messages(&self.directory))),
            ("FAILURE_CONTEXT_FILE", path(&self.directory.join(Self::FAILURE_CONTEXT))),
        ]));
        environment
    }
}

/// The contents of `TASK_FILE` (SPEC §6).
pub(super) fn task_file(phase: &PhaseId, lane: &Lane, task: &Task, worktree: &Path, failures: &[String]) -> Value {
    json!({
        "phase_id": phase,
        "lane_id": lane.id,
        "task_id": task.id,
        "worktree_path": worktree,
        "files_in_scope": if task.files.is_empty() { &lane.owns } else { &task.files },
        "interfaces_to_implement": task.interfaces,
        "acceptance_criteria": task.acceptance_criteria,
        "failure_context": failures,
    })
}

pub(super) fn prefixed<const N: usize>(variables: [(&str, String); N]) -> [(String, String); N] {
    variables.map(|(name, value)| (format!("LANEWRIGHT_{name}"), value))
}
