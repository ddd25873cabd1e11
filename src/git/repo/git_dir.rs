//! Git's own directories for worktrees, read from their files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fs::regular_file;
use crate::git::command::error::{GitError, io_error};

/// Git's directory for `worktree`.
pub(crate) fn git_directory(worktree: &Path) -> Result<PathBuf, GitError> {
    let link = worktree.join(".git");
    if link.is_dir() {
        return Ok(link);
    }
    entry_named_by(worktree).ok_or_else(|| GitError::NotOurs { path: worktree.to_owned() })
}

/// The directory that the link in `worktree` names, whether or not it exists.
pub(crate) fn entry_named_by(worktree: &Path) -> Option<PathBuf> {
    let link = read_line(&worktree.join(".git"))?;
    Some(worktree.join(link.strip_prefix("gitdir: ")?))
}

/// Whether two paths lead to the same place, which exists.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

/// Where the files of the worktree registered in `directory` should be.
pub(crate) fn registered_place(directory: &Path) -> Option<PathBuf> {
    let link = directory.join(read_line(&directory.join("gitdir"))?);
    Some(link.parent()?.to_owned())
}

/// The first line of a small file; `None`: there is none to read.
pub(crate) fn read_line(path: &Path) -> Option<String> {
    let text = regular_file::read_text(path).ok()?;
    Some(text.lines().next().unwrap_or_default().to_owned())
}

/// The directories in `path`, symbolic links not counted; none if `path` does not exist.
pub(crate) fn directories_in(path: &Path) -> Result<Vec<PathBuf>, GitError> {
    let listing = match fs::read_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing.map_err(io_error("list", path))?,
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(io_error("list", path))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
