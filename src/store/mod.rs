//! Everything of Lanekeeper's that is on disk, and nothing else: where it is, how it is written so that a power cut
//! leaves the old or the new, and how it is read when somebody else wrote it or half of it is missing.
//!
//! The run log ([`journal`], [`run_log`]) is the source of truth. `checkpoints.json` ([`checkpoints`]) and `task.json`
//! ([`lane_files`]) are views that others may read and add to.

pub mod checkpoints;
pub mod checkpoints_mend;
pub mod error_log;
mod glance;
pub mod journal;
pub mod json;
pub mod lane_files;
pub mod layout;
pub mod lock;
mod log_guard;
pub mod record;
pub mod requests;
pub mod run_files;
pub mod run_log;
pub mod salvage;
pub mod tool_calls;

pub use glance::{Glance, Logs};
pub use journal::Journal;
pub use layout::{LaneDirectory, LockScope, RunDirectory, StateDirectory};
pub use lock::{Holder, RunLock};
pub use log_guard::Tampering;
pub use requests::Request;
pub use run_log::{Damage, Follower, LogContents, LogError};

#[cfg(test)]
mod samples;
