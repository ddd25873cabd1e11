//! Merges without contents: where no file was changed on both sides, the merge follows from the names in the trees.
//!
//! Lanes mostly keep to their own files, so most merges are of this kind, and take neither a process nor a look at any
//! file. Everything else is left to the git program: contents changed on both sides, a file in a directory's place,
//! and whatever may be a rename that concerns both sides. A rename on one side is a file that is gone and one that is
//! new; it concerns the other side only if that changed the file or its directory (which is no plain merge), or renamed
//! it too (both have it gone, which is left to git for that reason).

use std::collections::BTreeSet;

use git2::{Oid, Repository, Tree};
use lanewright_model::CommitId;

use crate::fast::libgit2::oid;
use crate::repo::repository;

type Entry = Option<(Oid, i32)>;

const TREE: i32 = 0o040_000;

/// The tree in which two commits are merged, seen from `base` or else from where they parted; written and not yet durable.
/// `None`: it takes more than names.
pub(crate) fn merged_tree(
    repository: &repository::Repository,
    base: Option<&CommitId>,
    ours: &CommitId,
    theirs: &CommitId,
) -> Option<String> {
    let merged = repository.write_in_process(|git| {
        let (ours, theirs) = (oid(ours)?, oid(theirs)?);
        let base = match base {
            Some(base) => oid(base)?,
            None => match *git.merge_bases(ours, theirs)? {
                [base] => base,
                _ => return Ok(None),
            },
        };
        let tree = |commit| git.find_commit(commit).map(|commit| commit.tree_id());
        Ok(plain_merge(git, tree(base)?, tree(ours)?, tree(theirs)?)?.map(|tree| tree.to_string()))
    });
    merged.flatten()
}

fn plain_merge(git: &Repository, base: Oid, ours: Oid, theirs: Oid) -> Result<Option<Oid>, git2::Error> {
    if base == ours || ours == theirs {
        return Ok(Some(theirs));
    }
    if base == theirs {
        return Ok(Some(ours));
    }
    let (base, ours, theirs) = (Some(git.find_tree(base)?), git.find_tree(ours)?, git.find_tree(theirs)?);
    merge_trees(git, base.as_ref(), &ours, &theirs)
}

fn merge_trees(
    git: &Repository,
    base: Option<&Tree<'_>>,
    ours: &Tree<'_>,
    theirs: &Tree<'_>,
) -> Result<Option<Oid>, git2::Error> {
    let mut merged = git.treebuilder(Some(ours))?;
    let all = base.into_iter().chain([ours, theirs]);
    let names: BTreeSet<Vec<u8>> = all.flat_map(|tree| tree.iter().map(|entry| entry.name_bytes().to_vec())).collect();
    for name in names {
        let before = base.and_then(|base| entry(base, &name));
        let (mine, other) = (entry(ours, &name), entry(theirs, &name));
        let both_gone = before.is_some() && mine.is_none() && other.is_none();
        let outcome = match () {
            () if both_gone => return Ok(None),
            () if before == other => continue,
            () if before == mine => other,
            () if mine == other && is_file(mine) && before.is_none_or(|before| is_file(Some(before))) => continue,
            () => match merge_below(git, before, mine, other)? {
                Some(tree) => Some((tree, TREE)),
                None => return Ok(None),
            },
        };
        match outcome {
            Some((object, mode)) => merged.insert(name.as_slice(), object, mode).map(drop)?,
            None => merged.remove(name.as_slice())?,
        }
    }
    // Git keeps no empty directories.
    if merged.is_empty() { Ok(None) } else { merged.write().map(Some) }
}

fn is_file(entry: Entry) -> bool {
    entry.is_some_and(|(_, mode)| mode != TREE)
}

/// Merges what has one name and is a directory on both sides; also where that holds the same on both, for what is gone from
/// it may be elsewhere on one of them.
fn merge_below(git: &Repository, before: Entry, ours: Entry, theirs: Entry) -> Result<Option<Oid>, git2::Error> {
    let tree =
        |entry: Entry| entry.filter(|(_, mode)| *mode == TREE).map(|(object, _)| git.find_tree(object)).transpose();
    let base = tree(before)?;
    match (tree(ours)?, tree(theirs)?) {
        (Some(ours), Some(theirs)) if base.is_some() == before.is_some() => {
            merge_trees(git, base.as_ref(), &ours, &theirs)
        }
        _ => Ok(None),
    }
}

fn entry(tree: &Tree<'_>, name: &[u8]) -> Entry {
    // Not `get_name`, which wants UTF-8.
    let found = tree.get_name_bytes(name)?;
    Some((found.id(), found.filemode_raw()))
}

#[cfg(test)]
#[path = "merge_by_name_tests.rs"]
mod tests;
