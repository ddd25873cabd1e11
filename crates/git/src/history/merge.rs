//! Merges in git's object store: no worktree, nothing to clean up, and as many at once as there are lanes.

use lanewright_model::CommitId;

use crate::command::{GitError, Result, nul_separated, path_text};
use crate::fast::libgit2::{self, merges_into_nothing};
use crate::fast::{durable, merge_by_name, merge_contents};
use crate::history::{Reserved, make_commit, make_own_commit, message as with_trailers, with_reserved};
use crate::repo::{Repository, commit_ids};

/// What came of merging theirs into ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged<T> {
    /// Ours holds theirs already.
    AlreadyIn,
    Done(T),
    /// The paths that both changed.
    Conflict(Vec<String>),
}

/// A durable commit with two parents.
pub type Merge = Merged<CommitId>;

/// Merges `theirs` into `ours`, always as a merge commit, so that each lane's and agent's work can be told and undone.
/// Theirs does not decide `reserved` files.
///
/// # Errors
/// [`GitError::Unrelated`].
pub fn merge(
    repository: &Repository,
    ours: &CommitId,
    theirs: &CommitId,
    message: &str,
    trailers: &[(&str, &str)],
    reserved: &[Reserved],
) -> Result<Merge> {
    match merged_files(repository, ours, theirs, reserved)? {
        Merged::AlreadyIn => Ok(Merge::AlreadyIn),
        Merged::Conflict(paths) => Ok(Merge::Conflict(paths)),
        Merged::Done(tree) => {
            seal(repository, &tree, &[ours, theirs], &with_trailers(message, trailers)).map(Merge::Done)
        }
    }
}

/// The merge of `theirs` into `ours` as a commit to be checked out and looked at, and not to be kept: it is not signed, and no
/// ref leads to it. `None`: there is nothing to merge, or more than `reserved` files conflict.
pub fn try_merge(
    repository: &Repository,
    [ours, theirs]: [&CommitId; 2],
    reserved: &[Reserved],
) -> Result<Option<CommitId>> {
    match merged_files(repository, ours, theirs, reserved)? {
        Merged::Done(tree) => make_own_commit(repository, &tree, &[ours, theirs], "A merge to be completed").map(Some),
        Merged::AlreadyIn | Merged::Conflict(_) => Ok(None),
    }
}

impl Repository {
    /// Whether `tip` has the work of `commit`: the commit itself, or its changes by other commits, as after a squash or a
    /// rebase on a forge. A commit that changes nothing is there only as itself, and so is every commit where git has to be
    /// asked: a merge driver of the user's may leave out what others have changed.
    pub fn has_work_of(&self, tip: &CommitId, commit: &CommitId) -> Result<bool> {
        if self.is_ancestor(commit, tip)? {
            return Ok(true);
        }
        Ok(merges_into_nothing(self, tip, commit).unwrap_or(false))
    }
}

/// The files of a merge, as a tree.
pub(crate) fn merged_files(
    repository: &Repository,
    ours: &CommitId,
    theirs: &CommitId,
    reserved: &[Reserved],
) -> Result<Merged<String>> {
    if repository.is_ancestor(theirs, ours)? {
        return Ok(Merged::AlreadyIn);
    }
    let merged = merged_tree(repository, None, ours, theirs)?;
    let conflicts = without_reserved(merged.conflicts, reserved);
    if !conflicts.is_empty() {
        return Ok(Merged::Conflict(conflicts));
    }
    match reserved {
        [] => Ok(Merged::Done(merged.tree)),
        reserved => with_reserved(repository, &merged.tree, ours, reserved).map(Merged::Done),
    }
}

fn without_reserved(paths: Vec<String>, reserved: &[Reserved]) -> Vec<String> {
    paths.into_iter().filter(|path| reserved.iter().all(|file| file.path != *path)).collect()
}

/// What came of undoing a merge. No ref was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revert {
    /// The tip does not hold the merge, or holds it undone, by this commit where one says so.
    NothingToUndo(Option<CommitId>),
    /// The commit that undoes it, on top of the tip; durable.
    Done(CommitId),
    /// The paths that were changed again since.
    Conflict(Vec<String>),
}

