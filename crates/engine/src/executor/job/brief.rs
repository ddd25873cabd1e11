//! What an agent gets besides its prompt: files and an environment (SPEC §6). Pure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanewright_model::{Agent, CommitId, Lane, PhaseId, RunId, Task};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub struct Brief<'a> {
    pub run: &'a RunId,
    pub phase: &'a PhaseId,
    pub lane: &'a Lane,
    pub agent: &'a Agent,
    pub task: &'a Task,
    /// The attempt, from 1.
    pub attempt: u32,
    pub max_retries: u32,
    /// Where.
    pub worktree: &'a Path,
    pub base: &'a CommitId,
    pub port: u16,
    pub failure_context: &'a [String],
}

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

    pub fn task(&self) -> PathBuf {
        self.directory.join(Self::TASK)
    }

    pub fn result(&self) -> PathBuf {
        self.directory.join("result.json")
    }

    /// Where the agent's tool calls may be written, one JSON object a line.
    pub fn tool_calls(&self) -> PathBuf {
        self.directory.join("tool_calls.jsonl")
    }

    /// What went wrong before, as a JSON array.
    pub fn failure_context(&self) -> PathBuf {
        self.directory.join(Self::FAILURE_CONTEXT)
    }
}

impl Brief<'_> {
    /// The contents of `TASK_FILE` (SPEC §6).
    pub fn task_file(&self) -> Value {
        json!({
            "phase_id": self.phase,
            "lane_id": self.lane.id,
            "task_id": self.task.id,
            "worktree_path": self.worktree,
            "files_in_scope": if self.task.files.is_empty() { &self.lane.owns } else { &self.task.files },
            "interfaces_to_implement": self.task.interfaces,
            "acceptance_criteria": self.task.acceptance_criteria,
            "failure_context": self.failure_context,
        })
    }

    /// The environment, each name with its prefix (SPEC §6).
    pub fn environment(&self, files: &BriefFiles) -> BTreeMap<String, String> {
        let mut environment = lane_environment(self.run, self.phase, self.lane, self.worktree, self.base, self.port);
        environment.extend(self.agent.env.clone());
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let own = [
            ("AGENT", self.agent.name.to_string()),
            ("TASK", self.task.id.to_string()),
            ("ATTEMPT", self.attempt.to_string()),
            ("MAX_RETRIES", self.max_retries.to_string()),
            ("PROMPT_FILE", path(files.prompt())),
            ("TASK_FILE", path(files.task())),
            ("STATUS_FILE", path(files.status.clone())),
            ("RESULT_FILE", path(files.result())),
            ("REPORT_FILE", path(files.report.clone())),
            ("TOOL_CALLS_FILE", path(files.tool_calls())),
            ("FAILURE_CONTEXT_FILE", path(files.failure_context())),
        ];
        environment.extend(own.map(|(name, value)| (format!("LANEWRIGHT_{name}"), value)));
        environment
    }
}

pub fn lane_environment(
    run: &RunId,
    phase: &PhaseId,
    lane: &Lane,
    worktree: &Path,
    base: &CommitId,
    port: u16,
) -> BTreeMap<String, String> {
    let mut environment = lane.env.clone();
    let own = [
        ("RUN_ID", run.to_string()),
        ("PHASE", phase.to_string()),
        ("LANE", lane.id.to_string()),
        ("WORKTREE", worktree.to_string_lossy().into_owned()),
        ("BASE_COMMIT", base.to_string()),
        ("PORT", port.to_string()),
    ];
    environment.extend(own.map(|(name, value)| (format!("LANEWRIGHT_{name}"), value)));
    environment
}
