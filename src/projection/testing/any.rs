//! Random events.

use proptest::prelude::*;

use super::{agent, at, commit, lane, owner, proposed, started, task, worktree};
use crate::event::*;
use crate::model::*;

/// Any events in any order, about few enough lanes and jobs that they meet.
pub(crate) fn any_records() -> impl Strategy<Value = Vec<Record>> {
    let records = proptest::collection::vec((any_event(), -5i64..100), 0..60);
    records.prop_map(|events| {
        let number = |(seq, (event, seconds))| Record { seq: seq as u64 + 1, at: at(seconds), event, origin: None };
        events.into_iter().enumerate().map(number).collect()
    })
}

fn any_lane() -> impl Strategy<Value = LaneId> {
    prop_oneof![Just("SL-1"), Just("SL-2"), Just("unknown")].prop_map(lane)
}

fn any_agent() -> impl Strategy<Value = AgentName> {
    prop_oneof![Just("engineer"), Just("reviewer")].prop_map(agent)
}

fn any_stage() -> impl Strategy<Value = LaneStage> {
    proptest::sample::select(LaneStage::ALL)
}

fn any_job() -> BoxedStrategy<JobId> {
    let role = prop_oneof![
        any_agent().prop_map(|agent| JobRole::Attempt { agent, task: task("1") }),
        any_agent().prop_map(|agent| JobRole::Verify { agent, task: task("2") }),
        proptest::option::of(any_agent()).prop_map(|agent| JobRole::Setup { agent }),
        any_agent().prop_map(|agent| JobRole::Checkpoint { agent }),
        Just(JobRole::Tests),
        Just(JobRole::MergedTests),
        Just(JobRole::Final),
    ];
    (proptest::option::of(any_lane()), role, 1u32..4)
        .prop_map(|(lane, role, number)| JobId { lane, role, number })
        .boxed()
}

fn any_text() -> impl Strategy<Value = String> + Clone {
    prop_oneof!["\\PC{0,12}", Just("\u{1b}[31mrot\u{7}\n".to_owned()), Just("会計 モジュール".repeat(30))]
}

fn any_failure() -> BoxedStrategy<Failure> {
    let parts = (proptest::sample::select(FailureKind::ALL), any_text(), proptest::collection::vec(any_text(), 0..7));
    parts.prop_map(|(kind, message, log)| Failure { log, ..Failure::new(kind, message) }).boxed()
}

fn any_checkpoint() -> impl Strategy<Value = Checkpoint> {
    let numbers = (proptest::option::of(0u32..4), proptest::option::of(0u32..4), any_text());
    let words = (proptest::sample::select(Stage::ALL), proptest::sample::select(CheckpointStatus::ALL));
    (words, numbers).prop_map(|((stage, status), (retry_attempt, max_retries, context))| Checkpoint {
        retry_attempt,
        max_retries,
        context,
        ..Checkpoint::new(stage, status)
    })
}

fn any_exit() -> BoxedStrategy<JobExit> {
    let parts = (proptest::sample::select(ExitCause::ALL), 0i32..3, any_text(), -5i64..100);
    parts
        .prop_map(|(cause, exit_code, command, seconds)| JobExit {
            cause,
            exit_code,
            notes: command.clone(),
            tail: vec![command.clone()],
            command,
            started_at: at(seconds),
            finished_at: at(50),
        })
        .boxed()
}

fn any_event() -> BoxedStrategy<Event> {
    prop_oneof![
        any_run_event().boxed(),
        any_job_event().boxed(),
        any_lane_event().boxed(),
        any_lane_ending().boxed(),
        any_agent_event().boxed(),
    ]
    .boxed()
}

fn any_run_event() -> impl Strategy<Value = Event> {
    let reason = proptest::sample::select(StopReason::ALL);
    prop_oneof![
        Just(started(&[])),
        Just(started(&["SL-2", "nowhere"])),
        Just(Event::RunResumed {
            plan_sha256: None,
            pinned_sha256: None,
            number: 1,
            owner: owner("second"),
            timeout: None,
            budget: None,
            message: String::new(),
            message_for: None,
            lanes: Vec::new(),
            retried: Vec::new(),
        }),
        (proptest::option::of(any_lane()), reason, any::<bool>())
            .prop_map(|(lane, reason, force)| Event::StopRequested { lane, reason, force }),
        proptest::sample::select(RunOutcome::ALL).prop_map(|outcome| Event::RunFinished { outcome, code: 1 }),
        Just(Event::FinalOpened { worktree: worktree(9, "", 'f') }),
        Just(moved()),
        (proptest::option::of(any_lane()), any_text()).prop_map(|(lane, message)| Event::Noted { lane, message }),
        (proptest::option::of(any_lane()), any_checkpoint())
            .prop_map(|(lane, checkpoint)| Event::CheckpointReached { lane, checkpoint }),
    ]
}

