//! Refs change by compare-and-set only, without hooks, and are durable before that is reported.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::fs::regular_file;
use crate::git::command::error::GitError;
use crate::git::command::program::Git;
use crate::git::fast::durable;
use crate::git::fast::libgit2;
use crate::git::repo::lock::Guarded;
use crate::git::repo::repository::{Repository, branch_reference};
use crate::git::repo::state_file;
use crate::model::CommitId;

/// Moves `branch`, which is ours, from one commit to another; done already is as good.
///
/// # Errors
/// [`GitError::ReferenceMoved`] when the branch is at neither of them, or what git says.
pub fn move_branch(repository: &Repository, branch: &str, from: &CommitId, to: &CommitId) -> Result<(), GitError> {
    let name = branch_reference(branch);
    if set_own_reference(repository, &name, to, Some(from), "lanekeeper: move")? {
        return Ok(());
    }
    match repository.commit_at(&name)? {
        Some(now) if now == *to => durable::reference(repository, &name),
        found => Err(GitError::ReferenceMoved { reference: branch.to_owned(), expected: from.clone(), found }),
    }
}

/// Sets the ref `name`, which is ours, to `to` if it is at `old` (`None`: if it does not exist). `false`: it is not.
///
/// Without a process where that can be: one that dies in the middle leaves a lock on the ref, which the next to change it
/// takes for what it is, and [`remove_dead_reference_locks`] removes. A ref of the user's is never locked in that way.
pub(crate) fn set_own_reference(
    repository: &Repository,
    name: &str,
    to: &CommitId,
    old: Option<&CommitId>,
    why: &str,
) -> Result<bool, GitError> {
    alone(repository, name, |lock| {
        let set = libgit2::change(repository, repository.main_worktree(), |git| {
            let target = libgit2::oid(to)?;
            match old {
                Some(old) => git.reference_matching(name, target, true, libgit2::oid(old)?, why),
                None => git.reference(name, target, false, why),
            }
            .map(drop)
        });
        match set {
            Some(()) => Ok(true),
            None => set_by(update(repository.main_worktree(), why).stdin(lock), repository, name, to, old),
        }
    })
}

/// Removes the locks of Lanekeepers that died while they set the refs of snapshots.
///
/// # Errors
/// [`GitError::File`].
pub fn remove_dead_reference_locks(repository: &Repository) -> Result<(), GitError> {
    repository.holding(Guarded::References, |_| {
        SNAPSHOTS.iter().try_for_each(|name| remove_locks_below(&repository.common_dir().join(name)))
    })
}

/// Where refs are that nobody looks at again who could remove such a lock; one on a branch of ours goes with the branch.
const SNAPSHOTS: &[&str] = &["refs/lanekeeper/checkpoint", "refs/tags/checkpoint"];

fn remove_locks_below(directory: &Path) -> Result<(), GitError> {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => remove_locks_below(&path)?,
            Ok(_) if path.extension().is_some_and(|extension| extension == "lock") => state_file::remove(&path)?,
            _ => {}
        }
    }
    Ok(())
}

/// Removes what is left of a branch of ours that is gone and that nobody makes again meanwhile: who deleted it may have
/// died before git's lock on it was gone, too.
pub(crate) fn forget_branch(repository: &Repository, branch: &str) -> Result<(), GitError> {
    alone(repository, &branch_reference(branch), |_| Ok(()))
}

/// Runs `act` while nobody else of ours changes a branch. Git's own lock on the ref `name`, which is ours, is then a
/// dead one's, and is removed.
fn alone<T>(
    repository: &Repository,
    name: &str,
    act: impl FnOnce(&File) -> Result<T, GitError>,
) -> Result<T, GitError> {
    repository.holding(Guarded::References, |lock| {
        state_file::remove(&reference_lock(repository.common_dir(), name))?;
        act(lock)
    })
}

impl Repository {
    /// Git's lock on all packed refs; it may not exist. While it does, no ref can be deleted and no branch be checked out.
    pub(crate) fn packed_refs_lock(&self) -> PathBuf {
        self.common_dir().join("packed-refs.lock")
    }

