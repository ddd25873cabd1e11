//! What an agent gets besides its prompt: files and an environment (SPEC §6). Pure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanewright_model::{Agent, Lane, PhaseId, Task};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub struct BriefFiles {
    pub directory: PathBuf,
    pub status: PathBuf,
    /// Where an agent of the requirements round leaves its report.
    pub report: PathBuf,
}

impl BriefFiles {
    pub const PROMPT: &str = "prompt.md";
    pub const TASK: &str = "task.json";
    pub const FAILURE_CONTEXT: &str = "failure_context.json";

    pub fn prompt(&self) -> PathBuf {
        self.directory.join(Self::PROMPT)
    }

    pub fn result(&self) -> PathBuf {
        self.directory.join("result.json")
    }

    /// Where the agent's tool calls may be written, one JSON object a line.
    pub fn tool_calls(&self) -> PathBuf {
        self.directory.join("tool_calls.jsonl")
    }

    /// What git commands of the attempt in `directory` did, as git tells it.
    pub(super) fn git_trace(directory: &Path) -> PathBuf {
        directory.join("git_trace.jsonl")
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
            ("REPORT_FILE", path(&self.report)),
            ("TOOL_CALLS_FILE", path(&self.tool_calls())),
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
