//! The git room on real repositories in temporary directories.
#![allow(clippy::unwrap_used, reason = "the helpers of tests may fail like tests")]

#[path = "git_real/support.rs"]
#[macro_use]
mod support;

#[path = "git_real/behind.rs"]
mod behind;
#[path = "git_real/hidden.rs"]
mod hidden;
#[path = "git_real/plain.rs"]
mod plain;
#[path = "git_real/pool.rs"]
mod pool;
#[path = "git_real/provision.rs"]
mod provision;
#[path = "git_real/publish.rs"]
mod publish;
#[path = "git_real/remote.rs"]
mod remote;
#[path = "git_real/repository.rs"]
mod repository;
#[path = "git_real/takeover.rs"]
mod takeover;
#[path = "git_real/undone.rs"]
mod undone;
#[path = "git_real/work.rs"]
mod work;
