//! The branches that a job works on: brought up to date with the remote before, those of unmerged lanes pushed after.

use lanewright_engine::state_sync::{Manifest, unpublished};
use lanewright_git::{
    Merge, Publication, PushRequest, Remote, attach_head, branch_reference, force_reference, merge, publish as advance,
};
use lanewright_model::CommitId;
use lanewright_model::text::listed;

use super::service::Service;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// How many files in conflict are named.
const NAMED: usize = 10;

/// What a job could not join.
#[derive(Debug, thiserror::Error)]
#[error("{branch} and what is to be joined with it changed the same places: {}", listed(paths, NAMED))]
pub(super) struct Conflict {
    pub(super) branch: String,
    pub(super) paths: Vec<String>,
    /// What could not be merged into the branch.
    pub(super) commit: CommitId,
}

/// Checks out the branch of the job where the service checked out its commit: lanes are merged into a branch.
pub(super) fn leave_detached_head(within: &RepositoryContext, service: &Service) -> Result<()> {
    match &service.branch {
        Some(branch) if within.repository.current_branch()?.is_none() => Ok(attach_head(&within.repository, branch)?),
        _ => Ok(()),
    }
}

/// Fetches `branch`, if the remote has it, and joins it with the one here, whose checkout follows.
///
/// # Errors
/// [`Conflict`]; nothing was changed then.
pub(super) fn update(within: &RepositoryContext, remote: &Remote, branch: &str) -> Result<()> {
    let reference = branch_reference(branch);
    let Some(there) = remote.commit_at(&reference)? else { return Ok(()) };
    if !within.repository.has_commit(&there)? {
        remote.fetch(&[&reference])?;
    }
    match within.repository.branch_commit(branch)? {
        None => Ok(force_reference(&within.repository, &reference, &there)?),
        Some(here) => join(within, branch, [&here, &there], &format!("Merge {branch} of {}", remote.name())),
    }
}

/// Brings `commit` into `branch`, which is `here`: by a merge, unless it continues the branch.
///
/// # Errors
/// [`Conflict`]; nothing was changed then.
pub(super) fn join(
    within: &RepositoryContext,
    branch: &str,
    [here, commit]: [&CommitId; 2],
    message: &str,
) -> Result<()> {
    let repository = &within.repository;
    let joined = match repository.is_ancestor(here, commit)? {
        true => commit.clone(),
        false => match merge(repository, here, commit, message, &[], &[])? {
            Merge::AlreadyIn => return Ok(()),
            Merge::Done(joined) => joined,
            Merge::Conflict(paths) => {
                return Err(Conflict { branch: branch.to_owned(), paths, commit: commit.clone() }.into());
            }
        },
    };
    match advance(repository, branch, here, &joined)? {
        Publication::Published | Publication::AlreadyThere => Ok(()),
        Publication::Moved(_) => {
            Err(ExitStatus::Blocked.error(format!("{branch} moved meanwhile")).hint("repeat the command"))
        }
        Publication::CheckedOutDirty { worktree, blockers } => {
            Err(ExitStatus::Blocked.error(blockers.cannot_move(branch, &worktree)))
        }
    }
}

/// Pushes the branches of a run that `merge = "none"` leaves unmerged; the names of those that the remote has elsewhere. The
/// branch that lanes are merged into is pushed by `publish` only, which may have to propose it.
pub(super) fn publish_lanes(within: &RepositoryContext, remote: &Remote, manifest: &Manifest) -> Result<Vec<String>> {
    let mut elsewhere = Vec::new();
    let missing = unpublished(&within.repository, remote, manifest)?;
    for branch in missing.into_iter().filter(|branch| *branch != manifest.base_branch) {
        let reference = branch_reference(&branch);
        let (Some(here), there) = (within.repository.branch_commit(&branch)?, remote.commit_at(&reference)?) else {
            continue;
        };
        let continues = match &there {
            Some(there) if within.repository.has_commit(there)? => within.repository.is_ancestor(there, &here)?,
            there => there.is_none(),
        };
        let request = PushRequest { hooks: true, ..PushRequest::new(&reference, Some(&here), there.as_ref()) };
        if !continues || !remote.push(&request)? {
            elsewhere.push(branch);
        }
    }
    Ok(elsewhere)
}
