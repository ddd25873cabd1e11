//! Slots that are made before anybody asks for them, while agents work: whoever begins then takes one over.
//!
//! While one is made it has a holder of its own. Who dies meanwhile leaves its claim; the next one that makes one ahead
//! goes on with that slot, and at the end of the run it is dropped.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::turns::For;
use super::{Among, Checkout, Mode, Pool};
use crate::git::claim::Holder;
use crate::git::error::GitError;
use crate::model::{AgentName, CommitId, RunId};

/// Who holds a slot that is made ahead: no lane, and so no agent either.
const AHEAD: &str = "ahead";

/// Whether a slot is being made ahead, among the threads of one process.
#[derive(Debug, Default)]
pub(super) struct Making {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: bool,
    /// No more are to be made.
    ended: bool,
}

/// One that is being made, until it is dropped.
struct UnderWay<'a>(&'a Making);

impl Making {
    fn begin(&self) -> Option<UnderWay<'_>> {
        let mut state = self.lock();
        if state.ended {
            return None;
        }
        state.under_way = true;
        Some(UnderWay(self))
    }

    fn is_ended(&self) -> bool {
        self.lock().ended
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().under_way = false;
        self.0.over.notify_all();
    }
}

impl Pool {
    /// Makes one slot more for `run`, with `start` checked out, unless it has `most`, free ones included. Answers how many
    /// there are.
    ///
    /// # Errors
    /// What git says; [`GitError::File`], [`GitError::BadClaim`].
    pub fn make_ahead(&self, run: &RunId, start: &CommitId, most: u32) -> Result<u32, GitError> {
        let there = self.at_hand(run)?;
        let Some(_under_way) = self.making.begin().filter(|_| there < most) else { return Ok(there) };
        let holder = maker(run);
        let want = Checkout { branch: None, start: start.clone(), mode: Mode::Reset, adopt: true };
        let mut waiting = self.turns.wait(For::Later);
        let (number, turn) = loop {
            waiting.look();
            if self.making.is_ended() {
                return Ok(there);
            }
            if let Some(turn) = waiting.turn()
                && let Some(number) = self.claim(&holder, start, &[], Among::New)?
            {
                break (number, turn);
            }
            waiting.until_something_changes();
        };
        drop(waiting);
        let unfit = || GitError::NotOurs { path: self.slot(number) };
        if let Err(error) = self.furnish(number, &holder, &want, Some(turn)).and_then(|made| made.ok_or_else(unfit)) {
            return self.give_up(number).and(Err(error));
        }
        self.release(&holder, std::slice::from_ref(start))?;
        self.at_hand(run)
    }

    /// Has no more slots made ahead, and drops what somebody who died was making: nobody has worked in it. One that is
    /// being made is waited for, but no longer than `patience`; after that it stays, held.
    ///
    /// # Errors
    /// What git says; [`GitError::File`], [`GitError::BadClaim`].
    pub fn end_making_ahead(&self, run: &RunId, commit: &CommitId, patience: Duration) -> Result<(), GitError> {
        let mut state = self.making.lock();
        state.ended = true;
        self.turns.something_changed();
        let waited = self.making.over.wait_timeout_while(state, patience, |state| state.under_way);
        if waited.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
            return Ok(());
        }
        let left = self.held_by(run)?.into_iter().filter(|slot| slot.holder.makes_ahead());
        left.into_iter().try_for_each(|slot| self.throw_away(&slot, commit))
    }

    /// How many slots are free or held by `run`.
    fn at_hand(&self, run: &RunId) -> Result<u32, GitError> {
        let is_held = |holder: &Holder| holder.run == *run && !holder.makes_ahead();
        let held = self.own_claims()?.into_iter().filter(|(_, claim)| is_held(&claim.holder));
        Ok(u32::try_from(held.count() + self.free_slots()?.len()).unwrap_or(u32::MAX))
    }
}

fn maker(run: &RunId) -> Holder {
    Holder { run: run.clone(), lane: None, agent: AgentName::new(AHEAD).ok() }
}
