//! Time awake. Time limits count nothing else: no agent works while the machine sleeps, while its virtual machine is
//! paused, and while it is stopped (SPEC §6).
//!
//! The system's monotonic clock excludes only the first. So a process that watches a limit looks at the clock again and
//! again, and takes a much longer time between two looks than it planned for time asleep.

use std::time::{Duration, Instant};

/// How often a process looks at the clock, as long as something has a limit, if it plans nothing else.
pub const TICK: Duration = Duration::from_secs(1);

/// The longest time by which a process that is awake looks later than planned: a machine under load, or a slow disk, lets
/// a process wait for less. What is taken for sleep by mistake only makes a limit pass later.
const LONGEST_DELAY: Duration = Duration::from_secs(4);

/// How much of the time between two looks at the clock, which were to be `planned` apart, was time asleep; zero: none.
///
/// A part of it counts as time awake, so that limits pass also where every tick takes too long.
pub fn asleep(elapsed: Duration, planned: Duration) -> Duration {
    if elapsed > planned.max(TICK) + LONGEST_DELAY { elapsed.saturating_sub(planned) } else { Duration::ZERO }
}

/// A clock that stands still while this process is asleep.
#[derive(Debug)]
pub struct AwakeClock {
    began: Instant,
    last_tick: Instant,
    /// The next look comes this much later.
    planned: Duration,
    asleep: Duration,
}

impl AwakeClock {
    pub fn start() -> Self {
        Self::started(Instant::now())
    }

    fn started(now: Instant) -> Self {
        Self { began: now, last_tick: now, planned: TICK, asleep: Duration::ZERO }
    }

    /// How long this process has been awake since the clock was started.
    pub fn elapsed(&mut self) -> Duration {
        self.advance(Instant::now())
    }

    /// Plans the next look at the clock, for a process that looks less often than once in a [`TICK`].
    pub fn plan(&mut self, next: Duration) {
        self.planned = next.max(TICK);
    }

    fn advance(&mut self, now: Instant) -> Duration {
        self.asleep += asleep(now.saturating_duration_since(self.last_tick), self.planned);
        self.last_tick = now;
        now.saturating_duration_since(self.began).saturating_sub(self.asleep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn long_gap_counts_as_one_tick() {
        let start = Instant::now();
        let mut clock = AwakeClock::started(start);
        assert_eq!(clock.advance(start + SECOND), SECOND);
        assert_eq!(clock.advance(start + 3600 * SECOND), 2 * SECOND);
        assert_eq!(clock.advance(start + 3601 * SECOND), 3 * SECOND);
    }

    #[test]
    fn planned_pause_counts_as_awake() {
        let start = Instant::now();
        let mut clock = AwakeClock::started(start);
        clock.plan(10 * SECOND);
        assert_eq!(clock.advance(start + 14 * SECOND), 14 * SECOND);
        assert_eq!(clock.advance(start + 3600 * SECOND), 24 * SECOND);
        clock.plan(Duration::ZERO);
        assert_eq!(clock.advance(start + 3606 * SECOND), 25 * SECOND);
    }

    #[test]
    fn slow_ticks_count_as_awake() {
        let start = Instant::now();
        let mut clock = AwakeClock::started(start);
        for tick in 1..=10 {
            assert_eq!(clock.advance(start + 4 * tick * SECOND), 4 * tick * SECOND);
        }
    }

    #[test]
    fn clock_limit_passes_with_slow_ticks() {
        let start = Instant::now();
        let mut clock = AwakeClock::started(start);
        assert_eq!((1..=60).map(|tick| clock.advance(start + 6 * tick * SECOND)).last(), Some(60 * SECOND));
    }
}
