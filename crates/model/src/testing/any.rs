//! Random events, and plans that runs of them may have.

use std::time::Duration;

use crate::event::*;
use crate::plan::Interface;
use crate::*;
use proptest::collection;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{Story, agent, at, attempt, commit, lane, owner, plan, resumed, started, task, worktree};

/// Any events in any order, about few enough lanes and jobs that they meet.
pub fn any_records() -> impl Strategy<Value = Vec<Record>> {
    any_log(Just(Vec::new()).boxed())
}

/// A run with its plan, where that is known: mostly one that has started, often with the beginning of a usual story,
/// seldom one of which nothing is known.
pub fn any_run() -> impl Strategy<Value = (Option<Plan>, Vec<Record>)> {
    let beginning = (option::weighted(0.85, any_start()), any_beginning())
        .prop_map(|(start, story)| start.into_iter().chain(story).collect());
    let run = (option::weighted(0.8, any_plan()), any_log(beginning.boxed()));
    prop_oneof![1 => Just((None, Vec::new())), 49 => run]
}

/// Any events after those of `beginning`, which follow each other by a second.
fn any_log(beginning: BoxedStrategy<Vec<Event>>) -> impl Strategy<Value = Vec<Record>> {
    // One in ten was copied from the log of a lane on a cluster.
    let one = (any_event(), -5i64..100, option::weighted(0.1, 1u64..99));
    let events = prop_oneof![1 => Just(Vec::new()), 9 => collection::vec(one, 0..60)];
    (beginning, events).prop_map(|(beginning, events)| {
        let beginning = (0..).zip(beginning).map(|(seconds, event)| (event, seconds, None));
        let number = |(seq, (event, seconds, origin))| Record { seq: seq as u64 + 1, at: at(seconds), event, origin };
        beginning.chain(events).enumerate().map(number).collect()
    })
}

/// What random events hardly ever come to by themselves.
fn any_beginning() -> impl Strategy<Value = Vec<Event>> {
    let events = |story: Story| story.records.into_iter().map(|record| record.event).collect::<Vec<_>>();
    let opened = || Story::default().opened("SL-1", 1);
    let moved = |to| opened().moved("SL-1", LaneStage::Implementation, to);
    let queued = || Checkpoint::new(Stage::PrePr, CheckpointStatus::InProgress);
    let (lane, agent) = (lane("SL-1"), agent("engineer"));
    let merged = Event::LaneMerged { lane: lane.clone(), commit: commit('d'), onto: commit('a'), plan: None };
    let asked = Event::PersonAsked { lane: lane.clone(), agent: agent.clone(), task: task("2") };
    let failure = Failure::new(FailureKind::Ownership, "changed files outside `owns`");
    let rejected =
        Event::FailureNoted { lane: lane.clone(), agent: Some(agent.clone()), task: Some(task("1")), failure };
    let missing = vec!["KEY".to_owned()];
    let based = Event::LaneBased { lane: lane.clone(), base: commit('a'), port: 40_000, missing };
    let stories = [
        Story::default(),
        Story::default().then(based).moved("SL-1", LaneStage::Init, LaneStage::Classified),
        opened().then(asked),
        moved(LaneStage::Synthesis),
        moved(LaneStage::AwaitingUserApproval),
        opened().exited(&attempt("SL-1", "engineer", 1), 0).then(rejected),
        opened().then(paused(None)),
        opened().then(paused(Some(90))),
        Story::default().reached("SL-1", queued()).reached("SL-2", queued()).then(merged),
    ];
    let retried = (select(RetryLevel::ALL), any_checkpoint()).prop_map(move |(level, checkpoint)| {
        let (lane, agent, not_before) = (lane.clone(), agent.clone(), at(11));
        let retry = Event::RetryPlanned { lane, agent, level, not_before, checkpoint };
        events(opened().then(retry).job(&attempt("SL-1", "engineer", 2)))
    });
    prop_oneof![3 => select(stories.map(events).to_vec()), 1 => retried]
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let gates = proptest::sample::subsequence(Approval::ALL, 0..=Approval::ALL.len());
    let texts = (option::of(any_text()), option::of(any_text()));
    (texts, gates, any::<[bool; 4]>()).prop_map(|((title, name), gates, [judged, asks, named, compared])| {
        let mut parts = PlanParts::from(plan(&[("SL-1", &[], &gates), ("SL-2", &["SL-1"], &[])]));
        let interface =
            |id: &str, provider| Interface { id: id.to_owned(), text: String::new(), closed: named, provider };
        if named {
            parts.interfaces = vec![interface("IF-1", None), interface("IF-2", Some(LaneIndex(0)))];
            parts.interfaces[1].closed = false;
        }
        parts.title = title;
        parts.lanes[0].name = name;
        parts.lanes[0].tests.extend(judged.then(|| CommandLine::Shell("cargo test".to_owned())));
        if compared {
            let agents = &mut parts.lanes[0].agents;
            agents[0].candidate = Some(1);
            agents.push(Agent { name: agent("reviewer"), candidate: Some(2), ..agents[0].clone() });
        }
        if asks {
            let tasks = &mut parts.lanes[0].agents[0].tasks;
            tasks.push(Task { id: task("2"), kind: TaskKind::Decision, ..tasks[0].clone() });
        }
        Plan::new(parts).unwrap()
    })
}

