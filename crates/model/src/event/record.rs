//! Events with their place in a log.

use super::Event;
use crate::Timestamp;

/// One line of the run log.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Timestamp,
    pub event: Event,
    /// Its number in the log that it was copied from: a lane on a cluster has a log of its own.
    pub origin: Option<u64>,
}

/// An event on its way into the run log.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// What happened.
    pub event: Event,
    /// As in [`Record`].
    pub origin: Option<u64>,
}

impl From<Event> for Incoming {
    fn from(event: Event) -> Self {
        Self { event, origin: None }
    }
}
