//! Opens the worktrees of a pulled run, from its branches and its newest snapshots.

use std::collections::BTreeMap;

use lanewright_git::{self as git, Checkout, GitError, Holder, Pool};
use lanewright_model::event::{Event, Record, Worktree};
use lanewright_model::{AgentName, CommitId, LaneId, LaneIndex, RunId};
use lanewright_schedule::RunState;

type Who = (LaneId, Option<AgentName>);

/// Opens every worktree that the run holds, as its branch and its newest snapshot have it. Answers each slot's number as
/// the log has it and as it is here; the same when it is repeated.
pub(crate) fn open_all(
    pool: &Pool,
    run: &RunId,
    state: &RunState,
    records: &[Record],
) -> Result<Vec<(u32, u32)>, GitError> {
    let snapshots = newest_snapshots(state, records);
    let mut slots = Vec::new();
    for lane in state.plan().indices() {
        for (agent, worktree) in held(state, lane) {
            let holder = Holder { run: run.clone(), lane: Some(state.plan().lane(lane).id.clone()), agent };
            let opened = open(pool, &holder, worktree)?;
            if let (Some(lane), agent) = (holder.lane, holder.agent)
                && let Some(snapshot) = snapshots.get(&(lane, agent))
            {
                restore_files(pool, &opened, snapshot)?;
            }
            slots.push((worktree.slot, opened.slot));
        }
    }
    slots.sort_unstable();
    Ok(slots)
}

fn held(state: &RunState, lane: LaneIndex) -> Vec<(Option<AgentName>, &Worktree)> {
    let (lane_state, plan) = (state.lane(lane), state.plan().lane(lane));
    if lane_state.is_complete() || lane_state.is_elsewhere() {
        return Vec::new();
    }
    let own = lane_state.worktree().into_iter().map(|worktree| (None, worktree));
    let agents = plan.agents.iter().zip(lane_state.agents());
    let agents = agents.filter_map(|(agent, worker)| Some((Some(agent.name.clone()), worker.worktree.as_ref()?)));
    own.chain(agents).collect()
}

fn open(pool: &Pool, holder: &Holder, worktree: &Worktree) -> Result<Worktree, GitError> {
    let opened = pool.open(holder, &Checkout::again(worktree))?;
    pool.link(holder, &opened.path)?;
    Ok(opened)
}

/// Restores the files of a worktree from a snapshot that was taken at the current head of its branch.
fn restore_files(pool: &Pool, worktree: &Worktree, snapshot: &CommitId) -> Result<(), GitError> {
    let head = git::head_of(&worktree.path)?.commit;
    let repository = pool.repository();
    // A run that died while it cleaned up after a lane has removed those of the lane; a state has none that was damaged.
    let is_here = || repository.has_commit(snapshot);
    let taken_there = *snapshot != head && is_here()? && repository.is_ancestor(&head, snapshot)?;
    if taken_there && !git::has_changes(&worktree.path)? { git::restore(&worktree.path, snapshot) } else { Ok(()) }
}

/// The last snapshot of each worktree since its last reset. Those that only saved what had to make room do not count.
fn newest_snapshots(state: &RunState, records: &[Record]) -> BTreeMap<Who, CommitId> {
    let holder = |lane: &LaneId, agent: &AgentName| {
        let shares = state.find(lane).is_some_and(|at| {
            let plan = state.plan().lane(at);
            plan.agents.iter().position(|known| known.name == *agent).is_some_and(|agent| plan.shares_worktree(agent))
        });
        (lane.clone(), Some(agent.clone()).filter(|_| !shares))
    };
    let mut newest = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::SnapshotTaken { lane, agent: Some(agent), reason, commit, .. } if reason.is_work_to_continue() => {
                newest.insert(holder(lane, agent), commit.clone());
            }
            Event::WorkCommitted { lane, agent, .. } | Event::AgentReset { lane, agent, .. } => {
                newest.remove(&holder(lane, agent));
            }
            Event::WorktreeOpened { lane, agent, .. } => drop(newest.remove(&(lane.clone(), agent.clone()))),
            Event::LaneReset { lane, .. } => newest.retain(|(of, _), _| of != lane),
            _ => {}
        }
    }
    newest
}
