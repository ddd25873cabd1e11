//! How far one commit's files are from another's: what taking a slot over has to write.

use std::path::Path;

use git2::{ObjectType, Oid, Tree, TreeEntry};

use crate::git::error::GitError;
use crate::git::repository::Repository;
use crate::model::CommitId;

/// Paths are counted so far: what differs in more is far away.
pub(super) const FAR: usize = 2000;

/// The name of the files in which attributes stand.
pub(super) const ATTRIBUTES: &[u8] = b".gitattributes";

impl Repository {
    /// In how many paths the head of `worktree` and `commit` differ, a directory that only one has counted by what is
    /// directly in it; [`usize::MAX`]: that cannot be told.
    pub(super) fn distance(&self, worktree: &Path, commit: &CommitId) -> usize {
        let Ok(head) = self.head_at(worktree) else { return usize::MAX };
        let far = self.in_process(|git| {
            let (one, other) = (tree(git, &head.commit)?, tree(git, commit)?);
            let mut left = FAR;
            count(git, &one, &other, &mut left)?;
            Ok(FAR - left)
        });
        far.unwrap_or(usize::MAX)
    }

    /// Whether attributes of files that both commits have may differ.
    pub(super) fn attributes_differ(&self, one: &CommitId, other: &CommitId) -> Result<bool, GitError> {
        if one == other {
            return Ok(false);
        }
        match self.in_process(|git| attributes_differ(git, &tree(git, one)?, &tree(git, other)?)) {
            Some(known) => Ok(known),
            None => Ok(self.changed_paths(one, other)?.iter().any(|path| path.ends_with(".gitattributes"))),
        }
    }
}

pub(super) fn tree<'a>(git: &'a git2::Repository, commit: &CommitId) -> Result<Tree<'a>, git2::Error> {
    git.find_commit(Oid::from_str(commit.as_str())?)?.tree()
}

/// Takes the number of differing paths from `left`, and no more than there is.
fn count(git: &git2::Repository, one: &Tree<'_>, other: &Tree<'_>, left: &mut usize) -> Result<(), git2::Error> {
    let gone = one.iter().filter(|entry| other.get_name_bytes(entry.name_bytes()).is_none()).count();
    *left = left.saturating_sub(gone);
    for entry in other {
        if *left == 0 {
            break;
        }
        match one.get_name_bytes(entry.name_bytes()) {
            Some(known) if known.id() == entry.id() && known.filemode() == entry.filemode() => {}
            Some(known) if is_tree(&known) && is_tree(&entry) => {
                count(git, &git.find_tree(known.id())?, &git.find_tree(entry.id())?, left)?;
            }
            None if is_tree(&entry) => *left = left.saturating_sub(git.find_tree(entry.id())?.len()),
            _ => *left -= 1,
        }
    }
    Ok(())
}

pub(super) fn is_tree(entry: &TreeEntry<'_>) -> bool {
    entry.kind() == Some(ObjectType::Tree)
}

fn attributes_differ(git: &git2::Repository, one: &Tree<'_>, other: &Tree<'_>) -> Result<bool, git2::Error> {
    let attributes = |tree: &Tree<'_>| tree.get_name_bytes(ATTRIBUTES).map(|entry| entry.id());
    if attributes(one) != attributes(other) {
        return Ok(true);
    }
    for entry in other {
        let Some(known) = one.get_name_bytes(entry.name_bytes()) else { continue };
        if known.id() != entry.id() && is_tree(&known) && is_tree(&entry) {
            let (one, other) = (git.find_tree(known.id())?, git.find_tree(entry.id())?);
            if attributes_differ(git, &one, &other)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
