//! Which process may work on what: locks, what is known of the lanes before one is chosen, and a run that is locked.

mod claims;
mod done_before;
mod left_to_do;
mod locked_run;
mod locks;
mod refusal;

pub(super) use claims::LaneClaims;
pub(super) use done_before::{DoneBy, Place, done_in_words, left_of};
pub(crate) use left_to_do::{left_to_do, undo_of_skip};
pub(crate) use locked_run::{LockedRun, Reach, adopt};
pub(super) use locks::{choosing, lock_branches, lock_run};
pub(crate) use locks::{lock_phase, lock_resting_run};
