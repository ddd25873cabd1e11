//! The times that matter to a lane.

use std::time::Duration;

use lanewright_model::Timestamp;

/// When a lane came to where it stands, and since when its time limit counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaneClock {
    /// Since when the time limit counts.
    runs_since: Option<Timestamp>,
    since: Option<Timestamp>,
    /// Since when the lane waits for a person.
    parked_since: Option<Timestamp>,
}

impl LaneClock {
    /// When the lane came to its stage, or its rollback began. A resume changes nothing of that: snapshots are named by
    /// it, so that a second request for one finds the first.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    pub(crate) fn deadline(&self, limit: Duration) -> Option<Timestamp> {
        Some(self.runs_since?.plus(limit))
    }

    pub(crate) fn move_on(&mut self, at: Timestamp) {
        self.runs_since.get_or_insert(at);
        self.since = Some(at);
    }

    pub(crate) fn begin_rollback(&mut self, at: Timestamp) {
        self.since = Some(at);
    }

    /// The time that a person took to answer does not count.
    pub(crate) fn park(&mut self, is_parked: bool, at: Timestamp) {
        if is_parked {
            self.parked_since.get_or_insert(at);
        } else if let Some(since) = self.parked_since.take() {
            self.runs_since = self.runs_since.map(|from| from.plus(at.since(since)));
        }
    }

    /// Time asleep does not count.
    pub(crate) fn sleep(&mut self, duration: Duration) {
        for since in [&mut self.runs_since, &mut self.parked_since] {
            *since = since.map(|at| at.plus(duration));
        }
    }

    /// A resumed run has the whole limit again.
    pub(crate) fn restart(&mut self, at: Timestamp) {
        self.runs_since = self.runs_since.map(|_| at);
        self.parked_since = self.parked_since.map(|_| at);
    }
}

#[cfg(test)]
mod tests;
