//! How a lane's work comes onto the integration branch: as a merge commit, as one commit, or as the lane's own commits.
//!
//! Whatever the style, the files are those of a merge. Commits that a rebase cannot put one after the other with that
//! result, for example because a merge among them resolved a conflict, become one commit instead.

use std::collections::BTreeSet;

use lanewright_model::{CommitId, MergeStyle};

use crate::command::Result;
use crate::fast::durable;
use crate::history::merge::{Merged, merged_files, merged_tree, seal};
use crate::history::own_commits::{OwnCommit, own_commits};
use crate::history::{Author, Reserved, make_commit_of, message as with_trailers, with_reserved};
use crate::repo::Repository;

#[derive(Debug, Clone, Copy)]
pub struct Integration<'a> {
    pub style: MergeStyle,
    /// Where the integration branch is.
    pub onto: &'a CommitId,
    pub head: &'a CommitId,
    pub merge_message: &'a str,
    pub squash_message: &'a str,
    /// `Run` and `Lane`, with their values. Every commit of the lane on the branch has them.
    pub trailers: &'a [(&'a str, &'a str)],
    /// What the commit that completes the lane has besides. A fast-forward leaves the lane's commits as they are, without.
    pub last_trailers: &'a [(&'a str, &'a str)],
    /// Files that the lane does not decide.
    pub reserved: &'a [Reserved],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Integrated {
    /// The branch has all that the lane would change.
    AlreadyIn,
    /// A commit that continues `onto`; durable.
    Done {
        commit: CommitId,
        /// The lane's own commits could not be put one after the other.
        squashed_instead: bool,
    },
    /// The paths that both changed.
    Conflict(Vec<String>),
}

/// Makes the commits that bring a lane's work onto the integration branch. No ref moves.
pub fn integrate(repository: &Repository, integration: &Integration<'_>) -> Result<Integrated> {
    let &Integration { style, onto, head, merge_message, trailers, last_trailers, reserved, .. } = integration;
    let tree = match merged_files(repository, onto, head, reserved)? {
        Merged::AlreadyIn => return Ok(Integrated::AlreadyIn),
        Merged::Conflict(paths) => return Ok(Integrated::Conflict(paths)),
        Merged::Done(tree) => tree,
    };
    let done = |commit| Ok(Integrated::Done { commit, squashed_instead: false });
    if style == MergeStyle::Merge {
        let message = with_trailers(merge_message, &[trailers, last_trailers].concat());
        return done(seal(repository, &tree, &[onto, head], &message)?);
    }
    if tree == repository.tree_of(onto)? {
        return Ok(Integrated::AlreadyIn);
    }
    if style == MergeStyle::Squash {
        return done(squash(repository, integration, &tree)?);
    }
    match as_linear_commits(repository, integration, &tree)? {
        Some(commit) => done(commit),
        None => Ok(Integrated::Done { commit: squash(repository, integration, &tree)?, squashed_instead: true }),
    }
}

/// What a commit of a lane says of which runner made it, where that is another one than the plan says.
const RUNNER: &str = "Runner";

/// One commit with all that the lane changed, in the name of its author; of several in the committer's, naming them.
fn squash(repository: &Repository, integration: &Integration<'_>, tree: &str) -> Result<CommitId> {
    let &Integration { onto, head, squash_message, trailers, last_trailers, .. } = integration;
    let (mut authors, mut runners): (Vec<Author>, BTreeSet<String>) = Default::default();
    for commit in own_commits(repository, onto, head)?.into_iter().filter(|commit| !commit.is_merge()) {
        runners.extend(commit.values(RUNNER).map(str::to_owned));
        let author = Author { date: None, ..commit.author };
        if !authors.contains(&author) {
            authors.push(author);
        }
    }
    let committer = repository.configured_identity();
    let others =
        authors.iter().filter(|author| committer.as_ref() != Some(&(author.name.clone(), author.email.clone())));
    let others: Vec<String> = others.map(|author| format!("{} <{}>", author.name, author.email)).collect();
    let named: Vec<(&str, &str)> = match authors.len() {
        0 | 1 => Vec::new(),
        _ => others.iter().map(|author| ("Co-authored-by", author.as_str())).collect(),
    };
    let runners: Vec<(&str, &str)> = runners.iter().map(|runner| (RUNNER, runner.as_str())).collect();
    let message = with_trailers(squash_message, &[named.as_slice(), &runners, trailers, last_trailers].concat());
    let commit = match authors.as_slice() {
        [author] => make_commit_of(repository, author, tree, onto, &message)?,
        _ => return seal(repository, tree, &[onto], &message),
    };
    durable::objects(repository, &commit, [onto])?;
    Ok(commit)
}

