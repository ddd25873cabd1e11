//! The work in a lane's worktrees and branches: kept first, then taken apart.

use std::path::PathBuf;

use super::RollbackError;
use super::plan::{KeptWork, LaneToPutBack};
use crate::engine::ports::{Keeping, PortError, Ports};
use crate::event::SnapshotReason;
use crate::git::{self, HeldSlot, Snapshot};
use crate::model::{AgentName, CommitId, LaneIndex, Timestamp};

/// The slots that the lane and its agents hold.
pub(super) fn held(ports: &Ports, lane: LaneIndex) -> Result<Vec<HeldSlot>, RollbackError> {
    let id = &ports.plan.lane(lane).id;
    let slots = ports.pool.held_by(&ports.facts.run_id)?;
    Ok(slots.into_iter().filter(|slot| slot.holder.lane.as_ref() == Some(id)).collect())
}

/// Refuses what could not be put back without losing something or taking it from a person.
pub(super) fn check(ports: &Ports, lane: &LaneToPutBack) -> Result<(), RollbackError> {
    let held = held(ports, lane.lane)?;
    for slot in held.iter().filter(|slot| slot.furnished) {
        git::refuse_unreadable(&slot.path)?;
        let paths = git::embedded_repositories_in(&slot.path)?;
        if !paths.is_empty() {
            return Err(RollbackError::Embedded { worktree: slot.path.clone(), paths });
        }
    }
    for (_, branch) in branches(ports, lane) {
        let places: Vec<PathBuf> = ports.repository.all_checked_out(&branch)?;
        if let Some(place) = places.into_iter().find(|place| held.iter().all(|slot| slot.path != *place)) {
            return Err(RollbackError::BranchInUse { branch, place });
        }
    }
    Ok(())
}

/// Keeps everything of the lane that nothing else holds: what is uncommitted in its worktrees, and what is on its
/// branches alone. `at` names the refs; `tell` is told of every one that is made.
pub(super) fn keep(
    ports: &Ports,
    lane: &LaneToPutBack,
    at: Timestamp,
    tell: &mut dyn FnMut(KeptWork) -> Result<(), RollbackError>,
) -> Result<(), RollbackError> {
    let mut kept = existing(ports, &lane.kept)?;
    let mut heads = Vec::new();
    for slot in held(ports, lane.lane)?.into_iter().filter(|slot| slot.furnished) {
        let agent = slot.holder.agent;
        if git::uncommitted_paths(&slot.path)?.is_empty() {
            heads.push((agent, git::head_of(&slot.path)?.commit));
            continue;
        }
        let keeping = Keeping { lane: lane.lane, agent: agent.as_ref(), at, reason: SnapshotReason::Rollback };
        let snapshot = ports.keep_worktree(&keeping, &slot.path)?;
        kept.push(told(tell, agent, snapshot)?);
    }
    for (agent, branch) in branches(ports, lane) {
        heads.extend(ports.repository.branch_commit(&branch)?.map(|head| (agent, head)));
    }
    let landed = lane.landed.is_some();
    // The branch of a lane that was merged is gone; its head is in the history that is about to be undone.
    heads.extend(lane.head.clone().filter(|_| landed).map(|head| (None, head)));
    let integration = ports.integration()?;
    for (agent, head) in heads {
        let safe = |commit: &CommitId| ports.repository.is_ancestor(&head, commit);
        let mut known = if landed { Vec::new() } else { vec![integration.clone()] };
        known.extend(kept.iter().map(|work| work.commit.clone()));
        known.push(ports.facts.base_commit.clone());
        if !known.iter().map(safe).collect::<Result<Vec<_>, _>>()?.contains(&true) {
            kept.push(told(tell, agent, ports.keep_commit(lane.lane, &head, at)?)?);
        }
    }
    Ok(())
}

fn told(
    tell: &mut dyn FnMut(KeptWork) -> Result<(), RollbackError>,
    agent: Option<AgentName>,
    snapshot: Snapshot,
) -> Result<KeptWork, RollbackError> {
    let work = KeptWork { agent, commit: snapshot.commit, reference: snapshot.reference };
    tell(work.clone())?;
    Ok(work)
}

/// Those of `kept` whose refs still are there and lead to what can be read.
pub(super) fn existing(ports: &Ports, kept: &[KeptWork]) -> Result<Vec<KeptWork>, RollbackError> {
    let commits: Vec<CommitId> = kept.iter().map(|work| work.commit.clone()).collect();
    let damaged = git::damaged(&ports.repository, &commits)?;
    let mut found = Vec::new();
    for work in kept.iter().filter(|work| !damaged.contains_key(&work.commit)) {
        if ports.repository.commit_at(&work.reference)?.as_ref() == Some(&work.commit) {
            found.push(work.clone());
        }
    }
    Ok(found)
}

/// Gives the lane's slots back, clean and on no branch, and removes the links to them. `tell` is told of what was in the
/// place of a worktree, which is moved aside.
pub(super) fn release(
    ports: &Ports,
    lane: LaneIndex,
    at: Timestamp,
    tell: &mut dyn FnMut(PathBuf) -> Result<(), RollbackError>,
) -> Result<(), RollbackError> {
    for slot in held(ports, lane)? {
        if let Some(aside) = ports.pool.set_lost_aside(&slot.holder, &slot.path, at)?.and_then(|lost| lost.aside) {
            tell(aside)?;
        }
        let mut heads = Vec::new();
        if slot.furnished {
            let head = git::head_of(&slot.path)?.commit;
            git::restore(&slot.path, &head)?;
            heads.push(head);
        }
        ports.pool.unlink(&slot.holder)?;
        ports.pool.release(&slot.holder, &heads)?;
        let index = ports.index_file(lane, slot.holder.agent.as_ref());
        crate::fs::atomic::remove(&index).map_err(PortError::from)?;
    }
    Ok(())
}

/// Deletes the lane's branches, which no worktree has checked out any more.
pub(super) fn delete_branches(ports: &Ports, lane: &LaneToPutBack) -> Result<(), RollbackError> {
    for (_, branch) in branches(ports, lane) {
        if let Some(place) = ports.repository.where_checked_out(&branch)? {
            return Err(RollbackError::BranchInUse { branch, place });
        }
        match ports.repository.branch_commit(&branch)? {
            Some(head) => drop(git::delete_references(&ports.repository, &[(git::branch_reference(&branch), head)])?),
            None => git::forget_branch(&ports.repository, &branch)?,
        }
    }
    Ok(())
}

/// The names of the lane's own branches, each with the agent whose it is.
fn branches(ports: &Ports, lane: &LaneToPutBack) -> Vec<(Option<AgentName>, String)> {
    if !lane.owns_branches {
        return Vec::new();
    }
    let plan = ports.plan.lane(lane.lane);
    let own = (0..plan.agents.len()).filter(|&agent| !plan.shares_worktree(agent));
    let agents = own.map(|agent| (Some(plan.agents[agent].name.clone()), ports.agent_branch(lane.lane, agent)));
    [(None, ports.lane_branch(lane.lane))].into_iter().chain(agents).collect()
}
