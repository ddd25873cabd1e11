//! Whatever dies, and whenever: a resume brings the run to the end that it would have come to undisturbed.
//!
//! The real binary in scratch repositories, with agents that write down, outside of the repository, when they begin and
//! when they finish. `LANEWRIGHT_TEST_ROUNDS=100` makes it a hundred kills, each in a run of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod doctor;
pub(crate) mod end_state;
mod full_disk;
mod kills;
pub(crate) mod plans;
mod points;
mod torn_log;
pub(crate) mod world;
mod write_faults;