/// The first event of a run with any options.
fn any_start() -> impl Strategy<Value = Event> {
    let limits = (option::of(0u64..9), option::of(0u64..9_000), option::of(0f64..9.0));
    let lanes = prop_oneof![3 => Just(&[][..]), 1 => Just(&["SL-2", "nowhere"][..])];
    (lanes, select(MergeMode::ALL), any::<bool>(), limits).prop_map(|(lanes, merge, fail_fast, limits)| {
        let mut event = started(lanes);
        if let Event::RunStarted(started) = &mut event {
            let budget = Budget { tokens: limits.1, cost: limits.2.and_then(Dollars::new) };
            let timeout = limits.0.map(Duration::from_secs);
            started.options = RunOptions { merge, fail_fast, timeout, budget, ..started.options.clone() };
        }
        event
    })
}

fn any_lane() -> impl Strategy<Value = LaneId> {
    prop_oneof![Just("SL-1"), Just("SL-2"), Just("unknown")].prop_map(lane)
}

fn any_agent() -> impl Strategy<Value = AgentName> {
    prop_oneof![Just("engineer"), Just("reviewer")].prop_map(agent)
}

fn any_job() -> BoxedStrategy<JobId> {
    let role = prop_oneof![
        any_agent().prop_map(|agent| JobRole::Attempt { agent, task: task("1") }),
        any_agent().prop_map(|agent| JobRole::Verify { agent, task: task("2") }),
        option::of(any_agent()).prop_map(|agent| JobRole::Setup { agent }),
        any_agent().prop_map(|agent| JobRole::Checkpoint { agent }),
        Just(JobRole::Tests),
        Just(JobRole::MergedTests),
        Just(JobRole::Final),
    ];
    (option::of(any_lane()), role, 1u32..4).prop_map(|(lane, role, number)| JobId { lane, role, number }).boxed()
}

fn any_text() -> impl Strategy<Value = String> + Clone {
    prop_oneof!["\\PC{0,12}", Just("\u{1b}[31mrot\u{7}\n".to_owned()), Just("会計 モジュール".repeat(30))]
}

fn any_texts() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(any_text(), 0..3)
}

fn any_failure() -> BoxedStrategy<Failure> {
    let what = (select(FailureKind::ALL), any_text(), option::of(any_text()), option::of(0i32..3));
    let found = (any_texts(), option::of(any_diagnosis().prop_map(Box::new)));
    let failure = |((kind, message, command, exit_code), (paths, diagnosis), log)| Failure {
        command,
        exit_code,
        paths,
        diagnosis,
        log,
        ..Failure::new(kind, message)
    };
    (what, found, proptest::collection::vec(any_text(), 0..7)).prop_map(failure).boxed()
}

