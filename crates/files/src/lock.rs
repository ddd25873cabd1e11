//! Locks that the kernel holds for a process and releases when it dies, so that none can go stale (`flock`).
//!
//! One that is held while a function works is `fd-lock`'s. Its guards borrow the file, so what owns a lock uses the same
//! lock through `std` (decision 0048).

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use fd_lock::RwLock;

use super::error::{FileError, open_error};
use super::handle::open_lock;

/// Runs `work` while no other thread or process holds the lock on the file `path`, which is made if there is none. The
/// file is for a child process that must not outlive the lock.
///
/// # Errors
/// [`FileError`] when the lock cannot be opened or taken; `work` was not run then.
pub fn exclusively<T>(path: &Path, work: impl FnOnce(&File) -> T) -> Result<T, FileError> {
    let mut lock = RwLock::new(open_lock(path).map_err(|source| open_error("open the lock", path, source))?);
    let guard = loop {
        match lock.write() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            locked => break locked.map_err(|source| open_error("lock", path, source))?,
        }
    };
    // Ends with an unlock, not with a close only: a child between fork and exec would keep the lock a moment longer.
    Ok(work(&guard))
}

/// Whether another open file holds the lock on `file`. Several may ask at once, and no process is kept from taking it.
pub fn is_locked(file: &File) -> io::Result<bool> {
    match RwLock::new(file).try_read() {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// Takes the lock on `file` until that is unlocked, or closed in every process that has it. `false`: another open file
/// holds it.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
