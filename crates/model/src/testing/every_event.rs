//! An event of every kind, as `fixtures/journals/v1/every-event.jsonl` has them.

use std::time::Duration;

use super::{commit, resumed, run_options, run_started};
use crate::event::*;
use crate::*;

const REFERENCE: &str = "refs/lanewright/checkpoint/P1-SL-1/20260101T000000.000Z";

/// At least one event of every kind, the first a `RunStarted`; each field that may be absent both ways.
pub fn every_event() -> Vec<Event> {
    [openings(), jobs(), work(), endings(), findings(), moves(), forges_and_clusters(), latest()].concat()
}

fn lane() -> LaneId {
    super::lane("SL-1")
}

fn agent() -> AgentName {
    super::agent("engineer")
}

fn task() -> TaskId {
    super::task("1.2")
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_767_225_600_000 + millis)
}

fn owner() -> Owner {
    Owner {
        session_id: "0198".into(),
        process: ProcessId { pid: 4711, started: u64::MAX },
        host: "box".into(),
        boot: String::new(),
    }
}

/// The first event of `run`.
fn started() -> Event {
    Event::RunStarted(Box::new(RunStarted {
        run_id: RunId::new("r1").unwrap(),
        plan_path: "/repo/plan.toml".into(),
        plan_sha256: "ab".repeat(32),
        owner: owner(),
        options: RunOptions {
            lanes: vec![lane()],
            worktree_root: "/repo.lanes".into(),
            keep_caches: true,
            backoff: Duration::from_millis(1500),
            timeout: Some(Duration::from_secs(3600)),
            ..run_options()
        },
        ..run_started()
    }))
}

fn job(role: JobRole) -> JobId {
    let lane = (role != JobRole::Final).then(lane);
    JobId { lane, role, number: 2 }
}

/// A job that ended by itself.
pub fn sample_exit(command: &str, exit_code: i32) -> JobExit {
    JobExit {
        cause: ExitCause::Exited,
        exit_code,
        command: command.into(),
        started_at: at(1),
        finished_at: at(2),
        tail: vec!["one\ttwo".into(), "ünï \u{1b}[0m".into()],
        notes: "a note".into(),
    }
}

fn transcript() -> Transcript {
    Transcript {
        session: Some("5f3c".into()),
        usage: Usage {
            tool_calls: 12,
            input_tokens: 3400,
            output_tokens: 560,
            cache_read_tokens: 70_000,
            cache_write_tokens: 800,
            cost: Dollars::new(0.1234),
            ..Usage::default()
        },
        session_usage: Some(Usage { input_tokens: 9000, ..Usage::default() }),
        message: "Done.".into(),
        outage: Some(OutageKind::Quota),
        limited_until: None,
        warning: "429".into(),
        error: "the model is overloaded".into(),
        refusals: vec![],
    }
}

fn refused() -> Transcript {
    Transcript {
        usage: Usage { tool_calls: 3, refused_calls: 2, failed_calls: 1, ..Usage::default() },
        refusals: vec![Refusal { call: "[Write] a.txt".into(), reason: "no writing".into() }],
        ..Transcript::default()
    }
}

/// A checkpoint that failed, with every field.
pub fn sample_checkpoint(stage: Stage) -> Checkpoint {
    Checkpoint {
        context: "ctx".into(),
        head_sha: Some(commit('b')),
        command: Some("cargo test".into()),
        exit_code: Some(101),
        retry_attempt: Some(1),
        max_retries: Some(3),
        failure_context: vec!["Attempt 1: no".into()],
        ..Checkpoint::new(stage, CheckpointStatus::Failed)
    }
}

fn failure() -> Failure {
    Failure {
        command: Some("make".into()),
        exit_code: Some(2),
        paths: vec!["src/a.rs".into()],
        log: vec!["boom".into()],
        ..Failure::new(FailureKind::Gate, "the gate failed")
    }
}

fn worktree() -> Worktree {
    Worktree { slot: 1, path: "/repo.lanes/slots/01".into(), branch: "lane/P1/SL-1".into(), head: commit('c') }
}

fn report() -> AgentReport {
    AgentReport { status: "COMPLETE".into(), decision: "APPROVED".into(), ..AgentReport::default() }
}

fn attempt() -> JobRole {
    JobRole::Attempt { agent: agent(), task: task() }
}

fn exited(role: JobRole, exit: JobExit, report: Option<AgentReport>, transcript: Option<Box<Transcript>>) -> Event {
    Event::JobExited { job: job(role), exit, report, reading: None, transcript }
}

fn answered(gate: HumanGate, approved: bool, message: &str) -> Event {
    Event::GateAnswered { lane: lane(), gate, approved, message: message.into() }
}

