//! Who holds a slot: a file beside it, so that two runs, or a run and its successor, never share one.
//!
//! After a power cut a claim may be missing, empty or an earlier one; then the run log says who holds the slot.

use std::path::{Path, PathBuf};

use lanewright_files::{atomic, regular_file};
use lanewright_model::{AgentName, CommitId, LaneId, RunId};
use serde::{Deserialize, Serialize};

use crate::command::{GitError, Result};

/// The holder of a slot: an agent of a lane, a lane, or the run itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holder {
    pub run: RunId,
    /// `None`: the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneId>,
    /// `None`: the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum Progress {
    /// Nothing was touched: the slot may contain work of an earlier holder.
    Claimed,
    /// The slot contains no work; the checkout, and its branch, may be half-made, and are the holder's.
    Started { branch: Option<String>, keep_ignored: bool },
    /// The checkout is whole; whatever differs from it is the holder's work.
    Opened {
        branch: Option<String>,
        /// Its head then.
        head: CommitId,
    },
}

impl Progress {
    pub(crate) fn is_opened(&self) -> bool {
        matches!(self, Self::Opened { .. })
    }

    pub(crate) fn branch(&self) -> Option<&str> {
        match self {
            Self::Claimed => None,
            Self::Started { branch, .. } | Self::Opened { branch, .. } => branch.as_deref(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The common directory of the repository whose run holds the slot; two repositories may share a root.
    pub(crate) repository: PathBuf,
    #[serde(flatten)]
    pub(crate) holder: Holder,
    #[serde(flatten)]
    pub(crate) progress: Progress,
}

impl Claim {
    /// Reads the claim in `path`; `None`: the slot has no holder.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        let Some(bytes) = regular_file::read_if_there(path)? else { return Ok(None) };
        let damaged =
            |error: serde_json::Error| GitError::BadClaim { path: path.to_owned(), reason: error.to_string() };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Writes it where no claim is. `false`: there is one.
    pub(crate) fn create(&self, path: &Path) -> Result<bool> {
        Ok(atomic::create(path, &self.bytes())?)
    }

    /// Writes it in place of the one that is there.
    pub(crate) fn replace(&self, path: &Path) -> Result<()> {
        Ok(atomic::replace(path, &self.bytes())?)
    }

    fn bytes(&self) -> Vec<u8> {
        format!("{:#}\n", serde_json::json!(self)).into_bytes()
    }
}
