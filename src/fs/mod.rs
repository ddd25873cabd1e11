//! Files and directories on disk: opened without waiting, replaced in one step, made durable.
//!
//! Every other module reads and writes its files through this one. `tests/layering.rs` checks that.

pub mod atomic;
pub mod fault;
pub(crate) mod regular_file;
