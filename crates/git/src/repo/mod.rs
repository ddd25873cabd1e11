//! The repository: its paths, settings and locks.

pub(crate) mod commit_rules;
pub(crate) mod commit_settings;
pub(crate) mod configuration;
pub(crate) mod git_dir;
pub(crate) mod handles;
pub(crate) mod hooks;
pub(crate) mod known_objects;
pub(crate) mod left_out_rules;
pub(crate) mod lock;
pub(crate) mod repository;

pub(crate) use commit_rules::{CommitRules, CommitSettings};
pub(crate) use configuration::{
    Configuration, ConfigurationEntry, KnownConfiguration, Stamps, entries, is_true, usual_files,
};
pub(crate) use git_dir::{WorktreeEntry, entry_named_by, git_directory, head_log, registered_place, same_place};
pub(crate) use handles::Handles;
pub(crate) use hooks::{giving_hook, hook, place_of_hook, said_by_hook};
pub(crate) use known_objects::{DurableObjects, RecentObjects, loose};
pub(crate) use left_out_rules::LeftOutRules;
pub(crate) use lock::{Guarded, holding, holding_worktree};
pub(crate) use repository::{Repository, branch_reference, commit_id, commit_ids};
