//! The commands of the real binary in scratch repositories.

mod clean;
mod cli;
mod content_manifest;
#[cfg(target_os = "linux")]
mod corruption;
mod demo;
mod doctor;
mod rollback;
mod rolled_back;
mod run_commands;
mod run_names;
