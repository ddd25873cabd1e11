//! Damaged files. Only the doctor reads and replaces them, and keeps what it replaces beside them.

pub mod checkpoints;
pub mod run_log;
