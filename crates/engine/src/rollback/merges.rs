//! Reverts merged work on the integration branch.

use lanewright_git::{self as git, Publication, Revert};
use lanewright_model::{CommitId, LaneId, LaneIndex};

use super::plan::{LaneToRollBack, MergeToRevert, RollbackPlan};
use super::{Result, RollbackError};
use crate::executor::Executor;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reverted {
    pub(super) tip: Option<CommitId>,
    /// The commit that undid each lane's merge, now or before.
    pub(super) by: Vec<(LaneIndex, CommitId)>,
    /// Those whose merges were not undone before.
    new: Vec<LaneIndex>,
    /// The lists in which what a lane did stays ticked, because they changed there since.
    pub(super) left_ticked: Vec<(LaneIndex, String)>,
}

/// The work of a lane that a rollback takes out of the integration branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedWork {
    pub lane: LaneId,
    pub merge: CommitId,
    pub commits: usize,
    pub files: usize,
}

const TRIES: u32 = 5;

/// What the rollback takes out of the integration branch: nothing of merges that were undone before. Moves nothing.
///
/// # Errors
/// [`RollbackError::Conflict`], [`RollbackError::CheckedOut`], or what git returns.
pub fn merged_work(executor: &Executor, plan: &RollbackPlan) -> Result<Vec<MergedWork>> {
    let undone = checked(executor, &plan.lanes)?.new;
    let merges = plan.lanes.iter().filter(|lane| undone.contains(&lane.lane));
    let merges = merges.filter_map(|lane| Some((lane.lane, lane.merge.as_ref()?)));
    let work = |(lane, merge): (LaneIndex, &MergeToRevert)| {
        Ok(MergedWork {
            lane: executor.plan.lane(lane).id.clone(),
            merge: merge.commit.clone(),
            commits: executor.repository.commits_between(&merge.onto, &merge.commit)?,
            files: executor.repository.changed_paths(&merge.onto, &merge.commit)?.len(),
        })
    };
    merges.map(work).collect()
}

/// Checks that the merges can be reverted. Moves nothing.
pub(super) fn checked(executor: &Executor, lanes: &[LaneToRollBack]) -> Result<Reverted> {
    let Some(onto) = integration(executor, lanes)? else { return Ok(Reverted::default()) };
    let staged = stage(executor, lanes, &onto)?;
    let tip = staged.tip.as_ref().unwrap_or(&onto);
    let branch = &executor.facts.base_branch;
    match git::publish_blocker(&executor.repository, branch, &onto, tip)? {
        Some(obstacle) if *tip != onto => refused(executor, obstacle).map(|()| staged),
        _ => Ok(staged),
    }
}

/// Reverts the merges and moves the integration branch there, in one step for all of them.
pub(super) fn undo(executor: &Executor, lanes: &[LaneToRollBack]) -> Result<Reverted> {
    let branch = &executor.facts.base_branch;
    for _ in 0..TRIES {
        let Some(onto) = integration(executor, lanes)? else { return Ok(Reverted::default()) };
        let staged = stage(executor, lanes, &onto)?;
        let tip = staged.tip.as_ref().unwrap_or(&onto);
        match git::publish(&executor.repository, branch, &onto, tip)? {
            Publication::Published | Publication::AlreadyThere => return Ok(staged),
            Publication::Moved(_) => {}
            obstacle => refused(executor, obstacle)?,
        }
    }
    Err(RollbackError::Busy { branch: branch.clone() })
}

fn integration(executor: &Executor, lanes: &[LaneToRollBack]) -> Result<Option<CommitId>> {
    match lanes.iter().any(|lane| lane.merge.is_some()) {
        true => Ok(Some(executor.integration()?)),
        false => Ok(None),
    }
}

/// Makes the commits that undo the merges, the latest merge first, on top of `onto`. No ref points to them yet.
fn stage(executor: &Executor, lanes: &[LaneToRollBack], onto: &CommitId) -> Result<Reverted> {
    let mut merges: Vec<_> = lanes.iter().filter_map(|lane| Some((lane.lane, lane.merge.as_ref()?))).collect();
    merges.sort_by_key(|(_, merge)| std::cmp::Reverse(merge.seq));
    let (mut tip, mut by, mut new, mut left_ticked) = (onto.clone(), Vec::new(), Vec::new(), Vec::new());
    for (lane, merge) in merges {
        let id = &executor.plan.lane(lane).id;
        let trailers = executor.trailers(id);
        let commits = [&merge.onto, &merge.commit, &tip];
        let lists = executor.reopened_lists(lane, commits)?;
        left_ticked.extend(lists.left.into_iter().map(|path| (lane, path)));
        let reserved = executor.tracking_without(commits)?.into_iter().chain(lists.files).collect::<Vec<_>>();
        match git::revert(&executor.repository, &tip, &merge.commit, &merge.onto, &trailers, &reserved)? {
            Revert::NothingToUndo(commit) => by.extend(commit.map(|commit| (lane, commit))),
            Revert::Done(commit) => {
                by.push((lane, commit.clone()));
                new.push(lane);
                tip = commit;
            }
            Revert::Conflict(paths) => {
                let (lane, branch) = (id.clone(), executor.facts.base_branch.clone());
                return Err(RollbackError::Conflict { lane, merge: merge.commit.clone(), branch, paths });
            }
        }
    }
    Ok(Reverted { tip: Some(tip), by, new, left_ticked })
}

fn refused(executor: &Executor, obstacle: Publication) -> Result<()> {
    match obstacle {
        Publication::CheckedOutDirty { worktree, blockers } => {
            Err(RollbackError::CheckedOut { branch: executor.facts.base_branch.clone(), worktree, blockers })
        }
        Publication::Published | Publication::AlreadyThere | Publication::Moved(_) => Ok(()),
    }
}
