//! Reports of real runs: made at the end, made again at any time, and in the form that was asked for.

use rustix::process::Signal;
use serde_json::Value;

use crate::documents::{Schema, junit_faults};
use crate::support::{RUN, STATE, TestEnv, wait_until};

/// A lane that is fixed by a retry, one whose tests never pass, and one that waits for it.
pub(crate) const MIXED: &str = r#"
title = "Billing"
[gates]
final = ["test -s a.txt"]
[[lane]]
id = "A"
name = "Accounts"
command = '[ $LANEWRIGHT_ATTEMPT = 2 ] && echo a > a.txt'
tests = ["grep -q a a.txt"]
[[lane.must_haves.artifacts]]
path = "a.txt"
[[lane.must_haves.artifacts]]
path = "a.txt"
contains = "b"
[[lane]]
id = "B"
retries = 0
command = 'echo b > b.txt'
tests = ["test -e b.txt || exit 1; echo 'error[E0308]: mismatched types'; echo '  --> src/lib.rs:3:5'; exit 1"]
[[lane]]
id = "C"
depends_on = ["B"]
command = 'echo c > c.txt'
"#;

fn mixed() -> TestEnv {
    let env = TestEnv::new();
    env.plan(MIXED);
    env.execute(&[]).exits(1);
    env
}

fn json(env: &TestEnv) -> Value {
    let ended = env.lanewright(&["report", RUN, "--format", "json"]).exits(0);
    let value = serde_json::from_str(&ended.stdout).expect("JSON");
    Schema::named("report").accepts(&value);
    value
}

fn kept(env: &TestEnv, name: &str) -> String {
    env.read(&format!("repo/{STATE}/{RUN}/{name}"))
}

#[test]
fn a_run_that_ends_leaves_its_reports() {
    let env = mixed();
    let kept_json: Value = serde_json::from_str(&kept(&env, "report.json")).expect("JSON");
    Schema::named("report").accepts(&kept_json);
    assert_eq!(kept_json, json(&env), "made again it says something else");
    assert_eq!(junit_faults(&kept(&env, "junit.xml")), Vec::<String>::new());
    for (format, name) in [("md", "report.md"), ("html", "report.html"), ("junit", "junit.xml")] {
        let again = env.lanewright(&["report", RUN, "--format", format]).exits(0).stdout;
        assert_eq!(again, kept(&env, name));
    }
    assert!(!env.path(&format!("repo/{STATE}/{RUN}/gl-code-quality-report.json")).exists());
}

#[test]
fn run_end_and_status_link_the_page_of_changes() {
    let env = TestEnv::new();
    env.plan(MIXED);
    let place = format!("Report: {}", env.path(&format!("repo/{STATE}/{RUN}/report.html")).display());
    env.execute(&[]).exits(1).says(&[&place]);
    let status = env.lanewright(&["status", RUN]).exits(0).stdout;
    assert!(status.contains(&place), "{status}");
    let page = kept(&env, "report.html");
    // `A` is merged; the work of `B` failed.
    for line in ["<ins>+a\n</ins>", "<ins>+b\n</ins>"] {
        assert!(page.contains(line), "{page}");
    }
}

#[test]
fn report_shows_each_lane_and_the_work_left() {
    let report = json(&mixed());
    assert_eq!((&report["outcome"], &report["exit_code"]), (&"failed".into(), &1.into()));
    let states: Vec<&Value> = report["lanes"].as_array().expect("lanes").iter().map(|lane| &lane["state"]).collect();
    assert_eq!(states, ["merged", "failed", "blocked"]);
    let attempts = &report["lanes"][0]["attempts"];
    assert_eq!((&attempts[0]["passed"], &attempts[1]["passed"]), (&false.into(), &true.into()));
    assert_eq!(attempts[1]["retry"]["number"], 1);
    let finding = &report["lanes"][1]["failure"]["diagnosis"]["findings"][0];
    assert_eq!((&finding["file"], &finding["line"]), (&"src/lib.rs".into(), &3.into()));
    assert_eq!(report["lanes"][1]["gates"][0]["diagnosis"]["class"], "compilation");
    let left: Vec<&Value> = report["left"].as_array().expect("a list").iter().map(|left| &left["lane"]).collect();
    assert_eq!(left, ["B", "C"]);
    assert_eq!(report["lanes"][0]["must_haves"][1]["holds"], false);
    assert_eq!(report["lanes"][0]["merges"].as_array().map(Vec::len), Some(2));
    let times = &report["times"];
    let part = |name: &str| times[name].as_u64().expect("a number");
    assert_eq!(part("makespan_ms"), part("busy_ms") + part("delayed_ms") + part("git_ms") + part("overhead_ms"));
    assert!(part("git_ms") > 0, "the log does not tell of git: {times}");
    assert!(part("lower_bound_ms") <= part("makespan_ms"), "{times}");
}

