use serde::{Deserialize, Serialize};

/// The runner of an attempt as it was when the attempt was planned: a later plan may have others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MadeWith {
    /// Its name.
    pub runner: String,
    /// Its account; absent: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// What of the account may be refused; absent: the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusable: Option<String>,
    /// Whether it is not the agent's own, but one of its `fallback`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fallback: bool,
}

impl MadeWith {
    /// Its name, where it is one of the agent's `fallback`.
    pub fn fallback(&self) -> Option<&String> {
        Some(&self.runner).filter(|_| self.is_fallback)
    }

    /// Its account, and what of it may be refused.
    pub fn accounts(&self) -> [String; 2] {
        [&self.account, &self.refusable].map(|own| own.as_ref().unwrap_or(&self.runner).clone())
    }
}
