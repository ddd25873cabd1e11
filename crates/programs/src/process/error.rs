//! What can go wrong around a job, apart from the job itself.

use std::io;
use std::path::{Path, PathBuf};

use lanewright_files::FileError;

/// Why a job could not be started, read, asked or swept.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is damaged ({source}); move the job's directory away to have the job run again", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("cannot start the supervisor {}: {source}", program.display())]
    Launch { program: PathBuf, source: io::Error },
    #[error("cannot signal process {pid}: {source}")]
    Signal { pid: i32, source: io::Error },
    #[error("the job in {} still has its supervisor; stop it first", directory.display())]
    Supervised { directory: PathBuf },
    #[error("processes {pids:?} of the job in {} do not die; see what they wait for (`ps -o stat,wchan`)", directory.display())]
    Survivors { directory: PathBuf, pids: Vec<i32> },
}

impl ProcessError {
    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| FileError::io(action, path)(source).into()
    }
}
