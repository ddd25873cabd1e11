use lanewright_model::{Agent, AgentName};

use super::*;
use crate::decide::deciding::Decisions;
use crate::sample_plans::{lane, moment, plan};
use crate::state::RunState;
use crate::state::agent::AgentStep;
use lanewright_model::event::SnapshotReason;

const LANE: LaneIndex = LaneIndex(0);

/// What the round of implementation decides where the engineer's work cannot be kept, and a reviewer left some.
fn decided(reviewer_kept: bool) -> Decisions {
    let mut parts = lane("A", &[], 1, &[]);
    let name = AgentName::new("reviewer").unwrap();
    parts.agents.push(Agent { name, round: Round::Review, ..parts.agents[0].clone() });
    let mut state = RunState::new(plan(vec![parts], &[]).into());
    let agents = state.lanes[0].attempts.agents_mut();
    agents[0].step = AgentStep::Salvaging(SnapshotReason::Failure, None);
    agents[0].unkept = Some("no space".to_owned());
    if !reviewer_kept {
        agents[1].step = AgentStep::Salvaging(SnapshotReason::Stop, None);
    }
    let mut deciding = Deciding { state: &state, now: moment(0), out: Decisions::default(), places: 1 };
    round(&mut deciding, LANE, Round::Implementation);
    deciding.out
}

#[test]
fn what_a_reviewer_left_is_kept_before_the_lane_ends() {
    let kept = decided(true);
    assert!(matches!(kept.events[..], [Event::LaneBlocked { .. }]), "{:?}", kept.events);
    let unkept = decided(false);
    assert_eq!(unkept.events, []);
    assert_eq!(unkept.actions, [Action::Snapshot { lane: LANE, agent: 1, reason: SnapshotReason::Stop }]);
}