fn any_diagnosis() -> impl Strategy<Value = Diagnosis> {
    let numbers = (option::of(1u32..9), option::of(0u32..9));
    let finding = |(file, (line, column), message)| Finding { file, line, column, message };
    let finding = (option::of(any_text()), numbers, any_text()).prop_map(finding);
    let findings = proptest::collection::vec(finding, 0..3);
    let what = (select(FailureClass::ALL), option::of(any_text()), findings, 0usize..3, option::of(Just(commit('1'))));
    what.prop_map(|(class, tool, findings, more, in_base)| {
        let count = findings.len() + more;
        Diagnosis { class, tool, count, findings, in_base }
    })
}

fn any_outage() -> impl Strategy<Value = Outage> {
    let wait = option::of((0u64..9).prop_map(Duration::from_secs));
    let until = option::of((0i64..9).prop_map(at));
    (select(OutageKind::ALL), any_text(), wait, until).prop_map(|(kind, line, retry_after, until)| Outage {
        kind,
        line,
        retry_after,
        until,
    })
}

/// The account of the agents of plans for tests, which is their command.
fn paused(until: Option<i64>) -> Event {
    let outage = Outage::new(OutageKind::Quota, "429");
    Event::RunnerPaused { account: "true".to_owned(), outage, since: at(1), until: until.map(at) }
}

fn any_reading() -> impl Strategy<Value = Option<Box<Reading>>> {
    let reading = prop_oneof![any_diagnosis().prop_map(Reading::Diagnosis), any_outage().prop_map(Reading::Outage)];
    option::of(reading.prop_map(Box::new))
}

fn any_usage() -> impl Strategy<Value = Usage> {
    let count = || prop_oneof![Just(0u64), 1u64..2_000_000];
    (count(), count(), count(), option::of(0f64..9.0)).prop_map(|(tool_calls, input_tokens, cached, dollars)| Usage {
        tool_calls,
        refused_calls: tool_calls / 5,
        failed_calls: tool_calls / 7,
        input_tokens,
        output_tokens: input_tokens / 7,
        cache_read_tokens: cached,
        cache_write_tokens: cached / 7,
        unpriced_tokens: dollars.map_or(0, |_| input_tokens / 9),
        cost: dollars.and_then(Dollars::new),
    })
}

fn any_transcript() -> impl Strategy<Value = Option<Box<Transcript>>> {
    let text = || prop_oneof![Just(String::new()), any_text()];
    let session = (option::of(any_text()), option::of(any_usage()));
    let limits = (option::of(select(OutageKind::ALL)), option::of((0i64..9).prop_map(at)));
    let refusal = (text(), any_text()).prop_map(|(call, reason)| Refusal { call, reason });
    let words = (text(), text(), text(), collection::vec(refusal, 0..2));
    let transcript =
        |((session, session_usage), (outage, limited_until), usage, (message, warning, error, refusals))| {
            Box::new(Transcript {
                session,
                session_usage,
                usage,
                message,
                outage,
                limited_until,
                warning,
                error,
                refusals,
            })
        };
    option::of((session, limits, any_usage(), words).prop_map(transcript))
}

fn any_report() -> impl Strategy<Value = Option<AgentReport>> {
    let words = (select(&["COMPLETE", "ERROR", "BLOCKED", ""][..]), select(&["APPROVED", "REJECTED", ""][..]));
    let more = (any_decisions(), collection::vec(any_text(), 0..2));
    let report = |((status, decision), message, (decisions, blockers), own): ((&str, &str), String, (_, _), bool)| {
        let (status, decision) = (status.to_owned(), decision.to_owned());
        AgentReport { status, decision, message, decisions, blockers, own, ..AgentReport::default() }
    };
    option::of((words, any_text(), more, any::<bool>()).prop_map(report))
}

fn any_decisions() -> impl Strategy<Value = Vec<Decision>> {
    let reason = prop_oneof![Just(String::new()), any_text()];
    collection::vec((any_text(), reason).prop_map(|(text, reason)| Decision { text, reason }), 0..2)
}

fn any_context() -> impl Strategy<Value = Option<Box<GivenContext>>> {
    let next_task = option::of(Just(task("T1")));
    let given = (any_decisions(), collection::vec(any_text(), 0..2), next_task)
        .prop_map(|(decisions, blockers, next_task)| Box::new(GivenContext { decisions, blockers, next_task }));
    option::of(given)
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    (select(Demand::ALL), any_text(), option::of(any::<bool>()), any_texts(), any_texts()).prop_map(
        |(kind, about, holds, asked, why)| {
            let missing = holds == Some(false) && kind == Demand::Artifact;
            Verdict { kind, about, asked, holds, missing, why }
        },
    )
}

