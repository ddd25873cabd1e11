//! What retries replaced in the plan of a run.

use serde::{Deserialize, Serialize};

use super::id::{AgentName, LaneId, TaskId};

/// A part of an agent's work that `retry` replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    pub lane: LaneId,
    pub agent: AgentName,
    pub part: AgentPart,
    /// The SHA-256 of what the plan file had there.
    pub planned_sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentPart {
    Runner,
    Prompt(TaskId),
}
