//! The settings `setup` and `copy` for what worktrees would lack, and `regenerate` for the lock files.

use std::path::Path;

use lanewright_git::Repository;
use toml::{Table, Value};

use super::setting::SettingLine;
use crate::cli::Result;
use crate::cli::worktree_needs::{lock_files, needs};

/// The settings that bring what worktrees of the current commit lack.
pub(super) fn lines(root: &Path) -> Result<Vec<SettingLine>> {
    let repository = Repository::discover(root)?;
    let base = repository.head_at(root)?.commit;
    let needs = needs(&repository, &base)?;
    let mut setup: Vec<String> = Vec::new();
    for line in needs.iter().filter_map(|need| need.setup.clone()) {
        // One for all packages of a workspace.
        if !setup.contains(&line) {
            setup.push(line);
        }
    }
    let copied = needs.iter().filter(|need| need.setup.is_none() && need.is_ignored);
    let copy: Vec<String> = copied.map(|need| need.path.clone()).collect();
    let found = [("setup", setup), ("copy", copy)];
    let found = found.into_iter().filter(|(_, values)| !values.is_empty());
    let commands: Table =
        lock_files(&repository, &base)?.into_iter().map(|(name, command)| (name.to_owned(), command.into())).collect();
    let commands = (!commands.is_empty()).then_some(("regenerate", Value::Table(commands)));
    let found = found.map(|(key, values)| (key, values.into())).chain(commands);
    Ok(found.map(|(key, value)| SettingLine { key, value, comment: None }).collect())
}
