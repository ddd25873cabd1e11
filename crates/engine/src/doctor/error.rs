//! Why the doctor cannot look at something or repair it.

use lanewright_files::FileError;
use lanewright_git::GitError;
use lanewright_store::LogError;
use lanewright_store::checkpoints::CheckpointsError;
use lanewright_store::lane_files::LaneFileError;

use crate::executor::ExecutorError;

pub(super) type Result<T, E = DoctorError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    #[error("{0}")]
    Git(#[from] GitError),
    #[error("{0}")]
    File(#[from] FileError),
    #[error("{0}")]
    Log(#[from] LogError),
    #[error("{0}")]
    LaneFile(#[from] LaneFileError),
    #[error("{0}")]
    Checkpoints(#[from] CheckpointsError),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error("{0}")]
    Refused(String),
}
