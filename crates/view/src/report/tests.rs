#[path = "../../../../tests/documents/mod.rs"]
mod documents;
mod odd_names;
mod surfaces;
mod variety;

use annotations::Severity;
use documents::{Schema, junit_faults};
use lanewright_model::ReportFormat;
use lanewright_model::event::{Event, LaneStage, Record, RunOutcome};
use lanewright_model::testing::*;
use lanewright_model::time::LocalTime;
use lanewright_model::{
    Dollars, ExitCause, JobExit, JobId, JobRole, Outage, OutageKind, Plan, Redactor, Transcript, Usage,
};
use proptest::prelude::*;

use super::*;
use crate::status::styles::Styles;

pub(super) fn report_of(plan: &Plan, records: &[Record], held: bool) -> ExecutionReport<'static> {
    report_on(RunHistory::for_plan(plan), records, held)
}

fn report_on(history: RunHistory, records: &[Record], held: bool) -> ExecutionReport<'static> {
    let now = records.last().map_or(at(0), |record| record.at);
    let history = Box::leak(Box::new(history.after(records)));
    ExecutionReport::of(history, SummaryContext { now: LocalTime::utc(now), program: &program(), held }, 0)
}

pub(super) fn two_lanes() -> Plan {
    plan(&[("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[])])
}

pub(super) fn report(story: &Story) -> ExecutionReport<'static> {
    report_of(&two_lanes(), &story.records, false)
}

/// `SL-1` is merged at its second attempt, `SL-2` fails its tests.
pub(super) fn fixed_and_failed() -> Story {
    let second = attempt("SL-1", "engineer", 2);
    let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 3).wait(4).job(&second).exited(&second, 0);
    let story = story.merged("SL-1", 'd').opened("SL-2", 1);
    let only = attempt("SL-2", "engineer", 1);
    let story = story.job(&only).exited(&only, 0).job(&tests_of("SL-2", 1)).exited(&tests_of("SL-2", 1), 101);
    story.noted("SL-2").failed("SL-2").finished(RunOutcome::Failed, 1)
}

pub(super) fn rendered(report: &ExecutionReport<'_>, format: ReportFormat) -> String {
    report.render(format, 100, Styles::plain()).unwrap()
}

#[test]
fn times_show_lower_bound() {
    let report = report(&fixed_and_failed());
    let times = &report.times;
    // Two attempts of a minute in one lane, an attempt and tests of a minute in the one after it.
    assert_eq!((times.work_ms, times.critical_path_ms), (180_000, 240_000));
    assert_eq!(times.lower_bound_ms, 240_000);
    assert_eq!(report.timeline.critical_path, [lane("SL-1"), lane("SL-2")]);
    assert_eq!(times.busy_ms, 240_000);
    assert_eq!(times.delayed_ms, 5_000, "the first retry was put off");
    assert_eq!(
        times.makespan_ms,
        times.busy_ms + times.delayed_ms + times.paused_ms + times.git_ms + times.overhead_ms
    );
    insta::assert_snapshot!(drawing::lines(&report, 80).join("\n"), @"
    * SL-1             |.###########..##########..                         | 2m 25s
        engineer/1 1 ! | ###########                                       | 1m 00s
        engineer/1 2   |              ##########                           | 1m 00s
    * SL-2             |                          ..###########=========== | 2m 15s
        engineer/1 1   |                            ###########            | 1m 00s
    ");
}

#[test]
fn lane_overhead_excludes_jobs_git_and_waits() {
    let job = attempt("SL-1", "engineer", 1);
    let git = |took_ms| Event::GitWorked { lane: Some(lane("SL-1")), took_ms };
    // It is admitted at 1 s; git works from 6 s to 9 s; the attempt is planned a second later and runs from 12 s to 72 s.
    let story = Story::begun().opened("SL-1", 1).then(git(3000)).job(&job).exited(&job, 0).then(git(500));
    let report = report(&story.blocked("SL-1", "x"));
    let times = report.lanes[0].times;
    assert_eq!((times.active_ms, times.git_ms, times.waited_ms), (73_000, 3500, 1000), "{times:?}");
    assert_eq!(times.overhead_ms, 73_000 - 60_000 - 3000 - 500 - 1000, "{times:?}");
    assert_eq!((report.times.lanes_ms, report.times.lanes_overhead_ms), (73_000, times.overhead_ms));
    assert_eq!(report.times.git_ms, 3500);
    let text = rendered(&report, ReportFormat::Text);
    assert!(text.contains("Lanes: 1m 13s in all, of which 8s (11.7 %)"), "{text}");
    assert!(text.contains("# an agent works, = a gate runs"), "the timeline is explained: {text}");
}

#[test]
fn pause_of_a_runner_is_a_part_of_its_own() {
    let (first, second) = (attempt("SL-1", "engineer", 1), attempt("SL-1", "engineer", 2));
    let (outage, account) = (Outage::new(OutageKind::Quota, "429"), "true".to_owned());
    let paused = Event::RunnerPaused { account: account.clone(), outage, since: at(70), until: Some(at(370)) };
    let story = Story::begun().opened("SL-1", 1).job(&first).exited(&first, 1).then(paused).noted("SL-1").wait(300);
    let stopped = report(&story.clone().finished(RunOutcome::Stopped, 130));
    assert_eq!(stopped.times.paused_ms, 301_000, "it is not over");
    // The attempt that finds out begins in the pause, another one waits for a place after it.
    let probed = report(&story.clone().job(&second).exited(&second, 0));
    let continued = story.then(Event::RunnerContinued { account }).wait(20);
    let waited = report(&continued.job(&second).exited(&second, 0));
    assert_eq!([&probed, &waited].map(|report| report.times.paused_ms), [301_000; 2]);
    assert_eq!(waited.times.overhead_ms - probed.times.overhead_ms, 21_000, "{:?}", waited.times);
    assert_eq!(
        waited.lanes[0].times.waited_ms - probed.lanes[0].times.waited_ms,
        21_000,
        "{:?}",
        waited.lanes[0].times
    );
    let text = rendered(&probed, ReportFormat::Text);
    assert!(text.contains("waiting for runners 5m 01s"), "{text}");
}

#[test]
fn time_at_rest_is_none_of_the_runs() {
    let job = attempt("SL-1", "engineer", 1);
    let story = Story::begun().opened("SL-1", 1).job(&job).exited(&job, 0).finished(RunOutcome::Stopped, 130);
    let before = report(&story).times;
    let story = story.wait(7200).resumed().merged("SL-1", 'd');
    let after = report(&story).times;
    assert_eq!((before.at_rest_ms, after.at_rest_ms), (0, 7_201_000));
    assert!(after.makespan_ms < before.makespan_ms + 60_000, "{after:?}");
    assert_eq!(after.busy_ms, before.busy_ms);
}

#[test]
fn an_attempt_that_is_a_retry_says_of_what() {
    let report = report(&fixed_and_failed());
    let attempts = &report.lanes[0].attempts;
    assert!(attempts[0].job.retry.is_none());
    let retry = attempts[1].job.retry.as_ref().unwrap();
    assert_eq!((retry.number, retry.of), (Some(1), Some(3)));
    assert_eq!(retry.reason, gate_failure().message);
}

#[test]
fn usage_is_reported_per_attempt_lane_and_run() {
    let job = attempt("SL-1", "engineer", 1);
    let mut story = Story::begun().opened("SL-1", 1).job(&job).exited(&job, 0).merged("SL-1", 'd');
    let usage = Usage { input_tokens: 1200, cost: Dollars::new(0.25), ..Usage::default() };
    for record in &mut story.records {
        if let Event::JobExited { transcript, .. } = &mut record.event {
            *transcript = Some(Box::new(Transcript { usage, ..Transcript::default() }));
        }
    }
    let report = report(&story);
    assert_eq!(
        (report.summary.usage(), report.lanes[0].lane.usage(), report.lanes[1].lane.usage()),
        (usage, usage, Usage::default())
    );
    let value: serde_json::Value = serde_json::from_str(&rendered(&report, ReportFormat::Json)).unwrap();
    Schema::named("report").accepts(&value);
    assert_eq!(value["lanes"][0]["attempts"][0]["transcript"]["cost_usd"], 0.25);
    assert!(rendered(&report, ReportFormat::Junit).contains("name=\"cost_usd\" value=\"0.250000\""));
    assert!(rendered(&report, ReportFormat::Markdown).contains("1.2k tokens"));
    assert!(rendered(&report, ReportFormat::Text).contains("1.2k tokens"));
}

#[test]
fn all_formats_show_cluster_jobs() {
    let id = || lane("SL-1");
    let offered =
        |number| Event::LaneOffered { lane: id(), number, executor: "main".into(), budget: Default::default() };
    let placed =
        |number: u32| Event::LanePlaced { lane: id(), number, offer: commit('e'), ticket: format!("7{number}") };
    let claimed = |host: &str| Event::LaneClaimed { lane: id(), host: host.into(), moved: true };
    let lost = Event::PlacementEnded { lane: id(), number: 1, outcome: None, reason: "its node is gone".into() };
    // Offered at 11 s, claimed at 43 s, lost at 104 s; offered again at once, and claimed after 20 s.
    let story = Story::begun().opened("SL-1", 1).then(offered(1)).then(placed(1)).wait(30).then(claimed("n1"));
    let story = story.wait(60).then(lost).then(offered(2)).then(placed(2)).wait(18).then(claimed("n2"));
    let report = report_of(&two_lanes(), &story.records, true);
    let value: serde_json::Value = serde_json::from_str(&rendered(&report, ReportFormat::Json)).unwrap();
    Schema::named("report").accepts(&value);
    let shown = &value["lanes"][0];
    let elsewhere = serde_json::json!({ "executor": "main", "job": "72", "host": "n2", "note": null });
    assert_eq!((&shown["elsewhere"], &shown["waited_ms"]), (&elsewhere, &52_000.into()));
    let jobs = shown["placements"].as_array().unwrap();
    let hosts: Vec<_> = jobs.iter().map(|job| (job["number"].as_u64(), job["host"].as_str())).collect();
    assert_eq!(hosts, [(Some(1), Some("n1")), (Some(2), Some("n2"))]);
    assert_eq!((jobs[0]["waited_ms"].as_u64(), jobs[1]["waited_ms"].as_u64()), (Some(32_000), Some(20_000)));
    assert_eq!((&jobs[0]["reason"], jobs[1]["ended"].is_null()), (&"its node is gone".into(), true));
    let waits = value["timeline"]["waits"].as_array().unwrap();
    assert_eq!(waits.iter().filter(|wait| wait["reason"] == "waiting for an executor").count(), 2);
    let page = rendered(&report, ReportFormat::Html);
    for words in ["job 72 of main on n2", "1: 71 of main", "its node is gone", "waiting for an executor, 32s"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(rendered(&report, ReportFormat::Markdown).contains("| SL-1 | main | 71 | n1 | 32s | its node is gone |"));
    let text = rendered(&report, ReportFormat::Text);
    assert!(text.contains("SL-1 job 71 of main on n1: waited 32s; its node is gone"), "{text}");
}

#[test]
fn gate_that_finally_passed_is_a_passed_case() {
    let first = tests_of("SL-1", 1);
    let second = tests_of("SL-1", 2);
    let story = Story::begun().opened("SL-1", 1).job(&first).exited(&first, 1).noted("SL-1");
    let story = story.job(&second).exited(&second, 0).merged("SL-1", 'd').finished(RunOutcome::Done, 0);
    let xml = rendered(&report(&story), ReportFormat::Junit);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let cases: Vec<&str> =
        document.descendants().filter_map(|it| it.attribute("classname").and(it.attribute("name"))).collect();
    // The same name as in a run in which it passed at once.
    assert_eq!(cases, ["SL-1", "tests", "SL-2"]);
    assert!(xml.contains("tests: cargo test auth (run 2 times)"), "{xml}");
    assert!(!xml.contains("<failure"), "{xml}");
    assert!(xml.contains("TypeError: undefined"), "what failed before is forgotten: {xml}");
}

#[test]
fn long_markdown_is_cut_between_blocks() {
    let mut story = fixed_and_failed();
    for number in 0..2000 {
        story = story.then(Event::Noted { lane: None, message: format!("note {number}") });
    }
    let report = report(&story);
    let whole = markdown(&report, MARKDOWN_LIMIT);
    assert!(whole.contains("note 1999") && !whole.contains("did not fit"));
    for limit in [4000, 5000, 20_000] {
        let cut = markdown(&report, limit);
        assert!(cut.len() <= limit, "{} of {limit}", cut.len());
        assert!(cut.ends_with("tells everything.*\n"), "{cut}");
        assert!(!cut.contains("note 1999"));
        assert_eq!(cut.matches("<details>").count(), cut.matches("</details>").count());
    }
}

#[test]
fn annotations_are_ten_of_a_kind_at_most() {
    let names: Vec<String> = (0..30).map(|number| format!("SL-{number}")).collect();
    let lanes: Vec<(&str, &[&str], &[lanewright_model::Approval])> =
        names.iter().map(|name| (name.as_str(), &[][..], &[][..])).collect();
    let mut story = Story::begun();
    for (at, name) in names.iter().enumerate() {
        story = if at % 2 == 0 { story.failed(name) } else { story.blocked(name, "no disk") };
    }
    let shown = annotations(&report_of(&plan(&lanes), &story.records, false));
    let of = |severity| shown.iter().filter(|it| it.severity == severity).count();
    assert_eq!((of(Severity::Error), of(Severity::Warning)), (10, 10));
    assert!(shown[9].message.starts_with("and 6 more"), "{}", shown[9].message);
}

#[test]
fn secrets_of_the_plan_are_not_reported() {
    let mut parts = lanewright_model::PlanParts::from(two_lanes());
    parts.title = Some("Use s3cr3t-t0ken".to_owned());
    parts.lanes[0].name = Some("Lane s3cr3t-t0ken".to_owned());
    let plan = Plan::new(parts).unwrap();
    let redactor = Redactor::new([("A_TOKEN", "s3cr3t-t0ken")], &[]);
    let summary = SummaryContext { now: LocalTime::utc(at(0)), program: &program(), held: false };
    let history = RunHistory::for_plan(&plan).redacted(&redactor).after(&Story::begun().records);
    let report = ExecutionReport::of(&history, summary, 0);
    for format in ReportFormat::ALL {
        assert!(!rendered(&report, *format).contains("s3cr3t"), "{format}");
    }
}

#[test]
fn schema_rejects_unknown_fields() {
    let mut value = serde_json::json!(json::report(&report(&fixed_and_failed())));
    let schema = Schema::named("report");
    schema.accepts(&value);
    value["lanes"][0]["attempts"][0]["mood"] = "good".into();
    assert!(!schema.takes(&value));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_report_format_is_valid_for_any_log(records in any_records(), held in any::<bool>()) {
        let report = report_of(&two_lanes(), &records, held);
        let times = &report.times;
        let parts = times.busy_ms + times.delayed_ms + times.paused_ms + times.git_ms + times.overhead_ms;
        prop_assert!(parts >= times.makespan_ms);
        Schema::named("report").accepts(&serde_json::from_str(&rendered(&report, ReportFormat::Json)).unwrap());
        prop_assert_eq!(junit_faults(&rendered(&report, ReportFormat::Junit)), Vec::<String>::new());
        prop_assert!(markdown(&report, 3000).len() <= 3000);
        rendered(&report, ReportFormat::Text);
    }
}

/// A job that ended at once.
fn ended(lane_id: &str, role: JobRole, command: &str, exit_code: i32, tail: Vec<String>) -> [Event; 2] {
    let job = JobId { lane: Some(lane(lane_id)), role, number: 1 };
    let exit = JobExit {
        cause: ExitCause::Exited,
        exit_code,
        command: command.to_owned(),
        started_at: at(1),
        finished_at: at(2),
        tail,
        notes: String::new(),
    };
    [Event::planned(job.clone()), Event::JobExited { job, exit, report: None, reading: None, transcript: None }]
}

/// Agents may begin.
fn begun(lane_id: &str) -> Event {
    Event::LaneMoved { lane: lane(lane_id), from: LaneStage::Waiting, to: LaneStage::Implementation }
}
