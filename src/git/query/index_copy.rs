//! Private copies of a worktree's index.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::fs::handle::set_modified;
use crate::fs::regular_file::Links;
use crate::fs::{atomic, regular_file};
use crate::git::command::error::{GitError, io_error};
use crate::git::repo::git_dir::git_directory;

/// Copies the worktree's index, so that what it knows of unchanged files need not be found out again.
pub(crate) fn copy_index(worktree: &Path, index: &Path) -> Result<(), GitError> {
    let source = git_directory(worktree)?.join("index");
    let staged = beside(index, ".new");
    let copy = || {
        // The copy must not look younger than it is: git takes a file written in the same second as the index for
        // changed, one written before it for known.
        let modified = fs::metadata(&source)?.modified()?;
        regular_file::copy(&source, &staged)?;
        set_modified(&staged, Links::Refuse, modified)?;
        atomic::rename(&staged, index)
    };
    match copy() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied.map_err(io_error("copy", &source)),
    }
}

/// `path` with `suffix` at the end of its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
