use lanewright_model::AgentName;
use lanewright_model::event::Event;
use lanewright_model::{Diagnosis, FailureClass, Finding, LaneId, Refusal, Session, Task, TaskKind, Transcript, Usage};

use super::*;
use crate::sample_plans::{commit, lane, plan};
use crate::state::agent::Refusals;

fn taken(reason: SnapshotReason, reference: &str) -> Event {
    let agent = Some(AgentName::new("engineer").unwrap());
    Event::snapshot(id(), agent, reason, commit(1), reference.to_owned())
}

fn id() -> LaneId {
    LaneId::new("A").unwrap()
}

/// The lane of one agent after an event that is about that agent.
fn after(event: &Event, lane: Lane, prepare: impl Fn(&mut LaneState)) -> LaneState {
    let plan = plan(vec![lane], &[]);
    let mut state = LaneState::new(&plan.lanes[0], 0);
    prepare(&mut state);
    Worker { plan: &plan, lane: &plan.lanes[0], state: &mut state, at: 0 }.apply(event).unwrap();
    state
}

fn plain() -> Lane {
    lane("A", &[], 1, &[])
}

#[test]
fn external_snapshots_outlive_the_merge() {
    let lost = Event::WorktreeLost { lane: id(), agent: Some(AgentName::new("engineer").unwrap()), head: None };
    for event in [lost, taken(SnapshotReason::External, "refs/c")] {
        let state = after(&event, plain(), |state| {
            state.work.add_snapshot("refs/a", &commit(1));
            state.work.add_snapshot("refs/b", &commit(2));
            state.attempts.agents_mut()[0].salvaged = vec!["refs/a".to_owned()];
            state.attempts.agents_mut()[0].session =
                Some(Session { id: "s".into(), usage: Usage::default(), worktree: "/w".into() });
        });
        assert_eq!(state.snapshots(), [("refs/b".to_owned(), commit(2))]);
        assert_eq!(state.agents()[0].session.is_none(), matches!(event, Event::WorktreeLost { .. }));
    }
}

#[test]
fn snapshot_of_other_reason_is_ignored() {
    let step = |step: AgentStep, reason| {
        let prepare = |state: &mut LaneState| {
            state.attempts.agents_mut()[0].step = step.clone();
            state.attempts.agents_mut()[0].phase.begin_again(AgentPhase::Checkpointing);
        };
        after(&taken(reason, "refs/a"), plain(), prepare).agents()[0].step.clone()
    };
    assert_eq!(step(AgentStep::Snapshotting, SnapshotReason::Failure), AgentStep::Snapshotting);
    assert_eq!(step(AgentStep::Snapshotting, SnapshotReason::Task), AgentStep::Merging);
    let salvaging = AgentStep::Salvaging(SnapshotReason::Timeout, None);
    assert_eq!(step(salvaging.clone(), SnapshotReason::Stop), salvaging);
    assert_eq!(step(salvaging, SnapshotReason::Timeout), AgentStep::Ready);
}

#[test]
fn event_outside_the_table_of_phases_is_a_fault() {
    let plan = plan(vec![plain()], &[]);
    let mut state = LaneState::new(&plan.lanes[0], 0);
    let (agent, changed, prohibited) = (AgentName::new("engineer").unwrap(), vec![], vec![]);
    let (from, to) = (AgentPhase::Initialized, AgentPhase::Validating);
    let fault = Fault::ImpossiblePhase { lane: id(), agent: agent.clone(), from, to };
    let event = Event::WorkCommitted {
        lane: id(),
        agent,
        head: commit(1),
        changed,
        prohibited,
        idle: Idle::No,
        ignored: vec![],
        size: None,
    };
    let mut worker = Worker { plan: &plan, lane: &plan.lanes[0], state: &mut state, at: 0 };
    assert_eq!(worker.apply(&event), Err(fault));
}

