//! Branches that were deleted, that a worktree left, or whose head git has lost. Called when an action finds one so, and by a
//! resume, a rollback and the doctor for all of a run.

use std::path::Path;

use lanewright_files::{atomic, regular_file};
use lanewright_model::CommitId;
use lanewright_model::event::Worktree;

use crate::command::{Git, GitError, Result};
use crate::fast::durable;
use crate::fast::libgit2::RefUpdate;
use crate::history::{make_commit, move_branch, set_reference};
use crate::query::Head;
use crate::repo::{Repository, branch_reference, commit_id, git_directory};
use crate::snapshot::{Extent, Start, tree_of};
use crate::worktree::{Checkout, Holder, Mode, Pool, adopt_head};

/// What a branch is to hold whose head is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuilt {
    /// What it holds: only what it leads to is needed.
    Head,
    Files,
    Snapshot(CommitId),
    /// No more than what it is put on top of.
    Nothing,
}

/// Whether `worktree` has `branch` checked out, whatever that leads to.
pub fn is_on_branch(worktree: &Path, branch: &str) -> bool {
    Head::branch_of(worktree).is_ok_and(|on| on.as_deref() == Some(branch))
}

/// Whether `worktree` has what its branch had: it may have been opened again after objects were lost, which git leaves half
/// done. Without `may_lack`, no file that was checked out is missing, nor any of `paths`.
pub fn is_checked_out<'a>(worktree: &Path, may_lack: bool, mut paths: impl Iterator<Item = &'a str>) -> Result<bool> {
    if !git_directory(worktree)?.join("index").exists() {
        return Ok(false);
    }
    let deleted = Git::new(worktree).reading_only().args(["ls-files", "-z", "--deleted"]).run()?;
    Ok((may_lack || deleted.is_empty()) && paths.all(|path| worktree.join(path).symlink_metadata().is_ok()))
}

impl Repository {
    /// Whether the files of `worktree` are not just those of `commit`.
    pub fn has_files_beyond(&self, worktree: &Path, commit: &CommitId) -> Result<bool> {
        Ok(tree_of(self, worktree, Start::Paths, Extent::Work)? != self.tree_of(commit)?)
    }

    /// Moves `branch` from `tip` to a commit on top of `onto`, and returns that. The files of `worktree`, which has it
    /// checked out, stay as they are. Asked again, it makes the same of what it finds.
    pub fn rebuild_branch(
        &self,
        branch: &str,
        worktree: Option<&Path>,
        [tip, onto]: [&CommitId; 2],
        content: &Rebuilt,
        message: &str,
    ) -> Result<CommitId> {
        let tree = match (content, worktree) {
            (Rebuilt::Head, _) => return Ok(tip.clone()),
            (Rebuilt::Files, Some(worktree)) => tree_of(self, worktree, Start::Paths, Extent::Work)?,
            (Rebuilt::Snapshot(commit), _) => self.tree_of(commit)?,
            (Rebuilt::Files | Rebuilt::Nothing, _) => self.tree_of(onto)?,
        };
        let head = match tree == self.tree_of(onto)? {
            true => onto.clone(),
            false => make_commit(self, &tree, &[onto], message)?,
        };
        durable::objects(self, &head, [onto])?;
        move_branch(self, branch, tip, &head)?;
        worktree.map_or(Ok(()), |worktree| self.make_index(worktree))?;
        Ok(head)
    }

    /// Makes `branch` again, at `commit`, which exists. One that exists meanwhile is as good.
    pub fn make_branch(&self, branch: &str, commit: &CommitId) -> Result<()> {
        let name = branch_reference(branch);
        let file = self.common_dir().join(&name);
        // Such as a power cut leaves of a ref that was being written; git changes no ref that it cannot read.
        if let Ok(held) = regular_file::read(&file) {
            let lost = commit_id(&held).is_ok_and(|commit| self.has_commit(&commit).is_ok_and(|found| !found));
            if lost || !names_something(&held) {
                atomic::remove_durably(&file)?;
            }
        }
        let update = RefUpdate { name: &name, old: None, to: commit, why: "lanewright: doctor" };
        set_reference(self, self.main_worktree(), &update).map(drop)
    }

    /// Puts what `head`, at which `branch` and its worktree are, holds on top of `onto`. A commit in a worktree whose branch
    /// was deleted begins a history of its own, which cannot be merged.
    pub fn graft(&self, branch: &str, [head, onto]: [&CommitId; 2], message: &str) -> Result<CommitId> {
        let commit = make_commit(self, &self.tree_of(head)?, &[onto], message)?;
        durable::objects(self, &commit, [onto])?;
        move_branch(self, branch, head, &commit)?;
        Ok(commit)
    }
}

impl Pool {
    /// Puts the worktree of `holder` back onto its branch. Where its head continues the branch, the branch moves there;
    /// else nothing in it may be uncommitted, and some ref must hold its head.
    pub fn back_to_branch(&self, holder: &Holder, worktree: &Worktree) -> Result<()> {
        let path = &worktree.path;
        match adopt_head(&self.repository, path, &worktree.branch) {
            // The pool refuses to leave what is uncommitted.
            Err(GitError::Astray { head, .. }) => {
                if !self.repository.is_in_any_reference(&head)? {
                    return Err(GitError::Unmerged { place: path.display().to_string(), head });
                }
                let branch = Some(worktree.branch.clone());
                self.open(holder, &Checkout { branch, start: head, mode: Mode::ExistingBranch, adopt: true })?;
                Ok(())
            }
            adopted => adopted.map(drop),
        }
    }
}

/// Whether the file of a ref names an object or another ref.
pub(super) fn names_something(held: &[u8]) -> bool {
    let held = held.trim_ascii();
    held.starts_with(b"ref: ") || held.len() >= 40 && held.iter().all(u8::is_ascii_hexdigit)
}
