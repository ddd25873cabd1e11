//! Why state was not pushed or pulled.

use lanewright_model::cells::clean;
use lanewright_model::{RunId, Timestamp};

pub(super) use anyhow::Result;

/// Why a run's state was not pushed or not pulled; nothing was changed unless the message says so.
#[derive(Debug, Clone, thiserror::Error)]
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
}

impl StateSyncError {
    /// Part of the reason may come from another machine, so it is sanitized.
    pub(super) fn damaged(remote: &str, run: &RunId, reason: &str) -> Self {
        Self::Damaged { remote: remote.to_owned(), run: run.clone(), reason: clean(reason) }
    }
}
