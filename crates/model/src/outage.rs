//! Failures outside of the run: the network, or a limit of the service that an agent uses (SPEC §7).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::FailureKind;
use super::time::optional_millis;
use super::word_enum;

/// An external service that was unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outage {
    pub kind: OutageKind,
    /// The line of output that reports it.
    pub line: String,
    /// How long that line asks to wait.
    #[serde(with = "optional_millis", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub retry_after: Option<Duration>,
}

word_enum! {
    /// What was unavailable.
    OutageKind {
        /// A host cannot be reached.
        Network = "network",
        /// A service takes no more requests for now.
        Quota = "quota",
    }
}

impl From<OutageKind> for FailureKind {
    fn from(kind: OutageKind) -> Self {
        match kind {
            OutageKind::Network => Self::Network,
            OutageKind::Quota => Self::Quota,
        }
    }
}
