//! The files that other programs read: `checkpoints.json` and each lane's `task.json`.

pub mod checkpoints;
pub mod tasks;
