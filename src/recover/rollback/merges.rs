//! Taking merged work out of the integration branch again.

use super::RollbackError;
use super::plan::LaneToPutBack;
use crate::engine::ports::Ports;
use crate::git::{self, Publication, Revert};
use crate::model::{CommitId, LaneIndex};

/// What was taken out of the integration branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Undone {
    /// Where the integration branch stands with it.
    pub(super) tip: Option<CommitId>,
    /// The commit that undid each lane's merge, now or before.
    pub(super) by: Vec<(LaneIndex, CommitId)>,
}

/// How often the undoing is made anew because the integration branch moved meanwhile.
const TRIES: u32 = 5;

/// Tells what would keep the lanes' merges from being undone. Moves nothing.
pub(super) fn check(ports: &Ports, lanes: &[LaneToPutBack]) -> Result<(), RollbackError> {
    let Some(onto) = integration(ports, lanes)? else { return Ok(()) };
    let staged = stage(ports, lanes, &onto)?;
    let tip = staged.tip.unwrap_or_else(|| onto.clone());
    let branch = &ports.facts.base_branch;
    match git::obstacle_to_publishing(&ports.repository, branch, &onto, &tip)? {
        Some(obstacle) if tip != onto => refused(ports, obstacle),
        _ => Ok(()),
    }
}

/// Undoes the lanes' merges and moves the integration branch there, in one step for all of them.
pub(super) fn undo(ports: &Ports, lanes: &[LaneToPutBack]) -> Result<Undone, RollbackError> {
    let branch = &ports.facts.base_branch;
    for _ in 0..TRIES {
        let Some(onto) = integration(ports, lanes)? else { return Ok(Undone::default()) };
        let staged = stage(ports, lanes, &onto)?;
        let tip = staged.tip.as_ref().unwrap_or(&onto);
        match git::publish(&ports.repository, branch, &onto, tip)? {
            Publication::Published | Publication::AlreadyThere => return Ok(staged),
            Publication::Moved(_) => {}
            obstacle => refused(ports, obstacle)?,
        }
    }
    Err(RollbackError::Busy { branch: branch.clone() })
}

/// The integration branch, if anything of the lanes may be in it.
fn integration(ports: &Ports, lanes: &[LaneToPutBack]) -> Result<Option<CommitId>, RollbackError> {
    match lanes.iter().any(|lane| lane.landed.is_some()) {
        true => Ok(Some(ports.integration()?)),
        false => Ok(None),
    }
}

/// Makes the commits that undo the merges, the latest merge first, on top of `onto`. Nobody sees them yet.
fn stage(ports: &Ports, lanes: &[LaneToPutBack], onto: &CommitId) -> Result<Undone, RollbackError> {
    let mut landed: Vec<_> = lanes.iter().filter_map(|lane| Some((lane.lane, lane.landed.as_ref()?))).collect();
    landed.sort_by_key(|(_, merge)| std::cmp::Reverse(merge.seq));
    let (mut tip, mut by) = (onto.clone(), Vec::new());
    for (lane, merge) in landed {
        let id = &ports.plan.lane(lane).id;
        match git::revert(&ports.repository, &tip, &merge.commit, &merge.onto, &ports.trailers(id))? {
            Revert::NothingToUndo(commit) => by.extend(commit.map(|commit| (lane, commit))),
            Revert::Done(commit) => {
                by.push((lane, commit.clone()));
                tip = commit;
            }
            Revert::Conflict(paths) => {
                let (lane, branch) = (id.clone(), ports.facts.base_branch.clone());
                return Err(RollbackError::Conflict { lane, merge: merge.commit.clone(), branch, paths });
            }
        }
    }
    Ok(Undone { tip: Some(tip), by })
}

fn refused(ports: &Ports, obstacle: Publication) -> Result<(), RollbackError> {
    match obstacle {
        Publication::CheckedOutDirty { worktree, obstacles } => {
            Err(RollbackError::CheckedOut { branch: ports.facts.base_branch.clone(), worktree, obstacles })
        }
        Publication::Published | Publication::AlreadyThere | Publication::Moved(_) => Ok(()),
    }
}
