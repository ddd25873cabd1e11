//! Refs change by compare-and-set only, without hooks, and are durable before that is reported.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::admin_lock::Guarded;
use super::durable;
use super::error::GitError;
use super::program::Git;
use super::repository::{Repository, branch_reference};
use crate::model::CommitId;

/// Moves `branch` from one commit to another; done already is as good.
///
/// # Errors
/// [`GitError::ReferenceMoved`] when the branch is at neither of them, or what git says.
pub fn move_branch(repository: &Repository, branch: &str, from: &CommitId, to: &CommitId) -> Result<(), GitError> {
    let name = branch_reference(branch);
    alone(repository, &name, |lock| {
        let git = update(repository.main_worktree(), "lanekeeper: move").stdin(lock);
        if set(repository, git, &name, to, Some(from))? {
            return Ok(());
        }
        match repository.commit_at(&name)? {
            Some(now) if now == *to => durable::reference(repository, &name),
            found => Err(GitError::ReferenceMoved { reference: branch.to_owned(), expected: from.clone(), found }),
        }
    })
}

/// Runs `act` while nobody else of ours changes a branch. Git's own lock on the ref `name`, which is ours, is then a
/// dead one's, and is removed.
fn alone<T>(
    repository: &Repository,
    name: &str,
    act: impl FnOnce(&File) -> Result<T, GitError>,
) -> Result<T, GitError> {
    repository.holding(Guarded::References, |lock| {
        durable::remove(&reference_lock(repository.common_dir(), name))?;
        act(lock)
    })
}

/// Where git's lock on the ref `name` is.
pub(crate) fn reference_lock(common: &Path, name: &str) -> PathBuf {
    common.join(format!("{name}.lock"))
}

fn update<'a>(worktree: &'a Path, why: &'a str) -> Git<'a> {
    Git::new(worktree).without_hooks().args(["update-ref", "-m", why])
}

/// Sets the ref `name` to `to` if it is at `old` (`None`: if it does not exist). `false`: it is not.
pub(crate) fn set_reference(
    repository: &Repository,
    name: &str,
    to: &CommitId,
    old: Option<&CommitId>,
    why: &str,
) -> Result<bool, GitError> {
    set_reference_from(repository.main_worktree(), repository, name, to, old, why)
}

/// The same, and a note in the reflog of the head of `worktree` if that is on the ref.
pub(crate) fn set_reference_from(
    worktree: &Path,
    repository: &Repository,
    name: &str,
    to: &CommitId,
    old: Option<&CommitId>,
    why: &str,
) -> Result<bool, GitError> {
    set(repository, update(worktree, why), name, to, old)
}

fn set(
    repository: &Repository,
    git: Git<'_>,
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