fn noted(lane: Option<LaneId>, message: &str) -> Event {
    Event::Noted { lane, message: message.into() }
}

/// A resume with a budget, with a message to a lane or all of them, and with lanes that are tried again.
fn resumed_with(
    number: u32,
    budget: Option<Budget>,
    (message, message_for): (&str, Option<LaneId>),
    lanes: Vec<LaneId>,
) -> Event {
    let (retried, message) = (lanes.clone(), message.to_owned());
    let (plan_sha256, pinned_sha256, timeout) = Default::default();
    let owner = owner();
    Event::RunResumed {
        plan_sha256,
        pinned_sha256,
        number,
        owner,
        timeout,
        budget,
        message,
        message_for,
        lanes,
        retried,
        follow: None,
        level: None,
    }
}

/// A resume by `recover`.
fn recovered() -> Event {
    let mut event = resumed_with(4, None, ("", None), vec![lane()]);
    if let Event::RunResumed { level, .. } = &mut event {
        *level = Some(RetryLevel::Rollback);
    }
    event
}

fn openings() -> Vec<Event> {
    vec![
        started(),
        resumed(1, owner()),
        Event::StopRequested { lane: None, reason: StopReason::Interrupt, force: false },
        Event::StopRequested { lane: Some(lane()), reason: StopReason::Request, force: true },
        answered(Approval::Plan.into(), true, ""),
        answered(Approval::Changes.into(), false, "no\n"),
        Event::LaneMoved { lane: lane(), from: LaneStage::Waiting, to: LaneStage::Init },
        Event::LaneBased { lane: lane(), base: commit('d'), port: 40_000, missing: vec![] },
        Event::WorktreeOpened { lane: lane(), agent: None, worktree: worktree() },
        Event::WorktreeOpened { lane: lane(), agent: Some(agent()), worktree: worktree() },
        Event::WorktreeReleased { lane: lane(), agent: agent() },
        Event::CheckpointReached { lane: None, checkpoint: Checkpoint::new(Stage::PrePr, CheckpointStatus::Ready) },
        Event::CheckpointReached { lane: Some(lane()), checkpoint: sample_checkpoint(Stage::AfterLaneTests) },
    ]
}

fn jobs() -> Vec<Event> {
    let roles = [
        attempt(),
        JobRole::Verify { agent: agent(), task: task() },
        JobRole::Setup { agent: None },
        JobRole::Checkpoint { agent: agent() },
        JobRole::Tests,
        JobRole::MergedTests,
        JobRole::Final,
    ];
    let mut events: Vec<Event> = roles.into_iter().map(|role| Event::planned(job(role))).collect();
    let supervisor = ProcessId { pid: 12, started: 99 };
    events.extend([
        Event::JobStarted { job: job(attempt()), supervisor },
        exited(attempt(), sample_exit("agent.sh", 0), Some(report()), None),
        exited(JobRole::Final, sample_exit("cargo test", 124), None, None),
    ]);
    events
}

fn work() -> Vec<Event> {
    vec![
        Event::WorkCommitted {
            lane: lane(),
            agent: agent(),
            head: commit('e'),
            changed: vec!["a \"b\"".into()],
            prohibited: vec![".git/x".into()],
            idle: Idle::No,
            ignored: vec![],
            size: None,
        },
        Event::SnapshotTaken {
            lane: lane(),
            agent: None,
            reason: SnapshotReason::Task,
            commit: commit('f'),
            reference: REFERENCE.into(),
            unchanged: false,
            context: None,
            checked_out: None,
        },
        Event::SnapshotFailed {
            lane: lane(),
            agent: Some(agent()),
            reason: SnapshotReason::Stop,
            error: "disk full".into(),
        },
        Event::AgentMerged { lane: lane(), agent: agent(), head: commit('1') },
        Event::FailureNoted { lane: lane(), agent: None, task: None, failure: failure() },
        Event::FailureNoted { lane: lane(), agent: Some(agent()), task: Some(task()), failure: failure() },
        Event::RetryPlanned {
            lane: lane(),
            agent: agent(),
            level: RetryLevel::Retry,
            not_before: at(5000),
            checkpoint: sample_checkpoint(Stage::RetryAttempt),
        },
        Event::AgentReset { lane: lane(), agent: agent(), head: commit('2') },
    ]
}

fn point() -> LanePoint {
    LanePoint {
        name: "after_lane_start".into(),
        seq: 7,
        stage: LaneStage::Implementation,
        base: commit('1'),
        worktrees: vec![OpenedWorktree { agent: Some(agent()), worktree: worktree(), snapshot: Some(commit('4')) }],
        again: vec![(commit('2'), commit('3'))],
    }
}

