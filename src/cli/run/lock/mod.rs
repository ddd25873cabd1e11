//! Which process may work on what: locks, what is known of the lanes before one is chosen, and a run that is locked.

pub(super) mod claims;
pub(super) mod left_to_do;
pub(super) mod locked_run;
pub(super) mod locks;
mod refusal;
