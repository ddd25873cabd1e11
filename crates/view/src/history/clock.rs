//! Spans of time on the clock of a run, which stops while no process works on it.

use lanewright_model::Timestamp;

/// From when to when, in milliseconds since the run began.
pub(crate) type Span = (u64, u64);

/// The time since a run began, without what passed between an end, a crash or a stop and the resume after it.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    start: Timestamp,
    rests: Vec<(Timestamp, Timestamp)>,
}

impl Clock {
    /// A clock that starts at `start` and stops from the first to the second of each of `rests`.
    pub(crate) fn new(start: Timestamp, rests: Vec<(Timestamp, Timestamp)>) -> Self {
        Self { start, rests }
    }

    /// What the clock shows at `at`, in milliseconds.
    pub(crate) fn at(&self, at: Timestamp) -> u64 {
        let rested = self.rests.iter().map(|&(from, to)| milliseconds(from.max(self.start), to.min(at)));
        milliseconds(self.start, at).saturating_sub(rested.sum())
    }

    pub(crate) fn span(&self, (from, to): (Timestamp, Timestamp)) -> Span {
        let from = self.at(from);
        (from, self.at(to).max(from))
    }

    /// How long it stood still until `at`, in milliseconds.
    pub(crate) fn rested(&self, at: Timestamp) -> u64 {
        milliseconds(self.start, at) - self.at(at)
    }
}

/// From `from` to `to` in milliseconds; 0 where that is before it.
pub(crate) fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}

/// How much time `spans` cover together.
pub(crate) fn covered(mut spans: Vec<Span>) -> u64 {
    spans.sort_unstable();
    let (mut total, mut until) = (0, 0);
    for (from, to) in spans {
        total += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::testing::at;

    #[test]
    fn time_at_rest_is_not_counted() {
        let clock = Clock::new(at(0), vec![(at(10), at(40)), (at(50), at(60))]);
        assert_eq!(
            [5, 10, 25, 40, 55, 70].map(|second| clock.at(at(second))),
            [5000, 10_000, 10_000, 10_000, 20_000, 30_000]
        );
        assert_eq!(clock.span((at(5), at(45))), (5000, 15_000));
        assert_eq!(clock.rested(at(70)), 40_000);
        assert_eq!(clock.at(at(-5)), 0, "a clock that was set back shows no time before the run");
    }

    #[test]
    fn overlapping_spans_are_counted_once() {
        assert_eq!(covered(vec![(5, 9), (0, 4), (3, 6), (20, 20), (8, 8)]), 9);
        assert_eq!(covered(Vec::new()), 0);
    }
}
