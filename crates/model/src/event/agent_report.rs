//! What agents say of themselves.

use serde::{Deserialize, Serialize};

/// An agent's report, from `status.json` or its result file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// `COMPLETE`, `ERROR`, `BLOCKED`, or what else it wrote.
    #[serde(default)]
    pub status: String,
    /// `APPROVED`, `REJECTED`, `PENDING` or nothing.
    #[serde(default)]
    pub decision: String,
    /// Why it failed or is blocked.
    #[serde(default)]
    pub message: String,
    /// What a reviewer wants changed.
    #[serde(default)]
    pub feedback: String,
    /// Why a file that should hold the report cannot be read.
    #[serde(default)]
    pub fault: String,
    /// Whether the agent wrote it itself, and not its supervisor on its behalf.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

impl AgentReport {
    /// Whether a reviewer said no.
    pub fn rejects(&self) -> bool {
        self.decision == "REJECTED"
    }
}
