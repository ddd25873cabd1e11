//! Commits without a process, where git would store an agent's files byte for byte.
//!
//! Blobs, trees and the commit are written first and made durable, then the worktree's index, then its branch. Whoever
//! dies on the way leaves objects that nothing leads to, or what `git add` leaves before `git commit`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use git2::{Index, IndexEntry, IndexEntryFlag, Oid};

use super::admin_lock::Guarded;
use super::commit::{CommitRequest, FEW, message};
use super::durable;
use super::head::Head;
use super::identity::commit_tree;
use super::library;
use super::open_index::{OpenIndex, indexed};
use super::plain_files::store_file;
use super::plain_paths::are_plain;
use super::references::reference_lock;
use super::repository::{Repository, branch_reference, commit_id};
use super::tree_update::{Changes, updated};
use crate::model::CommitId;

/// Commits what is at `paths`, the only ones that differed from `head` when somebody `looked`, and of which nothing was
/// staged; durable. `None`: it
/// takes the git program.
pub(super) fn commit_plainly(
    repository: &Repository,
    request: &CommitRequest<'_>,
    head: &Head,
    paths: &[Vec<u8>],
    looked: SystemTime,
) -> Option<Head> {
    // Who dies in libgit2 leaves locks, and only who is alone may remove them. Git makes many objects durable at once.
    if !request.nobody_else || paths.len() > FEW {
        return None;
    }
    let branch = head.branch.as_deref()?;
    let stored = repository.in_process(|git| Ok(store(repository, git, request, head, paths)))??;
    let commit = commit_id(stored.commit.to_string().as_bytes()).ok()?;
    durable::objects(repository, &commit, std::slice::from_ref(request.since)).ok()?;
    stored.index.write(&stored.tree, Some(looked)).ok()?;
    match commit == head.commit {
        true => durable::reference(repository, &branch_reference(branch)).ok()?,
        false => move_checked_out(repository, request, branch, [&head.commit, &commit])?,
    }
    Some(Head { branch: head.branch.clone(), commit })
}

/// What is written already, and the index that is not.
struct Stored {
    commit: Oid,
    tree: Oid,
    index: OpenIndex,
}

fn store(
    repository: &Repository,
    git: &git2::Repository,
    request: &CommitRequest<'_>,
    head: &Head,
    paths: &[Vec<u8>],
) -> Option<Stored> {
    let tree = git.find_commit(library::oid(&head.commit).ok()?).ok()?.tree().ok()?;
    if !are_plain(repository, git, request.worktree, &[&tree], paths.iter().map(Vec::as_slice)) {
        return None;
    }
    let mut index = OpenIndex::of(request.worktree).ok()?;
    if !index.is(git, &tree).ok()? {
        return None;
    }
    let changes = add(git, &mut index.entries, request.worktree, paths)?;
    let new = updated(git, tree.id(), &changes).ok()?;
    if new == tree.id() {
        return Some(Stored { commit: library::oid(&head.commit).ok()?, tree: new, index });
    }
    // As `git commit --cleanup=whitespace` would have it.
    let message = git2::message_prettify(message(request.message, request.trailers), None).ok()?;
    let said = !message.is_empty();
    let commit = commit_tree(repository, git, &new.to_string(), &[&head.commit], &message).ok().filter(|_| said)?;
    Some(Stored { commit, tree: new, index })
}

/// Puts what is at `paths` on disk into the store and into `index`. `None`: something is out of the ordinary.
fn add(git: &git2::Repository, index: &mut Index, worktree: &Path, paths: &[Vec<u8>]) -> Option<Changes> {
    let mut changes = Changes::new();
    for path in paths {
        let name = Path::new(OsStr::from_bytes(path));
        let usual = |entry: IndexEntry| entry.flags_extended == 0 && entry.flags & IndexEntryFlag::VALID.bits() == 0;
        if !index.get_path(name, 0).is_none_or(usual) {
            return None;
        }
        let now = store_file(git, worktree, path)?;
        match &now {
            Some(file) => index.add(&indexed(path, file.object, file.mode, &file.found)).ok()?,
            None => index.remove_path(name).ok()?,
        }
        changes.insert(path.clone(), now.map(|file| (file.mode, file.object)));
    }
    Some(changes)
}

/// Moves the branch that the worktree has checked out, noted in the reflogs of both.
fn move_checked_out(
    repository: &Repository,
    request: &CommitRequest<'_>,
    branch: &str,
    [from, to]: [&CommitId; 2],
) -> Option<()> {
    let name = branch_reference(branch);
    let why = format!("commit: {}", request.message.lines().next().unwrap_or_default());
    let moved = repository.holding(Guarded::References, |_| {
        durable::remove(&reference_lock(repository.common_dir(), &name))?;
        Ok(library::change(repository, request.worktree, |git| {
            git.reference_matching(&name, library::oid(to)?, true, library::oid(from)?, &why).map(drop)
        }))
    });
    moved.ok()?
}

#[cfg(test)]
#[path = "plain_commit_tests.rs"]
mod tests;
