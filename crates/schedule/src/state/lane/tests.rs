use std::sync::Arc;

use lanewright_model::{CommandLine, FailureKind, LaneIndex};

use super::*;
use crate::RunState;
use crate::sample_plans::{self, commit, lane};
use crate::state::agent::{AgentStep, OutageWait, PastFailure};
use lanewright_model::RetryLevel;
use lanewright_model::event::Event;

fn failure() -> Failure {
    Failure::new(FailureKind::Crash, "why")
}

/// What would come next for the lane's agent, which failed in its task.
fn level(change: fn(&mut AgentState)) -> Option<RetryLevel> {
    let plan = Lane { retries: 2, ..lane("A", &[], 1, &[]) };
    let mut state = LaneState::new(&plan, 0);
    let task = Some(plan.agents[0].tasks[0].id.clone());
    state.attempts.agents_mut()[0].past.push(PastFailure {
        task,
        attempt: 1,
        failure: failure(),
        signature: "x".into(),
    });
    change(&mut state.attempts.agents_mut()[0]);
    state.attempts.next_level(&plan, 0)
}

#[test]
fn a_task_is_retried_then_put_back_once() {
    assert_eq!(level(|_| {}), Some(RetryLevel::Retry));
    assert_eq!(level(|agent| agent.retries = 1), Some(RetryLevel::Retry));
    assert_eq!(level(|agent| agent.retries = 2), Some(RetryLevel::Rollback));
    assert_eq!(level(|agent| agent.rolled_back = true), None);
    assert_eq!(level(|agent| agent.excused = true), Some(RetryLevel::Wait));
    let out = |wait: OutageWait| {
        let plan = lane("A", &[], 1, &[]);
        let mut state = LaneState::new(&plan, 0);
        state.attempts.agents_mut()[0].outage = Some(wait);
        state.attempts.next_level(&plan, 0)
    };
    assert_eq!((out(OutageWait::Waits), out(OutageWait::GivenUp)), (Some(RetryLevel::Wait), None));
    let never = Lane { retries: 0, ..lane("A", &[], 1, &[]) };
    assert_eq!(LaneState::new(&never, 0).attempts.next_level(&never, 0), None);
}

#[test]
fn agent_without_retries_ends_lane() {
    let plan = lane("A", &[], 1, &[]);
    let end = |step: AgentStep, unkept: Option<&str>| {
        let mut state = LaneState::new(&plan, 0);
        state.attempts.agents_mut()[0].step = step;
        state.attempts.agents_mut()[0].unkept = unkept.map(str::to_owned);
        let settled = state.attempts.is_final(&plan, 0);
        (state.attempts.end_of(&plan, 0), settled, state.is_quiet())
    };
    let blocked = |reason: &str| Some(Event::LaneBlocked { lane: plan.id.clone(), reason: reason.to_owned() });
    let failed = Some(Event::LaneFailed { lane: plan.id.clone(), failure: failure() });
    let salvaging = || AgentStep::Salvaging(lanewright_model::event::SnapshotReason::Failure, None);
    let unkept = blocked("what engineer left cannot be kept, so it is not touched: no space");
    let told = blocked("why");
    let silent = blocked("the agent reported BLOCKED without a reason");
    assert_eq!(end(AgentStep::PermanentlyFailed(failure()), None), (failed, true, true));
    assert_eq!(end(AgentStep::Failed(failure()), None), (None, false, true));
    let missing = Failure::new(FailureKind::Environment, "no npm");
    let mut state = LaneState::new(&plan, 0);
    let agent = &mut state.attempts.agents_mut()[0];
    agent.remember(None, &missing);
    agent.step = AgentStep::Failed(missing);
    assert_eq!(state.attempts.next_level(&plan, 0), None, "retries are left");
    assert!(matches!(state.attempts.end_of(&plan, 0), Some(Event::LaneBlocked { .. })));
    assert_eq!(end(AgentStep::Blocked("why".into()), None), (told, true, true));
    assert_eq!(end(AgentStep::Blocked(String::new()), None), (silent, true, true));
    assert_eq!(end(salvaging(), None), (None, false, false));
    assert_eq!(end(salvaging(), Some("no space")), (unkept, true, true));
    assert_eq!(end(AgentStep::Done, None), (None, true, true));
    assert_eq!(end(AgentStep::Ready, None), (None, false, true));
}

