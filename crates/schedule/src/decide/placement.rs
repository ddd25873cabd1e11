//! A lane that works on a cluster: offered, followed, and offered again where its work was cut off.

use lanewright_model::event::Event;
use lanewright_model::retry::backoff;
use lanewright_model::{Failure, FailureKind, LaneIndex};

use crate::action::Action;
use crate::decide::agent::out_of_budget;
use crate::decide::deciding::Deciding;

/// So many placements in a row that were lost without progress are a failure of the lane.
const MOST_LOSSES: u32 = 3;

/// Waits for what becomes of a lane that is elsewhere, which may be asked to stop; says whether it is.
pub(crate) fn is_elsewhere(deciding: &mut Deciding, lane: LaneIndex, stop: Option<bool>) -> bool {
    let placement_state = &deciding.state.lane(lane).placement;
    let Some(placement) = placement_state.current() else { return false };
    if placement_state.is_released {
        return true;
    }
    deciding.want(if placement.job.is_some() { Action::FollowLane(lane) } else { Action::PlaceLane(lane) });
    if let Some(force) = stop {
        deciding.want(Action::StopPlacement { lane, force });
    }
    true
}

/// Offers the lane, unless its placements get lost again and again.
pub(crate) fn offer(deciding: &mut Deciding, lane: LaneIndex, executor: &str) {
    let (state, plan) = (deciding.state, deciding.state.plan.lane(lane));
    let placement = &state.lane(lane).placement;
    // Where it runs, no attempt would begin.
    let wants = |agent: &usize| state.lane(lane).agents()[*agent].wants_a_place(&plan.agents[*agent]);
    let mut wanting = state.current_round(lane).into_iter().flat_map(|round| plan.round(round)).filter(wants);
    let of_runner = || wanting.find_map(|agent| state.next_runner(lane, agent)?.exhausted);
    let exhausted = state.budget_exhausted().or_else(|| state.budget_exhausted_in(lane)).or_else(of_runner);
    if let Some(exhausted) = exhausted {
        return out_of_budget(deciding, lane, exhausted);
    }
    if let Some((at, why)) = placement.lost.as_ref().filter(|_| placement.losses > 0) {
        if placement.losses >= MOST_LOSSES {
            let message =
                format!("{MOST_LOSSES} jobs in a row ended before the lane did, without progress; the last one: {why}");
            return deciding.fail(lane, Failure::new(FailureKind::Lost, message));
        }
        if !deciding.due(at.plus(backoff(state.first_backoff(), deciding.id(lane).as_str(), placement.losses))) {
            return;
        }
    }
    let (number, executor, budget) = (placement.number + 1, executor.to_owned(), state.budget_part(lane));
    deciding.note(Event::LaneOffered { lane: deciding.id(lane), number, executor, budget });
}
