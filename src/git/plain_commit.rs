//! Commits without a process, where git would store an agent's files byte for byte.
//!
//! Blobs, trees and the commit are written first and made durable, then the worktree's index, then its branch. Whoever
//! dies on the way leaves objects that nothing leads to, or what `git add` leaves before `git commit`.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
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
use super::plain_paths::are_plain;
use super::references::reference_lock;
use super::repository::{Repository, branch_reference, commit_id};
use super::tree_update::{Changes, updated};
use crate::model::CommitId;

/// The largest file that is read at once, in bytes; git has ways of its own for large ones.
const LARGE: u64 = 4 << 20;

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
        let now = match read(&worktree.join(name)).ok()? {
            Some((found, bytes)) => {
                let entry = indexed(path, git.blob(&bytes).ok()?, mode(&found), &found);
                index.add(&entry).ok()?;
                Some((entry.mode, entry.id))
            }
            None => index.remove_path(name).map(|()| None).ok()?,
        };
        changes.insert(path.clone(), now);
    }
    Some(changes)
}

/// A file or a link that stays as it is while it is read; `None`: there is none.
fn read(place: &Path) -> io::Result<Option<(Metadata, Vec<u8>)>> {
    let before = match fs::symlink_metadata(place) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        found => found?,
    };
    let bytes = match before.is_symlink() {
        true => fs::read_link(place)?.into_os_string().into_encoded_bytes(),
        false if before.is_file() && before.len() <= LARGE => fs::read(place)?,
        false => return Err(io::ErrorKind::Unsupported.into()),
    };
    let after = fs::symlink_metadata(place)?;
    let stamp = |found: &Metadata| (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec(), found.ino());
    let same = stamp(&before) == stamp(&after) && after.len() == bytes.len() as u64;
    if same { Ok(Some((after, bytes))) } else { Err(io::ErrorKind::ResourceBusy.into()) }
}

/// The mode that git has for a file.
fn mode(found: &Metadata) -> u32 {
    match () {
        () if found.is_symlink() => 0o120_000,
        () if found.mode() & 0o100 != 0 => 0o100_755,
        () => 0o100_644,
    }
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
