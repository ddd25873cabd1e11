use lanewright_model::Task;

use super::*;
use crate::sample_plans::{commit, lane, moment};

fn task(id: &str) -> TaskId {
    TaskId::new(id).unwrap()
}

fn past(task: Option<TaskId>, signature: &str) -> PastFailure {
    let failure = Failure::new(FailureKind::Crash, signature);
    PastFailure { task, attempt: 1, failure, signature: signature.to_owned() }
}

#[test]
fn failure_context_covers_task_and_whole_work() {
    let past = vec![past(Some(task("1")), "one"), past(None, "all"), past(Some(task("2")), "two")];
    let agent = AgentState { past, ..AgentState::default() };
    assert_eq!(agent.failure_context(&task("1")), ["Attempt 1: one", "Attempt 1: all"]);
    assert_eq!(agent.failure_context(&task("2")), ["Attempt 1: all", "Attempt 1: two"]);
}

#[test]
fn retries_end_early_after_three_equal_failures() {
    let alike = |retries, signatures: &[(&str, &str)]| {
        let past = signatures.iter().map(|(id, signature)| past(Some(task(id)), signature)).collect();
        AgentState { past, retries, ..AgentState::default() }.fails_alike()
    };
    assert!(alike(2, &[("1", "x"), ("1", "x"), ("1", "x")]));
    assert!(alike(5, &[("1", "y"), ("1", "x"), ("1", "x"), ("1", "x")]));
    assert!(!alike(1, &[("1", "x"), ("1", "x"), ("1", "x")]), "some of them before a resume");
    assert!(!alike(2, &[("1", "x"), ("1", "x")]));
    assert!(!alike(2, &[("1", "y"), ("1", "x"), ("1", "x")]));
    assert!(!alike(2, &[("2", "x"), ("1", "x"), ("1", "x")]));
}

#[test]
fn a_place_is_wanted_for_the_next_task_of_its_own() {
    let mut plan = lane("A", &[], 1, &[]).agents.remove(0);
    let person = Task { kind: lanewright_model::TaskKind::HumanVerify, ..plan.tasks[0].clone() };
    plan.tasks = vec![plan.tasks[0].clone(), plan.tasks[0].clone(), person];
    let wants = |step: AgentStep, task| AgentState { step, task, ..AgentState::default() }.wants_a_place(&plan);
    for (step, expected) in [
        (AgentStep::Ready, [true, true, false]),
        (AgentStep::Retrying(moment(0)), [true, true, false]),
        (AgentStep::Committing, [true, false, false]),
        (AgentStep::Snapshotting, [true, false, false]),
        (AgentStep::Done, [false; 3]),
    ] {
        assert_eq!([0, 1, 2].map(|task| wants(step.clone(), task)), expected, "{step:?}");
    }
}

/// At its fourth task, after three that passed.
fn far() -> AgentState {
    let passed = vec![commit(1), commit(2), commit(3)];
    AgentState { task: 3, start: Some(commit(0)), good: Some(commit(3)), passed, ..AgentState::default() }
}

#[test]
fn good_points_are_nearest_first() {
    assert_eq!(far().good_points(), [3, 2, 1, 0].map(commit));
}

#[test]
fn reset_redoes_tasks_with_lost_commits() {
    for (head, task, passed) in [(3, 3, 3), (2, 2, 2), (1, 1, 1), (0, 0, 0)] {
        let mut agent = far();
        agent.reset(&commit(head));
        assert_eq!((agent.task, agent.passed.len(), agent.good), (task, passed, Some(commit(head))), "at {head}");
    }
    let mut elsewhere = AgentState { restart: RestartFrom::LaneHead, ..far() };
    elsewhere.reset(&commit(9));
    assert_eq!((elsewhere.task, elsewhere.passed.len(), elsewhere.start), (3, 0, Some(commit(9))));
    assert_eq!(elsewhere.restart, RestartFrom::Here);
}

