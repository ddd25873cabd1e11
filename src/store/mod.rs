//! Everything of Lanewright's that is on disk, and nothing else: where it is, how it is written so that a power cut
//! leaves the old or the new, and how it is read if another program wrote it or half of it is missing.
//!
//! The run log (`journal`, [`run_log`]) is the source of truth. `checkpoints.json` ([`checkpoints`]) and `task.json`
//! (`lane_files`) are views that others may read and add to.

pub mod checkpoints;
pub(crate) mod checkpoints_repair;
mod error;
pub(crate) mod error_log;
mod glance;
mod journal;
pub(crate) mod json;
pub(crate) mod lane_files;
mod layout;
pub(crate) mod lock;
mod log_guard;
mod record;
pub mod requests;
pub(crate) mod run_files;
pub mod run_log;
pub(crate) mod salvage;
pub(crate) mod tool_calls;

pub(crate) use error::LogError;
pub(crate) use glance::{Glance, Logs};
pub use journal::Journal;
pub use lane_files::add_interruption;
pub use layout::{LaneDirectory, LockScope, RunDirectory, StateDirectory};
pub use lock::{Holder, RunLock};
pub use requests::Request;
pub(crate) use run_log::{Follower, LogContents};
pub use salvage::salvage;

#[cfg(test)]
mod samples;
