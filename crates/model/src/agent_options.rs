//! Options of agents' programs that a plan sets.

use serde::{Deserialize, Serialize};

use super::transcript::Dollars;

/// How an agent's program works, for programs that can be told so.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A word of the program's own, such as `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Dollars>,
}

impl AgentOptions {
    /// The names of all options.
    pub const NAMES: [&str; 4] = ["model", "effort", "max_turns", "budget"];

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The options that are set, each with its name.
    pub fn set_options(&self) -> Vec<(&'static str, String)> {
        let values = [
            self.model.clone(),
            self.effort.clone(),
            self.max_turns.map(|turns| turns.to_string()),
            self.budget.map(|budget| budget.value().to_string()),
        ];
        Self::NAMES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
