//! Carries a run out: everything that the scheduler wants done and that has an effect.
//!
//! [`drive`] owns the inbox of a run: it makes events durable in the log and hands the scheduler's actions to the
//! [`executor`], which carries each out on git, processes and files and answers with events. [`placement`] does the same
//! for lanes that run on a cluster, [`state_sync`] copies a run to another clone, and [`recover`] is what happens to a run
//! that nobody works on: resume, rollback, cleaning up and the doctor.
//!
//! What is wanted next is decided by `lanewright-schedule` alone. Plan files, settings and the command line are not known
//! here.
//!
//! Begin with [`drive::drive`] and [`executor::Executor`].

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

pub mod drive;
pub mod executor;
pub mod placement;
pub mod recover;
pub mod state_sync;
