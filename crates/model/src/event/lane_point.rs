use serde::{Deserialize, Serialize};

use super::{LaneStage, Worktree};
use crate::{AgentName, CommitId};

/// A moment of a lane to which a rollback took it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LanePoint {
    /// What it was asked for by: a stage, a task, a snapshot.
    pub name: String,
    /// The number of the record after which the lane stood there.
    pub seq: u64,
    /// Its stage then.
    pub stage: LaneStage,
    /// The commit of the integration branch that it is built on.
    pub base: CommitId,
    /// The worktrees that were opened for it.
    pub worktrees: Vec<OpenedWorktree>,
    /// Commits that were made again on top of the commit that undid its merge, each with what stands for it now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<(CommitId, CommitId)>,
}

/// A worktree that was opened, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenedWorktree {
    /// Its holder; absent: the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub worktree: Worktree,
    /// The snapshot whose files are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<CommitId>,
}

impl LanePoint {
    /// What stands for `commit` now.
    pub fn now(&self, commit: &CommitId) -> CommitId {
        let again = self.again.iter().find(|(before, _)| before == commit);
        again.map_or_else(|| commit.clone(), |(_, now)| now.clone())
    }
}
