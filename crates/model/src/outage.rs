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

/// Since when and until when no attempt with an account begins; without an end: until a person has changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseTimes {
    pub since: Timestamp,
    pub until: Option<Timestamp>,
}

impl PauseTimes {
    fn is_longer_than(self, duration: Duration) -> bool {
        self.until.is_none_or(|until| until > self.since.plus(duration))
    }
}

/// Which of an agent's runners makes its next attempt: its own, which is the first, or one of its `fallback`. `pauses`: of each
/// of them, in this order. While its own is paused for longer than `fallback_after`, the first that is not; where all are,
/// the one that is soonest available again.
pub fn next_runner(pauses: &[Option<PauseTimes>], fallback_after: Duration) -> usize {
    let is_kept = |own: &Option<PauseTimes>| own.is_none_or(|pause| !pause.is_longer_than(fallback_after));
    if pauses.first().is_none_or(is_kept) {
        return 0;
    }
    let soonest = |at: &usize| pauses[*at].map(|pause| (pause.until.is_none(), pause.until));
    (0..pauses.len()).min_by_key(soonest).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fallback_takes_the_place_of_a_runner_that_is_paused_for_long() {
        let pause = |until: Option<i64>| {
            let moment = |minutes: i64| Timestamp::from_unix_millis(60_000 * minutes);
            Some(PauseTimes { since: moment(0), until: until.map(moment) })
        };
        let (short, long, lasting) = (pause(Some(5)), pause(Some(60)), pause(None));
        for (pauses, expected) in [
            (vec![], 0),
            (vec![None, None], 0),
            (vec![long], 0),
            (vec![short, None], 0),
            (vec![long, None, None], 1),
            (vec![lasting, long, None], 2),
            (vec![lasting, long], 1),
            (vec![long, lasting], 0),
            (vec![long, pause(Some(20))], 1),
            (vec![lasting, lasting], 0),
        ] {
            assert_eq!(next_runner(&pauses, Duration::from_secs(300)), expected, "{pauses:?}");
        }
    }
}