fn endings() -> Vec<Event> {
    vec![
        Event::LaneReset { lane: lane(), base: commit('3') },
        Event::MergeStaged { lane: lane(), onto: commit('4'), commit: commit('5'), moved: true },
        Event::MergeSuperseded { lane: lane() },
        Event::LaneMerged { lane: lane(), commit: commit('6'), onto: commit('7'), plan: None },
        Event::LaneCleaned { lane: lane(), kept: vec!["lane/P1/SL-1: unmerged".into()] },
        Event::LaneFailed { lane: lane(), failure: failure() },
        Event::LaneBlocked { lane: lane(), reason: "approve it".into() },
        Event::LaneRolledBack { lane: lane(), integration: Some(commit('8')), kept: vec![], point: None },
        Event::FinalOpened { worktree: worktree() },
        noted(Some(lane()), "about a lane"),
        noted(None, "about the run"),
        Event::RunFinished { outcome: RunOutcome::Failed, code: 1 },
    ]
}

fn findings() -> Vec<Event> {
    vec![
        Event::RollbackBegun { lane: lane(), to: String::new() },
        Event::WorktreeLost { lane: lane(), agent: Some(agent()), head: Some(commit('9')) },
        Event::MergesBisected { lane: None, culprit: Some("SL-1".into()), commit: Some(commit('9')) },
        Event::PersonAsked { lane: lane(), agent: agent(), task: task() },
        answered(HumanGate::Task(task()), true, "PostgreSQL"),
        Event::SnapshotDamaged {
            lane: lane(),
            agent: Some(agent()),
            commit: commit('f'),
            reference: REFERENCE.into(),
            error: "its tree is missing".into(),
        },
        Event::MustHavesChecked {
            lane: lane(),
            head: commit('c'),
            verdicts: vec![
                Verdict {
                    kind: Demand::Truth,
                    about: "It is fast".into(),
                    asked: vec![],
                    holds: None,
                    missing: false,
                    why: vec![],
                },
                Verdict {
                    kind: Demand::Artifact,
                    about: "src/a.rs".into(),
                    asked: vec!["at least 30 lines".into()],
                    holds: Some(false),
                    missing: false,
                    why: vec!["12 of 30 lines".into()],
                },
            ],
        },
    ]
}

fn moves() -> Vec<Event> {
    vec![
        resumed_with(2, Some(Budget { cost: Dollars::new(2.5), tokens: Some(1_000_000) }), ("", None), vec![]),
        exited(attempt(), sample_exit("agent.sh", 1), None, Some(Box::new(transcript()))),
        Event::RunMoved(Box::new(RunMoved {
            from: Place { host: "ci".into(), repository: "/ci".into(), worktree_root: "/ci.lanes".into() },
            to: Place { host: "box".into(), repository: "/repo".into(), worktree_root: "/repo.lanes".into() },
            slots: vec![(1, 2)],
        })),
        resumed_with(2, None, ("use the other library", Some(lane())), vec![]),
        Event::CheckpointReached {
            lane: Some(lane()),
            checkpoint: Checkpoint { target_branch: Some("lane/P1/SL-0".into()), ..sample_checkpoint(Stage::PrePr) },
        },
    ]
}

fn forges_and_clusters() -> Vec<Event> {
    vec![
        Event::BranchPushed { lane: lane(), remote: "origin".into(), branch: "lane/P1/SL-1".into(), head: commit('b') },
        Event::PullRequestOpened {
            lane: lane(),
            pull_request: PullRequest {
                url: "https://github.com/acme/shop/pull/7".into(),
                number: Some(7),
                base: "main".into(),
            },
            head: commit('b'),
            updated: true,
        },
        Event::ForgeUnavailable { lane: lane(), outage: Outage::new(OutageKind::Network, "connection refused") },
        Event::GitWorked { lane: Some(lane()), took_ms: 120 },
        Event::WorktreeMadeAhead { at_hand: 3, error: String::new() },
        Event::PhaseBlocked { reason: "the integration branch is gone".into() },
        Event::LaneOffered { lane: lane(), number: 1, executor: "slurm".into(), budget: Budget::default() },
        Event::LanePlaced { lane: lane(), number: 1, offer: commit('e'), ticket: "17".into() },
        Event::LaneClaimed { lane: lane(), host: "n1".into(), moved: true },
        Event::LaneReturned { lane: lane(), head: commit('c') },
        Event::PlacementEnded { lane: lane(), number: 1, outcome: None, reason: "its job ended".into() },
        Event::PoolEmptied { kept: vec!["/repo.lanes/slots/01: still held".into()] },
    ]
}

