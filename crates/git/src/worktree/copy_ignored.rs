//! Copying ignored files (`.env`, caches) from the main worktree into a new one.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lanewright_files::{atomic, regular_file, temporary_beside};
use lanewright_model::ownership::Ownership;

use crate::command::{GitError, Result, io_error, nul_separated};
use crate::repo::Repository;

/// Copies the ignored files of the main worktree that match `patterns` to the same places in `worktree`: files with
/// their permissions (as clones where the file system can), links as links. What exists there is never overwritten,
/// and no link in `worktree` is followed. Returns what was copied, relative to the root.
pub fn copy_ignored(repository: &Repository, worktree: &Path, patterns: &[&str]) -> Result<Vec<PathBuf>> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = Ownership::new(patterns).map_err(|error| GitError::BadPattern {
        pattern: error.glob().unwrap_or_default().to_owned(),
        reason: error.kind().to_string(),
    })?;
    let listing = repository
        .git()
        .reading_only()
        .args(["ls-files", "-z", "--others", "--ignored", "--exclude-standard"])
        .run()?;
    let mut copied = Vec::new();
    for path in nul_separated(&listing).map(|path| Path::new(std::ffi::OsStr::from_bytes(path))) {
        let text = path.to_string_lossy();
        // What ends so is a repository within the worktree.
        if !text.ends_with('/') && wanted.allows(&text) && copy_one(repository.main_worktree(), worktree, path)? {
            copied.push(path.to_owned());
        }
    }
    Ok(copied)
}

fn copy_one(from: &Path, to: &Path, path: &Path) -> Result<bool> {
    let (source, target) = (from.join(path), to.join(path));
    let Some(parent) = path.parent() else { return Ok(false) };
    if fs::symlink_metadata(&target).is_ok() || !make_real_directories(to, parent)? {
        return Ok(false);
    }
    // Beside the worktree: a crash must not leave in it what an agent would commit.
    let staged = temporary_beside(to);
    let kind = fs::symlink_metadata(&source).map_err(io_error("read", &source))?;
    let made = if kind.is_symlink() {
        fs::read_link(&source).and_then(|leads_to| symlink(leads_to, &staged))
    } else if kind.is_file() {
        regular_file::copy(&source, &staged).map(|_| ())
    } else {
        return Ok(false);
    };
    made.map_err(io_error("copy", &source))?;
    atomic::rename(&staged, &target)?;
    Ok(true)
}

/// Makes the directory `inner` below `root`. `false`: a link or a file is in the way.
fn make_real_directories(root: &Path, inner: &Path) -> Result<bool> {
    let mut path = root.to_owned();
    for part in inner.components() {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => {}
            Ok(_) => return Ok(false),
            Err(_) => fs::create_dir(&path).map_err(io_error("create", &path))?,
        }
    }
    Ok(true)
}
