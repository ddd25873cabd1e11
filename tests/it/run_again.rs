//! A plan that is run again: lanes that an earlier run did are left out (decision 61).

use std::fs;

use serde_json::{Value, json};

use crate::support::{Ended, RUN, STATE, TestEnv};

/// A lane that notes each start of its agent.
fn lane(id: &str, more: &str) -> String {
    format!(
        "[[lane]]\nid = \"{id}\"\nretries = 0\n{more}command = 'echo {id} >> \"$SCRATCH/started\"; date +%N > {id}.txt'\n"
    )
}

/// `A`, `B` after `A`, and `C`.
fn three() -> [String; 3] {
    [lane("A", ""), lane("B", "depends_on = [\"A\"]\n"), lane("C", "")]
}

fn once(plan: &[String], flags: &[&str]) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&plan.concat());
    env.execute(flags).exits(0);
    fs::remove_file(env.path("scratch/started")).expect("the lanes ran");
    env
}

/// The lanes whose agents were started since the first run.
fn started(env: &TestEnv) -> Vec<String> {
    let noted = fs::read_to_string(env.path("scratch/started")).unwrap_or_default();
    let mut lanes: Vec<String> = noted.lines().map(str::to_owned).collect();
    lanes.sort();
    lanes
}

fn again(env: &TestEnv, flags: &[&str]) -> Ended {
    env.execute(&[&["--run-id=r2"], flags].concat())
}

