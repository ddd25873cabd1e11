//! Failures outside of the run: the network, or a limit of the service that an agent uses (SPEC §7).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::FailureKind;
use super::time::optional_millis;
use super::word_enum;

/// Something outside that kept an attempt from succeeding and is likely to pass by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    pub kind: OutageKind,
    /// The line of output that says so.
    pub line: String,
    /// How long that line asks to wait, where it does.
    #[serde(with = "optional_millis", default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

word_enum! {
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
