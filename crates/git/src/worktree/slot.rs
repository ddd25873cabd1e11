//! One slot of the pool: whether it contains a worktree of Lanewright's, and whether that may be taken over or removed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use lanewright_files::{atomic, directory};
use lanewright_model::CommitId;

use crate::command::{GitError, Result, io_error, read_line};
use crate::query::{refuse_operation, refuse_uncommitted};
use crate::repo::{Repository, entry_named_by, head_log, registered_place, same_place};
use crate::worktree::remove_private_of;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// Nothing, or an empty directory.
    Nothing,
    /// A worktree of this repository that is registered there; the path is git's directory for it.
    Ours(PathBuf),
    /// What an interrupted `worktree add` left.
    HalfMade,
    /// Anything else: another repository, a directory, a link. It is never used and never deleted.
    Foreign,
}

/// What git writes into an entry's `locked` while `worktree add` works on it.
const HALF_MADE: &str = "initializing";

/// Looks at a slot's path. A registration alone proves nothing: something else may be there now.
pub(crate) fn occupant(repository: &Repository, path: &Path) -> Occupant {
    let Ok(kind) = fs::symlink_metadata(path) else { return Occupant::Nothing };
    if !kind.is_dir() {
        return Occupant::Foreign;
    }
    let names = first_names(path);
    if names.is_empty() {
        return Occupant::Nothing;
    }
    let only_link = names == [OsStr::new(".git")];
    // Git creates the link before it writes it.
    if only_link && fs::symlink_metadata(path.join(".git")).is_ok_and(|link| link.is_file() && link.len() == 0) {
        return Occupant::HalfMade;
    }
    let Some(entry) = entry_named_by(path).filter(|entry| belongs_to(repository, entry)) else {
        return Occupant::Foreign;
    };
    if read_line(&entry.join("locked")).as_deref() == Some(HALF_MADE) {
        return if only_link { Occupant::HalfMade } else { Occupant::Foreign };
    }
    let knows_the_place = registered_place(&entry).is_some_and(|place| same_place(&place, path));
    if knows_the_place && entry.join("HEAD").is_file() { Occupant::Ours(entry) } else { Occupant::Foreign }
}

impl Repository {
    /// Git's directory for the worktree at `path`, if that is the one that Lanewright made there.
    pub fn own_entry(&self, path: &Path) -> Option<PathBuf> {
        match occupant(self, path) {
            Occupant::Ours(entry) => Some(entry),
            Occupant::Nothing | Occupant::HalfMade | Occupant::Foreign => None,
        }
    }

    /// Makes sure that the worktree at `path`, in which a program has worked, still is the one that was made there: git
    /// run in anything else would work on another repository, or on the user's own checkout.
    pub fn refuse_foreign_worktree(&self, path: &Path) -> Result<()> {
        self.own_entry(path).map(drop).ok_or_else(|| GitError::NotOurs { path: path.to_owned() })
    }
}

/// Whether the worktree at `path` was made and never checked out.
pub fn is_untouched(path: &Path, entry: &Path) -> bool {
    !entry.join("index").exists() && has_only_link(path)
}

/// Whether nothing but `.git` is in the directory.
pub(crate) fn has_only_link(path: &Path) -> bool {
    first_names(path) == [OsStr::new(".git")]
}

/// At most two names in a directory: every lane looks at all slots several times, whose files may be many.
fn first_names(path: &Path) -> Vec<OsString> {
    fs::read_dir(path).into_iter().flatten().flatten().take(2).map(|entry| entry.file_name()).collect()
}

/// Whether the user locked the worktree (`git worktree lock`).
pub(crate) fn is_locked(entry: &Path) -> bool {
    entry.join("locked").exists()
}

fn belongs_to(repository: &Repository, entry: &Path) -> bool {
    entry.parent().is_some_and(|parent| same_place(parent, &repository.entries_directory())) && entry.is_dir()
}