#[test]
fn report_goes_to_a_file_or_shows_the_error() {
    let env = mixed();
    let ended = env.lanewright(&["report", "--format", "junit", "--output", "../scratch/junit.xml"]).exits(0);
    assert_eq!(ended.stdout, "");
    assert_eq!(env.scratch("junit.xml"), kept(&env, "junit.xml"));
    let nowhere = ["report", RUN, "--output", "no/such/place.txt"];
    env.lanewright(&nowhere).exits(1).says(&["cannot write the report to", "no/such/place.txt"]).hints("directory");
}

#[test]
fn only_reports_are_documents() {
    let env = mixed();
    env.lanewright(&["status", RUN, "--format", "junit"]).exits(2).hints("lanewright report [RUN] --format junit");
    env.lanewright(&["report", RUN, "--format", "yaml"]).exits(2).says(&["text, json, md, html, junit"]);
    env.lanewright(&["report", "r9"]).exits(8).says(&["no run `r9`"]);
}

#[test]
fn report_shows_running_and_interrupted_runs() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'touch \"$SCRATCH/began\"; wait-for go; echo l > l.txt'\n");
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    wait_until("its start in the log", || !env.events("job_started").is_empty());
    let report = json(&env);
    assert_eq!((&report["standing"], &report["outcome"]), (&"running".into(), &Value::Null));
    assert_eq!(report["lanes"][0]["attempts"][0]["passed"], Value::Null);
    run.signal(Signal::KILL);
    run.wait();
    let report = json(&env);
    assert_eq!(report["standing"], "interrupted");
    let page = env.lanewright(&["report", "--format", "html"]).exits(0).stdout;
    assert!(page.contains(">interrupted<") && !page.contains(">running<"), "{page}");
    assert_eq!(report["next_steps"][0]["commands"][0], serde_json::json!(["lanewright", "resume", RUN]));
    assert_eq!(junit_faults(&env.lanewright(&["report", "--format", "junit"]).exits(0).stdout), Vec::<String>::new());
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    assert_eq!(json(&env)["resumes"], 1);
}

#[test]
fn report_of_damaged_log_shows_readable_part() {
    let env = mixed();
    let path = format!("repo/{STATE}/{RUN}.jsonl");
    let log = env.read(&path).replacen("\"event\":\"lane_based\"", "\"event\":\"lane_biased\"", 1);
    env.write(&path, log);
    let ended = env.lanewright(&["report", RUN, "--format", "json"]).exits(0).says(&["is damaged"]);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    Schema::named("report").accepts(&report);
    assert_eq!(report["damaged_lines"], 1);
    assert!(env.lanewright(&["report", RUN, "--format", "md"]).exits(0).stdout.contains("cannot be read"));
}

#[test]
fn a_report_that_cannot_be_left_is_no_matter_of_the_run() {
    let env = TestEnv::new();
    let place = format!("{}/{STATE}/{RUN}", env.path("repo").display());
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = 'mkdir -p {place}/report.md/x && echo l > l.txt'\n"));
    env.execute(&[]).exits(0).says(&["the report is not complete", "report.md"]).hints("lanewright report RUN");
    assert!(env.holds("main", "l.txt"));
    assert!(!kept(&env, "junit.xml").is_empty(), "one that cannot be written keeps others from it");
}

#[test]
fn a_gate_that_failed_without_a_finding_is_on_the_page() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = 'A'\ncommand = 'echo a >a.txt'\ntests = ['false']\nretries = 0\n");
    env.execute(&[]).exits(1);
    let page = env.lanewright(&["report", "--format", "html"]).exits(0).stdout;
    assert!(page.contains("<code>false</code>"), "{page}");
}
