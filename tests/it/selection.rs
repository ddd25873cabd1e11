//! Parts of a plan, and limits to the whole of a run.

use crate::support::{TestEnv, wait_until};

const CHAIN: &str = "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n\
     [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\nretries = 0\ncommand = 'cat a.txt > b.txt'\n\
     [[lane]]\nid = \"C\"\ncommand = 'echo c > c.txt'\n";

fn with(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(plan);
    env
}

/// `execute-lane` of the plan.
fn execute_lane(env: &TestEnv, lane: &str, run: &str) -> crate::support::Ended {
    let plan = env.path("plan.toml");
    env.lanewright(&["execute-lane", plan.to_str().expect("UTF-8"), lane, "--run-id", run])
}

#[test]
fn a_lane_that_is_named_runs_with_what_it_depends_on() {
    let env = with(CHAIN);
    env.execute(&["--lane", "B"]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt", "b.txt"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn a_lane_that_the_plan_does_not_have_is_bad_usage() {
    with(CHAIN).execute(&["--lane", "D"]).exits(2).says(&["`D`"]);
}

#[test]
fn matrix_lane_name_is_refused_with_its_elements() {
    let env = with("[[lane]]\nid = \"T\"\nmatrix = { os = [\"a\", \"b\"] }\ncommand = 'touch {{ matrix.os }}'\n");
    let elements = "did you mean one of T-a, T-b?";
    env.execute(&["--lane", "T"]).exits(2).hints(elements);
    env.execute(&[]).exits(0);
    for command in [&["status", "T"][..], &["logs", "r1", "T"], &["retry", "T"], &["diff", "r1", "T"]] {
        assert!(env.lanewright(command).stderr.contains(elements), "{command:?}");
    }
    env.lanewright(&["rollback", "r1", "--lane", "T"]).exits(2).hints(elements);
}

#[test]
fn execute_lane_requires_merged_dependencies() {
    let env = with(CHAIN);
    execute_lane(&env, "B", "r0").exits(3).says(&["B", "A"]);
    assert!(!env.holds("main", "a.txt") && !env.holds("main", "b.txt"));
    let env = with(CHAIN);
    execute_lane(&env, "A", "r1").exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt"]);
    execute_lane(&env, "B", "r2").exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt", "b.txt"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn fail_fast_stops_the_others_and_begins_nothing_more() {
    let env = with(
        "[pools]\none = 1\n[[lane]]\nid = \"A\"\nretries = 0\nuses = [\"one\"]\ncommand = 'wait-for b-began; exit 1'\n\
         [[lane]]\nid = \"B\"\ncommand = 'touch \"$SCRATCH/b-began\"; wait-for never; echo b > b.txt'\n\
         [[lane]]\nid = \"C\"\nuses = [\"one\"]\ncommand = 'touch \"$SCRATCH/c-began\"'\n",
    );
    env.execute(&["--fail-fast", "--max-parallel", "2"]).exits(1);
    assert!(!env.events("lane_moved").iter().any(|moved| moved["lane"] == "C"), "C began after all");
    let stopped = env.events("job_exited").into_iter().find(|job| job["lane"] == "B").expect("B's end");
    assert_eq!(stopped["exit"]["cause"], "stopped");
}

#[test]
fn the_time_limit_of_a_run_stops_it_resumable() {
    let env = with("[[lane]]\nid = \"A\"\ncommand = 'wait-for go; echo a > a.txt'\n");
    env.execute(&["--timeout", "1s"]).exits(124).says(&["lanewright resume r1"]);
    env.write("scratch/go", "");
    // Each life of the run has the same time; on a loaded machine one may not be enough.
    wait_until("the run's end", || env.resume(&[]).code == 0);
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn the_time_limit_of_a_lane_fails_it() {
    let env = with("[[lane]]\nid = \"A\"\ntimeout = \"1s\"\ncommand = 'wait-for go'\n");
    env.execute(&[]).exits(1).says(&["timeout"]);
}

#[test]
fn a_dry_run_runs_and_makes_nothing() {
    let env = with(CHAIN);
    let before = env.refs();
    let ended = env.execute(&["--dry-run"]).exits(0);
    assert!(["A", "B", "C"].iter().all(|lane| ended.stdout.contains(lane)), "{}", ended.stdout);
    assert_eq!(env.refs(), before);
    assert!(!env.path("repo/.claude").exists() && !env.path("repo.lanes").exists());
}

#[test]
fn a_dry_run_neither_resumes_nor_rolls_back() {
    let env = with("[[lane]]\nid = \"A\"\ncommand = 'false'\nretries = 0\n");
    env.execute(&[]).exits(1);
    let before = (env.log(), env.refs());
    env.execute(&["--resume", "--dry-run"]).exits(2).says(&["cannot be used with", "--dry-run"]);
    env.execute(&["--rollback", "--dry-run"]).exits(0);
    assert_eq!((env.log(), env.refs()), before);
}

#[test]
fn run_id_option_names_run_and_must_be_unique() {
    let env = with(CHAIN);
    env.execute(&["--run-id", "r1"]).exits(0);
    assert_eq!(env.log()[0]["run_id"], "r1");
    let before = env.read("repo/.claude/ai-dev-kit/run-logs/r1.jsonl");
    let again = env.execute(&["--run-id", "r1", "--redo"]);
    assert!(again.code != 0, "a second run took the name");
    assert!(again.stderr.contains("r1"), "{}", again.stderr);
    assert_eq!(env.read("repo/.claude/ai-dev-kit/run-logs/r1.jsonl"), before);
}