fn nothing_to_do(env: &TestEnv, flags: &[&str]) -> Ended {
    let ended = again(env, flags).exits(0);
    assert!(ended.stdout.contains("nothing to do: "), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(started(env), [] as [&str; 0]);
    assert!(!env.path(&format!("repo/{STATE}/r2.jsonl")).exists() && !env.path("repo.lanes/r2").exists());
    ended
}

#[test]
fn merged_plan_is_not_run_again() {
    let env = once(&three(), &[]);
    let before = (env.git(&["rev-parse", "main"]), env.refs());
    let ended = nothing_to_do(&env, &[]);
    assert!(ended.stdout.contains("nothing to do: 3 of 3 lanes were merged by run r1\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("--redo") && ended.stdout.contains("--new-run"), "{}", ended.stdout);
    assert_eq!((env.git(&["rev-parse", "main"]), env.refs()), before);
    let data: Value = again(&env, &["--format", "json"]).exits(0).json();
    assert_eq!(
        (&data["outcome"], &data["done"][0]),
        (&json!("done"), &json!({"lane": "A", "run": "r1", "merged": true}))
    );
    assert!(again(&env, &["--dry-run"]).exits(0).stdout.contains("nothing to do: 3 of 3 lanes"));
    let plan = env.path("plan.toml");
    let plan = plan.to_str().expect("UTF-8");
    let one = env.lanewright(&["execute-lane", plan, "B"]).exits(0);
    assert!(one.stdout.contains("nothing to do: 1 of 1 lane was merged by run r1"), "{}", one.stdout);
    assert!(again(&env, &["--lane", "B"]).exits(0).stdout.contains("2 of 2 lanes"), "with what it depends on");
    env.lanewright(&["execute-phase", plan, "--detach"]).exits(0).says(&["nothing to do"]);
    assert_eq!(started(&env), [] as [&str; 0]);
}

#[test]
fn programs_of_agents_are_not_needed() {
    let env = TestEnv::new();
    env.program("my-agent", "#!/bin/sh\necho a > a.txt\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = [\"my-agent\"]\n");
    env.execute(&[]).exits(0);
    fs::remove_file(env.path("bin/my-agent")).expect("the program");
    nothing_to_do(&env, &[]);
    again(&env, &["--redo"]).exits(3).says(&["A: blocked: could not be started: cannot start `my-agent`"]);
}

#[test]
fn added_lane_runs_alone() {
    let env = once(&three(), &[]);
    env.plan(&[&three()[..], &[lane("D", "depends_on = [\"C\"]\n")]].concat().concat());
    again(&env, &[]).exits(0).says(&["3 of 4 lanes were merged by run r1"]);
    assert_eq!(started(&env), ["D"]);
    assert!(env.holds("main", "D.txt"));
    let ended = env.execute(&["--run-id=r3"]).exits(0);
    assert!(ended.stdout.contains("4 of 4 lanes were merged by runs r1, r2"), "{}", ended.stdout);
}

#[test]
fn changed_lane_runs_with_what_depends_on_it() {
    let env = once(&three(), &[]);
    let changed = three().concat().replace("date +%N > A.txt", "date > A.txt");
    env.plan(&changed);
    again(&env, &[]).exits(0);
    assert_eq!(started(&env), ["A", "B"]);
    fs::remove_file(env.path("scratch/started")).expect("the lanes ran");
    let ended = env.execute(&["--run-id=r3"]).exits(0);
    assert!(ended.stdout.contains("3 of 3 lanes were merged by runs r1, r2"), "B was merged with that text");
    env.plan(&three().concat().replace("retries = 0", "retries = 2\ntimeout = \"3h\""));
    env.execute(&["--run-id=r4"]).exits(0);
    assert_eq!(started(&env), ["A", "B"], "the text is again another, C's is not");
}

#[test]
fn rolled_back_and_reverted_lanes_run_again() {
    let env = once(&three(), &[]);
    env.lanewright(&["rollback", "r1", "--lane", "C", "--yes"]).exits(0);
    again(&env, &[]).exits(7).hints("lanewright resume r1");
    env.lanewright(&["resume", "r1"]).exits(0);
    assert_eq!(started(&env), ["C"]);
    let merge = env.git(&["log", "-1", "--format=%H", "--grep=^Merge lane C", "main"]);
    env.git(&["revert", "--no-edit", "-m", "1", &merge]);
    again(&env, &[]).exits(0).says(&["2 of 3 lanes were merged by run r1"]);
    assert_eq!(started(&env), ["C", "C"]);
    env.execute(&["--run-id=r3"]).exits(0);
    assert_eq!(started(&env), ["C", "C"]);
}

#[test]
fn base_without_the_merges_gets_them_again() {
    let env = once(&three(), &[]);
    env.git(&["reset", "--quiet", "--hard", "main~1"]);
    again(&env, &[]).exits(0);
    let lanes = started(&env);
    assert_eq!(lanes.len(), 1, "the last one that was merged: {lanes:?}");
    let plan = env.path("plan.toml");
    env.git(&["branch", "other", ":/first"]);
    env.lanewright(&["execute-lane", plan.to_str().expect("UTF-8"), "C", "--base", "other"]).exits(0);
    assert_eq!(started(&env).len(), 2, "another branch does not hold them");
}

#[test]
fn redo_runs_all_or_the_named_lanes() {
    let env = once(&three(), &[]);
    again(&env, &["--redo", "--lane", "B"]).exits(0).says(&["1 of 2 lanes was merged by run r1"]);
    assert_eq!(started(&env), ["B"]);
    env.execute(&["--run-id=r3", "--redo"]).exits(0);
    assert_eq!(started(&env), ["A", "B", "B", "C"]);
    env.execute(&["--run-id=r4", "--new-run"]).exits(0);
    assert_eq!(started(&env).len(), 7);
}

/// A clone of what the branch holds, in place of the repository: no log is left.
fn in_a_fresh_clone(env: &TestEnv) {
    fs::rename(env.path("repo"), env.path("before")).expect("moved");
    env.git_at("", &["clone", "--quiet", "before", "repo"]);
    env.git(&["config", "user.name", "Tester"]);
    env.git(&["config", "user.email", "tester@example.invalid"]);
}

#[test]
fn merge_commits_decide_in_a_fresh_clone() {
    for style in ["local", "squash", "rebase"] {
        let env = once(&three(), &["--merge", style]);
        assert_eq!(
            env.git(&["log", "--format=%H", "--grep=^Plan: [0-9a-f]\\{16\\}$", "main"]).lines().count(),
            3,
            "{style}"
        );
        in_a_fresh_clone(&env);
        let ended = nothing_to_do(&env, &["--merge", style]);
        assert!(ended.stdout.contains("3 of 3 lanes were merged by run r1"), "{style}: {}", ended.stdout);
        assert!(!env.path("repo/.claude").exists(), "{style}: nothing is written");
        env.plan(&three().concat().replace("> C.txt", ">> C.txt"));
        again(&env, &["--merge", style]).exits(0);
        assert_eq!(started(&env), ["C"], "{style}");
    }
}

#[test]
fn only_logs_know_of_fast_forwards() {
    let one = [lane("A", "")];
    let env = once(&one, &["--merge", "ff"]);
    nothing_to_do(&env, &["--merge", "ff"]);
    in_a_fresh_clone(&env);
    again(&env, &["--merge", "ff"]).exits(0);
    assert_eq!(started(&env), ["A"]);
}

#[test]
fn lanes_of_another_phase_are_not_those_of_this_one() {
    let env = once(&three(), &[]);
    let plan = format!("phase = \"P2\"\n{}", lane("A", ""));
    env.write("second.toml", plan);
    let second = env.path("second.toml");
    env.lanewright(&["execute-phase", second.to_str().expect("UTF-8")]).exits(0);
    assert_eq!(started(&env), ["A"]);
}

#[test]
fn damaged_log_does_not_count_and_is_named() {
    let env = once(&[lane("A", "")], &["--merge", "ff"]);
    let log = env.path(&format!("repo/{STATE}/r1.jsonl"));
    let text = fs::read_to_string(&log).expect("the log");
    fs::write(&log, text.replacen("\"event\":\"worktree_opened\"", "\"event\":\"worktree_opaned\"", 1))
        .expect("written");
    let ended = again(&env, &["--merge", "ff"]);
    assert!(ended.stderr.contains("is damaged: what it says of merged lanes does not count"), "{}", ended.stderr);
    assert_eq!(started(&env), ["A"]);
}

#[test]
fn unfinished_run_that_merged_all_is_resumed() {
    let env = TestEnv::new();
    env.plan(&format!("[gates]\nfinal = [\"test -e '{}'\"]\n{}", env.path("scratch/ok").display(), lane("A", "")));
    env.execute(&[]).exits(3);
    again(&env, &[]).exits(7).hints("lanewright resume r1");
    env.write("scratch/ok", "");
    env.lanewright(&["resume", "r1"]).exits(0);
    assert!(again(&env, &[]).exits(0).stdout.contains("nothing to do: 1 of 1 lane"));
}

#[test]
fn lane_without_changes_is_done() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nallow_empty = true\ncommand = 'echo A >> \"$SCRATCH/started\"'\n");
    env.execute(&[]).exits(0);
    fs::remove_file(env.path("scratch/started")).expect("it ran");
    nothing_to_do(&env, &[]);
}

#[test]
fn branches_that_are_left_are_done_while_they_are_there() {
    let env = once(&[lane("A", ""), lane("C", "")], &["--merge", "none"]);
    let ended = nothing_to_do(&env, &["--merge", "none"]);
    assert!(ended.stdout.contains("2 of 2 lanes were done by run r1; not merged into main: A, C"), "{}", ended.stdout);
    env.git(&["branch", "-D", "lane/P1/C"]);
    again(&env, &["--merge", "none"]).exits(0);
    assert_eq!(started(&env), ["C"]);
    env.git(&["merge", "--quiet", "--no-edit", "lane/P1/A"]);
    env.git(&["branch", "-D", "lane/P1/A", "lane/P1/C"]);
    env.execute(&["--run-id=r3", "--merge", "none"]).exits(0).says(&["1 of 2 lanes was merged by run r1"]);
    assert_eq!(started(&env), ["C", "C"]);
}

#[test]
fn final_gate_of_which_no_log_is_here_runs_again() {
    let env = TestEnv::new();
    env.plan("[gates]\nfinal = ['echo x >> \"$SCRATCH/final\"; test -e \"$SCRATCH/green\"']\n[[lane]]\nid = \"A\"\ncommand = 'echo a >> a.txt'\n");
    env.execute(&[]).exits(3);
    std::fs::remove_dir_all(env.path(&format!("repo/{}", STATE))).expect("the state");
    let again = |run: &str| {
        let plan = env.path("plan.toml");
        env.lanewright(&["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", run])
    };
    again("r2").exits(3);
    env.write("scratch/green", "");
    env.lanewright(&["resume", "r2"]).exits(0);
    assert!(again("r3").exits(0).stdout.contains("nothing to do"));
    assert_eq!((env.scratch("final").lines().count(), env.file_at("main", "a.txt").lines().count()), (3, 1));
}

#[test]
fn lane_that_was_rolled_back_runs_again_whatever_its_commits_say() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    env.git(&["rm", "-q", "a.txt"]);
    env.git(&["commit", "-qm", "taken out by hand"]);
    env.lanewright(&["rollback", RUN, "--yes"]).exits(0);
    let plan = env.path("plan.toml");
    env.lanewright(&["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r2"]).exits(0);
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn lane_made_without_a_skipped_one_is_made_again_with_it() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'test -e \"$SCRATCH/go\" && echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'ls a.txt >> b.txt; date +%N >> b.txt; true'\n",
    );
    env.execute(&[]).exits(1);
    env.lanewright(&["skip", RUN, "A"]).exits(0);
    env.resume(&[]).exits(0);
    env.lanewright(&["clean", RUN, "--force", "--yes"]).exits(0);
    env.write("scratch/go", "");
    let plan = env.path("plan.toml");
    env.lanewright(&["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r2"]).exits(0);
    assert!(env.file_at("main", "b.txt").contains("a.txt"), "{}", env.file_at("main", "b.txt"));
}
