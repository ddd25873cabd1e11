//! The time of a run. It passes evenly, also if the machine's clock is set or the machine sleeps.

use std::time::Duration;

use lanewright_model::Timestamp;
use lanewright_programs::process::uptime;

/// A clock that is set once, and then follows the time that the machine has been up.
///
/// Time limits and retries compare the present with times in the run log. With the machine's own clock, one that is set
/// back by hours would have a retry wait for hours, and one that is set forward would end every lane that has a limit.
#[derive(Debug, Clone, Copy)]
pub struct RunClock {
    began: Timestamp,
    uptime: Duration,
}

impl RunClock {
    /// Set to the machine's time `now`, or to that of the run's last record where that is later.
    pub fn set(now: Timestamp, last_record: Option<Timestamp>) -> Self {
        Self { began: last_record.map_or(now, |last| last.max(now)), uptime: uptime() }
    }

    pub fn now(self) -> Timestamp {
        self.began.plus(uptime().saturating_sub(self.uptime))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_advances_after_machine_clock_was_set_back() {
        let (now, last) = (Timestamp::from_unix_millis(1_000), Timestamp::from_unix_millis(9_000_000_000_000));
        let clock = RunClock::set(now, Some(last));
        assert!(clock.now() >= last && clock.now().since(last) < Duration::from_secs(3600));
        let earlier = clock.now();
        while clock.now() == earlier {
            std::thread::yield_now();
        }
        assert!(clock.now() > earlier);
    }
}
