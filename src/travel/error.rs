//! Why state did not travel.

use crate::fs::FileError;
use crate::git::GitError;
use crate::model::{RunId, Timestamp};
use crate::schedule::Fault;
use crate::store::LogError;
use crate::view::cells::clean;

/// Why a run's state was not pushed or not pulled; nothing was changed but what the message says.
#[derive(Debug, thiserror::Error)]
pub enum TravelError {
    /// Git, or the remote.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The run log here.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file here.
    #[error(transparent)]
    File(#[from] FileError),
    /// The run here cannot be understood.
    #[error("run {run} cannot be pushed: {reason}")]
    Unreadable {
        /// Which run.
        run: RunId,
        /// What is wrong with it.
        reason: String,
    },
    /// The remote has no state of that run.
    #[error("{remote} has no state of run {run}")]
    NoState {
        /// The remote.
        remote: String,
        /// The run.
        run: RunId,
    },
    /// What the remote has was not made by Lanekeeper, or is damaged.
    #[error("the state of run {run} on {remote} is damaged: {reason}")]
    Damaged {
        /// The remote.
        remote: String,
        /// The run.
        run: RunId,
        /// What is wrong with it.
        reason: String,
    },
    /// A later Lanekeeper pushed it.
    #[error("the state of run {run} has format {found}, this program reads {known}")]
    NewerFormat {
        /// The run.
        run: RunId,
        /// The format it has.
        found: String,
        /// The format that is known.
        known: &'static str,
    },
    /// Somebody else pushed the run meanwhile, and went on differently.
    #[error(
        "run {run} was pushed to {remote} by {host} at {at}, with {records} records, and does not continue the one here"
    )]
    Superseded {
        /// The remote.
        remote: String,
        /// The run.
        run: RunId,
        /// The machine that pushed it.
        host: String,
        /// The time of its last record.
        at: Timestamp,
        /// How many records it has.
        records: u64,
    },
    /// The clone lacks history.
    #[error("this clone holds only a part of the history, so it cannot be told what continues what")]
    Shallow,
    /// A branch or a ref here holds something else.
    #[error("`{name}` is at {found} here, and the state of run {run} needs it at {wanted}")]
    InTheWay {
        /// The ref.
        name: String,
        /// Where it is here.
        found: String,
        /// Where it has to be.
        wanted: String,
        /// The run.
        run: RunId,
    },
    /// The integration branch went on in two ways.
    #[error("`{branch}` is at {here} here and went on to {there} with run {run}: neither continues the other")]
    Diverged {
        /// The branch.
        branch: String,
        /// Where it is here.
        here: String,
        /// Where the run left it.
        there: String,
        /// The run.
        run: RunId,
    },
    /// The integration branch is checked out, and something there must not be touched.
    #[error("{0}")]
    Obstructed(String),
}

impl TravelError {
    /// What is wrong comes from a stranger in part, so it is cleaned for whoever reads it.
    pub(super) fn damaged(remote: &str, run: &RunId, reason: &str) -> Self {
        Self::Damaged { remote: remote.to_owned(), run: run.clone(), reason: clean(reason) }
    }

    pub(super) fn contradiction(run: &RunId, fault: &Fault) -> Self {
        Self::Unreadable { run: run.clone(), reason: fault.to_string() }
    }
}
