//! Time awake. Time limits count nothing else: no agent works while the machine sleeps, while its virtual machine is
//! paused, and while it is stopped (SPEC §6).
//!
//! The system's monotonic clock excludes only the first. So whoever watches a limit looks at the clock once in a [`TICK`],
//! and takes a much longer time between two looks for time asleep.

use std::time::{Duration, Instant};

/// How often a process looks at the clock at least, as long as something has a limit.
pub const TICK: Duration = Duration::from_secs(1);

/// The longest time between two looks of a process that is awake: a machine under load, or a slow disk, lets a process
/// wait for less. What is taken for sleep by mistake only makes a limit pass later.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How much of the time between two looks at the clock, which were to be `planned` apart, was time asleep; zero: none.
///
/// A part of it counts as time awake, so that limits pass also where every tick takes too long.
pub fn asleep(elapsed: Duration, planned: Duration) -> Duration {
    if elapsed > LONGEST_PAUSE { elapsed.saturating_sub(planned) } else { Duration::ZERO }
}

/// A clock that stands still while this process is asleep.
#[derive(Debug)]
pub struct AwakeClock {
    began: Instant,
    last_tick: Instant,
    asleep: Duration,
}

impl AwakeClock {
    pub fn start() -> Self {
        Self::started(Instant::now())
    }

    fn started(now: Instant) -> Self {
        Self { began: now, last_tick: now, asleep: Duration::ZERO }
    }

    /// How long this process has been awake since the clock was started.
    pub fn elapsed(&mut self) -> Duration {
        self.advance(Instant::now())
    }

    fn advance(&mut self, now: Instant) -> Duration {
        self.asleep += asleep(now.saturating_duration_since(self.last_tick), TICK);
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