fn any_job_event() -> impl Strategy<Value = Event> {
    let report = AgentReport { status: "BLOCKED".to_owned(), message: "quota".to_owned(), ..Default::default() };
    prop_oneof![
        any_job().prop_map(|job| Event::JobPlanned { job }),
        any_job().prop_map(|job| Event::JobStarted { job, supervisor: ProcessId { pid: 1, started: 1 } }),
        (any_job(), any_exit(), proptest::option::of(Just(report))).prop_map(|(job, exit, report)| Event::JobExited {
            job,
            exit,
            report,
            reading: None,
            transcript: None,
        }),
    ]
}

fn any_lane_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (any_lane(), any_stage(), any_stage()).prop_map(|(lane, from, to)| Event::LaneMoved { lane, from, to }),
        1 => any_lane().prop_map(|lane| Event::LaneBased { lane, base: commit('1'), port: 1 }),
        1 => (any_lane(), proptest::option::of(any_agent())).prop_map(|(lane, agent)| {
            Event::WorktreeOpened { lane, agent, worktree: worktree(1, "lane/x", '2') }
        }),
        1 => any_lane().prop_map(|lane| Event::LaneReset { lane, base: commit('3') }),
        1 => (any_lane(), any::<bool>()).prop_map(|(lane, moved)| {
            Event::MergeStaged { lane, onto: commit('3'), commit: commit('4'), moved }
        }),
        1 => any_lane().prop_map(|lane| Event::MergeSuperseded { lane }),
        1 => (any_lane(), proptest::sample::select(Approval::ALL), any::<bool>(), any_text()).prop_map(
            |(lane, gate, approved, message)| Event::GateAnswered { lane, gate: gate.into(), approved, message }
        ),
    ]
}

fn any_lane_ending() -> impl Strategy<Value = Event> {
    let kept = proptest::collection::vec(any_text(), 0..2);
    prop_oneof![
        any_lane().prop_map(|lane| Event::LaneMerged { lane, commit: commit('5'), onto: commit('4') }),
        (any_lane(), any_failure()).prop_map(|(lane, failure)| Event::LaneFailed { lane, failure }),
        (any_lane(), any_text()).prop_map(|(lane, reason)| Event::LaneBlocked { lane, reason }),
        (any_lane(), kept.clone()).prop_map(|(lane, kept)| Event::LaneCleaned { lane, kept }),
        any_lane().prop_map(|lane| proposed(lane, "https://forge.example.com/7")),
        any_lane().prop_map(|lane| Event::RollbackBegun { lane }),
        (any_lane(), kept).prop_map(|(lane, kept)| Event::LaneRolledBack { lane, integration: None, kept }),
    ]
}

fn any_agent_event() -> impl Strategy<Value = Event> {
    let files = proptest::collection::vec(any_text(), 0..2);
    let reason = proptest::sample::select(SnapshotReason::ALL);
    prop_oneof![
        (any_lane(), any_agent()).prop_map(|(lane, agent)| Event::WorktreeReleased { lane, agent }),
        (any_lane(), any_agent(), files.clone(), files).prop_map(|(lane, agent, changed, prohibited)| {
            Event::WorkCommitted { lane, agent, head: commit('6'), changed, prohibited, idle: Idle::No }
        }),
        (any_lane(), any_agent()).prop_map(|(lane, agent)| Event::AgentMerged { lane, agent, head: commit('7') }),
        (any_lane(), any_agent()).prop_map(|(lane, agent)| Event::AgentReset { lane, agent, head: commit('8') }),
        (any_lane(), proptest::option::of(any_agent()), reason.clone()).prop_map(|(lane, agent, reason)| {
            Event::SnapshotTaken { lane, agent, reason, commit: commit('9'), reference: "refs/x".to_owned() }
        }),
        (any_lane(), proptest::option::of(any_agent()), reason, any_text())
            .prop_map(|(lane, agent, reason, error)| Event::SnapshotFailed { lane, agent, reason, error }),
        (any_lane(), proptest::option::of(any_agent()), any_text()).prop_map(|(lane, agent, error)| {
            Event::SnapshotDamaged { lane, agent, commit: commit('9'), reference: "refs/x".to_owned(), error }
        }),
        (any_lane(), proptest::option::of(any_agent()), any_failure())
            .prop_map(|(lane, agent, failure)| { Event::FailureNoted { lane, agent, task: None, failure } }),
        (any_lane(), any_agent(), any_checkpoint()).prop_map(|(lane, agent, checkpoint)| Event::RetryPlanned {
            lane,
            agent,
            level: RetryLevel::Retry,
            not_before: at(70),
            checkpoint,
        }),
    ]
}

/// The run was taken here from another machine.
fn moved() -> Event {
    let place = |host: &str| {
        let (repository, worktree_root) = (format!("/{host}"), format!("/{host}.lanes"));
        Place { host: host.to_owned(), repository: repository.into(), worktree_root: worktree_root.into() }
    };
    Event::RunMoved(Box::new(RunMoved { from: place("ci"), to: place("desk"), slots: vec![] }))
}
