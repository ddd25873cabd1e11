//! The repository: its paths, settings, locks and state files.

pub(crate) mod configuration;
pub(crate) mod git_dir;
pub(crate) mod known_objects;
pub(crate) mod lock;
pub(crate) mod registry;
pub(crate) mod repository;
pub(crate) mod state_file;
