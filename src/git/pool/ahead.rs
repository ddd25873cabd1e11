//! Slots that are made before anybody asks for them, while agents work: whoever begins then takes one over.
//!
//! While one is made it has a holder of its own. Who dies meanwhile leaves its claim; the next one that makes one ahead
//! goes on with that slot, and at the end of the run it is dropped.

use std::sync::{MutexGuard, PoisonError};

use super::turns::For;
use super::{Among, Checkout, Mode, Pool};
use crate::git::claim::Holder;
use crate::git::error::GitError;
use crate::model::{AgentName, CommitId, RunId};

/// Who holds a slot that is made ahead: no lane, and so no agent either.
const AHEAD: &str = "ahead";

impl Pool {
    /// Makes one slot more for `run`, with `start` checked out, unless it has `most`, free ones included. Answers how many
    /// there are.
    ///
    /// # Errors
    /// What git says; [`GitError::Io`], [`GitError::BadClaim`].
    pub fn make_ahead(&self, run: &RunId, start: &CommitId, most: u32) -> Result<u32, GitError> {
        let ended = self.ahead();
        let there = self.at_hand(run)?;
        if *ended || there >= most {
            return Ok(there);
        }
        let holder = maker(run);
        let want = Checkout { branch: None, start: start.clone(), mode: Mode::Reset, adopt: true };
        let mut waiting = self.turns.wait(For::Later);
        let (number, turn) = loop {
            waiting.look();
            if let Some(turn) = waiting.turn()
                && let Some(number) = self.claim(&holder, start, &[], Among::New)?
            {
                break (number, turn);
            }
            waiting.until_something_changes();
        };
        drop(waiting);
        let unfit = || GitError::NotOurs { path: self.slot(number) };
        if let Err(error) = self.furnish(number, &want, Some(turn)).and_then(|made| made.ok_or_else(unfit)) {
            return self.give_up(number).and(Err(error));
        }
        self.release(&holder, std::slice::from_ref(start))?;
        self.at_hand(run)
    }

    /// Has no more slots made ahead, and drops what somebody who died was making: nobody has worked in it.
    ///
    /// # Errors
    /// What git says; [`GitError::Io`], [`GitError::BadClaim`].
    pub fn end_making_ahead(&self, run: &RunId, commit: &CommitId) -> Result<(), GitError> {
        *self.ahead() = true;
        let left = self.held_by(run)?.into_iter().filter(|slot| slot.holder.makes_ahead());
        left.into_iter().try_for_each(|slot| self.throw_away(&slot, commit))
    }

    /// How many slots are free or held by `run`.
    fn at_hand(&self, run: &RunId) -> Result<u32, GitError> {
        let is_held = |holder: &Holder| holder.run == *run && !holder.makes_ahead();
        let held = self.own_claims()?.into_iter().filter(|(_, claim)| is_held(&claim.holder));
        Ok(u32::try_from(held.count() + self.free_slots()?.len()).unwrap_or(u32::MAX))
    }

    fn ahead(&self) -> MutexGuard<'_, bool> {
        self.made_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn maker(run: &RunId) -> Holder {
    Holder { run: run.clone(), lane: None, agent: AgentName::new(AHEAD).ok() }
}
