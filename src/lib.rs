//! Lanewright runs a phase plan as parallel lanes, each lane and each agent in a git worktree of its own.
//!
//! The run loop: everything that happened is an [`event::Event`]; `schedule` folds events into state and decides what is
//! wanted next, without a clock, randomness or I/O; `engine` appends events to the run log, makes them durable, and
//! has the actions carried out by `executor`. `docs/architecture.md` describes the rest.

#[cfg(windows)]
compile_error!("Lanewright needs a POSIX system: sessions, signals and file locks that end with their owner");

pub mod cli;
pub mod engine;
pub mod executor;
mod placement;
pub mod progress;
mod recover;
#[allow(missing_docs, reason = "names that say it all; only benches use it from outside")]
pub mod state_sync;