fn any_checkpoint() -> impl Strategy<Value = Checkpoint> {
    let numbers = (option::of(0u32..4), option::of(0u32..4), any_text());
    let words = (select(Stage::ALL), select(CheckpointStatus::ALL));
    (words, numbers).prop_map(|((stage, status), (retry_attempt, max_retries, context))| Checkpoint {
        retry_attempt,
        max_retries,
        context,
        ..Checkpoint::new(stage, status)
    })
}

fn any_exit() -> BoxedStrategy<JobExit> {
    let exit = |(cause, exit_code, command, seconds, tail): (ExitCause, i32, String, i64, Vec<String>)| {
        let (notes, started_at, finished_at) = (tail.concat(), at(seconds), at(50));
        JobExit { cause, exit_code, notes, tail, command, started_at, finished_at }
    };
    (select(ExitCause::ALL), 0i32..3, any_text(), -5i64..100, any_texts()).prop_map(exit).boxed()
}

fn any_event() -> BoxedStrategy<Event> {
    prop_oneof![
        any_run_event().boxed(),
        any_job_event().boxed(),
        any_lane_event().boxed(),
        any_lane_ending().boxed(),
        any_agent_event().boxed(),
        any_placement().boxed(),
    ]
    .boxed()
}

fn any_run_event() -> impl Strategy<Value = Event> {
    let reason = select(StopReason::ALL);
    prop_oneof![
        2 => any_start(),
        1 => Just(resumed(1, owner("second"))),
        1 => (option::of(any_lane()), reason, any::<bool>())
            .prop_map(|(lane, reason, force)| Event::StopRequested { lane, reason, force }),
        1 => select(RunOutcome::ALL).prop_map(|outcome| Event::RunFinished { outcome, code: 1 }),
        1 => Just(Event::FinalOpened { worktree: worktree(9, "", 'f') }),
        1 => Just(moved()),
        1 => (option::of(any_lane()), any_text()).prop_map(|(lane, message)| Event::Noted { lane, message }),
        1 => (option::of(any_lane()), option::of(any_text())).prop_map(|(lane, data)| {
            let name = EventName::new("deployed").unwrap();
            Event::EventLogged { lane, name, data: data.map(Into::into) }
        }),
        1 => (option::of(any_lane()), any_checkpoint())
            .prop_map(|(lane, checkpoint)| Event::CheckpointReached { lane, checkpoint }),
        1 => (option::of(any_lane()), 0u64..9_000).prop_map(|(lane, ms)| match lane {
            None if ms % 2 == 0 => Event::Slept { duration: Duration::from_millis(ms) },
            lane => Event::GitWorked { lane, took_ms: ms },
        }),
        1 => option::of(0i64..99).prop_map(paused),
        1 => Just(Event::RunnerContinued { account: "true".to_owned() }),
        1 => any_text().prop_map(|error| Event::PullRequestsChecked { error }),
        1 => option::of(Just("SL-1".to_owned()))
            .prop_map(|culprit| Event::MergesBisected { lane: None, culprit, commit: None }),
    ]
}

fn any_job_event() -> impl Strategy<Value = Event> {
    let exited = (any_job(), any_exit(), any_report(), any_reading(), any_transcript());
    prop_oneof![
        (any_job(), option::of(any_text()), any::<bool>()).prop_map(|(job, runner, is_fallback)| {
            let made_with =
                runner.map(|runner| MadeWith { account: Some(runner.clone()), refusable: None, is_fallback, runner });
            Event::JobPlanned { job, made_with: made_with.map(Box::new) }
        }),
        any_job().prop_map(|job| Event::JobStarted { job, supervisor: ProcessId { pid: 1, started: 1 } }),
        exited.prop_map(|(job, exit, report, reading, transcript)| {
            Event::JobExited { job, exit, report, reading, transcript }
        }),
    ]
}

