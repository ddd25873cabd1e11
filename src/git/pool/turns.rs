//! Turns at making slots. A fresh checkout is as much work as six that take a slot over, and several at once are no
//! faster than one after the other once all cores are busy; so whoever waits may still get a slot that becomes free.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long one waits at most: a checkout whose filters download something holds nobody up for longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A checkout keeps about two cores busy, with writing and with what the system does of it.
const CORES_FOR_EACH: usize = 2;

/// Who makes slots, among the threads of one process.
#[derive(Debug)]
pub(super) struct Turns {
    now: Mutex<Now>,
    changed: Condvar,
    at_once: usize,
}

#[derive(Debug, Default)]
struct Now {
    making: usize,
    changes: u64,
}

/// The right to make a slot, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Turns);

/// Somebody who waits for a free slot or for a turn.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    turns: &'a Turns,
    until: Instant,
    seen: u64,
}

impl Default for Turns {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { now: Mutex::default(), changed: Condvar::new(), at_once: cores.div_ceil(CORES_FOR_EACH) }
    }
}

impl Turns {
    /// Begins to wait.
    pub(super) fn wait(&self) -> Waiting<'_> {
        Waiting { turns: self, until: Instant::now() + PATIENCE, seen: 0 }
    }

    /// Tells those who wait to look again.
    pub(super) fn something_changed(&self) {
        self.lock().changes += 1;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Waiting<'a> {
    /// Notes what has happened until now, before one looks for a free slot.
    pub(super) fn look(&mut self) {
        self.seen = self.turns.lock().changes;
    }

    /// A turn, if there is one or the patience is at its end.
    pub(super) fn turn(&self) -> Option<Turn<'a>> {
        let mut now = self.turns.lock();
        if now.making >= self.turns.at_once && Instant::now() < self.until {
            return None;
        }
        now.making += 1;
        Some(Turn(self.turns))
    }

    /// Waits until something changed since [`Waiting::look`], or the patience is at its end.
    pub(super) fn until_something_changes(&self) {
        let left = self.until.saturating_duration_since(Instant::now());
        let unchanged = |now: &mut Now| now.changes == self.seen;
        drop(self.turns.changed.wait_timeout_while(self.turns.lock(), left, unchanged));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock().making -= 1;
        self.0.something_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_given_to_so_many_and_then_to_whoever_was_told() {
        let turns = Turns { at_once: 1, ..Turns::default() };
        let (first, mut second) = (turns.wait(), turns.wait());
        let turn = first.turn().unwrap();
        second.look();
        assert!(second.turn().is_none());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                second.until_something_changes();
                second.turn().is_some()
            });
            drop(turn);
            assert!(waiter.join().unwrap());
        });
        assert_eq!(turns.lock().making, 0);
    }

    #[test]
    fn patience_ends() {
        let turns = Turns { at_once: 0, ..Turns::default() };
        let waiting = Waiting { until: Instant::now(), ..turns.wait() };
        waiting.until_something_changes();
        assert!(waiting.turn().is_some());
    }
}
