//! Carries a run out: everything that the scheduler wants done and that has an effect.
//!
//! [`drive`] owns the inbox of a run: it makes events durable in the log and hands the scheduler's actions to the
//! [`executor`], which carries each out on git, processes and files and answers with events. [`placement`] does the same
//! for lanes that run on a cluster, and [`state_sync`] copies a run to another clone. The other folders are named after
//! the moment when they run, which is while no process works on the run:
//!
//! - [`at_resume`]: before a run continues, from `resume`, `retry` and `execute-phase`
//! - [`rollback`], [`clean`], [`doctor`]: when the command of that name is called
//! - [`prune`]: when `checkpoints prune` is called
//! - [`publish`]: when `publish` is called
//!
//! What git loses while a run works is restored by [`executor::repair`], which a resume, a rollback and the doctor call, too.
//!
//! What is wanted next is decided by `lanewright-schedule` alone. Plan files, settings and the command line are not known
//! here.
//!
//! Begin with [`drive::drive`] and [`executor::Executor`].

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

pub mod at_resume;
pub mod clean;
pub mod doctor;
pub mod drive;
pub mod executor;
pub mod placement;
pub mod prune;
pub mod publish;
pub mod rollback;
pub mod state_sync;
