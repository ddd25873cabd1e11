use std::time::Duration;

use lanewright_model::event::{Record, Worktree};
use lanewright_model::{Agent, AgentName, CommandLine, JobId, JobRole, Lane, LaneId, Outage, OutageKind};

use super::*;
use crate::decide::agent::out_of_budget;
use crate::decide::deciding::Decisions;
use crate::sample_plans::{commit, lane, moment, plan};
use crate::state::RunState;
use crate::state::agent::AgentStep;
use crate::state::gate::Gate;
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

/// A lane with two candidates that work in `/w`, and its state.
fn candidates() -> (RunState, String) {
    let mut parts = lane("A", &[], 1, &[]);
    parts.setup = vec![CommandLine::Shell("set up".to_owned())];
    let one = parts.agents.remove(0);
    let account = one.command.to_string();
    let candidate =
        |number: u32| Agent { name: format!("c{number}").parse().unwrap(), candidate: Some(number), ..one.clone() };
    parts.agents = (1..=2).map(candidate).collect();
    let mut state = RunState::new(plan(vec![parts], &[]).into());
    state.lanes[0].stage = LaneStage::Implementation;
    let worktree = Worktree { slot: 1, path: "/w".into(), branch: "b".to_owned(), head: commit(1) };
    state.lanes[0].attempts.agents_mut().iter_mut().for_each(|agent| agent.open(&worktree));
    (state, account)
}

#[test]
fn set_up_commands_of_a_refused_runner_are_waited_for() {
    let (mut state, account) = candidates();
    let role = JobRole::Setup { agent: Some("c2".parse().unwrap()) };
    let job = JobId { lane: Some("A".parse().unwrap()), role, number: 1 };
    let attempts = &mut state.lanes[0].attempts;
    attempts.start_job(&job);
    attempts.agents_mut()[0].step = AgentStep::Merging;
    attempts.agents_mut()[1].setup = Gate::Running(job.clone());
    let (outage, since) = (Outage::new(OutageKind::Refused, "401"), moment(1));
    let event = Event::RunnerPaused { account, outage, since, until: None };
    state.apply(&Record { seq: 1, at: since, event, origin: None }).unwrap();
    let mut deciding = Deciding::new(&state, moment(2), 1);
    implementation(&mut deciding, LANE);
    assert_eq!((deciding.out.events, deciding.out.actions), (vec![], vec![Action::RunJob(job.clone())]));
    assert!(state.lanes[0].attempts.end_job(&job));
    state.lanes[0].attempts.agents_mut()[1].setup = Gate::Passed;
    let mut deciding = Deciding::new(&state, moment(2), 1);
    implementation(&mut deciding, LANE);
    assert!(matches!(&deciding.out.events[..], [Event::CandidateChosen { .. }]), "{:?}", deciding.out.events);
}

#[test]
fn a_worktree_that_may_be_open_is_returned() {
    let (mut state, _) = candidates();
    let attempts = &mut state.lanes[0].attempts;
    let worker = &mut attempts.agents_mut()[0];
    worker.release();
    worker.set_unchosen();
    let mut deciding = Deciding::new(&state, moment(0), 1);
    decide_agent(&mut deciding, LANE, 0);
    assert_eq!(deciding.out.actions, [Action::OpenWorktree { lane: LANE, agent: Some(0) }]);
    let worktree = Worktree { slot: 1, path: "/w".into(), branch: "b".to_owned(), head: commit(1) };
    state.lanes[0].attempts.agents_mut()[0].open(&worktree);
    let mut deciding = Deciding::new(&state, moment(0), 1);
    decide_agent(&mut deciding, LANE, 0);
    assert_eq!(deciding.out.actions, [Action::ReleaseAgent(LANE, 0)]);
    state.lanes[0].attempts.agents_mut()[0].release();
    assert!(state.lanes[0].agents()[0].is_over(false));
}

/// What a person commits on top of another candidate's work does not keep that in the lane.
#[test]
fn a_branch_that_a_person_moved_is_left_for_the_candidate_that_was_picked() {
    let (mut state, _) = candidates();
    state.lanes[0].work.set_head(&commit(1));
    let mut happened = (1..).map(|seq| move |event| Record { seq, at: moment(0), event, origin: None });
    let mut happens = |event| state.apply(&happened.next().unwrap()(event)).unwrap();
    let lane = || "A".parse::<LaneId>().unwrap();
    let chosen = |agent: &str, by| Event::CandidateChosen { lane: lane(), agent: agent.parse().unwrap(), by };
    happens(chosen("c1", ChosenBy::Size));
    happens(chosen("c2", ChosenBy::User));
    happens(Event::BranchMoved { lane: lane(), agent: None, head: commit(2), theirs: None });
    let mut deciding = Deciding::new(&state, moment(0), 1);
    implementation(&mut deciding, LANE);
    assert_eq!(deciding.out.actions, [Action::ResetLane(LANE)]);
    let mut happens = |event| state.apply(&happened.next().unwrap()(event)).unwrap();
    happens(Event::snapshot(lane(), None, SnapshotReason::Reset, commit(2), "refs/x".to_owned()));
    happens(Event::LaneReset { lane: lane(), base: commit(1) });
    assert_eq!(state.lanes[0].agents()[1].salvaged, [""; 0], "its prompts name the other candidate's work");
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

/// A candidate that failed for good is no failure of the lane while another one passed.
#[test]
fn a_failed_candidate_does_not_fail_a_lane_that_is_out_of_budget() {
    let (mut state, _) = candidates();
    let failed = || AgentStep::PermanentlyFailed(Failure::new(FailureKind::Gate, "x"));
    for (other, has_failed) in [(AgentStep::Merging, false), (AgentStep::Ready, false), (failed(), true)] {
        let attempts = &mut state.lanes[0].attempts;
        attempts.agents_mut()[0].step = failed();
        attempts.agents_mut()[1].step = other;
        let mut deciding = Deciding::new(&state, moment(2), 1);
        out_of_budget(&mut deciding, LANE, "max_cost".to_owned());
        assert_eq!(matches!(&deciding.out.events[..], [Event::LaneFailed { .. }]), has_failed);
        assert_eq!(matches!(&deciding.out.events[..], [Event::LaneBlocked { .. }]), !has_failed);
    }
}