#[test]
fn complete_without_changes_is_rejected() {
    let claims = |change: fn(&mut AgentState)| {
        let mut agent = AgentState {
            claims_completion: true,
            task: 1,
            start: Some(commit(1)),
            head: Some(commit(1)),
            past: vec![past(Some(task("1")), "x")],
            ..AgentState::default()
        };
        change(&mut agent);
        agent.claims_missing_work(2)
    };
    assert!(claims(|_| {}));
    assert!(!claims(|agent| agent.claims_completion = false));
    assert!(!claims(|agent| agent.past.push(past(None, "all"))));
    assert!(!claims(|agent| agent.task = 0));
    assert!(!claims(|agent| agent.head = Some(commit(2))));
}

#[test]
fn failed_gate_runs_again_before_agent() {
    let judged = |restart, in_task: bool, has_gate, is_in_lane| {
        let failed = past(in_task.then(|| task("1")), "x");
        let mut agent = AgentState { restart, past: vec![failed], ..AgentState::default() };
        agent.judge_again(has_gate, is_in_lane);
        assert_eq!(agent.excused, agent.step != AgentStep::Ready);
        agent.step
    };
    assert_eq!(judged(RestartFrom::Here, true, true, false), AgentStep::Committing);
    assert_eq!(judged(RestartFrom::Here, false, true, true), AgentStep::Ready);
    assert_eq!(judged(RestartFrom::LaneHead, false, true, true), AgentStep::Gating(Gate::Due));
    assert_eq!(judged(RestartFrom::LaneHead, false, false, true), AgentStep::Done);
    assert_eq!(judged(RestartFrom::LaneHead, false, true, false), AgentStep::Ready);
    assert_eq!(judged(RestartFrom::LastGood, true, true, true), AgentStep::Ready);
}

fn in_phase(phase: AgentPhase) -> PhaseTracker {
    let mut tracker = PhaseTracker::default();
    tracker.begin_again(phase);
    tracker
}

#[test]
fn phases_that_are_not_on_record_are_named_in_order() {
    use AgentPhase::*;
    let mut tracker = in_phase(Executing);
    assert_eq!(tracker.advance(Completed), Err((Executing, Completed)));
    tracker.record(Planning, Planned);
    assert_eq!(tracker.unrecorded().count(), 3, "that one is not the oldest");
    tracker.record(Initialized, Planning);
    tracker.advance(Validating).unwrap();
    tracker.lose_attempt();
    tracker.begin_again(Initialized);
    let moves: Vec<_> = tracker.unrecorded().collect();
    assert_eq!(
        moves,
        [
            (Planning, Planned),
            (Planned, Executing),
            (Executing, Validating),
            (Validating, Failed),
            (Failed, RollingBack),
            (RollingBack, Executing),
            (Executing, Initialized),
        ]
    );
}

#[test]
fn agent_out_of_retries_restarts_at_resume() {
    let failure = |kind| Failure::new(kind, "why");
    let mut agent = AgentState {
        step: AgentStep::Failed(failure(FailureKind::Crash)),
        phase: in_phase(AgentPhase::Failed),
        ..far()
    };
    agent.give_up();
    assert_eq!(
        (&agent.step, agent.phase.now()),
        (&AgentStep::PermanentlyFailed(failure(FailureKind::Crash)), AgentPhase::Abandoned)
    );
    agent.retries = 2;
    agent.revive();
    assert_eq!((agent.step, agent.retries, agent.task), (AgentStep::Ready, 0, 3));
    let revived = |step| {
        let mut agent = AgentState { step, past: vec![past(Some(task("1")), "x")], ..far() };
        agent.revive();
        agent.step
    };
    assert_eq!(revived(AgentStep::Blocked("why".into())), AgentStep::Ready);
    assert_eq!(revived(AgentStep::PermanentlyFailed(failure(FailureKind::Gate))), AgentStep::Ready);
    assert_eq!(revived(AgentStep::Done), AgentStep::Done);
    let at_gate = |step| AgentState { step, ..far() }.ended_at_gate();
    let ended_at = |kind| at_gate(AgentStep::PermanentlyFailed(failure(kind)));
    assert!(ended_at(FailureKind::Gate) && !ended_at(FailureKind::Crash));
    let environment = || AgentStep::Failed(failure(FailureKind::Environment));
    assert!(at_gate(environment()) && !at_gate(AgentStep::Failed(failure(FailureKind::Gate))));
    assert_eq!(revived(environment()), AgentStep::Ready);
}

