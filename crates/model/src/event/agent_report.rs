//! What agents say of themselves.

use serde::{Deserialize, Serialize};

use crate::TaskId;

/// An agent's own report, from `status.json` or its result file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentReport {
    /// `COMPLETE`, `ERROR`, `BLOCKED`, or another word that it wrote.
    #[serde(default)]
    pub status: String,
    /// `APPROVED`, `REJECTED`, `PENDING`, the number of the candidate that a judge names, or empty.
    #[serde(default)]
    pub decision: String,
    /// Why it failed or is blocked.
    #[serde(default)]
    pub message: String,
    /// What a reviewer wants changed.
    #[serde(default)]
    pub feedback: String,
    /// What the agent decided, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// What stands in its way, or did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// Why the file with the report cannot be read.
    #[serde(default)]
    pub fault: String,
    /// Whether the agent wrote it, and not its supervisor on its behalf.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// What an agent decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    pub text: String,
    /// Why; empty: it did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What the taker of a snapshot gave along with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GivenContext {
    /// What was decided, oldest first; the agents' next prompts have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// What stands in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// The task that is to be done next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_task: Option<TaskId>,
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { text, reason } = self;
        if reason.is_empty() { f.write_str(text) } else { write!(f, "{text} ({reason})") }
    }
}

impl AgentReport {
    /// Whether a reviewer said no.
    pub fn rejects(&self) -> bool {
        self.decision == "REJECTED"
    }
}
