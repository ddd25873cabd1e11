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
    /// Agents that wait.
    agents: usize,
    /// Lanes that wait.
    lanes: usize,
    /// Until then the next turn is an agent's.
    reserved: Option<Instant>,
}

/// How soon the agent asks for whom a lane was opened.
const SOON: Duration = Duration::from_millis(100);

/// For whom a slot is made. Agents come before lanes: what an agent has done gives two slots back soon, and whoever waits
/// may have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Agent,
    Lane,
    /// Whoever needs one later.
    Later,
}

/// The right to make a slot, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    whom: For,
}

/// Somebody who waits for a free slot or for a turn.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    turns: &'a Turns,
    until: Instant,
    seen: u64,
    whom: For,
}

impl Default for Turns {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { now: Mutex::default(), changed: Condvar::new(), at_once: cores.div_ceil(CORES_FOR_EACH) }
    }
}

impl Turns {
    /// Begins to wait.
    pub(super) fn wait(&self, whom: For) -> Waiting<'_> {
        if let Some(waiting) = self.lock().waiting(whom) {
            *waiting += 1;
        }
        Waiting { turns: self, until: Instant::now() + PATIENCE, seen: 0, whom }
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

impl Now {
    /// How many wait for whom others make way.
    fn waiting(&mut self, whom: For) -> Option<&mut usize> {
        match whom {
            For::Agent => Some(&mut self.agents),
            For::Lane => Some(&mut self.lanes),
            For::Later => None,
        }
    }

    /// Whether the next turn is somebody else's.
    fn makes_way(&self, whom: For, moment: Instant) -> bool {
        let for_agents = self.agents > 0 || self.reserved.is_some_and(|until| moment < until);
        match whom {
            For::Agent => false,
            For::Lane => for_agents,
            For::Later => for_agents || self.lanes > 0,
        }
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
        let moment = Instant::now();
        if (now.making >= self.turns.at_once || now.makes_way(self.whom, moment)) && moment < self.until {
            return None;
        }
        now.making += 1;
        if self.whom == For::Agent {
            now.reserved = None;
        }
        Some(Turn { turns: self.turns, whom: self.whom })
    }

    /// Waits until something changed since [`Waiting::look`], or the patience is at its end.
    pub(super) fn until_something_changes(&self) {
        let now = self.turns.lock();
        let until = now.reserved.filter(|reserved| *reserved > Instant::now()).unwrap_or(self.until).min(self.until);
        let left = until.saturating_duration_since(Instant::now());
        let unchanged = |now: &mut Now| now.changes == self.seen;
        drop(self.turns.changed.wait_timeout_while(now, left, unchanged));
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.turns.lock().waiting(self.whom) {
            *waiting -= 1;
        }
        self.turns.something_changed();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut now = self.turns.lock();
        now.making -= 1;
        if self.whom == For::Lane {
            now.reserved = Some(Instant::now() + SOON);
        }
        drop(now);
        self.turns.something_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_given_to_so_many_and_then_to_whoever_was_told() {
        let turns = Turns { at_once: 1, ..Turns::default() };
        let (first, mut second) = (turns.wait(For::Agent), turns.wait(For::Agent));
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
    fn an_agent_comes_before_a_lane() {
        let turns = Turns { at_once: 1, ..Turns::default() };
        let lane = turns.wait(For::Lane);
        let agent = turns.wait(For::Agent);
        assert!(lane.turn().is_none());
        drop(agent.turn().unwrap());
        drop(agent);
        let turn = lane.turn().unwrap();
        drop(turn);
        assert!(lane.turn().is_none(), "the next one is for the agent of the lane that was just opened");
        assert!(turns.wait(For::Agent).turn().is_some());
    }

    #[test]
    fn what_is_made_ahead_makes_way_for_everybody() {
        let turns = Turns { at_once: 1, ..Turns::default() };
        let ahead = turns.wait(For::Later);
        let lane = turns.wait(For::Lane);
        assert!(ahead.turn().is_none());
        drop(lane);
        drop(ahead.turn().unwrap());
        assert!(turns.wait(For::Lane).turn().is_some(), "nothing is reserved after it");
    }

    #[test]
    fn patience_ends() {
        let turns = Turns { at_once: 0, ..Turns::default() };
        let mut waiting = turns.wait(For::Lane);
        waiting.until = Instant::now();
        waiting.until_something_changes();
        assert!(waiting.turn().is_some());
    }
}
