//! A lane that works elsewhere, on an engine of a cluster.

use std::time::Duration;

use lanewright_model::{CommitId, Timestamp};

/// What is known of a lane's work on a cluster, over all of its placements.
#[derive(Debug, Clone, Default)]
pub struct PlacementState {
    /// How often the lane was offered. A number is never used again.
    pub(crate) number: u32,
    pub(crate) current: Option<Placement>,
    /// Placements in a row that ended without an end of the lane and without progress.
    pub(crate) losses: u32,
    /// When, and as much later as one slept since, and why the last one of them ended.
    pub(crate) lost: Option<(Timestamp, String)>,
    /// The last record of the lane's own log that is in this one.
    pub(crate) seen: u64,
    /// Whether this process leaves it where it is, after a forced stop without an answer. In no log: another process
    /// follows it.
    pub(crate) is_released: bool,
}

/// Where a lane is.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// The executor's name.
    pub executor: String,
    /// The state that was offered, and the engine's name of the job; `None`: it is about to be.
    pub job: Option<(CommitId, String)>,
    /// The machine that has it.
    pub host: Option<String>,
}

impl PlacementState {
    /// The number of the current or the last placement; 0: there was none.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn sleep(&mut self, duration: Duration) {
        if let Some((at, _)) = &mut self.lost {
            *at = at.plus(duration);
        }
    }

    /// Where the lane is; `None`: here.
    pub fn current(&self) -> Option<&Placement> {
        self.current.as_ref()
    }

    /// The last record of the lane's own log that is in this one.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What stays of it after a rollback of the lane. Its own log begins again.
    pub(crate) fn after_rollback(self) -> Self {
        Self { number: self.number, ..Self::default() }
    }
}
