//! Moves a worktree's branch to its head, or its files to its branch.

use std::path::Path;

use lanewright_files::{atomic, regular_file};
use lanewright_model::CommitId;

use crate::command::{Git, GitError, ProgramError, Result, path_text};
use crate::fast::durable;
use crate::history::{move_branch, remove_dead_locks};
use crate::query::{Head, refuse_operation};
use crate::repo::{Repository, branch_reference, git_directory, holding_worktree};

/// The file in git's directory for a worktree that names the commit to which it is being updated.
const UPDATE: &str = "lanewright.update";

/// Brings `worktree`, whose agent may have detached its head or switched branches, back to `branch`: where its head
/// continues the branch, the branch moves there; files, index and uncommitted work stay as they are. The agent is gone.
///
/// # Errors
/// [`GitError::Astray`] when the head does not continue the branch, [`GitError::BranchMissing`],
/// [`GitError::BranchInTheWay`] when another worktree has the branch, [`GitError::OperationInProgress`].
pub fn adopt_head(repository: &Repository, worktree: &Path, branch: &str) -> Result<CommitId> {
    refuse_operation(worktree)?;
    holding_worktree(worktree, |lock| {
        let (head, tip) = head_that_continues(repository, worktree, branch)?;
        if head.branch.as_deref() == Some(branch) {
            return Ok(head.commit);
        }
        remove_dead_locks(worktree)?;
        if let Some(place) = repository.where_checked_out(branch)? {
            return Err(GitError::BranchInTheWay { branch: branch.to_owned(), place: Some(place) });
        }
        durable::objects(repository, &head.commit, [&tip])?;
        move_branch(repository, branch, &tip, &head.commit)?;
        let full = branch_reference(branch);
        let git = Git::new(worktree).without_hooks().stdin(lock);
        git.args(["symbolic-ref", "-m", "lanewright: back to the branch", "HEAD", &full]).run()?;
        Ok(head.commit)
    })
}

/// The head of `worktree`, and the tip of `branch`, which is checked out there or continued by the head.
///
/// # Errors
/// [`GitError::Astray`] when the head does not continue the branch, [`GitError::BranchMissing`].
pub fn head_that_continues(repository: &Repository, worktree: &Path, branch: &str) -> Result<(Head, CommitId)> {
    let head = repository.head_at(worktree)?;
    if head.branch.as_deref() == Some(branch) {
        let tip = head.commit.clone();
        return Ok((head, tip));
    }
    let tip = repository.branch_commit(branch)?.ok_or_else(|| GitError::BranchMissing { branch: branch.to_owned() })?;
    match repository.is_ancestor(&tip, &head.commit)? {
        true => Ok((head, tip)),
        false => Err(head.astray(worktree, branch)),
    }
}

/// Brings `worktree` up to `to`, after its `branch` was moved there from `from` by a merge made elsewhere. Untracked
/// files stay; one that is in the way is an error of git's, and no file is touched.
///
/// # Errors
/// [`GitError::Dirty`] when tracked files are changed, [`GitError::Astray`] when another branch is checked out,
/// [`GitError::OperationInProgress`].
pub fn set_worktree_to(
    repository: &Repository,
    worktree: &Path,
    branch: &str,
    [from, to]: [&CommitId; 2],
) -> Result<()> {
    refuse_operation(worktree)?;
    holding_worktree(worktree, |lock| {
        let head = repository.head_at(worktree)?;
        if head.branch.as_deref() != Some(branch) || head.commit != *to {
            return Err(head.astray(worktree, branch));
        }
        let intent = git_directory(worktree)?.join(UPDATE);
        let half_done = regular_file::read(&intent).is_ok_and(|target| target == to.as_str().as_bytes());
        if half_done {
            remove_dead_locks(worktree)?;
            Git::new(worktree).stdin(lock).args(["read-tree", "--reset", "-u", to.as_str()]).run()?;
        } else {
            let paths = differing(repository, worktree, from)?;
            if !paths.is_empty() {
                return match differing(repository, worktree, to)?.is_empty() {
                    true => Ok(atomic::remove_durably(&intent)?),
                    false => Err(GitError::Dirty { path: worktree.to_owned(), paths }),
                };
            }
            atomic::write(&intent, to.as_str().as_bytes())?;
            let git = Git::new(worktree).stdin(lock).args(["read-tree", "-m", "-u", from.as_str(), to.as_str()]);
            if let Err(error) = git.run() {
                if is_refusal(&error) {
                    atomic::remove_durably(&intent)?;
                }
                return Err(error.into());
            }
        }
        Ok(atomic::remove_durably(&intent)?)
    })
}

/// Whether git found a file in the way before it changed anything.
fn is_refusal(error: &ProgramError) -> bool {
    let words = ["would be overwritten by merge", "would be removed by merge", "would lose untracked files"];
    matches!(error, ProgramError::Failed { stderr, .. } if words.iter().any(|words| stderr.contains(words)))
}

/// Forgets that [`set_worktree_to`] was cut short in `worktree`, because all of it was written again.
pub(crate) fn forget_update(worktree: &Path) -> Result<()> {
    Ok(atomic::remove_durably(&git_directory(worktree)?.join(UPDATE))?)
}

/// Whether [`set_worktree_to`] was cut short in `worktree`, by a crash or a full disk; the next one finishes it.
pub fn is_half_updated(worktree: &Path) -> Result<bool> {
    Ok(git_directory(worktree)?.join(UPDATE).exists())
}

/// The tracked paths whose staged or, where nothing is staged, present content is not that of `commit`.
fn differing(repository: &Repository, worktree: &Path, commit: &CommitId) -> Result<Vec<String>> {
    let staged = repository.staged(worktree, None, commit)?;
    if !staged.is_empty() {
        return Ok(staged.iter().map(|it| path_text(&it.path)).collect());
    }
    let present = ["diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty", commit.as_str()];
    Ok(Git::new(worktree).reading_only().args(present).paths()?)
}

impl Repository {
    /// Checks `commit` out into a new worktree at `directory`, on no branch. It is the user's from then on.
    pub fn create_detached_worktree(&self, directory: &Path, commit: &CommitId) -> Result<()> {
        let git = self.git().without_hooks().args(["worktree", "add", "--quiet", "--detach"]);
        git.arg(directory).arg(commit.as_str()).run()?;
        Ok(())
    }
}
