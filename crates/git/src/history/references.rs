//! Refs change by compare-and-set only and without hooks. Those of the user's are durable before that is reported; those of
//! Lanewright's are not, since the run log says where they belong (decision 54).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lanewright_files::{atomic, directory, regular_file};
use lanewright_model::CommitId;

use crate::command::{Git, GitError, Result, read_line};
use crate::fast::libgit2::RefUpdate;
use crate::fast::{durable, libgit2};
use crate::repo::{Guarded, Repository, branch_reference, git_directory};

/// Moves `branch`, one of Lanewright's, from one commit to another; done already is as good.
///
/// # Errors
/// [`GitError::ReferenceMoved`] when the branch is at neither of them.
pub fn move_branch(repository: &Repository, branch: &str, from: &CommitId, to: &CommitId) -> Result<()> {
    let name = branch_reference(branch);
    let update = RefUpdate { name: &name, old: Some(from), to, why: "lanewright: move" };
    if set_own_reference(repository, repository.main_worktree(), &update)? {
        return Ok(());
    }
    match repository.target_of(&name)? {
        Some(now) if now == *to => Ok(()),
        found => Err(GitError::ReferenceMoved { reference: branch.to_owned(), expected: from.clone(), found }),
    }
}

/// Sets a ref, one of Lanewright's, which `worktree` may have checked out. `false`: it is not where it must be.
///
/// Without a process where possible: one that dies in the middle leaves a lock on the ref, which the next to change it
/// recognizes, and [`remove_dead_reference_locks`] removes. A ref of the user's is never locked in that way.
pub(crate) fn set_own_reference(repository: &Repository, worktree: &Path, update: &RefUpdate<'_>) -> Result<bool> {
    with_reference_locked(repository, update.name, |lock| {
        match libgit2::set_own_reference(repository, worktree, update) {
            Some(()) => Ok(true),
            None => set_by(Git::new(worktree).unsynced().stdin(lock), repository, update),
        }
    })
}

/// Removes the locks of Lanewrights that died while they set the refs of snapshots.
pub fn remove_dead_reference_locks(repository: &Repository) -> Result<()> {
    repository.holding(Guarded::References, |_| {
        SNAPSHOTS.iter().try_for_each(|name| remove_locks_below(&repository.common_dir().join(name), &|_| true))
    })
}

/// Removes the locks of gits that died while they set refs below `spaces` whose last part is one of `names`. Nobody else may
/// set those.
pub fn remove_dead_locks_on(repository: &Repository, spaces: &[String], names: &HashSet<String>) -> Result<()> {
    let is_wanted = |lock: &Path| lock.file_stem().and_then(OsStr::to_str).is_some_and(|name| names.contains(name));
    spaces.iter().try_for_each(|space| remove_locks_below(&repository.common_dir().join(space), &is_wanted))
}

/// Where no later change of a ref removes such a lock; one on a branch of Lanewright's goes with the branch.
pub(crate) const SNAPSHOTS: &[&str] = &["refs/lanewright/checkpoint", "refs/tags/checkpoint"];

