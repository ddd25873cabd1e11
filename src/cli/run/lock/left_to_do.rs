//! A lane of a run in which something is left to do.

use lanewright_model::{LaneId, LaneIndex};
use lanewright_schedule::LaneEnd;

use super::locked_run::LockedRun;
use crate::cli::runs::{command, require_lane};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// The lane of that id. Refuses one in which nothing is left that could be `wanted`: to skip, to retry, to resume.
pub(crate) fn left_to_do(
    within: &RepositoryContext,
    locked: &LockedRun,
    id: &LaneId,
    wanted: &str,
) -> Result<LaneIndex> {
    let lane = require_lane(&locked.plan, id)?;
    let state = locked.state.lane(lane);
    if state.is_left_to_do() {
        return Ok(lane);
    }
    let refused =
        |is: &str| ExitStatus::InvalidOperation.error(format!("lane {id} {is}; there is nothing to {wanted}"));
    Err(match state.end() {
        Some(LaneEnd::Skipped) => {
            refused("is skipped").hint(format!("to take it in again: {}", undo_of_skip(within, locked, lane)))
        }
        Some(LaneEnd::Left) => refused("is not part of this run"),
        Some(LaneEnd::Blocked(_)) if state.merged().is_some() => {
            let follow = command(&within.state, &["follow", locked.started.run_id.as_str()]);
            refused("waits with its pull request, which is open")
                .hint(format!("to have it continue with what is said there: {follow}"))
        }
        _ => refused("is done"),
    })
}

/// The rollback that takes a skipped lane in again. It names the lanes that depend on it, so that it is possible also
/// after those were merged.
pub(crate) fn undo_of_skip(within: &RepositoryContext, locked: &LockedRun, lane: LaneIndex) -> String {
    let (plan, run) = (&locked.plan, locked.started.run_id.as_str());
    let is_part = |lane: &LaneIndex| locked.state.lane(*lane).end() != Some(&LaneEnd::Left);
    let lanes: Vec<LaneIndex> = plan.dag().with_dependants([lane]).into_iter().filter(is_part).collect();
    let options = lanes.iter().flat_map(|lane| ["--lane", plan.lane(*lane).id.as_str()]);
    command(&within.state, &["rollback", run].into_iter().chain(options).collect::<Vec<_>>())
}
