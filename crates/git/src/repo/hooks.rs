//! Where hooks of the user's are, and what they refuse.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lanewright_files::{atomic, directory, regular_file};
use lanewright_model::text::shell_line;
use rustix::fs::{Access, access};

use crate::command::{Git, GitError, Result};
use crate::repo::Repository;

/// How many lines of what a hook prints are shown, the last ones.
const LINES: usize = 10;

/// Where the hook `name` is for `worktree`, whether or not it exists; git itself is asked only if settings have a say in that.
pub(crate) fn place_of_hook(repository: &Repository, worktree: &Path, name: &str) -> Result<PathBuf> {
    let configuration = repository.configuration()?;
    if configuration.is_uniform() && configuration.get("core.hookspath").is_none() {
        return Ok(repository.common_dir().join("hooks").join(name));
    }
    let place = Git::new(worktree).args(["rev-parse", "--git-path", &format!("hooks/{name}")]).run()?;
    Ok(worktree.join(OsStr::from_bytes(place.trim_ascii_end())))
}

/// The hook `name` that git runs in `worktree`; `None`: it runs none of that name.
///
/// # Errors
/// [`GitError::Hook`] where a directory is in its place: git push then waits for ever.
pub(crate) fn hook(repository: &Repository, worktree: &Path, name: &'static str) -> Result<Option<PathBuf>> {
    let place = place_of_hook(repository, worktree, name)?;
    if place.is_dir() {
        return Err(GitError::Hook { name, place, said: "is a directory, which git cannot run".to_owned() });
    }
    Ok((place.is_file() && access(&place, Access::EXEC_OK).is_ok()).then_some(place))
}

/// Has `git`, which runs the hook `name` at `place`, run it with `variables`. Git itself keeps those of this process: programs by
/// which it reaches a remote may be in the user's checkout.
///
/// # Errors
/// The script that git runs instead cannot be written.
pub(crate) fn giving_hook<'a>(
    git: Git<'a>,
    repository: &Repository,
    (name, place): (&str, &Path),
    variables: &BTreeMap<&str, Option<String>>,
) -> Result<Git<'a>> {
    let directory = repository.own_directory()?.join("hooks");
    directory::create_directory(&directory)?;
    let script = directory.join(name);
    let text = format!("#!/bin/sh\neval \"${COMMAND}\"\n");
    if !regular_file::read(&script).is_ok_and(|known| known == text.as_bytes()) {
        atomic::write_with(&script, |mut file| {
            file.set_permissions(Permissions::from_mode(0o700))?;
            file.write_all(text.as_bytes())
        })?;
    }
    let mut words = vec!["exec".to_owned(), "env".to_owned(), "-u".to_owned(), COMMAND.to_owned()];
    let gone = variables.iter().filter(|(_, value)| value.is_none());
    words.extend(gone.flat_map(|(name, _)| ["-u".to_owned(), (*name).to_owned()]));
    words.extend(variables.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?))));
    // `env` takes a path with `=` for a variable.
    words.extend(["sh", "-c", "exec \"$0\" \"$@\""].map(str::to_owned));
    words.push(place.to_string_lossy().into_owned());
    let command = format!("{} \"$@\"", shell_line(words.iter().map(String::as_str)));
    Ok(git.configured(format!("core.hooksPath={}", directory.display())).variable(COMMAND, command))
}

/// The variable with the command of a script of Lanewright's that git runs as a hook.
const COMMAND: &str = "LANEWRIGHT_HOOK";

/// The end of what a hook printed, on one line behind a colon, without what git adds to it; empty if it printed nothing.
pub(crate) fn said_by_hook(printed: &str) -> String {
    let is_gits = |line: &&str| {
        let begins = ["error: failed to push some refs", "fatal: ref updates aborted by hook", "To ", "!\t", "Done"];
        begins.iter().any(|begin| line.starts_with(begin))
    };
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty() && !is_gits(line)).collect();
    let shown = lines[lines.len().saturating_sub(LINES)..].join(", ");
    if shown.is_empty() { shown } else { format!(": {shown}") }
}

impl Repository {
    /// Which of the hooks `names` git runs in the main worktree.
    ///
    /// # Errors
    /// Git cannot read its settings.
    pub fn hooks_among(&self, names: &[&'static str]) -> Result<Vec<&'static str>> {
        let is_run = |name: &&'static str| match hook(self, self.main_worktree(), name) {
            Ok(found) => Ok(found.is_some()),
            Err(GitError::Hook { .. }) => Ok(false),
            Err(error) => Err(error),
        };
        let found = names.iter().map(|name| Ok(is_run(name)?.then_some(*name)));
        found.filter_map(Result::transpose).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::said_by_hook;

    #[test]
    fn what_a_hook_printed_is_shown_without_gits_words() {
        let printed = "lint: a.rs\n\n  2 faults\nerror: failed to push some refs to '/o.git'\n";
        assert_eq!(said_by_hook(printed), ": lint: a.rs, 2 faults");
        assert_eq!(said_by_hook("error: failed to push some refs to '/o.git'\n"), "");
        let long: String = (0..50).map(|number| format!("{number}\n")).collect();
        assert_eq!(said_by_hook(&long), ": 40, 41, 42, 43, 44, 45, 46, 47, 48, 49");
    }
}
