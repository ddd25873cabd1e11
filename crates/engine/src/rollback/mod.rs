//! Resets lanes to where they had not begun, or to an earlier point of theirs (SPEC §9, Rollback; seed 004).
//!
//! [`plan()`] determines what that means; [`carry_out`] does it. Nothing is thrown away: what is uncommitted is
//! snapshotted and what a branch alone holds gets a ref before anything is touched, and merged work is undone by a
//! commit on top. Each step finds out whether it was done before, so a rollback that died is finished by the same
//! command; until then `rollback_begun` in the run log prevents a resume that would build on half of a lane.

mod carry_out;
mod merges;
mod plan;
mod points;
mod returns;
mod worktrees;

use std::path::PathBuf;

use lanewright_git::{Blockers, GitError};
use lanewright_model::{CommitId, LaneId};
use lanewright_programs::process::ProcessError;
use lanewright_schedule::Fault;
use lanewright_store::LogError;

use crate::at_resume::names;
use crate::executor::ExecutorError;

pub use carry_out::{RolledBackLane, carry_out, check_worktrees, left_ticked};
pub use merges::{MergedWork, merged_work};
pub use plan::{Asked, LaneToRollBack, RollbackPlan, RolledBackBefore, plan};
pub use points::Point;

type Result<T, E = RollbackError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    #[error("the plan has no lane `{0}`")]
    UnknownLane(LaneId),
    #[error("{lane} cannot be rolled back without the lanes that depend on it and have begun: {}", names(.dependants))]
    Dependants {
        lane: LaneId,
        /// Those that have begun and were not asked for.
        dependants: Vec<LaneId>,
        /// Everything that has to be rolled back together.
        all: Vec<LaneId>,
    },
    #[error("{lane} depends on lanes that are not merged: {}", names(.missing))]
    DependsOn { lane: LaneId, missing: Vec<LaneId> },
    #[error("{0} is worked on by a job of an executor")]
    Elsewhere(LaneId),
    #[error("{} no point `{to}`", .lane.as_ref().map_or("the lanes that have begun have".to_owned(), |lane| format!("{lane} has")))]
    UnknownPoint {
        /// `None`: no lane was asked for.
        lane: Option<LaneId>,
        to: String,
        /// The stages and tasks that it can be taken back to.
        has: Vec<String>,
    },
    #[error("`{to}` is a task of several agents of {lane}: {}", .names.join(", "))]
    AmbiguousPoint { lane: LaneId, to: String, names: [String; 2] },
    #[error("several lanes have `{to}`: {}", names(.lanes))]
    SeveralLanes { to: String, lanes: Vec<LaneId> },
    #[error("{0} was worked on by an executor, which knows no point of it but its start")]
    Placed(LaneId),
    #[error("{lane} cannot be taken back to {to}: {} cannot be read any more", .commit.short())]
    LostPoint { lane: LaneId, to: String, commit: CommitId },
    #[error("branch {0} is in the way; it is not this run's")]
    BranchTaken(String),
    #[error("what {lane} had changed conflicts with what is on {branch} now: {}", .paths.join(", "))]
    ConflictAgain { lane: LaneId, branch: String, paths: Vec<String> },
    #[error("the merge of {lane} cannot be undone by itself: {} changed again since", .paths.join(", "))]
    Conflict { lane: LaneId, merge: CommitId, branch: String, paths: Vec<String> },
    #[error("{branch} is checked out in {} and cannot be fast-forwarded because of {}", .worktree.display(), .blockers.paths.join(", "))]
    CheckedOut { branch: String, worktree: PathBuf, blockers: Blockers },
    #[error("{branch} moves faster than a merge can be undone on it")]
    Busy { branch: String },
    #[error("branch {branch} is checked out in {}, so it cannot be removed", .place.display())]
    BranchInUse { branch: String, place: PathBuf },
    #[error("{} holds repositories of their own, which no snapshot can keep: {}", .worktree.display(), .paths.join(", "))]
    Embedded {
        worktree: PathBuf,
        /// The repositories, relative to it.
        paths: Vec<String>,
    },
    #[error("{0}")]
    Git(#[from] GitError),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error("{0}")]
    Process(#[from] ProcessError),
    #[error("{0}")]
    Log(#[from] LogError),
    #[error("the run's events contradict each other")]
    Contradiction(#[from] Fault),
}

#[cfg(test)]
mod tests;
