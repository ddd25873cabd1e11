//! The commands of the real binary in scratch repositories.

mod clean;
mod cli;
mod cli_runs;
#[cfg(target_os = "linux")]
mod corruption;
mod demo;
mod doctor;
mod manifest;
mod naming;
mod rollback;
mod rolled_back;
