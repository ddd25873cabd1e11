use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::CommitId;

/// A worktree that a lane or an agent holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worktree {
    /// The number of its slot in the pool.
    pub slot: u32,
    /// The slot's directory.
    pub path: PathBuf,
    /// The branch that is checked out; empty: none (detached).
    pub branch: String,
    /// Its head when it was opened.
    pub head: CommitId,
}
