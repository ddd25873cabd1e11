//! Moving the integration branch, which the user may have checked out.

use std::fs::File;
use std::path::PathBuf;

use super::admin_lock::Guarded;
use super::along::{Advance, Along, finish, move_along};
use super::durable;
use super::error::GitError;
use super::head::index_lock;
use super::obstacles::{Obstacles, obstacles};
use super::references::set_reference;
use super::repository::{Repository, branch_reference};
use super::status::worktree_changes;
use crate::model::CommitId;

/// What came of publishing a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Publication {
    /// The branch is at the commit now; so is the worktree that has it checked out, if one has.
    Published,
    /// The branch held the commit already.
    AlreadyThere,
    /// The branch is elsewhere than the commit was made for.
    Moved(CommitId),
    /// Somebody has the branch checked out and cannot be moved along; nothing was changed.
    CheckedOutDirty {
        /// Where.
        worktree: PathBuf,
        /// What is in the way.
        obstacles: Obstacles,
    },
}

/// How often a checkout is looked at that somebody switches while it is to be moved along.
const TRIES: u32 = 3;

/// Moves `branch` from `onto` to `commit`, which continues it. Where the branch is checked out, files and index move
/// along as with `git merge --ff-only`, without hooks, or nothing moves. One at a time in a repository. What one that
/// died left half-way is finished first.
///
/// # Errors
/// [`GitError::BranchMissing`], [`GitError::NotAFastForward`], or what git says.
pub fn publish(
    repository: &Repository,
    branch: &str,
    onto: &CommitId,
    commit: &CommitId,
) -> Result<Publication, GitError> {
    if !repository.is_ancestor(onto, commit)? {
        let (branch, onto, commit) = (branch.to_owned(), onto.clone(), commit.clone());
        return Err(GitError::NotAFastForward { branch, onto, commit });
    }
    repository.holding(Guarded::Publish, |lock| {
        if let Some(obstructed) = finish_dead(repository, branch, lock)? {
            return Ok(obstructed);
        }
        let advance = Advance::new(branch, onto, commit);
        for _ in 0..TRIES {
            if let Some(publication) = try_once(repository, &advance, lock)? {
                return Ok(publication);
            }
        }
        Ok(Publication::Moved(tip(repository, branch)?))
    })
}

/// What would keep [`publish`] from moving `branch` from `onto` to `commit` now; nothing is changed.
///
/// # Errors
/// What git says.
pub fn obstacle_to_publishing(
    repository: &Repository,
    branch: &str,
    onto: &CommitId,
    commit: &CommitId,
) -> Result<Option<Publication>, GitError> {
    repository.holding(Guarded::Publish, |lock| {
        if let Some(obstructed) = finish_dead(repository, branch, lock)? {
            return Ok(Some(obstructed));
        }
        for worktree in repository.all_checked_out(branch)? {
            let obstacles = match index_lock(&worktree)? {
                Some(lock) => Obstacles::locked(&lock),
                None => obstacles(repository, &worktree, onto, commit)?,
            };
            if !obstacles.paths.is_empty() {
                return Ok(Some(Publication::CheckedOutDirty { worktree, obstacles }));
            }
        }
        Ok(None)
    })
}

/// Where `branch` is checked out, and the paths, sorted, in which that checkout differs from the branch, uncommitted
/// and untracked files included. Never in the middle of a publication.
///
/// # Errors
/// [`GitError::BranchMissing`], or what git says.
pub fn changes_where_checked_out(
    repository: &Repository,
    branch: &str,
) -> Result<Option<(PathBuf, Vec<String>)>, GitError> {
    repository.holding(Guarded::Publish, |lock| {
        finish_dead(repository, branch, lock)?;
        let Some(worktree) = repository.where_checked_out(branch)? else { return Ok(None) };
        let changes = worktree_changes(&worktree, &tip(repository, branch)?)?;
        Ok(Some((worktree, changes)))
    })
}

/// `None`: a checkout was switched meanwhile, so it must be looked at again.
fn try_once(repository: &Repository, advance: &Advance, lock: &File) -> Result<Option<Publication>, GitError> {
    let Advance { branch, onto, commit, .. } = advance;
    let now = tip(repository, branch)?;
    // What continues the place where the branch is has not been published.
    if now != *onto || commit == onto {
        if !repository.is_ancestor(commit, &now)? {
            return Ok(Some(Publication::Moved(now)));
        }
        return durable::reference(repository, &branch_reference(branch)).map(|()| Some(Publication::AlreadyThere));
    }
    durable::objects(repository, commit, std::slice::from_ref(onto))?;
    match repository.all_checked_out(branch)?.as_slice() {
        [] => compare_and_set(repository, branch, onto, commit).map(Some),
        [worktree] => Ok(match move_along(repository, worktree, advance, lock)? {
            Along::Moved => Some(Publication::Published),
            Along::Superseded => None,
            Along::Obstructed(obstacles) => {
                Some(Publication::CheckedOutDirty { worktree: worktree.clone(), obstacles })
            }
        }),
        [_, other, ..] => {
            let obstacles = Obstacles::twice(branch);
            Ok(Some(Publication::CheckedOutDirty { worktree: other.clone(), obstacles }))
        }
    }
}

/// Finishes what Lanekeepers that died left half-way in any checkout. Answers what keeps the one of `branch` from it.
fn finish_dead(repository: &Repository, branch: &str, lock: &File) -> Result<Option<Publication>, GitError> {
    let mut found = None;
    for (worktree, advance) in repository.half_moved()? {
        let obstacles = finish(repository, &worktree, &advance, lock)?.filter(|_| advance.branch == branch);
        found = found.or(obstacles.map(|obstacles| Publication::CheckedOutDirty { worktree, obstacles }));
    }
    Ok(found)
}

fn tip(repository: &Repository, branch: &str) -> Result<CommitId, GitError> {
    repository.branch_commit(branch)?.ok_or_else(|| GitError::BranchMissing { branch: branch.to_owned() })
}

fn compare_and_set(
    repository: &Repository,
    branch: &str,
    onto: &CommitId,
    commit: &CommitId,
) -> Result<Publication, GitError> {
    let (main, name) = (repository.main_worktree(), branch_reference(branch));
    let moved = set_reference(main, repository, &name, commit, Some(onto), "lanekeeper: publish")?;
    if moved { Ok(Publication::Published) } else { Ok(Publication::Moved(tip(repository, branch)?)) }
}
