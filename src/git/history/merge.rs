//! Merges in git's object store: no worktree, nothing to clean up, and as many at once as there are lanes.

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, nul_separated, path_text};
use crate::git::fast::durable;
use crate::git::fast::libgit2;
use crate::git::fast::merge_by_name::plain_merge;
use crate::git::history::commit::message as with_trailers;
use crate::git::history::identity::make_commit;
use crate::git::history::reserved::{Reserved, with_reserved};
use crate::git::repo::repository::Repository;
use crate::model::CommitId;

/// What came of a merge. No ref was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// Ours holds theirs already.
    AlreadyIn,
    /// The merge, a commit with two parents; durable.
    Done(CommitId),
    /// The paths that both changed.
    Conflict(Vec<String>),
}

/// Merges `theirs` into `ours`, always as a merge commit, so that each lane's and agent's work can be told and undone.
/// Theirs has no say in `reserved` files.
///
/// # Errors
/// [`GitError::Unrelated`], or what git says.
pub fn merge(
    repository: &Repository,
    ours: &CommitId,
    theirs: &CommitId,
    message: &str,
    trailers: &[(&str, &str)],
    reserved: &[Reserved],
) -> Result<Merge, GitError> {
    if repository.is_ancestor(theirs, ours)? {
        return Ok(Merge::AlreadyIn);
    }
    let merged = merged_tree(repository, None, ours, theirs)?;
    let is_reserved = |path: &String| reserved.iter().any(|file| file.path == *path);
    let conflicts: Vec<String> = merged.conflicts.into_iter().filter(|path| !is_reserved(path)).collect();
    if !conflicts.is_empty() {
        return Ok(Merge::Conflict(conflicts));
    }
    let tree = if reserved.is_empty() { merged.tree } else { with_reserved(repository, &merged.tree, ours, reserved)? };
    seal(repository, &tree, &[ours, theirs], &with_trailers(message, trailers)).map(Merge::Done)
}

/// What came of undoing a merge. No ref was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Revert {
    /// The tip does not hold the merge, or holds it undone, by this commit where one says so.
    NothingToUndo(Option<CommitId>),
    /// The commit that undoes it, on top of the tip; durable.
    Done(CommitId),
    /// The paths that were changed again since.
    Conflict(Vec<String>),
}

/// Undoes `merge`, which brought something onto `onto`, on top of `tip`; what came after it stays.
pub(crate) fn revert(
    repository: &Repository,
    tip: &CommitId,
    merge: &CommitId,
    onto: &CommitId,
    trailers: &[(&str, &str)],
) -> Result<Revert, GitError> {
    if !repository.is_ancestor(merge, tip)? {
        return Ok(Revert::NothingToUndo(None));
    }
    if let Some(commit) = undone_by(repository, merge, tip)? {
        return Ok(Revert::NothingToUndo(Some(commit)));
    }
    let git = || Git::new(repository.main_worktree());
    let merged = merged_tree(repository, Some(merge), tip, onto)?;
    match merged.tree {
        _ if !merged.conflicts.is_empty() => Ok(Revert::Conflict(merged.conflicts)),
        // Somebody took it out by hand.
        tree if git().arg("rev-parse").arg(format!("{tip}^{{tree}}")).line()? == tree => {
            Ok(Revert::NothingToUndo(None))
        }
        tree => {
            let subject = git().args(["show", "--no-patch", "--format=%s", merge.as_str()]).line()?;
            let message = format!("Revert \"{subject}\"\n\n{}{merge}, reversing\nchanges made to {onto}.\n", UNDOES);
            seal(repository, &tree, &[tip], &with_trailers(&message, trailers)).map(Revert::Done)
        }
    }
}

/// How git itself begins the message of a commit that undoes another.
const UNDOES: &str = "This reverts commit ";

/// The commit up to `tip` that undoes `commit` and is not undone itself: ours, or one that a person made.
fn undone_by(repository: &Repository, commit: &CommitId, tip: &CommitId) -> Result<Option<CommitId>, GitError> {
    let git = Git::new(repository.main_worktree()).args(["rev-list", "--fixed-strings"]);
    let git = git.arg(format!("--grep={UNDOES}{commit}")).arg(format!("{commit}..{tip}"));
    let listing = path_text(&git.run()?);
    for found in listing.lines().filter_map(|line| CommitId::new(line).ok()) {
        if undone_by(repository, &found, tip)?.is_none() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

struct MergedTree {
    /// With marks in the files that conflict.
    tree: String,
    /// The paths that both changed.
    conflicts: Vec<String>,
}

/// Merges the trees of two commits, seen from `base` or else from where they parted.
fn merged_tree(
    repository: &Repository,
    base: Option<&CommitId>,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<MergedTree, GitError> {
    if repository.may_write_in_process()
        && let Some(tree) = repository.in_process(|git| without_contents(git, base, ours, theirs)).flatten()
    {
        return Ok(MergedTree { tree, conflicts: Vec::new() });
    }
    // Attributes such as `merge=union` are those of the branch, not of whatever the main worktree has checked out.
    let attributes = format!("--attr-source={ours}");
    let git = Git::new(repository.main_worktree()).args([&attributes, "merge-tree", "--write-tree", "-z"]);
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
        _ => Err(git.failure(&output).into()),
    }
}

/// The merge where the trees' names alone tell it.
fn without_contents(
    git: &git2::Repository,
    base: Option<&CommitId>,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<Option<String>, git2::Error> {
    let (ours, theirs) = (libgit2::oid(ours)?, libgit2::oid(theirs)?);
    let base = match base {
        Some(base) => libgit2::oid(base)?,
        None => match *git.merge_bases(ours, theirs)? {
            [base] => base,
            _ => return Ok(None),
        },
    };
    let tree = |commit| git.find_commit(commit).map(|commit| commit.tree_id());
    Ok(plain_merge(git, tree(base)?, tree(ours)?, tree(theirs)?)?.map(|tree| tree.to_string()))
}

fn seal(repository: &Repository, tree: &str, parents: &[&CommitId], message: &str) -> Result<CommitId, GitError> {
    let commit = make_commit(repository, tree, parents, message)?;
    durable::objects(repository, &commit, &[parents[0].clone()])?;
    Ok(commit)
}
