//! The `git` module on real repositories in temporary directories.

#![allow(clippy::unwrap_used, reason = "the helpers of tests may fail like tests")]

#[macro_use]
mod support;

mod behind;
mod hidden;
mod plain;
mod pool;
mod provision;
mod publish;
mod refused;
mod remote;
mod repository;
mod takeover;
mod undone;
mod work;
