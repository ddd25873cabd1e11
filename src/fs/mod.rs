//! Files and directories on disk: opened without waiting, replaced in one step, made durable.
//!
//! Every other module reads and writes its files through this one; `tests/library/layering.rs` checks that. Whatever changes the
//! disk here can be made to fail ([`fault`]), except what removes: a full disk does not refuse that.

pub(crate) mod atomic;
pub(crate) mod directory;
mod error;
pub mod fault;
pub(crate) mod handle;
pub(crate) mod regular_file;
mod staged;

pub(crate) use error::FileError;
pub(crate) use error::open_error;
pub(crate) use staged::{Staged, remove_unfinished, temporary_beside};
