//! Merges that were published and whose work is no longer in the branch.

use std::collections::BTreeSet;

use lanewright_model::CommitId;

use crate::command::{Result, path_text};
use crate::repo::{Repository, commit_id};

/// How the work of a merge left a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// A commit that no run made has the files as they were before the merge.
    By(CommitId),
    /// The branch no longer holds the merge, and has the files as they were before it.
    Rewritten,
}

/// Whether the work of the merge `commit`, which was made on top of `onto`, is gone from `tip`. What later merges and
/// rollbacks change, which name their lane in a trailer, is no loss; nor is work that a rebase or an amend has kept.
pub fn undone(repository: &Repository, [onto, commit]: [&CommitId; 2], tip: &CommitId) -> Result<Option<Undone>> {
    let differing = |one: &CommitId, other: &CommitId| -> Result<BTreeSet<String>> {
        Ok(repository.changed_paths(one, other)?.into_iter().collect())
    };
    let (brought, changed) = (differing(onto, commit)?, differing(onto, tip)?);
    if brought.is_subset(&changed) || !brought.is_subset(&differing(commit, tip)?) {
        return Ok(None);
    }
    if !repository.is_ancestor(commit, tip)? {
        return Ok(brought.is_disjoint(&changed).then_some(Undone::Rewritten));
    }
    for (suspect, parent) in made_by_others(repository, commit, tip)? {
        let (lost_before, gone_after) = (differing(commit, &parent)?, differing(onto, &suspect)?);
        let mut left = brought.difference(&lost_before).peekable();
        if left.peek().is_some() && left.all(|path| !gone_after.contains(path)) {
            return Ok(Some(Undone::By(suspect)));
        }
    }
    Ok(None)
}

/// The commits on the first-parent way from `since` to `tip` that name no lane, each with its first parent.
fn made_by_others(repository: &Repository, since: &CommitId, tip: &CommitId) -> Result<Vec<(CommitId, CommitId)>> {
    let format = "--format=%H %P%x09%(trailers:key=Lane,valueonly,separator=%x2C)";
    let git = repository.git().args(["log", "--first-parent", "--no-show-signature", format]);
    let listing = path_text(&git.arg(format!("{since}..{tip}")).run()?);
    let foreign = listing.lines().filter_map(|line| line.strip_suffix('\t'));
    let pairs = foreign.filter_map(|line| {
        let mut names = line.split(' ');
        Some((names.next()?, names.next()?))
    });
    pairs.map(|(one, parent)| Ok((commit_id(one.as_bytes())?, commit_id(parent.as_bytes())?))).collect()
}
