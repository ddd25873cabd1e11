//! The command line of Lanewright, which runs a phase plan as parallel lanes, each in a git worktree of its own.
//!
//! Everything that happened is an [`Event`](lanewright_model::event::Event); `lanewright-schedule` folds events into state
//! and decides what is wanted next, and `lanewright-engine` appends events to the run log and carries the decisions out.
//! `docs/architecture.md` describes the rest.

#[cfg(windows)]
compile_error!("Lanewright needs a POSIX system: sessions, signals and file locks that end with their owner");

pub mod cli;
pub mod progress;
