//! Events for the tests of this room.

use std::time::Duration;

use lanewright_model::event::*;
use lanewright_model::*;

pub(super) fn run() -> RunId {
    RunId::new("r1").unwrap()
}

pub(super) fn phase() -> PhaseId {
    PhaseId::new("P1").unwrap()
}

pub(super) fn lane() -> LaneId {
    LaneId::new("SL-1").unwrap()
}

pub(super) fn agent() -> AgentName {
    AgentName::new("engineer").unwrap()
}

pub(super) fn task() -> TaskId {
    TaskId::new("1.2").unwrap()
}

pub(super) fn commit(digit: char) -> CommitId {
    CommitId::new(&digit.to_string().repeat(40)).unwrap()
}

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_767_225_600_000 + millis)
}

pub(super) fn owner() -> Owner {
    Owner { session_id: "0198".into(), process: ProcessId { pid: 4711, started: u64::MAX }, host: "box".into() }
}

pub(super) fn started() -> Event {
    Event::RunStarted(Box::new(RunStarted {
        format: "1.0".into(),
        lanewright: "0.1.0".into(),
        run_id: run(),
        phase: phase(),
        plan_path: "/repo/plan.toml".into(),
        plan_sha256: "ab".repeat(32),
        pinned_sha256: String::new(),
        base_branch: "main".into(),
        base_commit: commit('a'),
        owner: owner(),
        options: RunOptions {
            max_parallel: 2,
            merge: MergeMode::Local,
            merge_style: Default::default(),
            fail_fast: false,
            bisect_merges: false,
            gsd_tracking: false,
            must_haves: Default::default(),
            lanes: vec![lane()],
            done: vec![],
            worktree_root: "/repo.lanes".into(),
            branch_suffix: String::new(),
            keep_pool: false,
            keep_caches: true,
            checkpoint_tags: false,
            backoff: Duration::from_millis(1500),
            outage_limit: Duration::from_secs(3600),
            specialist_timeout: Duration::from_secs(300),
            on_orphan: OnOrphan::Continue,
            timeout: Some(Duration::from_secs(3600)),
            next_phases: None,
            placed_by: None,
            plan_format: None,
            budget: Budget::default(),
        },
    }))
}

pub(super) fn noted(lane: Option<LaneId>, message: &str) -> Event {
    Event::Noted { lane, message: message.into() }
}

pub(super) fn job(role: JobRole) -> JobId {
    let lane = (role != JobRole::Final).then(lane);
    JobId { lane, role, number: 2 }
}

pub(super) fn exit(command: &str, exit_code: i32) -> JobExit {
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
        },
        session_usage: Some(Usage { input_tokens: 9000, ..Usage::default() }),
        message: "Done.".into(),
        outage: Some(OutageKind::Quota),
        warning: "429".into(),
        error: "the model is overloaded".into(),
    }
}

