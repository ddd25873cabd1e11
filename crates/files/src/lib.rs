//! Files and directories on disk: opened without waiting, replaced in one step, made durable. And what else every program
//! needs that waits for others: time limits that do not count the time asleep, and the phases that `--timings` shows.
//!
//! Every other crate reads and writes its files through this one; `tests/layering.rs` checks that. Whatever changes
//! the disk here can be made to fail ([`fault`]), except what removes: a full disk does not refuse that. Nothing here knows
//! what a file holds.
//!
//! Begin with [`atomic`], how a file is written, and [`regular_file`], how one is read.

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

pub mod atomic;
pub mod awake;
pub mod directory;
mod error;
pub mod fault;
pub mod handle;
pub mod lock;
pub mod regular_file;
mod staged;
pub mod threads;
pub mod time_limit;
pub mod timing;

pub use error::{FileError, if_there, open_error};
pub use staged::{Staged, remove_unfinished, temporary_beside};