#[test]
fn snapshot_name_is_stable_until_taken() {
    let mut agent = AgentState { step: AgentStep::Snapshotting, ..AgentState::default() };
    agent.note_keeping(moment(1));
    agent.note_keeping(moment(2));
    assert_eq!(agent.keep_since, Some(moment(1)));
    agent.step = AgentStep::Ready;
    agent.note_keeping(moment(3));
    assert_eq!(agent.keep_since, None);
}

#[test]
fn unrecorded_work_is_done_again_after_a_restart_of_the_machine() {
    let after = |step, restart| {
        let phase = in_phase(AgentPhase::Validating);
        let mut agent = AgentState { step, restart, phase, attempt: 1, ..far() };
        agent.lose_unsynced();
        (agent.step, agent.restart, agent.phase.now())
    };
    let saving = |failure| AgentStep::Salvaging(SnapshotReason::Stop, failure);
    let crash = Failure::new(FailureKind::Crash, "why");
    for (step, expected, phase) in [
        (AgentStep::Committing, saving(None), AgentPhase::Executing),
        (AgentStep::Ready, saving(None), AgentPhase::Validating),
        (AgentStep::Retrying(moment(0)), saving(None), AgentPhase::Validating),
        (AgentStep::Failed(crash.clone()), saving(Some(crash.clone())), AgentPhase::Validating),
        (AgentStep::Judging(crash.clone()), AgentStep::Judging(crash), AgentPhase::Validating),
        (AgentStep::Snapshotting, AgentStep::Snapshotting, AgentPhase::Validating),
    ] {
        assert_eq!(after(step.clone(), RestartFrom::Here), (expected, RestartFrom::LastGood, phase));
        assert_eq!(after(step, RestartFrom::LaneHead).1, RestartFrom::LaneHead);
    }
    for step in [AgentStep::Asking, AgentStep::Merging, AgentStep::Done] {
        assert_eq!(after(step.clone(), RestartFrom::Here), (step, RestartFrom::Here, AgentPhase::Validating));
    }
    let mut fresh = AgentState::default();
    fresh.lose_unsynced();
    assert_eq!((fresh.step, fresh.restart), (AgentStep::Ready, RestartFrom::Here), "nothing has begun");
}

#[test]
fn gate_without_its_program_runs_again_after_a_restart_of_the_machine() {
    let missing = Failure::new(FailureKind::Environment, "no npm");
    let crash = Failure::new(FailureKind::Gate, "red");
    for (failure, step) in [(missing, AgentStep::Verifying(Gate::Due)), (crash, AgentStep::Ready)] {
        let mut agent = AgentState { attempt: 1, restart: RestartFrom::LastGood, ..far() };
        agent.remember(Some(&task("1")), &failure);
        agent.judge_again(false, false);
        assert_eq!((agent.excused, agent.step), (step != AgentStep::Ready, step), "{failure:?}");
    }
}

#[test]
fn a_session_is_of_the_runner_that_began_it() {
    let with =
        |runner: &str, is_fallback| MadeWith { runner: runner.into(), account: None, refusable: None, is_fallback };
    let session = || Session { id: "s".into(), usage: Default::default(), worktree: "/w".into() };
    let kept = |before: Option<&MadeWith>, now: Option<&MadeWith>| {
        let mut agent = AgentState::default();
        agent.make_with(before);
        agent.session = Some(session());
        agent.make_with(now);
        agent.session.is_some()
    };
    let (claude, codex, fallback) = (with("claude", false), with("codex", false), with("codex", true));
    assert!(kept(Some(&claude), Some(&claude)) && kept(None, Some(&claude)) && kept(None, None));
    assert!(
        !kept(Some(&claude), Some(&codex)) && !kept(Some(&claude), Some(&fallback)) && !kept(None, Some(&fallback))
    );
}
