//! Files that stay open while they are written: locks, and logs that are appended to.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

#[cfg(target_os = "linux")]
use rustix::fs::FallocateFlags;

use super::fault::{self, change, create};
use super::regular_file::{Links, options};

/// Opens the file that a lock is taken on; it is made where there is none. A link is refused.
pub fn open_lock(path: &Path) -> io::Result<File> {
    open_or_create(path, options(Links::Refuse).read(true).write(true).create(true).truncate(false))
}

pub fn append(path: &Path, links: Links) -> io::Result<File> {
    open_or_create(path, options(links).append(true).create(true))
}

/// The same, to read it as well.
pub fn append_and_read(path: &Path, links: Links) -> io::Result<File> {
    open_or_create(path, options(links).read(true).append(true).create(true))
}

/// The same for a file that exists, to read it as well.
pub fn append_existing(path: &Path, links: Links) -> io::Result<File> {
    options(links).read(true).append(true).open(path)
}

/// The same for a file that must not exist.
pub fn append_new(path: &Path) -> io::Result<File> {
    change(path, || options(Links::Refuse).read(true).append(true).create_new(true).open(path))
}

/// Opens a file for writing and empties it; it is made where there is none.
pub(crate) fn overwrite(path: &Path, links: Links) -> io::Result<File> {
    open_or_create(path, options(links).write(true).create(true).truncate(true))
}

/// The path of a file that is open, for write faults.
const UNNAMED: &str = "";

pub fn write_all(file: &File, bytes: &[u8]) -> io::Result<()> {
    fault::write_all(UNNAMED.as_ref(), file, bytes)
}

pub fn sync_contents(file: &File) -> io::Result<()> {
    change(UNNAMED.as_ref(), || file.sync_data())
}

pub(crate) fn sync(path: &Path, file: &File) -> io::Result<()> {
    change(path, || file.sync_all())
}

pub fn truncate(file: &File, length: u64) -> io::Result<()> {
    change(UNNAMED.as_ref(), || file.set_len(length))
}

/// Gives the disk space of `range` back to the system. It is read as zeros then; the length of the file stays.
///
/// # Errors
/// The file system has no holes.
#[cfg(target_os = "linux")]
pub fn free(file: &File, range: &Range<u64>) -> io::Result<()> {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file, mode, range.start, range.end - range.start)?)
}

/// No other system is known to do it.
#[cfg(not(target_os = "linux"))]
pub fn free(_: &File, _: &Range<u64>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub fn set_modified(path: &Path, links: Links, to: SystemTime) -> io::Result<()> {
    options(links).write(true).open(path)?.set_modified(to)
}

fn open_or_create(path: &Path, options: &OpenOptions) -> io::Result<File> {
    create(path, || path.exists(), || options.open(path))
}
