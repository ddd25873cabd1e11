//! What goes to which stream, and in which form.

use std::process::Stdio;

use crate::support::TestEnv;

const PLAN: &str =
    "[[lane]]\nid = \"A\"\ncommand = 'echo noise; echo noise >&2; [ $LANEWRIGHT_ATTEMPT = 2 ] && echo a > a.txt'\n";

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.plan(PLAN);
    env
}

#[test]
fn json_progress_is_one_object_a_line_on_stdout() {
    let env = env();
    let ended = env.execute(&["--progress", "json"]).exits(0);
    let lines = ended.json_lines();
    assert_eq!(lines.first().expect("a line")["event"], "run_started");
    assert_eq!(lines.last().expect("a line")["event"], "run_finished");
    let numbers: Vec<u64> = lines.iter().map(|line| line["seq"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(lines.len(), env.log().len(), "it does not say what the run log says");
    for field in ["seq", "ts", "run_id", "phase", "lane", "task", "event", "status"] {
        assert!(lines.iter().all(|line| !line[field].is_null()), "{field}");
    }
}

#[test]
fn plain_progress_goes_to_stderr_without_colour() {
    for flags in [&["--progress", "plain"][..], &["--progress", "auto"], &["--progress", "none"], &[]] {
        let ended = env().execute(flags).exits(0);
        assert_eq!(ended.stdout, "", "{flags:?}");
        assert!(!ended.stderr.contains('\u{1b}'), "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("merged"), "{flags:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("\nnoise"), "{flags:?}: agents' output got through");
    }
}

#[test]
fn colour_follows_clicolor_force_and_no_color() {
    let coloured = |name: &str, value: &str| {
        let env = env();
        let plan = env.path("plan.toml");
        let arguments = ["execute-phase", plan.to_str().expect("UTF-8")];
        let ended = env.lanewright_with(&arguments, |command| command.env(name, value)).exits(0);
        ended.stderr.contains('\u{1b}')
    };
    assert!(coloured("CLICOLOR_FORCE", "1"));
    assert!(!coloured("NO_COLOR", "1"));
}

#[test]
fn the_summary_as_json_is_one_document() {
    let env = env();
    let ended = env.execute(&["--format", "json", "--progress", "none"]).exits(0);
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).expect("a document");
    assert_eq!(summary["run_id"], "r1");
    assert_eq!(summary["lanes"][0]["attempts"], 2);
}

#[test]
fn a_reader_that_goes_away_stops_no_run() {
    let env = env();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command).args(["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
    drop(child.stdout.take());
    crate::support::wait_until("its end", || child.try_wait().expect("its status").is_some());
    assert_eq!(child.wait().expect("its status").code(), Some(0));
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn errors_as_json_are_one_object_on_standard_error() {
    let env = env();
    let ended = env.execute(&["--lane", "Z", "--format", "json"]).exits(2);
    assert_eq!(ended.stdout, "");
    let error: serde_json::Value = serde_json::from_str(&ended.stderr).expect("an object");
    assert_eq!(error["code"], 2);
}
