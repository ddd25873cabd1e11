use lanewright_model::event::{Event, LaneStage, RunOutcome, StopReason};
use lanewright_model::testing::*;
use lanewright_model::time::LocalTime;
use lanewright_model::{Approval, Failure, FailureKind, Plan};

use super::*;

fn four_lanes() -> Plan {
    plan(&[
        ("SL-SCHEMA", &[], &[]),
        ("SL-API", &["SL-SCHEMA"], &[Approval::Changes]),
        ("SL-DOCS", &["SL-API"], &[]),
        ("SL-WEB", &["SL-SCHEMA"], &[]),
    ])
}

fn summary(story: &Story, held: bool) -> Summary<'static> {
    let history = Box::leak(Box::new(RunHistory::for_plan(&four_lanes()).after(&story.records)));
    Summary::of(history, SummaryContext { now: LocalTime::utc(story.now()), program: &program(), held })
}

fn text(story: &Story, held: bool) -> String {
    summary(story, held).render(80, Styles::plain())
}

fn schema_merged() -> Story {
    let job = attempt("SL-SCHEMA", "engineer", 1);
    Story::begun().opened("SL-SCHEMA", 1).job(&job).exited(&job, 0).merged("SL-SCHEMA", 'd')
}

#[test]
fn a_lane_names_its_worktree_until_that_is_removed() {
    let story = schema_merged().opened("SL-WEB", 1);
    let json = summary(&story, true).json();
    let worktrees: Vec<&str> =
        json["lanes"].as_array().unwrap().iter().filter_map(|lane| lane["worktree"].as_str()).collect();
    assert_eq!(worktrees.len(), 1, "{json}");
    assert!(worktrees[0].contains("SL-WEB"), "{worktrees:?}");
}

#[test]
fn a_run_that_goes_on_tells_who_works_and_who_waits() {
    let story = schema_merged().opened("SL-WEB", 1).retried("SL-WEB", 1, 3).job(&attempt("SL-WEB", "engineer", 2));
    let story = story.opened("SL-API", 3).wait(5000);
    let story = story.moved("SL-API", LaneStage::Implementation, LaneStage::AwaitingUserApproval);
    insta::assert_snapshot!(text(&story, true), @"
    P1 Billing · running · 1/4 lanes · 1h 26m · run P1-SL-AUTH-20251227

    lane       state           agent     task           elapsed  note
    SL-API     needs approval  engineer  -              1h 23m   of its changes
    SL-WEB     running         engineer  1/1 attempt 2  1h 24m   retry 1 of 3
    SL-DOCS    waiting         -         -              -        after SL-API
    SL-SCHEMA  merged          engineer  1/1            1m 16s   dddddddddd

    1h 26m elapsed, 1h 25m of work, 1s waiting for you

    SL-API waits for your approval of its changes, at commit aaaaaaaaaa.
      lanewright diff P1-SL-AUTH-20251227 SL-API
      lanewright approve P1-SL-AUTH-20251227 SL-API --gate changes
      lanewright reject P1-SL-AUTH-20251227 SL-API --gate changes -m 'what to change'
    ");
}

#[test]
fn a_failed_run_says_what_to_read_and_what_to_type() {
    let story = schema_merged().opened("SL-WEB", 1).retried("SL-WEB", 1, 1).job(&attempt("SL-WEB", "engineer", 2));
    let story = story.exited(&attempt("SL-WEB", "engineer", 2), 101).noted("SL-WEB").failed("SL-WEB");
    let story = story.blocked("SL-API", "main is checked out in /repo/会計 and dirty: commit or stash, then resume");
    let story = story.finished(RunOutcome::Failed, 1).wait(9000);
    insta::assert_snapshot!(text(&story, false), @"
    P1 Billing · failed · 1/4 lanes · 3m 40s · run P1-SL-AUTH-20251227

    lane       state      agent     task           elapsed  note
    SL-WEB     failed     engineer  1/1 attempt 2  2m 17s   TypeError: undefined is…
    SL-API     blocked    -         -              -        main is checked out in …
    SL-DOCS    waiting    -         -              -        after SL-API (blocked)
    SL-SCHEMA  merged     engineer  1/1            1m 16s   dddddddddd

    3m 40s elapsed, 3m 00s of work

    SL-WEB failed. See why, then retry, resume or roll back:
      lanewright status P1-SL-AUTH-20251227 SL-WEB
      lanewright retry P1-SL-AUTH-20251227 SL-WEB -m 'what to change'
      lanewright resume P1-SL-AUTH-20251227
      lanewright rollback P1-SL-AUTH-20251227 --lane SL-WEB

    SL-API: blocked: main is checked out in /repo/会計 and dirty: commit or stash,
    then resume
      lanewright status P1-SL-AUTH-20251227 SL-API
    ");
}

#[test]
fn blocked_lanes_are_grouped_by_reason() {
    let story = Story::begun().blocked("SL-API", "the disk is full").blocked("SL-WEB", "the disk is full");
    let steps = summary(&story.finished(RunOutcome::Blocked, 3), false).next_steps;
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].reason, "SL-API, SL-WEB: blocked: the disk is full");
}

