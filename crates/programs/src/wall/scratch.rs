//! The directory for temporary files that a job has alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lanewright_files::directory;
use lanewright_model::ProcessId;

use crate::process::LiveProcess;

const PREFIX: &str = "lanewright-job-";

/// A directory of this process, removed with everything in it when this is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in the directory for temporary files, whose short path leaves space for the names of sockets, and removes
    /// those of processes that were killed.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create() -> io::Result<Self> {
        let parent = std::env::temp_dir().canonicalize()?;
        sweep(&parent);
        let owner = ProcessId::current();
        let mut name = format!("{PREFIX}{}-{}", owner.pid, owner.started);
        for number in 1.. {
            if directory::create_new(&parent, name.as_ref()).map_err(io::Error::other)? {
                break;
            }
            name = format!("{PREFIX}{}-{}-{number}", owner.pid, owner.started);
        }
        Ok(Self(parent.join(name)))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let owner = entry.file_name().to_str().and_then(owner_of);
        // Those of other users cannot be removed, and need not be.
        if owner.is_some_and(|owner| !owner.is_alive()) {
            remove(&entry.path());
        }
    }
}

fn owner_of(name: &str) -> Option<ProcessId> {
    let mut numbers = name.strip_prefix(PREFIX)?.split('-');
    Some(ProcessId { pid: numbers.next()?.parse().ok()?, started: numbers.next()?.parse().ok()? })
}

/// Removes a tree in which programs may have made directories without write permission, as Go's module cache does. It is only a
/// temporary directory: what stays is tried again by the next job.
fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() {
        make_writable(path);
        let _ = fs::remove_dir_all(path);
    }
}

fn make_writable(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;

    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}
