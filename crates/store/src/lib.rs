//! Everything of Lanewright's that is on disk, and nothing else: where it is, how it is written so that a power cut
//! leaves the old or the new, and how it is read if another program wrote it or half of it is missing.
//!
//! The run log (`journal`, [`run_log`]) is the source of truth. `checkpoints.json` ([`checkpoints`]) and `task.json`
//! (`lane_files`) are views that others may read and add to. What a file says of a run is decided elsewhere.
//!
//! Begin with [`StateDirectory`], where everything is, and [`Journal`].

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

pub mod checkpoints;
mod error;
pub mod error_log;
mod journal;
pub mod json;
pub mod lane_files;
mod layout;
pub mod lock;
mod log_guard;
mod log_summary;
mod publication;
mod record;
pub mod recovery;
pub mod requests;
pub mod run_files;
pub mod run_log;
pub mod tool_calls;

pub use error::LogError;
pub use journal::Journal;
pub use lane_files::add_interruption;
pub use layout::{LaneDirectory, LockScope, RunDirectory, StateDirectory};
pub use lock::{Holder, RunLock};
pub use log_summary::{LogSummary, Logs};
pub use recovery::run_log::salvage;
pub use requests::Request;
pub use run_log::{Follower, LogContents};

#[cfg(test)]
mod samples;