pub(super) fn checkpoint(stage: Stage) -> Checkpoint {
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

pub(super) fn failure() -> Failure {
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

/// At least one event of every kind, the first a `RunStarted`; each field that may be absent both ways.
pub(super) fn every_event() -> Vec<Event> {
    let (lane, agent, task) = (lane(), agent(), task());
    let attempt = || JobRole::Attempt { agent: self::agent(), task: self::task() };
    let mut events = vec![
        started(),
        Event::RunResumed {
            plan_sha256: None,
            pinned_sha256: None,
            number: 1,
            owner: owner(),
            timeout: None,
            budget: None,
            message: String::new(),
            message_for: None,
            lanes: Vec::new(),
            retried: Vec::new(),
        },
        Event::StopRequested { lane: None, reason: StopReason::Interrupt, force: false },
        Event::StopRequested { lane: Some(lane.clone()), reason: StopReason::Request, force: true },
        Event::GateAnswered { lane: lane.clone(), gate: Approval::Plan.into(), approved: true, message: String::new() },
        Event::GateAnswered {
            lane: lane.clone(),
            gate: Approval::Changes.into(),
            approved: false,
            message: "no\n".into(),
        },
        Event::LaneMoved { lane: lane.clone(), from: LaneStage::Waiting, to: LaneStage::Init },
        Event::LaneBased { lane: lane.clone(), base: commit('d'), port: 40_000 },
        Event::WorktreeOpened { lane: lane.clone(), agent: None, worktree: worktree() },
        Event::WorktreeOpened { lane: lane.clone(), agent: Some(agent.clone()), worktree: worktree() },
        Event::WorktreeReleased { lane: lane.clone(), agent: agent.clone() },
        Event::CheckpointReached { lane: None, checkpoint: Checkpoint::new(Stage::PrePr, CheckpointStatus::Ready) },
        Event::CheckpointReached { lane: Some(lane.clone()), checkpoint: checkpoint(Stage::AfterLaneTests) },
    ];
    for role in [
        attempt(),
        JobRole::Verify { agent: agent.clone(), task: task.clone() },
        JobRole::Setup { agent: None },
        JobRole::Checkpoint { agent: agent.clone() },
        JobRole::Tests,
        JobRole::MergedTests,
        JobRole::Final,
    ] {
        events.push(Event::JobPlanned { job: job(role) });
    }
    let supervisor = ProcessId { pid: 12, started: 99 };
    events.extend([
        Event::JobStarted { job: job(attempt()), supervisor },
        Event::JobExited {
            job: job(attempt()),
            exit: exit("agent.sh", 0),
            report: Some(report()),
            reading: None,
            transcript: None,
        },
        Event::JobExited {
            job: job(JobRole::Final),
            exit: exit("cargo test", 124),
            report: None,
            reading: None,
            transcript: None,
        },
        Event::WorkCommitted {
            lane: lane.clone(),
            agent: agent.clone(),
            head: commit('e'),
            changed: vec!["a \"b\"".into()],
            prohibited: vec![".git/x".into()],
            idle: Idle::No,
        },
        Event::SnapshotTaken {
            lane: lane.clone(),
            agent: None,
            reason: SnapshotReason::Task,
            commit: commit('f'),
            reference: "refs/lanewright/checkpoint/P1-SL-1/20260101T000000.000Z".into(),
        },
        Event::SnapshotFailed {
            lane: lane.clone(),
            agent: Some(agent.clone()),
            reason: SnapshotReason::Stop,
            error: "disk full".into(),
        },
        Event::AgentMerged { lane: lane.clone(), agent: agent.clone(), head: commit('1') },
        Event::FailureNoted { lane: lane.clone(), agent: None, task: None, failure: failure() },
        Event::FailureNoted { lane: lane.clone(), agent: Some(agent.clone()), task: Some(task), failure: failure() },
        Event::RetryPlanned {
            lane: lane.clone(),
            agent: agent.clone(),
            level: RetryLevel::Retry,
            not_before: at(5000),
            checkpoint: checkpoint(Stage::RetryAttempt),
        },
        Event::AgentReset { lane: lane.clone(), agent, head: commit('2') },
        Event::LaneReset { lane: lane.clone(), base: commit('3') },
        Event::MergeStaged { lane: lane.clone(), onto: commit('4'), commit: commit('5'), moved: true },
        Event::MergeSuperseded { lane: lane.clone() },
        Event::LaneMerged { lane: lane.clone(), commit: commit('6'), onto: commit('7') },
        Event::LaneCleaned { lane: lane.clone(), kept: vec!["lane/P1/SL-1: unmerged".into()] },
        Event::LaneFailed { lane: lane.clone(), failure: failure() },
        Event::LaneBlocked { lane: lane.clone(), reason: "approve it".into() },
        Event::LaneRolledBack { lane: lane.clone(), integration: Some(commit('8')), kept: vec![] },
        Event::FinalOpened { worktree: worktree() },
        noted(Some(lane.clone()), "about a lane"),
        noted(None, "about the run"),
        Event::RunFinished { outcome: RunOutcome::Failed, code: 1 },
        Event::RollbackBegun { lane: lane.clone() },
        Event::WorktreeLost { lane: lane.clone(), agent: Some(self::agent()), head: Some(commit('9')) },
        Event::MergesBisected { lane: None, culprit: Some("SL-1".into()), commit: Some(commit('9')) },
        Event::PersonAsked { lane: lane.clone(), agent: self::agent(), task: self::task() },
        Event::GateAnswered {
            lane: lane.clone(),
            gate: HumanGate::Task(self::task()),
            approved: true,
            message: "PostgreSQL".into(),
        },
        Event::SnapshotDamaged {
            lane: lane.clone(),
            agent: Some(self::agent()),
            commit: commit('f'),
            reference: "refs/lanewright/checkpoint/P1-SL-1/20260101T000000.000Z".into(),
            error: "its tree is missing".into(),
        },
        Event::MustHavesChecked {
            lane: lane.clone(),
            head: commit('c'),
            verdicts: vec![
                Verdict { kind: Demand::Truth, about: "It is fast".into(), asked: vec![], holds: None, why: vec![] },
                Verdict {
                    kind: Demand::Artifact,
                    about: "src/a.rs".into(),
                    asked: vec!["at least 30 lines".into()],
                    holds: Some(false),
                    why: vec!["12 of 30 lines".into()],
                },
            ],
        },
        Event::RunResumed {
            plan_sha256: None,
            pinned_sha256: None,
            number: 2,
            owner: owner(),
            timeout: None,
            budget: Some(Budget { cost: Dollars::new(2.5), tokens: Some(1_000_000) }),
            message: String::new(),
            message_for: None,
            lanes: Vec::new(),
            retried: Vec::new(),
        },
        Event::JobExited {
            job: job(attempt()),
            exit: exit("agent.sh", 1),
            report: None,
            reading: None,
            transcript: Some(Box::new(transcript())),
        },
        Event::RunMoved(Box::new(RunMoved {
            from: Place { host: "ci".into(), repository: "/ci".into(), worktree_root: "/ci.lanes".into() },
            to: Place { host: "box".into(), repository: "/repo".into(), worktree_root: "/repo.lanes".into() },
            slots: vec![(1, 2)],
        })),
        Event::RunResumed {
            plan_sha256: None,
            pinned_sha256: None,
            number: 2,
            owner: owner(),
            timeout: None,
            budget: None,
            message: "use the other library".into(),
            message_for: Some(self::lane()),
            lanes: Vec::new(),
            retried: Vec::new(),
        },
        Event::CheckpointReached {
            lane: Some(lane.clone()),
            checkpoint: Checkpoint { target_branch: Some("lane/P1/SL-0".into()), ..checkpoint(Stage::PrePr) },
        },
        Event::BranchPushed {
            lane: lane.clone(),
            remote: "origin".into(),
            branch: "lane/P1/SL-1".into(),
            head: commit('b'),
        },
        Event::PullRequestOpened {
            lane: lane.clone(),
            pull_request: PullRequest {
                url: "https://github.com/acme/shop/pull/7".into(),
                number: Some(7),
                base: "main".into(),
            },
            head: commit('b'),
            updated: true,
        },
        Event::ForgeUnavailable {
            lane: lane.clone(),
            outage: Outage { kind: OutageKind::Network, line: "connection refused".into(), retry_after: None },
        },
        Event::GitWorked { lane: Some(lane.clone()), took_ms: 120 },
        Event::WorktreeMadeAhead { at_hand: 3, error: String::new() },
        Event::PhaseBlocked { reason: "the integration branch is gone".into() },
        Event::LaneOffered { lane: lane.clone(), number: 1, executor: "slurm".into(), budget: Budget::default() },
        Event::LanePlaced { lane: lane.clone(), number: 1, offer: commit('e'), ticket: "17".into() },
        Event::LaneClaimed { lane: lane.clone(), host: "n1".into(), moved: true },
        Event::LaneReturned { lane: lane.clone(), head: commit('c') },
        Event::PlacementEnded { lane: lane.clone(), number: 1, outcome: None, reason: "its job ended".into() },
        Event::PoolEmptied { kept: vec!["/repo.lanes/slots/01: still held".into()] },
        Event::ChangesMeasured {
            lane: lane.clone(),
            head: commit('c'),
            changes: ChangeSize { files: 3, added: 12, removed: 4 },
        },
        Event::LaneSkipped { lane: lane.clone(), reason: "not needed any more".into() },
        Event::BranchMoved { lane: lane.clone(), agent: Some(self::agent()), head: commit('d') },
        Event::RunResumed {
            plan_sha256: None,
            pinned_sha256: None,
            number: 3,
            owner: owner(),
            timeout: None,
            budget: None,
            message: "in small steps".into(),
            message_for: None,
            lanes: vec![lane.clone()],
            retried: vec![lane],
        },
        Event::Slept { duration: Duration::from_secs(9) },
    ]);
    events
}

pub(super) fn record(event: Event) -> Record {
    Record { seq: 3, at: at(7), event, origin: None }
}

pub(super) fn line_of(record: &Record) -> Vec<u8> {
    let mut line = Vec::new();
    super::record::encode(record, &run(), &phase(), &mut line).unwrap();
    assert_eq!(line.pop(), Some(b'\n'));
    line
}

/// A line with the right checksum and whatever else `edit` makes of it.
pub(super) fn forged(event: Event, edit: impl Fn(&str) -> String) -> Vec<u8> {
    let line = String::from_utf8(line_of(&record(event))).unwrap();
    let body = edit(&line[..line.len() - 18]);
    format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes())).into_bytes()
}