/// Why the worktree at `path`, which has no holder, may neither be taken over nor removed. A commit that `likely` contains
/// its head saves searching all refs.
pub(crate) fn blocker(repository: &Repository, path: &Path, entry: &Path, likely: Option<&CommitId>) -> Option<String> {
    if is_locked(entry) {
        return Some(format!("locked; `git worktree unlock {}` allows it", path.display()));
    }
    if is_untouched(path, entry) {
        return None;
    }
    let checked = refuse_operation(path)
        .and_then(|()| refuse_uncommitted(repository, path))
        .and_then(|()| refuse_unreachable(repository, path, entry, likely));
    checked.err().map(|error| error.with_remedy())
}

pub(crate) const SET_ASIDE: &str = "was in the place of a worktree that an agent or somebody else removed; look at it, \
    and delete it";

/// The note in the reflog of a slot that was given back: its head was in something that is kept.
pub(crate) const RELEASED: &str = "lanewright: release";

/// How many bytes of a slot's reflog, which gets longer with every lane, certainly hold that note if it is the last.
const LAST_ENTRY: u64 = 4_096;

/// Whether nothing happened in a worktree since it was given back with `head`: what held that commit then, such as the
/// snapshots of a merged lane, was removed on purpose.
pub(crate) fn unchanged_since_release(entry: &Path, head: &CommitId) -> bool {
    let log = head_log(entry, Some(LAST_ENTRY)).unwrap_or_default();
    log.first().is_some_and(|(commit, message)| message == RELEASED && commit == head)
}

fn refuse_unreachable(repository: &Repository, path: &Path, entry: &Path, likely: Option<&CommitId>) -> Result<()> {
    let head = repository.head_at(path)?.commit;
    let held = unchanged_since_release(entry, &head)
        || likely.map_or(Ok(false), |likely| repository.is_ancestor(&head, likely))?
        || repository.is_in_any_reference(&head)?;
    if held { Ok(()) } else { Err(GitError::Unmerged { place: path.display().to_string(), head }) }
}

/// How often `worktree add` is tried: the user's git may change the list of worktrees meanwhile.
const TRIES: u32 = 3;

/// Makes the worktree at `path`, detached at `start`, without any file yet. The caller holds the admin lock, whose
/// file is `lock`, and knows that nothing, or something half-made, is there.
pub(crate) fn make(repository: &Repository, path: &Path, start: &CommitId, lock: &File) -> Result<()> {
    let mut tries = 1;
    loop {
        clear_half_made(repository, path)?;
        // Nothing is checked out yet, and the slot is on no branch that a hook could decide about.
        let git = repository.git().without_hooks().unsynced().stdin(lock);
        let git = git.args(["worktree", "add", "--quiet", "--no-checkout", "--detach"]);
        match git.arg(path).arg(start.as_str()).run() {
            Ok(_) => return Ok(()),
            Err(_) if tries < TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Removes what an interrupted `worktree add` left of a slot: its link and its entry, locked or not.
pub(crate) fn clear_half_made(repository: &Repository, path: &Path) -> Result<()> {
    if occupant(repository, path) == Occupant::HalfMade {
        atomic::remove(&path.join(".git"))?;
    }
    for entry in directory::directories(&repository.entries_directory())? {
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

/// Whether `entry` was begun for `path` and abandoned before that was written: git names an entry after the last part of
/// the path and a number, and locks it first.
fn is_nameless_leftover(entry: &Path, path: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let number = name(entry).strip_prefix(&name(path)).is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()));
    number && !entry.join("gitdir").exists() && !entry.join("HEAD").exists()
}

/// Removes a worktree's entry, in one step as git sees it. The caller holds the admin lock.
pub(crate) fn forget(repository: &Repository, entry: &Path) -> Result<()> {
    remove_private_of(repository, entry)?;
    let trash = repository.own_directory()?.join("trash");
    fs::create_dir_all(&trash).map_err(io_error("create", &trash))?;
    atomic::rename(entry, &trash.join(uuid::Uuid::now_v7().to_string()))?;
    fs::remove_dir_all(&trash).map_err(io_error("remove", &trash))
}
