//! The settings `setup` and `copy` for what worktrees would lack, and `regenerate` for the lock files.

use std::path::Path;

use lanewright_git::Repository;
use toml::{Table, Value};

use crate::cli::Result;
use crate::cli::worktree_needs::{lock_files, needs};

/// The settings that bring what worktrees of the current commit lack: the key, and the value.
pub(super) fn lines(root: &Path) -> Result<Vec<(&'static str, Value)>> {
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
    Ok(found.map(|(key, values)| (key, values.into())).chain(commands).collect())
}

/// The configuration file `old` with those settings that it does not have at its beginning, before all tables.
pub(super) fn entered(lines: &[(&'static str, Value)], old: &str) -> Result<String, String> {
    let known: Table = old.parse().map_err(|error| format!("it is not valid TOML: {error}"))?;
    let new = lines.iter().filter(|(key, _)| !known.contains_key(*key));
    Ok(new.map(|(key, value)| format!("{key} = {value}\n")).collect::<String>() + old)
}
