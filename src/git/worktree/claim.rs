//! Who holds a slot: a file beside it, so that two runs, or a run and its successor, never share one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fs::regular_file;
use crate::git::command::error::{GitError, io_error};
use crate::git::repo::state_file;
use crate::model::{AgentName, CommitId, LaneId, RunId};

/// The holder of a slot: an agent of a lane, a lane, or the run itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holder {
    /// Which run.
    pub run: RunId,
    /// Which lane; `None`: the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneId>,
    /// Which agent; `None`: the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
}

/// How far a slot's checkout has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum Progress {
    /// Nothing was touched: what is in the slot may be worth something to somebody.
    Claimed,
    /// Nothing in the slot is worth keeping; the checkout, and its branch, may be half-made, and are the holder's.
    Started {
        /// The branch to be checked out.
        branch: Option<String>,
        /// Whether ignored files stay.
        keep_ignored: bool,
    },
    /// The checkout is whole; whatever differs from it is the holder's work.
    Opened {
        /// The branch that was checked out.
        branch: Option<String>,
        /// Its head then.
        head: CommitId,
    },
}

impl Progress {
    /// Whether the checkout was completed, so that the slot may hold work.
    pub(crate) fn is_opened(&self) -> bool {
        matches!(self, Self::Opened { .. })
    }

    /// The branch that the holder made or was given.
    pub(crate) fn branch(&self) -> Option<&str> {
        match self {
            Self::Claimed => None,
            Self::Started { branch, .. } | Self::Opened { branch, .. } => branch.as_deref(),
        }
    }
}

/// A slot's claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The common directory of the repository whose run holds the slot; two repositories may share a root.
    pub(crate) repository: PathBuf,
    /// Who holds it.
    #[serde(flatten)]
    pub(crate) holder: Holder,
    /// How far the checkout has come.
    #[serde(flatten)]
    pub(crate) progress: Progress,
}

impl Claim {
    /// Reads the claim in `path`; `None`: nobody holds the slot.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, GitError> {
        let bytes = match regular_file::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(io_error("read", path))?,
        };
        let damaged =
            |error: serde_json::Error| GitError::BadClaim { path: path.to_owned(), reason: error.to_string() };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Writes it where no claim is. `false`: there is one.
    pub(crate) fn create(&self, path: &Path) -> Result<bool, GitError> {
        state_file::create(path, &self.bytes())
    }

    /// Writes it in place of the one that is there.
    pub(crate) fn replace(&self, path: &Path) -> Result<(), GitError> {
        state_file::write(path, &self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        format!("{:#}\n", serde_json::json!(self)).into_bytes()
    }
}
