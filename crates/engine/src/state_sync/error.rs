//! Why state was not pushed or pulled.

use lanewright_files::FileError;
use lanewright_git::{GitError, Remote};
use lanewright_model::cells::clean;
use lanewright_model::{RunId, Timestamp};
use lanewright_store::LogError;

pub(super) type Result<T, E = StateSyncError> = std::result::Result<T, E>;

/// Why a run's state was not pushed or not pulled; nothing was changed unless the message says so.
#[derive(Debug, thiserror::Error)]
pub enum StateSyncError {
    #[error("run {run} cannot be pushed: {reason}")]
    Unreadable { run: RunId, reason: String },
    #[error("{remote} has no state of run {run}")]
    NoState { remote: String, run: RunId },
    #[error("the state of run {run} on {remote} is damaged: {reason}")]
    Damaged { remote: String, run: RunId, reason: String },
    #[error("the state of run {run} has format {found}, this program reads {known}")]
    NewerFormat { run: RunId, found: String, known: &'static str },
    #[error(
        "run {run} was pushed to {remote} by {host} at {at}, with {records} records, and does not continue the one here"
    )]
    Superseded { remote: String, run: RunId, host: String, at: Timestamp, records: u64 },
    #[error("run {run} is worked on by {host}, which claimed it on {remote} at {at}")]
    Claimed { remote: String, run: RunId, host: String, at: Timestamp },
    #[error("run {run} is not offered on {remote}: another process claimed it, or it was withdrawn")]
    Fenced { remote: String, run: RunId },
    #[error("run {run} was continued elsewhere: its lanes are placed by {by}")]
    Taken { run: RunId, by: String, remote: String, reference: String },
    #[error("this is a shallow clone, so it is unknown which commit continues which")]
    Shallow,
    #[error("`{name}` is at {found} here, and the state of run {run} needs it at {wanted}")]
    InTheWay { name: String, found: String, wanted: String, run: RunId },
    #[error("`{branch}` is at {here} here and went on to {there} with run {run}: neither continues the other")]
    Diverged { branch: String, here: String, there: String, run: RunId },
    #[error("{0}")]
    Obstructed(String),
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl StateSyncError {
    /// Whether the same may succeed later, without anything being done here.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Git(error) if error.is_outage())
    }

    /// The message, and the remedy of an error of git's.
    pub(super) fn with_remedy(&self) -> String {
        if let Self::Git(error) = self { error.with_remedy() } else { self.to_string() }
    }

    pub(super) fn fenced(remote: &Remote, run: &RunId) -> Self {
        Self::Fenced { remote: remote.name().to_owned(), run: run.clone() }
    }

    /// Part of the reason may come from another machine, so it is sanitized.
    pub(super) fn damaged(remote: &str, run: &RunId, reason: &str) -> Self {
        Self::Damaged { remote: remote.to_owned(), run: run.clone(), reason: clean(reason) }
    }
}
