//! Deleting what other programs made, as far as that is possible.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use lanewright_files::{atomic, directory, if_there};

/// Deletes a file, a link (not what it leads to) or a directory, as far as that is possible; gone already is as good.
pub(crate) fn delete(path: &Path, until: Option<Instant>) -> io::Result<()> {
    let Ok(kind) = fs::symlink_metadata(path) else { return Ok(()) };
    if until.is_some_and(|until| Instant::now() >= until) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let delete_all = || match until {
        Some(_) if kind.is_dir() => delete_each(path, until),
        None if kind.is_dir() => atomic::remove_all(path).or_else(|_| delete_each(path, until)),
        _ => atomic::remove_all(path),
    };
    if_there(directory::change_below(path, delete_all)).map(drop)
}

/// Deletes a directory with all that is in it. What cannot be deleted keeps nothing else.
fn delete_each(directory: &Path, until: Option<Instant>) -> io::Result<()> {
    let mut kept = Ok(());
    for entry in fs::read_dir(directory)? {
        match delete(&entry?.path(), until) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
            Err(error) => kept = Err(error),
            Ok(()) => {}
        }
    }
    kept.and_then(|()| fs::remove_dir(directory))
}