/// The lane's own commits on top of the branch, as they are where they continue it; `None`: that is not possible.
fn as_linear_commits(repository: &Repository, integration: &Integration<'_>, tree: &str) -> Result<Option<CommitId>> {
    let &Integration { style, onto, head, trailers, .. } = integration;
    let tip = without_needless_merges(repository, onto, head)?;
    let commits = own_commits(repository, onto, &tip)?;
    let continues = repository.is_ancestor(onto, &tip)? && repository.tree_of(&tip)? == tree;
    let fits = |commit: &OwnCommit| commit.names(trailers) && (style == MergeStyle::Ff || !commit.is_merge());
    let made = match continues && commits.iter().all(fits) {
        true if style == MergeStyle::Ff => Some(tip),
        true => Some(completed(repository, integration, tip)?),
        false => match replayed(repository, integration, &commits)? {
            Some(made) => Some(completed(repository, integration, made)?),
            None => None,
        },
    };
    let Some(made) = made.filter(|made| repository.tree_of(made).is_ok_and(|made| made == tree)) else {
        return Ok(None);
    };
    durable::objects(repository, &made, [onto])?;
    Ok(Some(made))
}

/// `head` without merges at its end that only say that a branch was fast-forwarded.
fn without_needless_merges(repository: &Repository, onto: &CommitId, head: &CommitId) -> Result<CommitId> {
    let mut tip = head.clone();
    while let Some(last) = own_commits(repository, onto, &tip)?.pop()
        && let [first, second] = last.parents.as_slice()
        && repository.is_ancestor(first, second)?
        && repository.tree_of(second)? == repository.tree_of(&tip)?
    {
        tip = second.clone();
    }
    Ok(tip)
}

/// The last of the commits onto the branch, with the trailers of the one that completes the lane.
fn completed(repository: &Repository, integration: &Integration<'_>, made: CommitId) -> Result<CommitId> {
    let &Integration { onto, last_trailers, .. } = integration;
    let last = own_commits(repository, onto, &made)?.pop();
    let Some((last, [parent])) = last.as_ref().map(|last| (last, last.parents.as_slice())) else { return Ok(made) };
    let message = last.message_naming(repository, last_trailers)?;
    make_commit_of(repository, &last.author, &repository.tree_of(&made)?, parent, &message)
}

/// Puts the commits that are no merges onto the branch, one after the other; `None`: one of them conflicts.
fn replayed(repository: &Repository, integration: &Integration<'_>, commits: &[OwnCommit]) -> Result<Option<CommitId>> {
    let &Integration { onto, trailers, reserved, .. } = integration;
    let mut tip = onto.clone();
    for commit in commits.iter().filter(|commit| !commit.is_merge()) {
        let [parent] = commit.parents.as_slice() else { return Ok(None) };
        let merged = merged_tree(repository, Some(parent), &tip, &commit.id)?;
        if !merged.conflicts.is_empty() {
            return Ok(None);
        }
        let tree = match reserved {
            [] => merged.tree,
            reserved => with_reserved(repository, &merged.tree, &tip, reserved)?,
        };
        if tree != repository.tree_of(&tip)? {
            let message = commit.message_naming(repository, trailers)?;
            tip = make_commit_of(repository, &commit.author, &tree, &tip, &message)?;
        }
    }
    Ok(Some(tip))
}
