//! Why a file cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{} is a symbolic link, and state is never written through one: put the real thing in its place", .path.display())]
    SymbolicLink { path: PathBuf },
    #[error("{} does not stay below its root", .path.display())]
    Outside { path: PathBuf },
    #[error("cannot {action} {}: {source}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl FileError {
    /// For `map_err` after `action`, a verb, on `path`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Io { source, .. } => source.kind(),
            Self::SymbolicLink { .. } | Self::Outside { .. } => io::ErrorKind::InvalidInput,
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// What `found` is, or `None` where nothing is at that path.
pub fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// The error of an `open` that refuses links, for which the system says ELOOP.
pub fn open_error(action: &'static str, path: &Path, source: io::Error) -> FileError {
    if path.is_symlink() {
        return FileError::SymbolicLink { path: path.to_owned() };
    }
    FileError::Io { action, path: path.to_owned(), source }
}
