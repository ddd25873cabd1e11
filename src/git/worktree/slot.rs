//! One slot of the pool: whether what is there is a worktree of ours.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::fs::atomic;
use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::Git;
use crate::git::repo::git_dir::{directories_in, entry_named_by, read_line, registered_place, same_place};
use crate::git::repo::repository::Repository;
use crate::model::CommitId;

/// What is at a slot's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// Nothing, or an empty directory.
    Nothing,
    /// A worktree of this repository that knows this place; the path is git's directory for it.
    Ours(PathBuf),
    /// What an interrupted `worktree add` left.
    HalfMade,
    /// Anything else: another repository, a directory, a link. It is never used and never deleted.
    Stranger,
}

/// What git writes into an entry's `locked` while `worktree add` works on it.
const HALF_MADE: &str = "initializing";

/// Looks at a slot's path. A registration alone proves nothing: something else may live there by now.
pub(crate) fn occupant(repository: &Repository, path: &Path) -> Occupant {
    let Ok(kind) = fs::symlink_metadata(path) else { return Occupant::Nothing };
    if !kind.is_dir() {
        return Occupant::Stranger;
    }
    let names = names_in(path);
    if names.is_empty() {
        return Occupant::Nothing;
    }
    let only_link = names == [OsStr::new(".git")];
    // Git creates the link before it writes it.
    if only_link && fs::symlink_metadata(path.join(".git")).is_ok_and(|link| link.is_file() && link.len() == 0) {
        return Occupant::HalfMade;
    }
    let Some(entry) = entry_named_by(path).filter(|entry| belongs_to(repository, entry)) else {
        return Occupant::Stranger;
    };
    if read_line(&entry.join("locked")).as_deref() == Some(HALF_MADE) {
        return if only_link { Occupant::HalfMade } else { Occupant::Stranger };
    }
    let knows_the_place = registered_place(&entry).is_some_and(|place| same_place(&place, path));
    if knows_the_place && entry.join("HEAD").is_file() { Occupant::Ours(entry) } else { Occupant::Stranger }
}

impl Repository {
    /// Makes sure that the worktree at `path`, in which a program has worked, still is the one that was made there: git
    /// run in anything else would work on another repository, or on the user's own checkout.
    ///
    /// # Errors
    /// [`GitError::NotOurs`].
    pub fn vouch_for(&self, path: &Path) -> Result<(), GitError> {
        match occupant(self, path) {
            Occupant::Ours(_) => Ok(()),
            Occupant::Nothing | Occupant::HalfMade | Occupant::Stranger => {
                Err(GitError::NotOurs { path: path.to_owned() })
            }
        }
    }
}

/// Whether the worktree at `path` was made and never checked out.
pub(crate) fn is_untouched(path: &Path, entry: &Path) -> bool {
    !entry.join("index").exists() && names_in(path) == [OsStr::new(".git")]
}

fn names_in(path: &Path) -> Vec<OsString> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

/// Whether a person locked the worktree (`git worktree lock`).
pub(crate) fn is_locked(entry: &Path) -> bool {
    entry.join("locked").exists()
}

fn belongs_to(repository: &Repository, entry: &Path) -> bool {
    let entries = repository.common_dir().join("worktrees");
    entry.parent().is_some_and(|parent| same_place(parent, &entries)) && entry.is_dir()
}

/// How often `worktree add` is tried: somebody else's git may change the list of worktrees meanwhile.
const TRIES: u32 = 3;

/// Makes the worktree at `path`, detached at `start`, without any file yet. The caller holds the admin lock, whose
/// file is `lock`, and knows that nothing, or something half-made, is there.
pub(crate) fn make(repository: &Repository, path: &Path, start: &CommitId, lock: &File) -> Result<(), GitError> {
    let mut tries = 1;
    loop {
        clear_half_made(repository, path)?;
        let git = Git::new(repository.main_worktree()).stdin(lock);
        let git = git.args(["worktree", "add", "--quiet", "--no-checkout", "--detach"]).arg(path).arg(start.as_str());
        match git.run() {
            Ok(_) => return Ok(()),
            Err(_) if tries < TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Removes what an interrupted `worktree add` left of a slot: its link and its entry, locked or not.
pub(crate) fn clear_half_made(repository: &Repository, path: &Path) -> Result<(), GitError> {
    if occupant(repository, path) == Occupant::HalfMade {
        let link = path.join(".git");
        fs::remove_file(&link).map_err(io_error("remove", &link))?;
    }
    for entry in directories_in(&repository.common_dir().join("worktrees"))? {
        let forgotten = match registered_place(&entry) {
            Some(place) => place == path,
            None => is_nameless_leftover(&entry, path),
        };
        if forgotten {
            forget(repository, &entry)?;
        }
    }
    Ok(())
}

/// Whether `entry` was begun for `path` and given up before it said so: git names an entry after the last part of
/// the path and a number, and locks it first.
fn is_nameless_leftover(entry: &Path, path: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let number = name(entry).strip_prefix(&name(path)).is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()));
    number && !entry.join("gitdir").exists() && !entry.join("HEAD").exists()
}

/// Removes a worktree's entry, in one step as git sees it. The caller holds the admin lock.
pub(crate) fn forget(repository: &Repository, entry: &Path) -> Result<(), GitError> {
    let trash = repository.own_directory()?.join("trash");
    fs::create_dir_all(&trash).map_err(io_error("create", &trash))?;
    let aside = trash.join(uuid::Uuid::now_v7().to_string());
    atomic::rename(entry, &aside).map_err(io_error("move", entry))?;
    fs::remove_dir_all(&trash).map_err(io_error("remove", &trash))
}
