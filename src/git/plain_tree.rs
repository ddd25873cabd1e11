//! The tree of a worktree without a process: a known tree, with the files that differ from it.

use std::path::Path;

use git2::Oid;

use super::commit::FEW;
use super::plain_files::store_file;
use super::plain_paths::are_plain;
use super::repository::Repository;
use super::tree_update::{Changes, updated};

/// The tree `noted` with what `worktree` holds at `paths`, each of which is read. `None`: git may have a say in one of
/// them, somebody changes it, or there are more than [`FEW`].
pub(super) fn plain_tree(repository: &Repository, worktree: &Path, noted: Oid, paths: &[&[u8]]) -> Option<Oid> {
    if paths.is_empty() {
        return Some(noted);
    }
    if paths.len() > FEW {
        return None;
    }
    let make = |git: &git2::Repository| {
        let tree = git.find_tree(noted)?;
        if !are_plain(repository, git, worktree, &[&tree], paths.iter().copied()) {
            return Ok(None);
        }
        let mut changes = Changes::new();
        for path in paths {
            let Some(now) = store_file(git, worktree, path) else { return Ok(None) };
            changes.insert(path.to_vec(), now.map(|file| (file.mode, file.object)));
        }
        updated(git, noted, &changes).map(Some)
    };
    repository.in_process(make).flatten()
}