    /// Those locks on refs that only a git of the user's takes, or one that changes `branch`, and that exist.
    pub(crate) fn reference_locks(&self, branches: &[&str]) -> Vec<PathBuf> {
        let of_branches = branches.iter().map(|branch| reference_lock(self.common_dir(), &branch_reference(branch)));
        of_branches.chain([self.packed_refs_lock()]).filter(|lock| fs::symlink_metadata(lock).is_ok()).collect()
    }
}

/// Where git's lock on the ref `name` is.
pub(crate) fn reference_lock(common: &Path, name: &str) -> PathBuf {
    common.join(format!("{name}.lock"))
}

fn update<'a>(worktree: &'a Path, why: &'a str) -> Git<'a> {
    Git::new(worktree).without_hooks().args(["update-ref", "-m", why])
}

/// Sets the ref `name` to `to` if it is at `old` (`None`: if it does not exist), with a note in the reflog of the head of
/// `worktree` if that is on the ref. `false`: it is not there.
pub(crate) fn set_reference(
    worktree: &Path,
    repository: &Repository,
    name: &str,
    to: &CommitId,
    old: Option<&CommitId>,
    why: &str,
) -> Result<bool, GitError> {
    set_by(update(worktree, why), repository, name, to, old)
}

fn set_by(
    git: Git<'_>,
    repository: &Repository,
    name: &str,
    to: &CommitId,
    old: Option<&CommitId>,
) -> Result<bool, GitError> {
    let git = git.args([name, to.as_str(), old.map_or("", CommitId::as_str)]);
    let output = git.attempt()?;
    if output.status.success() {
        return durable::reference(repository, name).map(|()| true);
    }
    if repository.commit_at(name)?.as_ref() == old {
        return Err(git.failure(&output).into());
    }
    Ok(false)
}

/// Deletes the ref `name` if it is at `expected`; gone already is as good.
pub(crate) fn delete_reference(repository: &Repository, name: &str, expected: &CommitId) -> Result<(), GitError> {
    alone(repository, name, |lock| {
        if delete_loose(repository, name, expected) && !is_packed_meanwhile(repository, name) {
            return durable::reference(repository, name);
        }
        let git = Git::new(repository.main_worktree()).without_hooks().stdin(lock);
        let git = git.args(["update-ref", "-d", name, expected.as_str()]);
        let output = git.attempt()?;
        if output.status.success() {
            return durable::reference(repository, name);
        }
        match repository.commit_at(name)? {
            None => Ok(()),
            Some(now) if now == *expected => Err(git.failure(&output).into()),
            found => Err(GitError::ReferenceMoved { reference: name.to_owned(), expected: expected.clone(), found }),
        }
    })
}

/// Deletes a ref that is in a file of its own, and at `expected`, without a process. `false`: it did not.
fn delete_loose(repository: &Repository, name: &str, expected: &CommitId) -> bool {
    // Packed refs are the user's too: one that dies while it writes them again leaves a lock on all of them.
    if is_packed(repository, name) {
        return false;
    }
    let deleted = libgit2::change(repository, repository.main_worktree(), |git| {
        let mut reference = git.find_reference(name)?;
        let as_expected = reference.target() == Some(libgit2::oid(expected)?);
        if as_expected { reference.delete().map(|()| true) } else { Ok(false) }
    });
    deleted == Some(true)
}

fn is_packed(repository: &Repository, name: &str) -> bool {
    let packed = regular_file::read(repository.common_dir().join("packed-refs")).unwrap_or_default();
    packed.split(|&byte| byte == b'\n').any(|line| line.ends_with(name.as_bytes()))
}

/// How long a `git pack-refs` takes at most; an older lock is what a killed one left.
const A_PACKING: Duration = Duration::from_secs(10);

/// Whether a `git pack-refs` of the user's that had read the ref before it was deleted has written it again.
fn is_packed_meanwhile(repository: &Repository, name: &str) -> bool {
    let age = || fs::metadata(repository.packed_refs_lock()).ok()?.modified().ok()?.elapsed().ok();
    while age().is_some_and(|age| age < A_PACKING) {
        thread::sleep(Duration::from_millis(2));
    }
    is_packed(repository, name)
}