#[test]
fn work_outside_owns_is_refused() {
    let committed = |prohibited: &[&str], lane: Lane| {
        let prohibited = prohibited.iter().map(|path| path.to_string()).collect();
        let (agent, changed) = (AgentName::new("engineer").unwrap(), Vec::new());
        let event = Event::WorkCommitted {
            lane: id(),
            agent,
            head: commit(1),
            changed,
            prohibited,
            idle: Idle::No,
            ignored: vec![],
            size: None,
        };
        let prepare = |state: &mut LaneState| {
            state.attempts.agents_mut()[0].phase.begin_again(AgentPhase::Executing);
            state.attempts.agents_mut()[0].start = Some(commit(1));
            state.attempts.agents_mut()[0].claims_completion = true;
        };
        after(&event, lane, prepare).agents()[0].step.clone()
    };
    let AgentStep::Judging(failure) = committed(&["x", "y"], plain()) else { panic!("it passed") };
    assert_eq!((failure.kind, failure.paths), (FailureKind::Ownership, vec!["x".to_owned(), "y".to_owned()]));
    for (paths, message, outside) in [
        (&["c/.git"][..], "a repository inside the worktree: c/.git", 0),
        (
            &["x", "c/.git", "d/.git"],
            "repositories inside the worktree: c/.git, d/.git; changed files outside `owns`",
            1,
        ),
        (&[".claude/ai-dev-kit/run-logs/r1/x"], "state files of Lanewright: .claude/ai-dev-kit/run-logs/r1/x", 0),
    ] {
        let AgentStep::Judging(failure) = committed(paths, plain()) else { panic!("it passed") };
        assert_eq!((failure.message.as_str(), failure.paths.len()), (message, outside));
    }
    let AgentStep::Judging(failure) = committed(&[], plain()) else { panic!("it passed") };
    assert_eq!(failure.kind, FailureKind::Report);
    let reads_only = Lane { ownership: OwnershipRule::Nothing, ..plain() };
    assert_eq!(committed(&[], reads_only), AgentStep::Snapshotting);
}

#[test]
fn several_refusals_without_a_change_block_the_agent() {
    let step = |refused_calls: u64, refusals: &[&str], idle: Idle| {
        let (agent, changed, prohibited) = (AgentName::new("engineer").unwrap(), Vec::new(), Vec::new());
        let event = Event::WorkCommitted {
            lane: id(),
            agent,
            head: commit(1),
            changed,
            prohibited,
            idle,
            ignored: vec![],
            size: None,
        };
        let refusal = |reason: &&str| Refusal { call: "[Write] a.txt".into(), reason: (*reason).to_owned() };
        let usage = Usage { refused_calls, ..Usage::default() };
        let refusals = refusals.iter().map(refusal).collect();
        let transcript = Transcript { usage, refusals, ..Transcript::default() };
        let prepare = |state: &mut LaneState| {
            state.attempts.agents_mut()[0].phase.begin_again(AgentPhase::Executing);
            state.attempts.agents_mut()[0].refusals = Refusals::of(&transcript);
        };
        after(&event, plain(), prepare).agents()[0].step.clone()
    };
    let AgentStep::Blocked(reason) = step(2, &["no writing"], Idle::Agent) else { panic!("not blocked") };
    let refused = "2 tool calls were refused and no file was changed: [Write] a.txt: no writing; ";
    assert!(reason.starts_with(refused), "{reason}");
    // One may have been a slip.
    let AgentStep::Judging(failure) = step(1, &["no writing"], Idle::Agent) else { panic!("not judged") };
    assert_eq!(failure.message, "changed no file; refused: [Write] a.txt: no writing, and said nothing");
    // A file was written after them.
    assert!(matches!(step(2, &[], Idle::Agent), AgentStep::Judging(_)));
    assert_eq!(step(2, &["no writing"], Idle::No), AgentStep::Snapshotting);
}

#[test]
fn resume_keeps_level_of_decided_retry() {
    let mut plan = Lane { retries: 2, ..plain() };
    plan.agents.push(plan.agents[0].clone());
    let failure = Failure::new(FailureKind::Crash, "why");
    let mut state = LaneState::new(&plan, 0);
    let failed = &mut state.attempts.agents_mut()[0];
    failed.remember(Some(&plan.agents[0].tasks[0].id), &failure);
    failed.retries = 2;
    failed.step = AgentStep::Salvaging(SnapshotReason::Failure, Some(failure));
    failed.restart = RestartFrom::LastGood;
    state.attempts.agents_mut()[1].excused = true;
    state.revive(true, false, Timestamp::from_unix_millis(0));
    assert_eq!(state.attempts.next_level(&plan, 0), Some(RetryLevel::Rollback));
}

#[test]
fn lane_set_aside_after_crash_is_interrupted() {
    let plan = plain();
    let mut state = LaneState::new(&plan, 0);
    state.set_aside(&plan, true);
    state.set_aside(&plan, false);
    assert!(state.is_interrupted());
    state.revive(false, false, Timestamp::from_unix_millis(0));
    state.set_aside(&plan, false);
    assert!(!state.is_interrupted());
}