fn any_lane_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (any_lane(), select(LaneStage::ALL), select(LaneStage::ALL)).prop_map(|(lane, from, to)| Event::LaneMoved { lane, from, to }),
        1 => any_lane().prop_map(|lane| Event::LaneBased { lane, base: commit('1'), port: 1, missing: vec![] }),
        1 => (any_lane(), option::of(any_agent())).prop_map(|(lane, agent)| {
            Event::WorktreeOpened { lane, agent, worktree: worktree(1, "lane/x", '2') }
        }),
        1 => any_lane().prop_map(|lane| Event::LaneReset { lane, base: commit('3') }),
        1 => (any_lane(), any::<bool>()).prop_map(|(lane, moved)| {
            Event::MergeStaged { lane, onto: commit('3'), commit: commit('4'), moved }
        }),
        1 => any_lane().prop_map(|lane| Event::MergeSuperseded { lane }),
        1 => (any_lane(), select(Approval::ALL), any::<bool>(), any_text()).prop_map(
            |(lane, gate, approved, message)| Event::GateAnswered { lane, gate: gate.into(), approved, message }
        ),
        1 => (any_lane(), any_agent()).prop_map(|(lane, agent)| Event::PersonAsked { lane, agent, task: task("2") }),
        1 => (any_lane(), any::<bool>(), any_text()).prop_map(|(lane, approved, message)| {
            Event::GateAnswered { lane, gate: HumanGate::Task(task("2")), approved, message }
        }),
        1 => (any_lane(), proptest::collection::vec(any_verdict(), 0..4)).prop_map(|(lane, verdicts)| {
            Event::MustHavesChecked { lane, head: commit('3'), verdicts }
        }),
        1 => (any_lane(), 0u64..9).prop_map(|(lane, files)| {
            let changes = ChangeSize { files, added: 2 * files, removed: files };
            let protected = (0..files / 4).map(|at| format!(".github/{at}")).collect();
            Event::ChangesMeasured { lane, head: commit('3'), changes, protected }
        }),
    ]
}

fn any_lane_ending() -> impl Strategy<Value = Event> {
    let kept = proptest::collection::vec(any_text(), 0..2);
    prop_oneof![
        any_lane().prop_map(|lane| Event::LaneMerged { lane, commit: commit('5'), onto: commit('4'), plan: None }),
        (any_lane(), any_failure()).prop_map(|(lane, failure)| Event::LaneFailed { lane, failure }),
        (any_lane(), any_text()).prop_map(|(lane, reason)| Event::LaneBlocked { lane, reason }),
        (any_lane(), kept.clone()).prop_map(|(lane, kept)| Event::LaneCleaned { lane, kept }),
        (any_lane(), option::of(1u64..9)).prop_map(|(lane, number)| {
            let url = "https://forge.example.com/7".to_owned();
            let pull_request = PullRequest { url, number, base: "main".to_owned() };
            Event::PullRequestOpened { lane, pull_request, head: commit('5'), updated: false }
        }),
        (any_lane(), any_text()).prop_map(|(lane, message)| Event::MessageSent { lane, message }),
        (any_lane(), any_agent()).prop_map(|(lane, agent)| Event::CandidatePicked { lane, agent }),
        (any_lane(), any_agent(), select(ChosenBy::ALL)).prop_map(|(lane, agent, by)| Event::CandidateChosen {
            lane,
            agent,
            by
        }),
        (any_lane(), any_status()).prop_map(|(lane, status)| Event::PullRequestChanged { lane, status }),
        (any_lane(), any_text()).prop_map(|(lane, text)| Event::FeedbackReceived {
            lane,
            head: commit('5'),
            remarks: vec![Remark { id: "check:build".into(), by: "build".into(), path: None, line: None, text }]
        }),
        (any_lane(), any_text()).prop_map(|(lane, reason)| Event::PullRequestRefused { lane, reason }),
        (any_lane(), any_text()).prop_map(|(lane, reason)| Event::LaneSkipped { lane, reason }),
        any_lane().prop_map(|lane| Event::RollbackBegun { lane, to: String::new() }),
        (any_lane(), kept).prop_map(|(lane, kept)| Event::LaneRolledBack {
            lane,
            integration: None,
            kept,
            point: None
        }),
    ]
}