#[test]
fn many_failed_lanes_do_not_fill_the_screen() {
    let failed = |story: Story, id: &&str| story.failed(id);
    let story = ["SL-API", "SL-DOCS", "SL-SCHEMA", "SL-WEB"].iter().fold(Story::begun(), failed);
    let steps = summary(&story.finished(RunOutcome::Failed, 1), false).next_steps;
    assert!(steps[0].reason.starts_with("SL-SCHEMA, SL-API, SL-DOCS and 1 more failed."), "{}", steps[0].reason);
    let commands: Vec<String> = steps.iter().flat_map(NextStep::shell_lines).collect();
    insta::assert_snapshot!(commands.join("\n"), @"
    lanewright status P1-SL-AUTH-20251227 SL-SCHEMA
    lanewright retry P1-SL-AUTH-20251227 SL-SCHEMA -m 'what to change'
    lanewright resume P1-SL-AUTH-20251227
    lanewright rollback P1-SL-AUTH-20251227 --lane SL-SCHEMA
    ");
}

#[test]
fn commands_of_next_steps_are_unique() {
    let story = schema_merged().failed("SL-WEB").blocked("SL-API", "the disk is full");
    let story = story.blocked("SL-DOCS", "it depends on SL-API, which is blocked").finished(RunOutcome::Failed, 1);
    let steps = summary(&story, false).next_steps;
    let shown: Vec<String> = steps.iter().map(|step| format!("{} {}", step.reason, step.commands.len())).collect();
    assert_eq!(
        shown,
        ["SL-WEB failed. See why, then retry, resume or roll back: 4", "SL-API: blocked: the disk is full 2"]
    );
    let text = text(&story, false);
    assert_eq!(text.matches("  lanewright resume P1-SL-AUTH-20251227\n").count(), 1, "{text}");
    assert!(text.contains("  lanewright status P1-SL-AUTH-20251227 SL-API\n"), "{text}");
}

#[test]
fn lane_is_ready_after_dependency_merged_alone() {
    let story = Story::begun().opened("SL-SCHEMA", 1).failed("SL-SCHEMA");
    let because = "it depends on SL-SCHEMA, which failed";
    let story = ["SL-API", "SL-DOCS", "SL-WEB"].iter().fold(story, |story, id| story.blocked(id, because));
    let mut story = story.finished(RunOutcome::Failed, 1).resumed();
    let Some(Event::RunResumed { lanes, .. }) = story.records.last_mut().map(|record| &mut record.event) else {
        panic!("no resume")
    };
    lanes.push(lane("SL-SCHEMA"));
    let story = story.merged("SL-SCHEMA", 'd').finished(RunOutcome::Blocked, 3);
    let summary = summary(&story, false);
    let notes: Vec<&str> = summary.lanes.iter().map(|lane| lane.note.as_str()).collect();
    assert_eq!(notes[1], "ready, resume to start");
    assert_eq!(notes[3], "ready, resume to start");
    assert!(!notes[2].contains("failed"), "{notes:?}");
    let steps = &summary.next_steps;
    assert!(steps[0].reason.contains("are ready. Resume the run"), "{steps:?}");
}

#[test]
fn approved_lane_has_own_word_in_table() {
    let story = schema_merged().opened("SL-API", 1);
    let story = story.moved("SL-API", LaneStage::Implementation, LaneStage::AwaitingUserApproval);
    let answer = Event::GateAnswered {
        lane: lane("SL-API"),
        gate: Approval::Changes.into(),
        approved: true,
        message: String::new(),
    };
    let mut story = story.finished(RunOutcome::Blocked, 3).then(answer);
    let told = text(&story, false);
    assert!(told.contains("SL-API     approved ") && !told.contains("stopped"), "{told}");
    // A resume of another lane changes nothing of that.
    story = story.resumed();
    let Some(Event::RunResumed { lanes, .. }) = story.records.last_mut().map(|record| &mut record.event) else {
        panic!("the resume is the last record");
    };
    *lanes = vec![lane("SL-WEB")];
    let told = text(&story.finished(RunOutcome::Blocked, 3), false);
    assert!(told.contains("SL-API     approved "), "{told}");
}

#[test]
fn a_stopped_and_an_interrupted_run_can_be_resumed() {
    let stop = Event::StopRequested { lane: None, reason: StopReason::Interrupt, force: false };
    let story = schema_merged().opened("SL-WEB", 1).then(stop);
    assert!(text(&story, true).contains(" · stopping · "));
    let stopped = summary(&story.finished(RunOutcome::Stopped, 130), false).render(120, Styles::plain());
    assert!(stopped.contains("SL-WEB     stopped    engineer  -     9s       in implementation\n"), "{stopped}");
    assert!(stopped.contains("The run is stopped") && stopped.contains("  lanewright resume P1-SL-AUTH-20251227\n"));
    let interrupted = text(&schema_merged().opened("SL-WEB", 1), false);
    assert!(interrupted.contains(" · interrupted · "), "{interrupted}");
    assert!(interrupted.contains("The run was interrupted; no work is lost."));
    assert!(interrupted.contains("SL-WEB     interrupted "), "{interrupted}");
    let asks = schema_merged().opened("SL-WEB", 1).then(Event::PersonAsked {
        lane: lane("SL-WEB"),
        agent: agent("engineer"),
        task: task("1"),
    });
    let asks = text(&asks, false);
    assert!(asks.contains("waits for you") && asks.contains("  lanewright resume "), "{asks}");
    // Nothing needs to be typed while somebody works on it.
    assert!(summary(&schema_merged(), true).next_steps.is_empty());
}

#[test]
fn a_run_that_is_done_says_where_its_work_is() {
    let story = schema_merged().opened("SL-API", 1).merged("SL-API", 'e').opened("SL-WEB", 1).merged("SL-WEB", 'f');
    let story = story.opened("SL-DOCS", 1).merged("SL-DOCS", '9').finished(RunOutcome::Done, 0);
    let steps = summary(&story, false).next_steps;
    assert_eq!(steps, [NextStep { reason: "4 lanes merged into main at 9999999999.".to_owned(), commands: vec![] }]);
}

#[test]
fn time_stands_still_while_no_process_works() {
    let story = schema_merged().opened("SL-WEB", 1);
    let left = summary(&story, false).elapsed();
    assert_eq!(summary(&story.wait(100_000), false).elapsed(), left);
}

#[test]
fn every_width_is_kept_but_for_commands() {
    let reason = "会計モジュール が 壊れた ".repeat(20);
    let failure = Failure::new(FailureKind::Crash, reason);
    let story = schema_merged().opened("SL-WEB", 1);
    let story = story.then(Event::LaneFailed { lane: lane("SL-WEB"), failure });
    for width in [1, 10, 20, 33, 40, 80, 200] {
        for line in text_at(&story, width).lines().filter(|line| !line.starts_with("  lanewright")) {
            let fits = lanewright_model::cells::width(line) <= width.max(21);
            assert!(fits, "{width}: {line}");
        }
    }
    insta::assert_snapshot!(text_at(&story, 40), @"
    P1 Billing · running · 1/4 lanes

    lane       state      note
    SL-WEB     failed     会計モジュール が…
    SL-API     waiting    waits for a place
    SL-DOCS    waiting    after SL-API
    SL-SCHEMA  merged     dddddddddd

    1m 30s elapsed, 1m 00s of work
    ");
}

fn text_at(story: &Story, width: usize) -> String {
    summary(story, true).render(width, Styles::plain())
}

#[test]
fn colours_are_an_extra() {
    let story = schema_merged().opened("SL-WEB", 1).failed("SL-WEB").finished(RunOutcome::Failed, 1);
    let coloured = summary(&story, false).render(80, Styles::coloured());
    assert!(coloured.contains("\u{1b}[1m\u{1b}[31mfailed\u{1b}[0m"), "{coloured:?}");
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), text(&story, false));
}

