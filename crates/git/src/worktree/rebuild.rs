//! Branches whose head is lost, made again from what is left.

use std::path::Path;

use lanewright_model::CommitId;

use crate::command::{Git, Result};
use crate::fast::durable;
use crate::history::{make_commit, move_branch};
use crate::query::Head;
use crate::repo::{Repository, git_directory};
use crate::snapshot::{Start, tree_of};

/// What a branch is to hold whose head is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuilt {
    /// What it holds: only what it leads to is needed.
    Head,
    /// Every file of its worktree.
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
        Ok(tree_of(worktree, Start::Paths)? != self.tree_of(commit)?)
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
            (Rebuilt::Files, Some(worktree)) => tree_of(worktree, Start::Paths)?,
            (Rebuilt::Snapshot(commit), _) => self.tree_of(commit)?,
            (Rebuilt::Files | Rebuilt::Nothing, _) => self.tree_of(onto)?,
        };
        let head = match tree == self.tree_of(onto)? {
            true => onto.clone(),
            false => make_commit(self, worktree.unwrap_or(self.main_worktree()), &tree, &[onto], message)?,
        };
        durable::objects(self, &head, [onto])?;
        move_branch(self, branch, tip, &head)?;
        worktree.map_or(Ok(()), |worktree| self.make_index(worktree))?;
        Ok(head)
    }
}
