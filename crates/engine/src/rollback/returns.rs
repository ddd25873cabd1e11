//! The branches of a lane at a point of its own, and its commits made again where they are undone.

use lanewright_git as git;
use lanewright_model::{CommitId, LaneIndex};
use lanewright_schedule::LaneState;

use super::merges::Reverted;
use super::plan::LaneToRollBack;
use super::points::{Point, SavedFiles};
use super::{Result, RollbackError, worktrees};
use crate::executor::Executor;
use crate::executor::snapshot::REASON;

/// The lane's branches at a point, each with its agent (`None`: the lane's own) and its head.
pub(super) fn branches(executor: &Executor, lane: LaneIndex, then: &LaneState) -> Vec<(Option<usize>, CommitId)> {
    let plan = executor.plan.lane(lane);
    let own = then.worktree().map(|worktree| (None, then.head().unwrap_or(&worktree.head).clone()));
    let agents = then.agents().iter().enumerate().filter(|(at, _)| !plan.shares_worktree(*at));
    let agents = agents.filter_map(|(at, agent)| {
        let worktree = agent.worktree.as_ref()?;
        Some((Some(at), agent.head.as_ref().unwrap_or(&worktree.head).clone()))
    });
    own.into_iter().chain(agents).collect()
}

/// Whether a snapshot is of the files of a worktree, and not just a ref to the head of a branch.
pub(super) fn is_of_files(executor: &Executor, saved: &SavedFiles) -> bool {
    git::trailers_of(&executor.repository, &saved.commit).contains_key(REASON)
}

/// Where a branch stood: what is recorded, and what a rollback saved of commits that were on top of that.
pub(super) fn head_then(
    executor: &Executor,
    recorded: &CommitId,
    point: &Point,
    saved: &[&SavedFiles],
) -> Result<CommitId> {
    let (mut head, repository) = (recorded.clone(), &executor.repository);
    // Those of a merged lane are made again.
    for saved in saved.iter().filter(|_| !point.merged_since) {
        let at = match is_of_files(executor, saved) {
            true => repository.parent_of(&saved.commit)?,
            false => Some(saved.commit.clone()),
        };
        if let Some(at) = at
            && repository.is_ancestor(&head, &at)?
        {
            head = at;
        }
    }
    Ok(head)
}

/// Refuses a point whose commits cannot be read, whose work cannot be made again, or whose branches another run has.
/// Moves nothing.
pub(super) fn check(executor: &Executor, lane: &LaneToRollBack, undone: &Reverted) -> Result<()> {
    let Some(point) = &lane.point else { return Ok(()) };
    let id = || executor.plan.lane(lane.lane).id.clone();
    let branches = branches(executor, lane.lane, &point.then);
    let heads = branches.iter().map(|(_, head)| head).chain(point.files.iter().map(|saved| &saved.commit));
    let needed: Vec<CommitId> = heads.chain(point.then.base()).cloned().collect();
    if let Some(commit) = git::damaged(&executor.repository, &needed)?.into_keys().next() {
        return Err(RollbackError::LostPoint { lane: id(), to: point.name.clone(), commit });
    }
    made_again(executor, lane, point, undone)?;
    if lane.owns_branches {
        return Ok(());
    }
    // Those of a merged lane are gone; a rollback that died has made them again.
    let held = worktrees::held(executor, lane.lane)?;
    for (agent, head) in &branches {
        let branch =
            agent.map_or_else(|| executor.lane_branch(lane.lane), |agent| executor.agent_branch(lane.lane, agent));
        let Some(tip) = executor.repository.branch_commit(&branch)?.filter(|tip| tip != head) else { continue };
        let is_held = |place: &std::path::PathBuf| held.iter().any(|slot| slot.path == *place);
        let is_made_again = executor.trailers(&id()).iter().all(|(name, value)| {
            git::trailers_of(&executor.repository, &tip).get(*name).is_some_and(|known| known == value)
        });
        if !is_made_again && !executor.repository.all_checked_out(&branch)?.iter().any(is_held) {
            return Err(RollbackError::BranchTaken(branch));
        }
    }
    Ok(())
}

/// The lane's commits up to the point, each with one that has the same changes on top of the integration branch, if the
/// lane was merged after the point. The branch, or its history, has its commits undone: merged once more, they would bring
/// nothing. Begins with its base. No ref leads to them yet.
pub(super) fn made_again(
    executor: &Executor,
    lane: &LaneToRollBack,
    point: &Point,
    undone: &Reverted,
) -> Result<Vec<(CommitId, CommitId)>> {
    let (then, repository) = (&point.then, &executor.repository);
    let Some(base) = then.base().filter(|_| point.merged_since) else { return Ok(Vec::new()) };
    let onto = undone.tip.clone().map_or_else(|| executor.integration(), Ok)?;
    let plan = executor.plan.lane(lane.lane);
    // The lane's branch first: the agents' branches began on it.
    let shared = (0..plan.agents.len()).filter(|&at| plan.shares_worktree(at)).map(|at| &then.agents()[at]);
    let mut own: Vec<&CommitId> = then.merges().iter().map(|(_, head)| head).chain(then.head()).collect();
    own.extend(shared.flat_map(|agent| agent.start.iter().chain(&agent.passed).chain(&agent.head)));
    let separate = branches(executor, lane.lane, then).into_iter().filter_map(|(at, _)| at);
    let mut lines = vec![(base, own)];
    lines.extend(separate.map(|at| &then.agents()[at]).map(|agent| {
        (agent.start.as_ref().unwrap_or(base), agent.passed.iter().chain(&agent.good).chain(&agent.head).collect())
    }));
    lines.push((base, point.files.iter().map(|saved| &saved.commit).collect()));
    let mut made = vec![(base.clone(), onto.clone())];
    for (start, mut line) in lines {
        line.sort();
        line.dedup();
        let mut ordered = Vec::new();
        for commit in line {
            ordered.push((repository.commits_between(base, commit)?, commit));
        }
        ordered.sort();
        let known = |made: &[(CommitId, CommitId)], commit: &CommitId| {
            made.iter().find(|(before, _)| before == commit).map(|(_, now)| now.clone())
        };
        let mut before = known(&made, start).unwrap_or_else(|| onto.clone());
        for (_, commit) in ordered {
            before = match known(&made, commit) {
                Some(now) => now,
                None => {
                    let now = make_again(executor, lane, [base, &onto, commit], &before)?;
                    made.push((commit.clone(), now.clone()));
                    now
                }
            };
        }
    }
    Ok(made)
}

fn make_again(
    executor: &Executor,
    lane: &LaneToRollBack,
    commits: [&CommitId; 3],
    before: &CommitId,
) -> Result<CommitId> {
    let id = executor.plan.lane(lane.lane).id.clone();
    let message = git::message(&format!("{id}: its work again, after its merge was undone"), &executor.trailers(&id));
    git::make_again(&executor.repository, commits, before, &message)?.map_err(|paths| {
        let branch = executor.facts.base_branch.clone();
        RollbackError::ConflictAgain { lane: id, branch, paths }
    })
}
