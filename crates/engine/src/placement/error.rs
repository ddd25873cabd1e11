//! Why a lane cannot be placed or followed.

use std::error::Error;

use lanewright_git::GitError;
use lanewright_programs::cluster::ClusterError;
use lanewright_store::LogError;

use crate::state_sync::StateSyncError;

pub(super) type Result<T, E = PlacementError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(super) enum PlacementError {
    #[error(transparent)]
    State(#[from] StateSyncError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The lane's branch could not be put where its own run left it.
    #[error("its work cannot be put on branch {branch}; fix the cause, then resume: {source}")]
    NotPlaced { branch: String, source: Box<GitError> },
    #[error("{0}")]
    Other(String),
}

impl From<GitError> for PlacementError {
    fn from(error: GitError) -> Self {
        StateSyncError::from(error).into()
    }
}

impl From<LogError> for PlacementError {
    fn from(error: LogError) -> Self {
        StateSyncError::from(error).into()
    }
}

impl PlacementError {
    /// The error, and what can be done about it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::State(StateSyncError::Git(error)) => error.with_remedy(),
            Self::Cluster(error) => format!("{error}; {}", error.remedy()),
            error => with_causes(error),
        }
    }
}

/// The message of an error, and those of its causes.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let (mut message, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}