fn remove_locks_below(place: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Result<()> {
    for path in directory::entries(place).unwrap_or_default() {
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => remove_locks_below(&path, is_wanted)?,
            Ok(_) if path.extension().is_some_and(|extension| extension == "lock") && is_wanted(&path) => {
                atomic::remove_durably(&path)?
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes what is left of a branch of Lanewright's that is gone: the process that deleted it may have died before git's
/// lock on it was gone, too.
pub fn forget_branch(repository: &Repository, branch: &str) -> Result<()> {
    with_reference_locked(repository, &branch_reference(branch), |_| Ok(()))
}

/// Runs `act` while no other process of Lanewright changes a branch. Git's own lock on the ref `name` is then a dead
/// process's, and is removed.
fn with_reference_locked<T>(repository: &Repository, name: &str, act: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    repository.holding(Guarded::References, |lock| {
        atomic::remove_durably(&reference_lock(repository.common_dir(), name))?;
        act(lock)
    })
}

impl Repository {
    /// Git's lock on all packed refs; it may not exist. While it does, no ref can be deleted and no branch be checked out.
    pub fn packed_refs_lock(&self) -> PathBuf {
        self.common_dir().join("packed-refs.lock")
    }

    /// Those locks on refs that only a git of the user's takes, or one that changes `branch`, and that exist.
    pub fn reference_locks(&self, branches: &[&str]) -> Vec<PathBuf> {
        let of_branches = branches.iter().map(|branch| reference_lock(self.common_dir(), &branch_reference(branch)));
        of_branches.chain([self.packed_refs_lock()]).filter(|lock| fs::symlink_metadata(lock).is_ok()).collect()
    }

    /// Makes the branch `name` at `commit`. One that exists is an error.
    pub fn branch_off(&self, name: &str, commit: &CommitId) -> Result<()> {
        self.git().args(["branch", "--no-track", name, commit.as_str()]).run()?;
        Ok(())
    }
}

pub(crate) fn reference_lock(common: &Path, name: &str) -> PathBuf {
    common.join(format!("{name}.lock"))
}

pub(crate) fn index_lock(worktree: &Path) -> Result<Option<PathBuf>> {
    let lock = git_directory(worktree)?.join("index.lock");
    Ok(fs::symlink_metadata(&lock).is_ok().then_some(lock))
}

/// Removes git's locks on the index of `worktree`, on its head and on the branch it has checked out. Their owners, gits of
/// Lanewright's or of an agent, are known to be dead.
pub(crate) fn remove_dead_locks(worktree: &Path) -> Result<()> {
    let own = git_directory(worktree)?;
    for name in ["index.lock", "HEAD.lock"] {
        atomic::remove_durably(&own.join(name))?;
    }
    let common = own.join(read_line(&own.join("commondir")).unwrap_or_default());
    if let Some(reference) = read_line(&own.join("HEAD")).as_deref().and_then(|head| head.strip_prefix("ref: ")) {
        atomic::remove_durably(&reference_lock(&common, reference))?;
    }
    Ok(())
}

/// Puts the head of `worktree` on no branch, at `commit`.
pub(crate) fn detach_head(
    repository: &Repository,
    worktree: &Path,
    commit: &CommitId,
    why: &str,
    lock: &File,
) -> Result<()> {
    if libgit2::detach(repository, worktree, commit, why).is_none() {
        // Not `git checkout --detach`, which would run the user's hooks for nothing.
        let git = Git::new(worktree).without_hooks().stdin(lock);
        git.args(["update-ref", "--no-deref", "-m", why, "HEAD", commit.as_str()]).run()?;
    }
    Ok(())
}

/// Sets a ref of the user's, in `worktree`. `false`: it is not where it must be.
pub(crate) fn set_reference(repository: &Repository, worktree: &Path, update: &RefUpdate<'_>) -> Result<bool> {
    Ok(set_by(Git::new(worktree), repository, update)? && durable::reference(repository, update.name).map(|()| true)?)
}

fn set_by(git: Git<'_>, repository: &Repository, update: &RefUpdate<'_>) -> Result<bool> {
    let RefUpdate { name, old, to, why } = *update;
    let git = git.without_hooks().args(["update-ref", "-m", why, name, to.as_str(), old.map_or("", CommitId::as_str)]);
    let output = git.attempt()?;
    if output.status.success() {
        return Ok(true);
    }
    if repository.target_of(name)?.as_ref() == old {
        return Err(git.failure(&output).into());
    }
    Ok(false)
}

/// Sets the ref `name` to `commit`, wherever it was. A lock that a dead process left on one that only Lanewright sets is
/// removed; a branch may be the user's.
pub fn force_reference(repository: &Repository, name: &str, commit: &CommitId) -> Result<()> {
    let set = |git: Git<'_>| {
        git.without_hooks().args(["update-ref", name, commit.as_str()]).run()?;
        durable::reference(repository, name)
    };
    match name.starts_with(OWN) {
        true => with_reference_locked(repository, name, |lock| set(repository.git().stdin(lock))),
        false => set(repository.git()),
    }
}

/// Refs that only Lanewright sets.
const OWN: &str = "refs/lanewright/";

pub fn forget_reference(repository: &Repository, name: &str) -> Result<()> {
    repository.target_of(name)?.map_or(Ok(()), |commit| delete_reference(repository, name, &commit))
}

/// Deletes refs that still are where they are expected. Returns those that are not, which stay. After a power cut deleted
/// ones may be back, until [`sync_deleted`].
pub fn delete_references(repository: &Repository, references: &[(String, CommitId)]) -> Result<Vec<String>> {
    let mut kept = Vec::new();
    for (name, expected) in references {
        match delete_reference(repository, name, expected) {
            Err(GitError::ReferenceMoved { .. }) => kept.push(name.clone()),
            done => done?,
        }
    }
    Ok(kept)
}

/// Makes the deletion of refs, by their full names, durable.
///
/// # Errors
/// A directory of refs cannot be synced.
pub fn sync_deleted(repository: &Repository, names: &[String]) -> Result<()> {
    durable::deleted_references(repository, names)
}

/// Deletes `branch`, one of Lanewright's, if it is at a commit that one of `into` holds, and no worktree has it checked out;
/// gone already is as good.
///
/// # Errors
/// [`GitError::Unmerged`], [`GitError::BranchInTheWay`] when it is checked out, [`GitError::ReferenceMoved`].
pub fn delete_branch_if_merged(repository: &Repository, branch: &str, into: &[CommitId]) -> Result<()> {
    let Some(tip) = repository.branch_commit(branch)? else { return forget_branch(repository, branch) };
    if let Some(place) = repository.where_checked_out(branch)? {
        return Err(GitError::BranchInTheWay { branch: branch.to_owned(), place: Some(place) });
    }
    match repository.is_in_any(&tip, into)? {
        true => delete_reference(repository, &branch_reference(branch), &tip),
        false => Err(GitError::Unmerged { place: format!("branch `{branch}`"), head: tip }),
    }
}

pub(crate) fn delete_reference(repository: &Repository, name: &str, expected: &CommitId) -> Result<()> {
    with_reference_locked(repository, name, |lock| {
        if delete_loose(repository, name, expected) && !is_packed_meanwhile(repository, name) {
            return Ok(());
        }
        let git = repository.git().without_hooks().stdin(lock).args(["update-ref", "-d", name, expected.as_str()]);
        let output = git.attempt()?;
        if output.status.success() {
            return Ok(());
        }
        match repository.target_of(name)? {
            None => Ok(()),
            Some(now) if now == *expected => Err(git.failure(&output).into()),
            found => Err(GitError::ReferenceMoved { reference: name.to_owned(), expected: expected.clone(), found }),
        }
    })
}

/// Deletes a ref that is in a file of its own, and at `expected`, without a process. `false`: it did not.
fn delete_loose(repository: &Repository, name: &str, expected: &CommitId) -> bool {
    // Packed refs are the user's too: one that dies while it writes them again leaves a lock on all of them.
    !is_packed(repository, name) && libgit2::delete_reference(repository, name, expected).is_some()
}

fn is_packed(repository: &Repository, name: &str) -> bool {
    let packed = regular_file::read(repository.common_dir().join("packed-refs")).unwrap_or_default();
    packed.split(|&byte| byte == b'\n').any(|line| line.ends_with(name.as_bytes()))
}

/// How long a `git pack-refs` takes at most; an older lock is what a killed one left.
const MAX_PACKING_TIME: Duration = Duration::from_secs(10);

/// Whether a `git pack-refs` of the user's that had read the ref before it was deleted has written it again.
fn is_packed_meanwhile(repository: &Repository, name: &str) -> bool {
    let age = || fs::metadata(repository.packed_refs_lock()).ok()?.modified().ok()?.elapsed().ok();
    while age().is_some_and(|age| age < MAX_PACKING_TIME) {
        thread::sleep(Duration::from_millis(2));
    }
    is_packed(repository, name)
}