#[test]
fn the_json_form_holds_what_the_table_holds() {
    let story = schema_merged().opened("SL-WEB", 1).retried("SL-WEB", 1, 3);
    let json = serde_json::to_value(summary(&story, false)).unwrap();
    assert_eq!(json["lanes"][0]["state"], "merged");
    assert_eq!(json["lanes"][0]["merge_commit"], "d".repeat(40));
    assert_eq!(json["lanes"][1]["waiting_for"], serde_json::json!("place"));
    assert_eq!(json["lanes"][2]["waiting_for"]["lanes"], serde_json::json!(["SL-API"]));
    assert_eq!(json["lanes"][3]["retries"][0]["reason"], "TypeError: undefined is not a function");
    assert_eq!(
        json["next_steps"][0]["commands"][0],
        serde_json::json!(["lanewright", "resume", "P1-SL-AUTH-20251227"])
    );
}

#[test]
fn rest_of_a_pause_is_counted_to_its_end_whether_or_not_the_run_is_active() {
    let job = attempt("SL-SCHEMA", "engineer", 1);
    let (outage, until) = (lanewright_model::Outage::new(lanewright_model::OutageKind::Quota, "429"), Some(at(7270)));
    let pause = Event::RunnerPaused { account: "true".to_owned(), outage, since: at(70), until };
    let story = Story::begun().opened("SL-SCHEMA", 1).job(&job).exited(&job, 1).then(pause).wait(3600);
    for (story, held, words) in [
        (story.clone(), true, "waiting for true until 12:01 (59m 57s), 1 lane"),
        (story.clone(), false, "true is paused until 12:01 (59m 57s), 1 lane"),
        (story.clone().finished(RunOutcome::Stopped, 130), false, "true is paused until 12:01 (59m 56s), 1 lane"),
    ] {
        let summary = summary(&story, held);
        let ending = crate::status::ending::ending(&summary, &program(), &|_| Vec::new(), 99, Styles::plain());
        for shown in [summary.render(120, Styles::plain()), ending] {
            assert!(shown.contains(words), "{shown}");
        }
    }
    let stopped = summary(&story.finished(RunOutcome::Stopped, 130), false).render(120, Styles::plain());
    assert!(stopped.contains("in implementation; true is paused until 12:01 (59m 56s)"), "{stopped}");
}
