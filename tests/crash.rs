//! Whatever dies, and whenever: a resume brings the run to the end that it would have come to undisturbed.
//!
//! The real binary in scratch repositories, with agents that write down, outside of the repository, when they begin and
//! when they finish. `LANEKEEPER_TEST_ROUNDS=100` makes it a hundred kills, each in a run of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![cfg(target_os = "linux")]

#[path = "crash/doctor.rs"]
mod doctor;
#[path = "crash/end_state.rs"]
mod end_state;
#[path = "crash/full_disk.rs"]
mod full_disk;
#[path = "crash/kills.rs"]
mod kills;
#[path = "crash/plans.rs"]
mod plans;
#[path = "crash/points.rs"]
mod points;
#[path = "crash/torn_log.rs"]
mod torn_log;
#[path = "crash/world.rs"]
mod world;
#[path = "crash/write_faults.rs"]
mod write_faults;
