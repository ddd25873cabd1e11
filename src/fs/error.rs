//! Why a file cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

/// Why a state file or directory cannot be read, made or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A symbolic link stands where a file or directory of Lanekeeper's belongs.
    #[error("{} is a symbolic link, and state is never written through one: put the real thing in its place", .path.display())]
    SymbolicLink {
        /// The link.
        path: PathBuf,
    },
    /// A relative path that does not stay below its root.
    #[error("{} does not stay below its root", .path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// The system said no.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl FileError {
    /// For `map_err` after `action`, a verb, on `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Io { source, .. } => source.kind(),
            FileError::SymbolicLink { .. } | FileError::Outside { .. } => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// The error of an `open` that refuses links, for which the system says ELOOP.
pub(crate) fn open_error(action: &'static str, path: &Path, source: io::Error) -> FileError {
    if path.is_symlink() {
        return FileError::SymbolicLink { path: path.to_owned() };
    }
    FileError::Io { action, path: path.to_owned(), source }
}
