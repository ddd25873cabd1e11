//! Refs change by compare-and-set only, without hooks, and are durable before that is reported.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::admin_lock::Guarded;
use super::durable;
use super::error::GitError;
use super::library;
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
        let change =
            Change { worktree: repository.main_worktree(), name: &name, to, old: Some(from), why: "lanekeeper: move" };
        if change.make(repository, Some(lock))? {
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
    Change { worktree, name, to, old, why }.make(repository, None)
}

/// A ref that is to be set.
struct Change<'a> {
    /// Whose head's reflog is told, too, if it is on the ref.
    worktree: &'a Path,
    name: &'a str,
    to: &'a CommitId,
    /// Where it has to be; `None`: nowhere.
    old: Option<&'a CommitId>,
    why: &'a str,
}

impl Change<'_> {
    /// `false`: the ref is not where it has to be.
    fn make(&self, repository: &Repository, lock: Option<&File>) -> Result<bool, GitError> {
        if library::change(repository, self.worktree, |git| self.set(git)).is_some() {
            return Ok(true);
        }
        let git = Git::new(self.worktree).without_hooks();
        let git = lock.into_iter().fold(git, Git::stdin).args(["update-ref", "-m", self.why, self.name]);
        let git = git.args([self.to.as_str(), self.old.map_or("", CommitId::as_str)]);
        let output = git.attempt()?;
        if output.status.success() {
            return durable::reference(repository, self.name).map(|()| true);
        }
        if repository.commit_at(self.name)?.as_ref() == self.old {
            return Err(git.failure(&output).into());
        }
        Ok(false)
    }

    fn set(&self, git: &git2::Repository) -> Result<(), git2::Error> {
        let to = library::oid(self.to)?;
        match self.old {
            Some(old) => git.reference_matching(self.name, to, true, library::oid(old)?, self.why),
            None => git.reference(self.name, to, false, self.why),
        }
        .map(drop)
    }
}

/// Deletes the ref `name` if it is at `expected`; gone already is as good.
pub(crate) fn delete_reference(repository: &Repository, name: &str, expected: &CommitId) -> Result<(), GitError> {
    alone(repository, name, |lock| {
        let deleted = library::change(repository, repository.main_worktree(), |git| {
            let mut reference = git.find_reference(name)?;
            if reference.target() == Some(library::oid(expected)?) {
                reference.delete().map(|()| true)
            } else {
                Ok(false)
            }
        });
        if deleted == Some(true) {
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