#[test]
fn redone_tasks_are_approved_again() {
    let mut plan = plain();
    let task = |id: &str, kind| Task { id: TaskId::new(id).unwrap(), kind, ..plain().agents[0].tasks[0].clone() };
    plan.agents[0].tasks = vec![task("1", TaskKind::Auto), task("2", TaskKind::HumanVerify), task("3", TaskKind::Auto)];
    let look = HumanGate::Task(TaskId::new("2").unwrap());
    let reset_to = |head: CommitId| {
        let event = Event::AgentReset { lane: id(), agent: AgentName::new("engineer").unwrap(), head };
        after(&event, plan.clone(), |state| {
            state.approvals.give(look.clone(), true, "");
            let worker = &mut state.attempts.agents_mut()[0];
            (worker.task, worker.restart) = (2, RestartFrom::LastGood);
            (worker.good, worker.passed) = (Some(commit(2)), vec![commit(2), commit(2)]);
        })
    };
    let whole = reset_to(commit(2));
    assert_eq!((whole.agents()[0].task, whole.approvals.approve(&look)), (2, true));
    let damaged = reset_to(commit(1));
    assert_eq!((damaged.agents()[0].task, damaged.approvals.approve(&look)), (0, false));
}

/// How the failures of one attempt after the other are taken, by whether they name a complaint and are in the base.
fn taken_for(retries: u32, failures: &[(bool, bool)]) -> Vec<FailureKind> {
    let plan = plan(vec![Lane { retries, ..plain() }], &[]);
    let mut state = LaneState::new(&plan.lanes[0], 0);
    let task = plan.lanes[0].agents[0].tasks[0].id.clone();
    let mut taken_for = Vec::new();
    for &(complains, in_base) in failures {
        let finding = Finding { file: None, line: None, column: None, message: "x".into() };
        let diagnosis = Diagnosis {
            class: FailureClass::Test,
            tool: None,
            findings: if complains { vec![finding] } else { Vec::new() },
            count: 1,
            in_base: in_base.then(|| commit(7)),
        };
        let failure = Failure { diagnosis: Some(Box::new(diagnosis)), ..Failure::new(FailureKind::Gate, "red") };
        let mut worker = Worker { plan: &plan, lane: &plan.lanes[0], state: &mut state, at: 0 };
        let taken = worker.remember(Some(&task), &failure);
        let level = state.attempts.next_level(&plan.lanes[0], 0);
        assert!(level.is_none() || taken.kind == FailureKind::Gate);
        taken_for.push(taken.kind);
        state.attempts.plan_retry(0, level.unwrap_or(RetryLevel::Retry));
    }
    taken_for
}

#[test]
fn failure_of_the_base_is_the_environments_in_the_end() {
    let (gate, environment) = (FailureKind::Gate, FailureKind::Environment);
    // The attempt that knew of it changed nothing.
    assert_eq!(taken_for(3, &[(true, true), (true, true)]), [gate, environment]);
    assert_eq!(
        taken_for(1, &[(true, false), (true, false), (true, true)]),
        [gate, gate, environment],
        "the last attempt"
    );
    // A gate that only prints that it failed may be what the lane is to make pass.
    assert_eq!(taken_for(1, &[(false, true), (false, true), (false, true)]), [gate; 3]);
    assert_eq!(taken_for(3, &[(true, true), (true, false), (true, true)]), [gate; 3]);
    assert_eq!(taken_for(0, &[(true, true)]), [environment]);
    assert_eq!(taken_for(0, &[(true, false)]), [gate]);
}

#[test]
fn what_could_not_be_saved_is_saved_before_the_worktree_is_reset() {
    let left = |reset: fn(&mut LaneState, &Lane)| {
        let failure = Failure::new(FailureKind::Crash, "exited with code 1");
        let engineer = Some(AgentName::new("engineer").unwrap());
        let (lane, agent, reason) = (id(), engineer, SnapshotReason::Failure);
        let event = Event::SnapshotFailed { lane, agent, reason, error: "no space".to_owned() };
        let mut state = after(&event, plain(), |state| {
            let worker = &mut state.attempts.agents_mut()[0];
            worker.step = AgentStep::Salvaging(SnapshotReason::Failure, Some(failure.clone()));
            worker.remember(Some(&plain().agents[0].tasks[0].id), &failure);
        });
        assert_eq!(state.agents()[0].step, AgentStep::Failed(failure), "the next attempt has it");
        state.attempts.agents_mut()[0].give_up();
        reset(&mut state, &plain());
        let worker = &state.agents()[0];
        (worker.step.clone(), worker.restart, worker.unkept.clone())
    };
    let saved_first = |restart| (AgentStep::Salvaging(SnapshotReason::Reset, None), restart, None);
    let differently = left(|state, _| state.revive_differently(false, crate::sample_plans::moment(1)));
    assert_eq!(differently, saved_first(RestartFrom::LastGood));
    let reopened = left(|state, plan| {
        let mut plan = plan.clone();
        plan.agents[0].round = Round::Review;
        state.revive(false, false, crate::sample_plans::moment(1));
        state.reopen(&plan);
    });
    assert_eq!(reopened, saved_first(RestartFrom::LaneHead));
}
