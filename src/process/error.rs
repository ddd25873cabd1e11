//! What can go wrong around a job, apart from the job itself.

use std::io;
use std::path::{Path, PathBuf};

use crate::fs::FileError;

/// Why a job could not be started, read, asked or swept.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// A file of the job directory cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of the job directory does not hold what it should.
    #[error("{} is damaged ({source}); move the job's directory away to have the job run again", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The supervisor could not be started.
    #[error("cannot start the supervisor {}: {source}", program.display())]
    Launch {
        /// The program that was to supervise.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The supervisor cannot be asked.
    #[error("cannot signal process {pid}: {source}")]
    Signal {
        /// Whom.
        pid: i32,
        /// What the system said.
        source: io::Error,
    },
    /// Something was asked that only a job without a supervisor allows.
    #[error("the job in {} still has its supervisor; stop it first", directory.display())]
    Supervised {
        /// The job's directory.
        directory: PathBuf,
    },
    /// Processes of the job survive SIGKILL, which means that the kernel holds them.
    #[error("processes {pids:?} of the job in {} do not die; see what they wait for (`ps -o stat,wchan`)", directory.display())]
    Survivors {
        /// The job's directory.
        directory: PathBuf,
        /// Their pids.
        pids: Vec<i32>,
    },
}

impl ProcessError {
    /// For `map_err` after an operation on `path`.
    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| FileError::io(action, path)(source).into()
    }
}
