use std::time::Duration;

use lanewright_model::event::Record;
use lanewright_model::{Agent, AgentName, Lane, Outage, OutageKind};

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
    let mut deciding = Deciding::new(&state, moment(0), 1);
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

#[test]
fn the_pause_of_a_runner_does_not_count_towards_the_time_limit() {
    let limited = Lane { timeout: Some(Duration::from_secs(1)), ..lane("A", &[], 1, &[]) };
    let account = limited.agents[0].command.to_string();
    let mut state = RunState::new(plan(vec![limited], &[]).into());
    state.lanes[0].stage = LaneStage::Implementation;
    state.lanes[0].clock.move_on(moment(0));
    let outage = || Outage::new(OutageKind::Quota, "429");
    let mut record = |seq, at, event| {
        state.apply(&Record { seq, at: moment(at), event, origin: None }).unwrap();
        let mut deciding = Deciding::new(&state, moment(at + 9_000), 0);
        decide_lane(&mut deciding, LANE);
        deciding.out.events.iter().any(|event| matches!(event, Event::LaneFailed { .. }))
    };
    let since = moment(500);
    let paused = Event::RunnerPaused { account: account.clone(), outage: outage(), since, until: Some(moment(60_000)) };
    assert!(!record(1, 500, paused), "while it waits");
    let continued = Event::RunnerContinued { account };
    assert!(record(2, 60_000, continued), "it counts again");
    assert_eq!(state.lanes[0].clock.deadline(Duration::from_secs(1)), Some(moment(60_500)));
}
