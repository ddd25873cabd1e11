//! What an agent gets: its prompt, its files and its environment (SPEC §6). Pure.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::model::plan::OwnershipRule;
use crate::model::{Agent, CommitId, Lane, PhaseId, Round, RunId, Task};

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
    pub failure_context: Vec<String>,
    /// Refs of snapshots that hold work that was put aside.
    pub salvaged: &'a [String],
    /// The state of the work, for an attempt that is not the first at this agent's work.
    pub progress: Progress<'a>,
    /// What a gate complained about the last time, each with its place.
    pub complaints: &'a [String],
    /// All retries failed: this one starts from the last state that passed, and is the last.
    pub last_chance: bool,
    /// What the agents of the requirements round found out, each with its name.
    pub reports: &'a [(String, String)],
    /// What people said when they answered or resumed.
    pub remarks: &'a [String],
}

/// The state of an agent's work (seed 001, Context Injection Fallback).
#[derive(Debug, Clone, Default)]
pub struct Progress<'a> {
    /// Its tasks that are done, as people call them.
    pub done: Vec<&'a str>,
    /// Its branch; empty: it has none.
    pub branch: &'a str,
    pub head: Option<&'a CommitId>,
    /// Files that were changed since the branch began.
    pub changed: &'a [String],
    pub last_words: Vec<String>,
}

const CHANGED_FILES: usize = 30;

impl Progress<'_> {
    fn describe(&self) -> String {
        let mut lines = Vec::new();
        if !self.done.is_empty() {
            lines.push(format!("Done before: {}.", self.done.join("; ")));
        }
        if let (Some(head), false) = (self.head, self.changed.is_empty()) {
            let (named, more) = self.changed.split_at(self.changed.len().min(CHANGED_FILES));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            let branch = if self.branch.is_empty() { "The branch".to_owned() } else { format!("`{}`", self.branch) };
            lines.push(format!("{branch} is at {}; changed in it: {}{more}.", head.short(), named.join(", ")));
        }
        if !self.last_words.is_empty() {
            lines.push(format!("The last lines of the attempt before:\n\n    {}", self.last_words.join("\n    ")));
        }
        lines.join("\n\n")
    }
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

/// Level 2 of seed 000's Recovery Protocol, in the agent's words.
const DIFFERENT_APPROACH: &str = "Every attempt so far failed. The worktree was reset to the last state that passed \
its gate. This is the last attempt before a person is asked: choose a different approach from those that failed.";

impl Brief<'_> {
    /// The prompt. No two attempts ever get the same: the number of the attempt and what went wrong are part of it.
    pub fn prompt(&self) -> String {
        let mut text = self.task.prompt.trim_end().to_owned();
        let mut section = |title: &str, body: String| {
            if !body.is_empty() {
                let _ = write!(text, "\n\n## {title}\n\n{}", body.trim_end());
            }
        };
        section("Files in scope", bullets(&self.task.files));
        section("Interfaces to implement", bullets(&self.task.interfaces));
        section("Done when", bullets(&self.task.acceptance_criteria));
        section("What must hold once the lane is done", bullets(&self.must_haves()));
        match self.lane.ownership {
            OwnershipRule::Enforced => section("Only these files may be changed", bullets(&self.lane.owns)),
            OwnershipRule::Advisory => section("Files that this lane is about", bullets(&self.lane.owns)),
            OwnershipRule::Nothing => section("No file may be changed", "This lane only reads.".to_owned()),
        }
        for (agent, report) in self.reports {
            section(&format!("Report of {agent}"), report.clone());
        }
        section("What people said", bullets(self.remarks));
        section("What must be done at the end", self.closing_words().to_owned());
        section("State of the work", self.progress.describe());
        section("What the failed gate complained about", bullets(self.complaints));
        section(&format!("This is attempt {}", self.attempt), self.earlier_attempts());
        text.push('\n');
        text.trim_start().to_owned()
    }

    /// What the lane must have, for the last task of an agent that implements or reviews it, unless the prompt contains it.
    fn must_haves(&self) -> Vec<String> {
        let is_last = self.agent.tasks.last().is_none_or(|last| last.id == self.task.id);
        if !is_last || self.agent.round == Round::Requirements {
            return Vec::new();
        }
        let requirements = self.lane.must_haves.descriptions().into_iter();
        requirements.filter(|line| !self.task.prompt.contains(line.as_str())).collect()
    }

    fn closing_words(&self) -> &'static str {
        match self.agent.round {
            Round::Requirements => {
                "Write your report into the file that $LANEKEEPER_REPORT_FILE names. Change no code."
            }
            Round::Implementation => "",
            Round::Review => {
                "Write {\"status\": \"COMPLETE\", \"decision\": \"APPROVED\" or \"REJECTED\", \"feedback\": \"what must change\"} \
                 into the file that $LANEKEEPER_STATUS_FILE names."
            }
        }
    }

    fn earlier_attempts(&self) -> String {
        if self.attempt == 1 && self.failure_context.is_empty() {
            return String::new();
        }
        if self.last_chance {
            return format!("{DIFFERENT_APPROACH}\n\n{}{}", bullets(&self.failure_context), self.where_the_rest_is());
        }
        let text = match self.failure_context.as_slice() {
            [] => {
                "An earlier attempt was interrupted. Its changes are in the worktree; continue from there.".to_owned()
            }
            entries => format!("Earlier attempts failed. Do not repeat the same mistakes.\n\n{}", bullets(entries)),
        };
        text + &self.where_the_rest_is()
    }

    fn where_the_rest_is(&self) -> String {
        let kept = |last: &String| format!("\nWhat the last one left is kept in git as `{last}`.");
        self.salvaged.last().map(kept).unwrap_or_default()
    }

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
        environment.extend(own.map(|(name, value)| (format!("LANEKEEPER_{name}"), value)));
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
    environment.extend(own.map(|(name, value)| (format!("LANEKEEPER_{name}"), value)));
    environment
}

fn bullets(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "- {line}");
        text
    })
}
