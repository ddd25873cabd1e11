use lanewright_model::event::{Idle, SnapshotReason, Worktree};
use lanewright_model::testing::*;
use lanewright_model::{Approval, Checkpoint, CheckpointStatus, Plan, ProcessId, Stage};

use super::*;

fn two_lanes() -> Plan {
    plan(&[("SL-1", &[], &[Approval::Changes]), ("SL-2", &["SL-1"], &[])])
}

fn offset() -> FixedOffset {
    FixedOffset::east_opt(2 * 3600).unwrap()
}

fn told(story: &Story) -> String {
    let mut view = RunHistory::for_plan(&two_lanes());
    let offset = offset();
    let lines = story.records.iter().filter_map(|record| {
        view.apply(record);
        line(record, &view, offset, Styles::plain())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_reads_as_a_story() {
    let first = attempt("SL-1", "engineer", 1);
    let second = attempt("SL-1", "engineer", 2);
    let tests = tests_of("SL-1", 1);
    let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 3);
    assert_eq!(first.number, 1);
    let story = story.job(&second).exited(&second, 0).job(&tests).exited(&tests, 0);
    let story = story.moved("SL-1", LaneStage::Implementation, LaneStage::AwaitingUserApproval);
    let story = story.then(Event::GateAnswered {
        lane: lane("SL-1"),
        gate: Approval::Changes.into(),
        approved: true,
        message: "schöne Arbeit\nweiter so".to_owned(),
    });
    let story = story.merged("SL-1", 'd').failed("SL-2").finished(RunOutcome::Failed, 1).resumed();
    insta::assert_snapshot!(told(&story), @r#"
    12:00:00 run P1-SL-AUTH-20251227 of P1 started on main at aaaaaaaaaa
    12:00:01 SL-1: starts
    12:00:10 SL-1 engineer: attempt 1 started (task 1)
    12:01:11 SL-1 engineer: attempt 1 (task 1) failed after 1m 00s (exit code 101): cargo test auth
    12:01:12 SL-1 engineer: TypeError: undefined is not a function
    12:01:13 SL-1 engineer: retry 1 of 3 in 5s
    12:01:15 SL-1 engineer: attempt 2 started (task 1)
    12:02:16 SL-1 engineer: attempt 2 (task 1) finished in 1m 00s
    12:02:18 SL-1: tests started
    12:03:19 SL-1: tests passed in 1m 00s
    12:03:20 SL-1: waits for your approval of its changes, at commit aaaaaaaaaa (lanewright diff P1-SL-AUTH-20251227 SL-1)
    12:03:21 SL-1: changes approved: schöne Arbeit weiter so
    12:03:22 SL-1 engineer: changed 1 file
    12:03:23 SL-1 engineer: merged into the lane at cccccccccc
    12:03:27 SL-1: merged into main at dddddddddd after 3m 26s
    12:03:31 SL-2: failed: TypeError: undefined is not a function
    12:03:32 run failed after 3m 32s: 1 of 2 lanes merged
    12:03:33 run resumed (number 1)
    "#);
}

#[test]
fn annotations_have_locations() {
    let conflict = Failure { paths: vec!["src/a.rs".into()], ..Failure::new(FailureKind::Conflict, "merge conflict") };
    let noted = Event::FailureNoted { lane: lane("SL-1"), agent: None, task: None, failure: conflict };
    let stop = Event::StopRequested { lane: None, reason: StopReason::Interrupt, force: false };
    let kept = vec!["refs/lanewright/checkpoint/P1-SL-1/x".to_owned()];
    let paths = vec![".git/config".to_owned(), "日本/設計.md".to_owned()];
    let story = Story::begun()
        .then(noted)
        // What is wrong with the work is said by the failure, once.
        .then(Event::WorkCommitted {
            lane: lane("SL-1"),
            agent: agent("engineer"),
            head: commit('b'),
            changed: vec![],
            prohibited: paths.clone(),
            idle: Idle::Agent,
            ignored: vec![],
            size: None,
        })
        .then(Event::FailureNoted {
            lane: lane("SL-1"),
            agent: Some(agent("engineer")),
            task: None,
            failure: Failure { paths, ..Failure::new(FailureKind::Ownership, "changed files outside `owns`") },
        })
        .then(Event::SnapshotFailed {
            lane: lane("SL-1"),
            agent: None,
            reason: SnapshotReason::Stop,
            error: "No space left on device".to_owned(),
        })
        .blocked("SL-1", "main is checked out in /repo and dirty")
        .then(stop)
        .then(Event::LaneRolledBack { lane: lane("SL-1"), integration: None, kept, point: None });
    insta::assert_snapshot!(told(&story), @r#"
    12:00:00 run P1-SL-AUTH-20251227 of P1 started on main at aaaaaaaaaa
    12:00:01 SL-1: merge conflict [src/a.rs]
    12:00:03 SL-1 engineer: changed files outside `owns` [.git/config, 日本/設計.md]
    12:00:04 SL-1: no snapshot could be taken: No space left on device
    12:00:05 SL-1: blocked: main is checked out in /repo and dirty
    12:00:06 run: stopping after Ctrl-C; agents are asked to stop and their work is kept
    12:00:07 SL-1: rolled back, kept refs/lanewright/checkpoint/P1-SL-1/x
    "#);
}

#[test]
fn machines_matters_are_silent() {
    let silent = [
        Event::FinalOpened {
            worktree: Worktree { slot: 1, path: "/w".into(), branch: String::new(), head: commit('a') },
        },
        Event::planned(tests_of("SL-1", 1)),
        Event::CheckpointReached {
            lane: None,
            checkpoint: Checkpoint::new(Stage::AfterLaneStart, CheckpointStatus::Ready),
        },
        Event::LaneCleaned { lane: lane("SL-1"), kept: vec![] },
    ];
    for event in silent {
        assert_eq!(told(&Story::default().then(event)), "");
    }
}

#[test]
fn long_message_is_cut_and_cleaned() {
    let message = format!("\u{1b}]0;title\u{7}{}", "x".repeat(10_000));
    let text = told(&Story::default().then(Event::Noted { lane: None, message }));
    assert!(text.len() < 500 && text.ends_with('…') && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn reattached_job_is_reported_as_found_running() {
    let (first, tests) = (attempt("SL-1", "engineer", 1), tests_of("SL-2", 1));
    let again = |job: &JobId| Event::JobStarted { job: job.clone(), supervisor: ProcessId { pid: 1, started: 1 } };
    let story = Story::begun().opened("SL-1", 1).job(&first).job(&tests).resumed();
    let told = told(&story.then(again(&first)).then(again(&tests)));
    assert_eq!(told.matches("started (task 1)").count() + told.matches("tests started").count(), 2, "{told}");
    let last: Vec<&str> = told.lines().rev().take(2).map(|line| &line[9..]).collect();
    assert_eq!(last, ["SL-2: tests found running", "SL-1 engineer: attempt 1 (task 1) found running"]);
}

fn exit(cause: ExitCause, exit_code: i32, notes: &str) -> JobExit {
    let (started_at, finished_at) = (at(0), at(1));
    let (command, notes, tail) = ("sleep 30".to_owned(), notes.to_owned(), Vec::new());
    JobExit { cause, exit_code, command, started_at, finished_at, tail, notes }
}

#[test]
fn supervisor_report_is_not_shown_as_agents_words() {
    let exit = exit(ExitCause::Exited, 0, "");
    let report =
        |decision: &str| AgentReport { status: "COMPLETE".into(), decision: decision.into(), ..Default::default() };
    assert_eq!(reported(&exit, Some(&report("PENDING"))), "");
    assert_eq!(reported(&exit, Some(&report("APPROVED"))), "; it reports: COMPLETE, APPROVED");
}

#[test]
fn an_attempt_that_runs_out_of_time_says_so_once() {
    let message = "`sleep 30` ran out of time (124): the time limit of 1s passed".to_owned();
    let report = Some(AgentReport { status: "ERROR".into(), message, ..Default::default() });
    let late = exit(ExitCause::TimedOut, 124, "the time limit of 1s passed; processes [7] do not die");
    let job = attempt("SL-1", "engineer", 1);
    let exited = Event::JobExited { job, exit: late, report, reading: None, transcript: None };
    let failure =
        Failure { exit_code: Some(124), ..Failure::new(FailureKind::Timeout, "ran out of time (exit code 124)") };
    let noted = Event::FailureNoted { lane: lane("SL-1"), agent: Some(agent("engineer")), task: None, failure };
    let story = Story::default().then(exited).then(noted);
    insta::assert_snapshot!(told(&story), @"12:00:00 SL-1 engineer: attempt 1 (task 1) ran out of time after 1s: sleep 30 (processes [7] do not die)");
    let mut view = RunHistory::for_plan(&two_lanes());
    view.apply(&story.records[1]);
    let live = narrate(&story.records[1], &view, offset()).map(|line| line.text);
    assert_eq!(live.as_deref(), Some("SL-1 engineer: ran out of time (exit code 124)"), "a live run shows no exits");
}

#[test]
fn a_long_failure_is_cut_in_its_middle() {
    let message = format!("changed no file; it said: {} Which database?", "I looked at everything. ".repeat(20));
    let failure = Failure::new(FailureKind::Idle, message);
    let text = told(&Story::default().then(Event::LaneFailed { lane: lane("SL-1"), failure }));
    assert!(
        text.len() < 200 && text.ends_with("Which database?") && text.contains("changed no file; it said"),
        "{text}"
    );
}

/// A lane that was sent back and has no retry left fails: no agent gets it.
#[test]
fn only_a_lane_with_a_retry_is_sent_back() {
    let back = (LaneStage::Validation, LaneStage::Implementation);
    let first = attempt("SL-1", "engineer", 1);
    let story = Story::begun().opened("SL-1", 1).job(&first).exited(&first, 0).moved("SL-1", back.0, back.1);
    let failed = told(&story.clone().failed("SL-1"));
    assert!(!failed.contains("sent back"), "{failed}");
    let checkpoint = Checkpoint {
        retry_attempt: Some(1),
        max_retries: Some(3),
        ..Checkpoint::new(Stage::RetryAttempt, CheckpointStatus::Retrying)
    };
    let (level, not_before) = (RetryLevel::Retry, at(0));
    let planned = Event::RetryPlanned { lane: lane("SL-1"), agent: agent("engineer"), level, not_before, checkpoint };
    let retried = told(&story.then(planned));
    assert!(retried.contains("SL-1 engineer: sent back to the agent: retry 1 of 3"), "{retried}");
}

#[test]
fn snapshot_without_work_is_not_reported() {
    let taken = |unchanged| Event::SnapshotTaken {
        lane: lane("SL-1"),
        agent: Some(agent("engineer")),
        reason: SnapshotReason::Failure,
        commit: commit('e'),
        reference: "refs/x".to_owned(),
        unchanged,
        context: None,
        checked_out: None,
    };
    assert_eq!(told(&Story::default().then(taken(true))), "");
    assert!(told(&Story::default().then(taken(false))).ends_with("work in progress saved as refs/x"));
}

#[test]
fn pause_line_has_its_end_and_the_lanes_that_wait() {
    let job = attempt("SL-1", "engineer", 1);
    let pause = |account: &str| {
        let (outage, account) = (Outage::new(OutageKind::Quota, "429"), account.to_owned());
        Event::RunnerPaused { account, outage, since: at(70), until: Some(at(7270)) }
    };
    let story = Story::begun().opened("SL-1", 1).job(&job).exited(&job, 1).then(pause("other"));
    let story = story.then(pause("true")).wait(600).resumed();
    let said = told(&story);
    let lines: Vec<&str> = said.lines().skip_while(|line| !line.contains("other")).collect();
    assert_eq!(
        lines,
        [
            "12:01:12 other is paused until 14:01 (1h 59m): 429",
            "12:01:13 waiting for true until 14:01 (1h 59m), 1 lane: 429",
            "12:11:14 run resumed (number 1); waiting for true until 14:01 (1h 49m), 1 lane",
        ]
    );
}

#[test]
fn notification_of_a_pause_counts_the_lanes_that_wait_for_each_runner() {
    let job = attempt("SL-1", "engineer", 1);
    let pause = |account: &str| {
        let (outage, account) = (Outage::new(OutageKind::Quota, "429"), account.to_owned());
        Event::RunnerPaused { account, outage, since: at(70), until: Some(at(7270)) }
    };
    let story = Story::begun().opened("SL-1", 1).then(pause("other")).job(&job).exited(&job, 1).then(pause("true"));
    let story = story.then(pause("other"));
    let mut history = RunHistory::for_plan(&two_lanes());
    let mut notifications = crate::messages::notification::Notifications::new(&history, program(), offset());
    let sent = story.records.iter().flat_map(|record| {
        history.apply(record);
        notifications.after(record, &history)
    });
    assert_eq!(
        sent.map(|sent| sent.title).collect::<Vec<_>>(),
        [
            "P1 continues; other is paused until 14:01 (2h 01m)",
            "P1 is waiting for true until 14:01 (1h 59m), 1 lane",
            "P1 is waiting for true until 14:01 (1h 59m), 1 lane",
        ]
    );
}
