//! Notices that another program deleted, replaced or changed the run log while it is open, and restores it.
//!
//! Agents can reach the state directory, and `git clean -fdx` in the user's checkout deletes it. The kernel reports
//! neither: writes to a deleted file succeed.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use lanewright_files::directory::{create_directories, with_suffix};
use lanewright_files::{FileError, atomic};

/// The largest log of which a copy is held in memory, in bytes. A longer one is restored from the open file, which has
/// its content unless it was truncated.
const COPY_LIMIT: usize = 32 << 20;

/// What another program did to a run log that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tampering {
    Deleted,
    Replaced,
    /// The file is shorter than what was written.
    Truncated,
    /// The file is longer than what was written.
    Extended,
}

impl fmt::Display for Tampering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deleted => "deleted",
            Self::Replaced => "replaced",
            Self::Truncated => "truncated",
            Self::Extended => "appended to",
        })
    }
}

#[derive(Debug)]
pub(super) struct LogGuard {
    /// The log, below its real directory: a symbolic link that replaces a directory later is not followed.
    path: PathBuf,
    length: u64,
    /// All of it; `None`: it is larger than [`COPY_LIMIT`].
    copy: Option<Vec<u8>>,
}

impl LogGuard {
    pub(super) fn new(path: &Path, bytes: Vec<u8>) -> Self {
        let directory = path.parent().and_then(|directory| fs::canonicalize(directory).ok());
        let real = directory.zip(path.file_name()).map(|(directory, name)| directory.join(name));
        let length = bytes.len() as u64;
        let copy = Some(bytes).filter(|bytes| bytes.len() <= COPY_LIMIT);
        Self { path: real.unwrap_or_else(|| path.to_owned()), length, copy }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.copy = self.copy.take().filter(|copy| copy.len() + bytes.len() <= COPY_LIMIT);
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(bytes);
        }
    }

    pub(super) fn tampering(&self, file: &File) -> io::Result<Option<Tampering>> {
        let open = file.metadata()?;
        let found = match fs::symlink_metadata(&self.path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Some(Tampering::Deleted));
            }
            found => found?,
        };
        Ok(match open.len() {
            _ if (found.dev(), found.ino()) != (open.dev(), open.ino()) => Some(Tampering::Replaced),
            length if length < self.length => Some(Tampering::Truncated),
            length if length > self.length => Some(Tampering::Extended),
            _ => None,
        })
    }

    /// Writes the log again, durably. Returns the name under which what was at its path is saved.
    pub(super) fn restore(&self, file: &File) -> Result<Option<PathBuf>, FileError> {
        let bytes = self.content(file).map_err(FileError::io("read", &self.path))?;
        if let Some(directory) = self.path.parent() {
            let real = |path: &Path| fs::canonicalize(path).is_ok_and(|real| real == path);
            let existing = directory.ancestors().find(|path| real(path)).unwrap_or(directory);
            create_directories(existing, directory.strip_prefix(existing).unwrap_or(Path::new("")))?;
        }
        // By its name: it may be a link, a pipe or a directory.
        let aside = free_name(&self.path);
        let aside = match atomic::rename(&self.path, &aside) {
            Ok(()) => Some(aside),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        atomic::write(&self.path, &bytes)?;
        Ok(aside)
    }

    fn content(&self, file: &File) -> io::Result<Vec<u8>> {
        if let Some(copy) = &self.copy {
            return Ok(copy.clone());
        }
        let mut bytes = vec![0; usize::try_from(self.length).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

fn free_name(path: &Path) -> PathBuf {
    let name = |number: u32| with_suffix(path, &format!(".damaged-{number}"));
    let taken = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
    (1..u32::MAX).map(name).find(|path| !taken(path)).unwrap_or_else(|| name(0))
}

#[cfg(test)]
mod tests;