fn any_agent_event() -> impl Strategy<Value = Event> {
    let files = proptest::collection::vec(any_text(), 0..2);
    let reason = select(SnapshotReason::ALL);
    prop_oneof![
        (any_lane(), any_agent()).prop_map(|(lane, agent)| Event::WorktreeReleased { lane, agent }),
        (any_lane(), any_agent(), select(AgentPhase::ALL), select(AgentPhase::ALL))
            .prop_map(|(lane, agent, from, to)| Event::AgentMoved { lane, agent, from, to }),
        (any_lane(), any_agent(), files.clone(), files).prop_map(|(lane, agent, changed, prohibited)| {
            let size = Some(ChangeSize { files: 1, added: changed.len() as u64, removed: 0 });
            Event::WorkCommitted {
                lane,
                agent,
                head: commit('6'),
                changed,
                prohibited,
                idle: Idle::No,
                ignored: vec![],
                size,
            }
        }),
        (any_lane(), any_agent()).prop_map(|(lane, agent)| Event::AgentMerged { lane, agent, head: commit('7') }),
        (any_lane(), any_agent()).prop_map(|(lane, agent)| Event::AgentReset { lane, agent, head: commit('8') }),
        (any_lane(), option::of(any_agent()), reason.clone(), any_context()).prop_map(
            |(lane, agent, reason, context)| {
                let dirty = context.as_ref().map(|context| context.blockers.clone());
                let checked_out = dirty.map(|dirty| Box::new(CheckedOut { head: commit('8'), dirty }));
                Event::SnapshotTaken {
                    lane,
                    agent,
                    reason,
                    commit: commit('9'),
                    reference: "refs/x".to_owned(),
                    unchanged: false,
                    context,
                    checked_out,
                }
            }
        ),
        (any_lane(), option::of(any_agent()), reason, any_text())
            .prop_map(|(lane, agent, reason, error)| Event::SnapshotFailed { lane, agent, reason, error }),
        (any_lane(), option::of(any_agent()), any_text()).prop_map(|(lane, agent, error)| {
            Event::SnapshotDamaged { lane, agent, commit: commit('9'), reference: "refs/x".to_owned(), error }
        }),
        (any_lane(), option::of(any_agent()), option::of(Just(task("1"))), any_failure())
            .prop_map(|(lane, agent, task, failure)| Event::FailureNoted { lane, agent, task, failure }),
        (any_lane(), any_agent(), select(RetryLevel::ALL), any_checkpoint()).prop_map(
            |(lane, agent, level, checkpoint)| {
                Event::RetryPlanned { lane, agent, level, not_before: at(70), checkpoint }
            }
        ),
    ]
}

/// What becomes of a lane on a cluster.
fn any_placement() -> impl Strategy<Value = Event> {
    let number = || 1u32..3;
    prop_oneof![
        (any_lane(), number(), any_text()).prop_map(|(lane, number, executor)| {
            Event::LaneOffered { lane, number, executor, budget: Budget::default() }
        }),
        (any_lane(), number(), any_text())
            .prop_map(|(lane, number, ticket)| { Event::LanePlaced { lane, number, offer: commit('b'), ticket } }),
        (any_lane(), any_text(), any::<bool>()).prop_map(|(lane, host, moved)| Event::LaneClaimed {
            lane,
            host,
            moved
        }),
        any_lane().prop_map(|lane| Event::LaneReturned { lane, head: commit('c') }),
        (any_lane(), number(), option::of(select(RunOutcome::ALL)), any_text())
            .prop_map(|(lane, number, outcome, reason)| Event::PlacementEnded { lane, number, outcome, reason }),
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

fn any_status() -> impl Strategy<Value = PullRequestStatus> {
    let words = (select(PullRequestState::ALL), select(ChecksState::ALL), select(ReviewState::ALL));
    (words, any::<bool>()).prop_map(|((state, checks, review), is_changed)| PullRequestStatus {
        state,
        checks,
        review,
        retargeted: is_changed.then(|| "release".to_owned()),
        moved_to: is_changed.then(|| commit('6')),
        failed: if checks == ChecksState::Failed { vec!["build".to_owned()] } else { Vec::new() },
        unanswered: usize::from(is_changed),
    })
}
