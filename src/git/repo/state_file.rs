//! Lanekeeper's own files in git's directories: written whole, and durable.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use rustix::fs::Mode;

use crate::fs::{ORDINARY, PRIVATE, Staged, atomic, handle, regular_file};
use crate::git::command::error::{GitError, io_error};

/// The prefix of a file that is being written; one that is left over belongs to a dead process.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// Writes a whole file, readable by its owner only, in one step.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    let mut staged = staged(unfinished(), path, PRIVATE, bytes)?;
    staged.put()?;
    Ok(staged.sync_name()?)
}

/// The same as [`write`] where nothing may be there yet. `false`: something is.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<bool, GitError> {
    put_new(staged(unfinished(), path, PRIVATE, bytes)?)
}

/// The same by way of the file `temporary` beside it, for directories in which nothing clears away what is half written.
pub(crate) fn create_by_way_of(temporary: &Path, path: &Path, bytes: &[u8]) -> Result<bool, GitError> {
    atomic::remove(temporary)?;
    put_new(staged(temporary.file_name().unwrap_or_default().to_owned(), path, ORDINARY, bytes)?)
}

fn unfinished() -> OsString {
    format!("{UNFINISHED}{}", uuid::Uuid::now_v7()).into()
}

fn staged(temporary: OsString, path: &Path, mode: Mode, bytes: &[u8]) -> Result<Staged, GitError> {
    let staged = Staged::create_as(temporary, path, mode)?;
    staged.write(bytes)?;
    staged.sync()?;
    Ok(staged)
}

fn put_new(mut staged: Staged) -> Result<bool, GitError> {
    Ok(staged.put_new()? && staged.sync_name().map(|()| true)?)
}

/// Removes what was being written in a directory when its writer died. Who writes there holds a lock, as the caller does.
pub(crate) fn remove_unfinished(directory: &Path) -> Result<(), GitError> {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file durably; none there is as good.
pub(crate) fn remove(path: &Path) -> Result<(), GitError> {
    Ok(atomic::remove_durably(path)?)
}

/// Makes the entries of a directory durable; no directory there is as good.
pub(crate) fn directory(path: &Path) -> Result<(), GitError> {
    sync(path).map_err(io_error("sync", path))
}

pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

pub(crate) fn sync(path: &Path) -> std::io::Result<()> {
    let opened = if path.is_dir() { regular_file::open_directory(path) } else { regular_file::open(path) };
    match opened {
        Ok(file) => handle::sync(path, &file),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
