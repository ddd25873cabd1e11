//! Failures outside of the run: the network, or a limit of the service that an agent uses (SPEC §7).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::FailureKind;
use super::time::{Timestamp, optional_millis};
use super::word_enum;

/// An external service that was unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outage {
    pub kind: OutageKind,
    /// The line of output that reports it.
    pub line: String,
    /// How long the program asks to wait.
    #[serde(with = "optional_millis", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub retry_after: Option<Duration>,
    /// Until when it asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Outage {
    /// An outage of which nothing is known but the line that reports it.
    pub fn new(kind: OutageKind, line: impl Into<String>) -> Self {
        Self { kind, line: line.into(), retry_after: None, until: None }
    }

    /// The end of the wait that the program asks for, if it ended `at`.
    pub fn end(&self, at: Timestamp) -> Option<Timestamp> {
        self.until.or(self.retry_after.map(|wait| at.plus(wait)))
    }
}

word_enum! {
    /// What was unavailable.
    OutageKind {
        /// A host cannot be reached.
        Network = "network",
        /// A service takes no more requests for now.
        Quota = "quota",
        /// A service refuses the program, or the program cannot work, until a person changes something: a key, a model, an
        /// empty account.
        Refused = "refused",
    }
}

impl From<OutageKind> for FailureKind {
    fn from(kind: OutageKind) -> Self {
        match kind {
            OutageKind::Network => Self::Network,
            OutageKind::Quota => Self::Quota,
            OutageKind::Refused => Self::Refused,
        }
    }
}