#[test]
fn each_stage_has_its_round_and_its_approval() {
    use LaneStage::*;
    let plan = lane("A", &[], 1, &[]);
    let first = Some(Round::Implementation);
    assert_eq!((current_round(&plan, Classified), approval_at(Classified)), (first, Some(Approval::Setup)));
    for stage in [Waiting, Init, Implementation] {
        assert_eq!((current_round(&plan, stage), approval_at(stage)), (first, None), "{stage}");
    }
    assert_eq!((current_round(&plan, Requirements), current_round(&plan, Review)), {
        (Some(Round::Requirements), Some(Round::Review))
    });
    assert_eq!((approval_at(Synthesis), current_round(&plan, Synthesis)), (Some(Approval::Plan), None));
    assert_eq!(approval_at(AwaitingUserApproval), Some(Approval::Changes));
}

#[test]
fn rejection_is_forgotten_at_resume() {
    let mut state = LaneState::default();
    let (plan, changes) = (HumanGate::from(Approval::Plan), HumanGate::from(Approval::Changes));
    state.approvals.give(plan.clone(), true, "good");
    state.approvals.give(changes.clone(), false, "");
    state.approvals.remark("go on");
    assert_eq!(state.remarks(), ["good", "go on"]);
    assert!(state.approvals.approve(&plan) && !state.approvals.approve(&changes));
    assert_eq!(state.answer(&changes).map(|answer| answer.approved), Some(false));
    state.approvals.forget_rejections();
    assert!(state.answer(&plan).is_some() && state.answer(&changes).is_none());
}

#[test]
fn lane_is_left_to_do_until_merged() {
    let left = |end, merged| {
        let mut state = LaneState { end, ..LaneState::default() };
        state.merge.merged = merged;
        state.is_left_to_do()
    };
    assert!(left(None, None) && left(Some(LaneEnd::Failed(failure())), None));
    assert!(!left(None, Some(commit(1))) && !left(Some(LaneEnd::MergedBefore), None));
    assert!(!left(Some(LaneEnd::Left), None));
}

#[test]
fn merge_is_tested_only_if_base_moved() {
    let under_test = |moved, tests: &[&str]| {
        let tests = tests.iter().map(|line| CommandLine::Shell(line.to_string())).collect();
        let plan = Lane { tests, ..lane("A", &[], 1, &[]) };
        let mut state = LaneState::new(&plan, 0);
        state.merge.staged = Some(StagedMerge { onto: commit(1), commit: commit(2), moved });
        state.merge_under_test(&plan).is_some()
    };
    assert!(under_test(true, &["t"]));
    assert!(!under_test(false, &["t"]) && !under_test(true, &[]));
}

#[test]
fn unrecorded_step_may_explain_change() {
    let plan = lane("A", &[], 1, &[]);
    let changed_by_others_only = |change: fn(&mut LaneState)| {
        let mut run = RunState::new(Arc::new(sample_plans::plan(vec![plan.clone()], &[])));
        let lane = &mut run.lanes[0];
        (lane.stage, lane.stopping) = (LaneStage::Implementation, Some(false));
        change(lane);
        run.is_changed_by_others_only(LaneIndex(0))
    };
    assert!(changed_by_others_only(|_| {}), "it was stopped between two steps");
    assert!(!changed_by_others_only(|lane| lane.stopping = None), "it was at work");
    assert!(!changed_by_others_only(|lane| lane.merge.rebuild = Some(Rebuild::OnIntegration)));
    for step in [AgentStep::Merging, AgentStep::Committing] {
        let mut state = LaneState { stopping: Some(false), ..LaneState::new(&plan, 0) };
        state.attempts.agents_mut()[0].step = step;
        assert!(state.has_unrecorded_step(&plan));
    }
    assert!(!changed_by_others_only(|lane| lane.attempts.agents_mut()[0].restart = RestartFrom::LastGood));
    assert!(!changed_by_others_only(|lane| {
        (lane.end, lane.merge.rebuild) = (Some(LaneEnd::Failed(failure())), Some(Rebuild::OnIntegration));
    }));
}
