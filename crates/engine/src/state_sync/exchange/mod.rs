//! Runs that several machines reach through one remote: offered, claimed by one process, placed by one clone.

pub(super) mod claim;
pub mod lane_run;
pub(super) mod ownership;
pub(super) mod probe;
