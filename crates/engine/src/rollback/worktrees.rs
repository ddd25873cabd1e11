//! The worktrees and branches of a lane that is rolled back.

use std::path::PathBuf;

use lanewright_git::{self as git, HeldSlot};
use lanewright_model::{AgentName, CommitId, LaneIndex};
use lanewright_view::history::SnapshotView;

use super::plan::LaneToRollBack;
use super::{Result, RollbackError};
use crate::executor::Executor;

pub(super) fn held(executor: &Executor, lane: LaneIndex) -> Result<Vec<HeldSlot>> {
    let id = &executor.plan.lane(lane).id;
    let slots = executor.pool.held_by(&executor.facts.run_id)?;
    Ok(slots.into_iter().filter(|slot| slot.holder.lane.as_ref() == Some(id)).collect())
}

/// Refuses a rollback that would lose work or take a branch from the user.
pub(super) fn check(executor: &Executor, lane: &LaneToRollBack) -> Result<()> {
    let held = held(executor, lane.lane)?;
    for slot in held.iter().filter(|slot| slot.provisioned) {
        git::refuse_unreadable(&slot.path)?;
        let paths = git::embedded_repositories_in(&slot.path)?;
        if !paths.is_empty() {
            return Err(RollbackError::Embedded { worktree: slot.path.clone(), paths });
        }
    }
    for (_, branch) in branches(executor, lane) {
        let places: Vec<PathBuf> = executor.repository.all_checked_out(&branch)?;
        if let Some(place) = places.into_iter().find(|place| held.iter().all(|slot| slot.path != *place)) {
            return Err(RollbackError::BranchInUse { branch, place });
        }
    }
    Ok(())
}

pub(super) fn existing(executor: &Executor, kept: &[SnapshotView]) -> Result<Vec<SnapshotView>> {
    let commits: Vec<CommitId> = kept.iter().map(|work| work.commit.clone()).collect();
    let damaged = git::damaged(&executor.repository, &commits)?;
    let mut found = Vec::new();
    for work in kept.iter().filter(|work| !damaged.contains_key(&work.commit)) {
        if executor.repository.target_of(&work.reference)?.as_ref() == Some(&work.commit) {
            found.push(work.clone());
        }
    }
    Ok(found)
}

pub(super) fn delete_branches(executor: &Executor, lane: &LaneToRollBack) -> Result<()> {
    let branches: Vec<String> = branches(executor, lane).into_iter().map(|(_, branch)| branch).collect();
    for branch in branches.iter().cloned() {
        if let Some(place) = executor.repository.where_checked_out(&branch)? {
            return Err(RollbackError::BranchInUse { branch, place });
        }
        match executor.repository.target_of(&git::branch_reference(&branch))? {
            Some(head) => {
                drop(git::delete_references(&executor.repository, &[(git::branch_reference(&branch), head)])?)
            }
            None => git::forget_branch(&executor.repository, &branch)?,
        }
    }
    // The lane may begin again at once, and must not find them.
    let names: Vec<String> = branches.iter().map(|branch| git::branch_reference(branch)).collect();
    Ok(git::sync_deleted(&executor.repository, &names)?)
}

/// The names of the lane's branches, each with its agent.
pub(super) fn branches(executor: &Executor, lane: &LaneToRollBack) -> Vec<(Option<AgentName>, String)> {
    if !lane.owns_branches {
        return Vec::new();
    }
    let plan = executor.plan.lane(lane.lane);
    let own = (0..plan.agents.len()).filter(|&agent| !plan.shares_worktree(agent));
    let agents = own.map(|agent| (Some(plan.agents[agent].name.clone()), executor.agent_branch(lane.lane, agent)));
    [(None, executor.lane_branch(lane.lane))].into_iter().chain(agents).collect()
}
