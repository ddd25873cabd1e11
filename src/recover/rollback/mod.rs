//! Putting lanes back to where they had not begun (SPEC §9, Rollback; seed 004).
//!
//! [`plan()`] says what that comes to; [`carry_out`] does it. Nothing is thrown away: what is uncommitted is
//! snapshotted and what a branch alone holds gets a ref before anything is touched, and merged work is undone by a
//! commit on top. Each step finds out whether it was done before, so a rollback that died is finished by the same
//! command; until then `rollback_begun` in the run log keeps a resume from building on half of a lane.

mod carry_out;
mod merges;
mod plan;
mod work;

use std::path::PathBuf;

use crate::engine::ports::PortError;
use crate::fs::FileError;
use crate::git::{GitError, Obstacles};
use crate::model::{CommitId, LaneId};
use crate::process::ProcessError;
use crate::schedule::Fault;
use crate::store::LogError;

pub use carry_out::{PutBack, carry_out, check_worktrees};
pub use plan::{KeptWork, LandedMerge, LaneToPutBack, RollbackPlan, plan};

/// Why lanes were not put back.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The plan has no such lane.
    #[error("the plan has no lane `{0}`")]
    UnknownLane(LaneId),
    /// Others were built on the lane's work.
    #[error("{lane} cannot be rolled back without what was built on it: {}", names(.dependants))]
    Dependants {
        /// The lane.
        lane: LaneId,
        /// Those that were built on it and were not asked for.
        dependants: Vec<LaneId>,
        /// Everything that has to be rolled back together.
        all: Vec<LaneId>,
    },
    /// What was merged cannot be taken out by itself any more.
    #[error("the merge of {lane} cannot be undone by itself: {} changed again since", .paths.join(", "))]
    Conflict {
        /// Whose work.
        lane: LaneId,
        /// The merge.
        merge: CommitId,
        /// The integration branch.
        branch: String,
        /// The paths.
        paths: Vec<String>,
    },
    /// The integration branch cannot be moved along where it is checked out.
    #[error("{branch} is checked out in {} and cannot be fast-forwarded because of {}", .worktree.display(), .obstacles.paths.join(", "))]
    CheckedOut {
        /// The integration branch.
        branch: String,
        /// Where.
        worktree: PathBuf,
        /// What is in the way.
        obstacles: Obstacles,
    },
    /// The integration branch moves all the time.
    #[error("{branch} moves faster than a merge can be undone on it")]
    Busy {
        /// The integration branch.
        branch: String,
    },
    /// A person has a branch of the lane's checked out.
    #[error("branch {branch} is checked out in {}, so it cannot be removed", .place.display())]
    BranchInUse {
        /// The branch.
        branch: String,
        /// Where.
        place: PathBuf,
    },
    /// A worktree holds repositories of their own.
    #[error("{} holds repositories of their own, which no snapshot can keep: {}", .worktree.display(), .paths.join(", "))]
    Embedded {
        /// The worktree.
        worktree: PathBuf,
        /// The repositories, relative to it.
        paths: Vec<String>,
    },
    /// Git, or a worktree.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A step that lanes share with their life.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A job does not stop.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A state file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The run log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The run log contradicts itself.
    #[error("the run's events contradict each other: {0}")]
    Fault(#[from] Fault),
}

fn names(lanes: &[LaneId]) -> String {
    lanes.iter().map(LaneId::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
