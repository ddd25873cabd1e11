//! Git without a process: libgit2, for what is asked or written most often.
//!
//! What it cannot do or refuses to do is for the git program to do or refuse: it alone waits for the locks of others, knows
//! every format of a repository, and says in words that people can look up what is wrong.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::Once;

use git2::{ConfigLevel, Oid, RepositoryOpenFlags};

use crate::fs::regular_file;
use crate::git::repo::lock::Guarded;
use crate::git::repo::repository::Repository;
use crate::git::repo::state_file;
use crate::model::CommitId;

/// Objects and refs are on disk before libgit2 reports them, as with the git program. It knows no other way to be told so.
const DURABLE: &str = "[core]\n\tfsyncObjectFiles = true\n";

/// Asks libgit2 about the repository or the worktree at `place`. `None`: it cannot tell, and the git program must be asked.
pub(crate) fn ask<T>(place: &Path, question: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>) -> Option<T> {
    open(place).and_then(|git| question(&git)).ok()
}

impl Repository {
    /// Asks libgit2, which needs no process. `None`: it cannot tell (it reads no SHA-256
    /// repositories, and knows less about extensions and trusted owners), so git itself must be asked.
    pub(crate) fn in_process<T>(
        &self,
        question: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
    ) -> Option<T> {
        ask(self.common_dir(), question)
    }

    /// Whether libgit2 may write into the repository: what others are to write to as well (`core.sharedRepository`) gets its
    /// permissions from git alone.
    pub(crate) fn may_write_in_process(&self) -> bool {
        let own = |value: &str| ["umask", "false", "0", "no", "off", ""].contains(&value.to_ascii_lowercase().as_str());
        self.configuration().is_ok_and(|known| known.get("core.sharedrepository").is_none_or(own))
    }
}

/// Has libgit2 change something at `place`, a worktree or the common directory, durably. `None`: it did not, and changed
/// nothing.
pub(crate) fn change<T>(
    repository: &Repository,
    place: &Path,
    act: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
) -> Option<T> {
    if !repository.may_write_in_process() {
        return None;
    }
    let own = repository.own_directory().ok()?;
    let settings = own.join("libgit2.config");
    if !regular_file::read(&settings).is_ok_and(|known| known == DURABLE.as_bytes()) {
        let write = |_: &File| {
            state_file::remove_unfinished(&own)?;
            state_file::write(&settings, DURABLE.as_bytes())
        };
        repository.holding(Guarded::Settings, write).ok()?;
    }
    open_durable(place, &settings).and_then(|git| act(&git)).ok()
}

fn open_durable(place: &Path, settings: &Path) -> Result<git2::Repository, git2::Error> {
    let git = open(place)?;
    git.config()?.add_file(settings, ConfigLevel::App, true)?;
    // Where it does not know of the setting, it must not write.
    match git.config()?.get_bool("core.fsyncObjectFiles")? {
        true => Ok(git),
        false => Err(git2::Error::from_str("it would not write durably")),
    }
}

fn open(place: &Path) -> Result<git2::Repository, git2::Error> {
    // What git has lost must not be believed to be there.
    static NO_CACHE: Once = Once::new();
    NO_CACHE.call_once(|| git2::opts::enable_caching(false));
    git2::Repository::open_ext(place, RepositoryOpenFlags::NO_SEARCH, &[] as &[&Path])
}

/// A commit's name as libgit2 has it.
pub(crate) fn oid(commit: &CommitId) -> Result<Oid, git2::Error> {
    Oid::from_str(commit.as_str())
}

/// Whether `descendant` holds everything that `ancestor` holds; mostly the one was made of the other a few commits before.
pub(crate) fn is_ancestor(git: &git2::Repository, ancestor: Oid, descendant: Oid) -> Result<bool, git2::Error> {
    let (mut seen, mut ahead) = (Vec::new(), VecDeque::from([descendant]));
    while let Some(commit) = ahead.pop_front().filter(|_| seen.len() < NEAR) {
        if commit == ancestor {
            return Ok(true);
        }
        if !seen.contains(&commit) {
            seen.push(commit);
            ahead.extend(git.find_commit(commit)?.parent_ids());
        }
    }
    git.graph_descendant_of(descendant, ancestor)
}

/// So many commits are looked at one by one.
const NEAR: usize = 12;

#[cfg(test)]
#[path = "libgit2_tests.rs"]
mod tests;
