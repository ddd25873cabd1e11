//! `list`: all runs, whatever became of them.

use crate::documents::Schema;
use crate::support::{STATE, TestEnv};

fn run(env: &TestEnv, name: &str, command: &str, code: i32) {
    let lane = format!(
        "phase = \"P1\"\n[[lane]]\nid = \"L\"\ncommand = '{command}'\n[[lane]]\nid = \"M\"\ndepends_on = [\"L\"]\ncommand = 'echo {name} > m-{name}.txt'\n"
    );
    env.write("plan.toml", lane.replace("[[lane]]\nid = \"L\"", "[[lane]]\nid = \"L\"\nretries = 0"));
    env.execute(&["--run-id", name, "--new-run"]).exits(code);
}

fn runs() -> TestEnv {
    let env = TestEnv::new();
    run(&env, "first", "echo a > a.txt", 0);
    run(&env, "second", "exit 1", 1);
    run(&env, "third", "echo c > c.txt", 0);
    env
}

#[test]
fn all_runs_are_listed_the_newest_first() {
    let env = runs();
    let text = env.lanewright(&["list"]).exits(0).stdout;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["run", "phase", "state", "merged", "started"]);
    let shown: Vec<&[&str]> = rows[1..].iter().map(|row| &row[..4]).collect();
    let expected = [["third", "P1", "done", "2/2"], ["second", "P1", "failed", "0/2"], ["first", "P1", "done", "2/2"]];
    assert_eq!(shown, expected);
    let json = env.lanewright(&["list", "--format", "json"]).exits(0).json();
    Schema::named("list").accepts(&json);
    for run in json["runs"].as_array().expect("runs") {
        let status = env.lanewright(&["status", run["run_id"].as_str().expect("an id"), "--format", "json"]).json();
        assert_eq!(run["state"], status["outcome"]);
        assert_eq!(run["usage"], status["usage"]);
    }
}

#[test]
fn damaged_logs_are_listed_as_such() {
    let env = runs();
    let log = |name: &str| format!("repo/{STATE}/{name}.jsonl");
    let rotten = env.read(&log("second")).replacen("\"job_exited\"", "\"job_exitex\"", 1);
    env.write(&log("second"), rotten);
    env.write(&log("third"), "no log at all\n");
    let ended =
        env.lanewright(&["list"]).exits(0).says(&["the log of run second is damaged: line"]).hints("doctor second");
    assert!(ended.stdout.contains("failed (log damaged)"), "{}", ended.stdout);
    assert_eq!(ended.stdout.lines().count(), 4, "{}", ended.stdout);
    Schema::named("list").accepts(&env.lanewright(&["list", "--format", "json"]).exits(0).json());
    env.write(&log("first"), env.read(&log("first")).replacen("\"format\":\"1.0\"", "\"format\":\"9.0\"", 1));
    let ended = env.lanewright(&["list"]).exits(0);
    assert!(
        ended.stdout.lines().any(|line| line.starts_with("first") && line.contains("unreadable")),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_repository_without_runs_says_how_to_start_one() {
    let env = TestEnv::new();
    assert!(env.lanewright(&["list"]).exits(0).stdout.contains("lanewright execute-phase PLAN"));
    assert_eq!(env.lanewright(&["list", "--format", "json"]).exits(0).json()["runs"], serde_json::json!([]));
}