/// Undoes `merge`, which brought something onto `onto`, on top of `tip`; what came after it stays. It does not decide
/// `reserved` files.
pub fn revert(
    repository: &Repository,
    tip: &CommitId,
    merge: &CommitId,
    onto: &CommitId,
    trailers: &[(&str, &str)],
    reserved: &[Reserved],
) -> Result<Revert> {
    if !repository.is_ancestor(merge, tip)? {
        return Ok(Revert::NothingToUndo(None));
    }
    if let Some(commit) = undone_by(repository, merge, tip)? {
        return Ok(Revert::NothingToUndo(Some(commit)));
    }
    let merged = merged_tree(repository, Some(merge), tip, onto)?;
    let conflicts = without_reserved(merged.conflicts, reserved);
    if !conflicts.is_empty() {
        return Ok(Revert::Conflict(conflicts));
    }
    let tree = match reserved {
        [] => merged.tree,
        reserved => with_reserved(repository, &merged.tree, tip, reserved)?,
    };
    match tree {
        // The user took it out by hand.
        tree if repository.tree_of(tip)? == tree => Ok(Revert::NothingToUndo(None)),
        tree => {
            let subject = repository.subject_of(merge)?;
            let message = format!("Revert \"{subject}\"\n\n{}{merge}, reversing\nchanges made to {onto}.\n", UNDOES);
            seal(repository, &tree, &[tip], &with_trailers(&message, trailers)).map(Revert::Done)
        }
    }
}

/// Makes what `commit` changed since `base` again on top of `onto`, which has it undone, as a commit that continues `before`
/// and nothing else: with `commit` in its history, git would take that work for merged. Durable; no ref leads to it.
///
/// # Errors
/// What git returns; the paths in conflict are in the result.
pub fn make_again(
    repository: &Repository,
    [base, onto, commit]: [&CommitId; 3],
    before: &CommitId,
    message: &str,
) -> Result<Result<CommitId, Vec<String>>> {
    let merged = merged_tree(repository, Some(base), onto, commit)?;
    if !merged.conflicts.is_empty() {
        return Ok(Err(merged.conflicts));
    }
    seal(repository, &merged.tree, &[before], message).map(Ok)
}

/// How git itself begins the message of a commit that undoes another.
pub(crate) const UNDOES: &str = "This reverts commit ";

/// The commit up to `tip` that undoes `commit` and is not undone itself: Lanewright's, or one of the user's.
fn undone_by(repository: &Repository, commit: &CommitId, tip: &CommitId) -> Result<Option<CommitId>> {
    let git = repository.git().args(["rev-list", "--fixed-strings"]);
    let git = git.arg(format!("--grep={UNDOES}{commit}")).arg(format!("{commit}..{tip}"));
    for found in commit_ids(&git.run()?)? {
        if undone_by(repository, &found, tip)?.is_none() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

pub(crate) struct MergedTree {
    /// With marks in the files that conflict.
    pub(crate) tree: String,
    /// The paths that both changed.
    pub(crate) conflicts: Vec<String>,
}

/// Merges the trees of two commits, seen from `base` or else from where they parted.
pub(crate) fn merged_tree(
    repository: &Repository,
    base: Option<&CommitId>,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<MergedTree> {
    if let Some(tree) = merge_by_name::merged_tree(repository, base, ours, theirs) {
        return Ok(MergedTree { tree, conflicts: Vec::new() });
    }
    // Attributes such as `merge=union` are those of the branch, not of whatever the main worktree has checked out.
    let attributes = format!("--attr-source={ours}");
    let git = repository.git().args([&attributes, "merge-tree", "--write-tree", "-z"]);
    let git = git.args(base.map(|base| format!("--merge-base={base}")));
    let git = git.args(["--name-only", "--no-messages", ours.as_str(), theirs.as_str()]);
    let output = git.attempt()?;
    let mut parts = nul_separated(&output.stdout).map(path_text);
    match (output.status.code(), parts.next()) {
        (Some(0), Some(tree)) => Ok(MergedTree { tree, conflicts: Vec::new() }),
        (Some(1), Some(tree)) => Ok(MergedTree { tree, conflicts: parts.collect() }),
        _ if String::from_utf8_lossy(&output.stderr).contains("unrelated histories") => {
            Err(GitError::Unrelated { ours: ours.clone(), theirs: theirs.clone() })
        }
        _ if String::from_utf8_lossy(&output.stderr).contains("unknown option: --attr-source") => {
            if base.is_none() && libgit2::merge_base(repository, ours, theirs) == Some(None) {
                return Err(GitError::Unrelated { ours: ours.clone(), theirs: theirs.clone() });
            }
            let merged = merge_contents::merged_tree(repository, base, ours, theirs);
            let (tree, conflicts) = merged.ok_or_else(|| git.failure(&output))?;
            Ok(MergedTree { tree, conflicts })
        }
        _ => Err(git.failure(&output).into()),
    }
}

pub(crate) fn seal(repository: &Repository, tree: &str, parents: &[&CommitId], message: &str) -> Result<CommitId> {
    let commit = make_commit(repository, tree, parents, message)?;
    durable::objects(repository, &commit, parents.first().copied())?;
    Ok(commit)
}