fn latest() -> Vec<Event> {
    vec![
        Event::ChangesMeasured {
            lane: lane(),
            head: commit('c'),
            changes: ChangeSize { files: 3, added: 12, removed: 4 },
            protected: vec![],
        },
        Event::LaneSkipped { lane: lane(), reason: "not needed any more".into() },
        Event::BranchMoved { lane: lane(), agent: Some(agent()), head: commit('d'), theirs: None },
        resumed_with(3, None, ("in small steps", None), vec![lane()]),
        Event::Slept { duration: Duration::from_secs(9) },
        Event::RollbackBegun { lane: lane(), to: "after_lane_start".into() },
        Event::LaneRolledBack { lane: lane(), integration: None, kept: vec![], point: Some(Box::new(point())) },
        Event::EventLogged { lane: None, name: EventName::new("deployed").unwrap(), data: None },
        Event::EventLogged {
            lane: Some(lane()),
            name: EventName::new("measured").unwrap(),
            data: Some(serde_json::json!({"times": [1, 2.5], "unit": "ms"})),
        },
        Event::SnapshotTaken {
            lane: lane(),
            agent: Some(agent()),
            reason: SnapshotReason::Request,
            commit: commit('f'),
            reference: REFERENCE.into(),
            unchanged: true,
            context: Some(Box::new(GivenContext {
                decisions: vec![Decision { text: "use the v2 API".into(), reason: "v1 ends in May".into() }],
                blockers: vec!["the key is missing".into()],
                next_task: Some(task()),
            })),
            checked_out: None,
        },
        recovered(),
        Event::AgentMoved { lane: lane(), agent: agent(), from: AgentPhase::Initialized, to: AgentPhase::Planning },
        Event::SnapshotTaken {
            lane: lane(),
            agent: Some(agent()),
            reason: SnapshotReason::Failure,
            commit: commit('f'),
            reference: REFERENCE.into(),
            unchanged: false,
            context: None,
            checked_out: Some(Box::new(CheckedOut { head: commit('e'), dirty: vec!["src/a \"b\".rs".into()] })),
        },
        Event::LaneMerged {
            lane: lane(),
            commit: commit('6'),
            onto: commit('7'),
            plan: Some("0123456789abcdef".to_owned()),
        },
        Event::ChangesMeasured {
            lane: lane(),
            head: commit('c'),
            changes: ChangeSize { files: 1, added: 2, removed: 0 },
            protected: vec![".github/workflows/ci.yml".into()],
        },
        Event::RunnerPaused {
            account: "claude".into(),
            outage: Outage { until: Some(at(9)), ..Outage::new(OutageKind::Quota, "You've hit your limit") },
            since: at(1),
            until: Some(at(9)),
        },
        Event::RunnerContinued { account: "claude".into() },
        exited(attempt(), sample_exit("agent.sh", 1), None, Some(Box::new(refused()))),
        Event::JobPlanned {
            job: job(attempt()),
            made_with: Some(Box::new(MadeWith {
                runner: "codex".into(),
                account: Some("work".into()),
                refusable: Some("codex:o5".into()),
                is_fallback: true,
            })),
        },
        Event::PullRequestsChecked { error: "HTTP 502".into() },
        Event::PullRequestChanged {
            lane: lane(),
            status: PullRequestStatus {
                state: PullRequestState::Open,
                checks: ChecksState::Failed,
                review: ReviewState::ChangesRequested,
                retargeted: Some("release".into()),
                moved_to: Some(commit('c')),
                failed: vec!["build".into()],
                unanswered: 2,
            },
        },
        Event::FeedbackReceived {
            lane: lane(),
            head: commit('c'),
            remarks: vec![Remark {
                id: "comment:5".into(),
                by: "reviewer".into(),
                path: Some("src/lib.rs".into()),
                line: Some(12),
                text: "this leaks".into(),
            }],
        },
        Event::PullRequestRefused { lane: lane(), reason: "conflicts with main".into() },
        Event::MessageSent { lane: lane(), message: "use the v2 API".into() },
        Event::WorkCommitted {
            lane: lane(),
            agent: agent(),
            head: commit('c'),
            changed: vec!["src/lib.rs".into()],
            prohibited: vec![],
            idle: Idle::No,
            ignored: vec![],
            size: Some(ChangeSize { files: 1, added: 3, removed: 1 }),
        },
        Event::CandidatePicked { lane: lane(), agent: agent() },
        Event::CandidateChosen { lane: lane(), agent: agent(), by: ChosenBy::User },
        Event::WorkCommitted {
            lane: lane(),
            agent: agent(),
            head: commit('c'),
            changed: vec![],
            prohibited: vec![],
            idle: Idle::Agent,
            ignored: vec!["a.sql (ignored by .gitignore:1)".into()],
            size: None,
        },
    ]
}
