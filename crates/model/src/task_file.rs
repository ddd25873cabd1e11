//! A lane's `task.json` (SPEC §4): the owner and the state of the lane, for people, scripts and hooks.
//!
//! Lanewright itself never reads its state from it; the run log says more and says it first.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::id::{AgentName, CommitId, PhaseId};
use super::time::Timestamp;

/// What `task.json` says. Every field is always written, so that an update leaves nothing stale behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFile {
    /// The lane's id.
    pub task_name: String,
    /// The session that owns the lane.
    pub session_id: String,
    /// The word of the lane's stage (SPEC §6), for example `IMPLEMENTATION`.
    pub state: String,
    /// When the lane was begun.
    pub created: Timestamp,
    pub phase: PhaseId,
    /// The agents that must be complete before the lane is.
    #[serde(default)]
    pub required_agents: Vec<AgentName>,
    /// The state of each agent.
    #[serde(default)]
    pub agents: BTreeMap<AgentName, TaskAgent>,
    /// The lane's last good commit.
    #[serde(default)]
    pub checkpoint: TaskCheckpoint,
    /// Every step of the lane's life, oldest first.
    #[serde(default)]
    pub transition_log: Vec<Transition>,
    /// What came in between without moving the state, oldest first. Hooks add to it.
    #[serde(default)]
    pub interruptions: Vec<Interruption>,
}

/// The state of an agent of a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAgent {
    /// In the words of seed 003, Recovery Procedure 2: `MISSING`, `WORKING`, `COMPLETE`, `ERROR`, `TIMEOUT`, `BLOCKED`.
    #[serde(default)]
    pub status: String,
    /// The phase of its work, in the words of seed 000, State Machine, for example `EXECUTING`; empty: the run log, of an
    /// older version, does not say.
    #[serde(default)]
    pub state: String,
    /// Every step of its work, oldest first; one to `INITIALIZED` begins new work.
    #[serde(default)]
    pub transition_log: Vec<Transition>,
    /// How many retries it has had.
    #[serde(default)]
    pub retry_count: u32,
    /// Its branch, without `refs/heads/`, once it has a worktree of its own.
    #[serde(default)]
    pub branch: Option<String>,
    /// Its worktree, absolute, while it holds one of its own.
    #[serde(default)]
    pub worktree: Option<PathBuf>,
}

/// The commit that holds a lane's work so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCheckpoint {
    /// Its full name; `None` before there is one.
    #[serde(default)]
    pub commit_sha: Option<CommitId>,
}

/// One step of a lane's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    pub from: String,
    pub to: String,
    pub timestamp: Timestamp,
}

/// Something that came in between and moved nothing (seed 003, Multiple Interruption Handling).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// What kind, for example `user_prompt`.
    #[serde(rename = "type")]
    pub kind: String,
    pub timestamp: Timestamp,
}
