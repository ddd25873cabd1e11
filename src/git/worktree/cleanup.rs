//! Removing branches that are merged, and finding what is left.

use std::path::PathBuf;

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, path_text};
use crate::git::history::references::{delete_reference, forget_branch};
use crate::git::repo::repository::{Repository, branch_reference};
use crate::git::worktree::pool::Pool;
use crate::model::{CommitId, PhaseId};

/// Deletes `branch`, which is ours, if it is at a commit that one of `into` holds, and no worktree has it checked out; gone
/// already is as good.
///
/// # Errors
/// [`GitError::Unmerged`], [`GitError::BranchInTheWay`] when it is checked out, [`GitError::ReferenceMoved`].
pub fn delete_branch_if_merged(repository: &Repository, branch: &str, into: &[CommitId]) -> Result<(), GitError> {
    let Some(tip) = repository.branch_commit(branch)? else { return forget_branch(repository, branch) };
    if let Some(place) = repository.where_checked_out(branch)? {
        return Err(GitError::BranchInTheWay { branch: branch.to_owned(), place: Some(place) });
    }
    for commit in into {
        if repository.is_ancestor(&tip, commit)? {
            return delete_reference(repository, &branch_reference(branch), &tip);
        }
    }
    Err(GitError::Unmerged { place: format!("branch `{branch}`"), head: tip })
}

/// What is left of a phase in a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stray {
    /// Its lanes' and agents' branches, without `refs/heads/`.
    pub branches: Vec<(String, CommitId)>,
    /// Refs of its snapshots.
    pub references: Vec<(String, CommitId)>,
    /// Worktrees registered below the pool's root, of any phase.
    pub worktrees: Vec<PathBuf>,
}

/// Finds what is left of `phase`.
///
/// # Errors
/// What git says.
pub fn stray(pool: &Pool, phase: &PhaseId) -> Result<Stray, GitError> {
    let repository = pool.repository();
    let branches = listed(repository, &["lane", "lane-agent"].map(|kind| format!("refs/heads/{kind}/{phase}/")))?;
    let spaces = ["refs/lanekeeper/checkpoint", "refs/tags/checkpoint"];
    let references = listed(repository, &spaces.map(|space| format!("{space}/{phase}-*/**")))?;
    let worktrees = repository.linked_worktrees()?.into_iter().map(|entry| entry.worktree);
    Ok(Stray {
        branches: branches
            .into_iter()
            .map(|(name, at)| (name.trim_start_matches("refs/heads/").to_owned(), at))
            .collect(),
        references,
        worktrees: worktrees.filter(|path| path.starts_with(pool.root())).collect(),
    })
}

fn listed(repository: &Repository, patterns: &[String]) -> Result<Vec<(String, CommitId)>, GitError> {
    let git = Git::new(repository.main_worktree()).args(["for-each-ref", "--format=%(objectname) %(refname)"]);
    let listing = path_text(&git.args(patterns).run()?);
    let pairs = listing.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.filter_map(|(at, name)| Some((name.to_owned(), CommitId::new(at).ok()?))).collect())
}
