//! Lanes that work on an executor, with stand-ins for Slurm's commands that run jobs as processes on this machine.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::executors::{slurm, this};
use crate::support::{Ended, TestEnv, wait_until};

/// Two lanes on the executor, the second after the first, and one here. `$1` in `scratch` lets the first lane pass.
const CHAIN: &str = "
[defaults]
executor = 'main'
[[lane]]
id = 'A'
command = 'echo $$ >>$SCRATCH/attempts; until [ -e $SCRATCH/go ]; do sleep 0.05; done; echo a >a.txt'
[[lane]]
id = 'B'
command = 'cat a.txt >b.txt; echo written'
tests = ['test -f b.txt']
depends_on = ['A']
[[lane]]
id = 'HERE'
command = 'echo here >here.txt'
executor = 'local'
";

fn chain() -> TestEnv {
    let env = slurm(this());
    env.plan(CHAIN);
    env.commit("settings");
    env
}

fn submitted(env: &TestEnv) -> usize {
    fs::read_to_string(env.path("scratch/submitted")).unwrap_or_default().lines().count()
}

fn has_begun(env: &TestEnv, attempts: usize) -> bool {
    fs::read_to_string(env.path("scratch/attempts")).unwrap_or_default().lines().count() >= attempts
}

/// The process that works as job `id`.
fn worker(env: &TestEnv, id: u32) -> Pid {
    let pid = env.scratch(&format!("pid.{id}")).trim().parse().expect("a pid");
    Pid::from_raw(pid).expect("a pid")
}

fn wait_for_the_claim(env: &TestEnv) {
    wait_until("the claim", || {
        let status = env.lanekeeper(&["status", "--format", "json"]).exits(0).json();
        let lane = status["lanes"].as_array().expect("a list").iter().find(|lane| lane["lane"] == "A").cloned();
        let elsewhere = lane.expect("the lane")["elsewhere"].clone();
        elsewhere["executor"] == "main" && elsewhere["job"] == "7" && elsewhere["host"] != Value::Null
    });
}

fn assert_merged(env: &TestEnv, ended: Ended) {
    assert_merged_in(env, "repo", ended);
}

/// Everything is merged, each lane once.
fn assert_merged_in(env: &TestEnv, clone: &str, ended: Ended) {
    ended.exits(0);
    assert_eq!(env.git_at(clone, &["show", "main:b.txt"]).trim(), "a");
    assert_eq!(env.git_at(clone, &["show", "main:here.txt"]).trim(), "here");
    let merges = env.git_at(clone, &["log", "--merges", "--first-parent", "--format=%s", "main"]);
    let mut merges: Vec<&str> = merges.lines().collect();
    merges.sort_unstable();
    assert_eq!(merges, ["Merge lane A", "Merge lane B", "Merge lane HERE"]);
}

#[test]
fn lanes_work_as_jobs_and_are_merged_here() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
    assert_eq!(submitted(&env), 2);
    assert_eq!(env.git_at("exchange.git", &["for-each-ref"]), "", "the states of merged lanes are removed");
    assert!(env.lanekeeper(&["logs", "B"]).exits(0).stdout.contains("written"), "what jobs printed is here");
    let stages = ["before_lane_start", "after_lane_start", "after_lane_tests", "pre_pr"];
    stages.iter().for_each(|stage| drop(env.checkpoint("A", stage)));
}

#[test]
fn a_lane_whose_job_died_is_given_to_another() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    kill_process(worker(&env, 7), Signal::KILL).expect("a signal");
    wait_until("the second attempt", || has_begun(&env, 2));
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
    assert_eq!(submitted(&env), 3);
}

#[test]
fn a_job_that_comes_back_after_its_lane_was_given_away_changes_nothing() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    let first = worker(&env, 7);
    kill_process(first, Signal::STOP).expect("a signal");
    env.write("scratch/lost.7", "");
    wait_until("the second attempt", || has_begun(&env, 2));
    env.write("scratch/go", "");
    kill_process(first, Signal::CONT).expect("a signal");
    assert_merged(&env, run.wait());
    wait_until("the end of the first job", || env.path("scratch/code.7").exists());
    assert_eq!(env.scratch("code.7").trim(), "75");
}

#[test]
fn a_lane_whose_state_cannot_be_copied_is_looked_at_again() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    let outputs = env.log_file().with_extension("").join("lanes/A");
    fs::create_dir_all(outputs.parent().expect("a parent")).expect("a directory");
    fs::write(&outputs, "").expect("a file");
    env.write("scratch/go", "");
    wait_until("the warning", || run.has_said("the state of lane A"));
    fs::remove_file(&outputs).expect("a removal");
    assert_merged(&env, run.wait());
}

#[test]
fn a_lane_whose_state_was_removed_from_the_exchange_is_offered_again() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    env.git_at("exchange.git", &["update-ref", "-d", "refs/lanekeeper/state/r1.A"]);
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
    assert_eq!(env.scratch("code.7").trim(), "75");
}

#[test]
fn a_lane_that_a_job_has_is_rolled_back_once_the_run_was_stopped() {
    let env = chain();
    let mut run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    run.kill();
    run.wait();
    env.lanekeeper(&["rollback", "--lane", "A", "--yes"]).exits(3).hints("resume the run and stop it");
    let run = env.start_with(&["resume", "--yes"], |command| command);
    wait_until("the job's ticket", || env.lanekeeper(&["stop"]).stdout.contains("stop"));
    run.wait().exits(143);
    env.lanekeeper(&["rollback", "--lane", "A", "--yes"]).exits(0);
    env.write("scratch/go", "");
    assert_merged(&env, env.resume(&[]));
}

#[test]
fn a_run_that_goes_on_in_another_clone_leaves_jobs_alone() {
    let env = chain();
    let mut run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    run.kill();
    run.wait();
    env.git(&["remote", "add", "x", "../exchange.git"]);
    env.lanekeeper(&["state", "push", "--remote", "x"]).exits(0);
    env.git_at("", &["clone", "--quiet", "--origin", "x", "repo", "other"]);
    env.git_at("other", &["remote", "set-url", "x", "../exchange.git"]);
    let there = |arguments: &[&str]| env.lanekeeper_with(arguments, |command| command.current_dir(env.path("other")));
    there(&["state", "pull", "--remote", "x"]).exits(0);
    env.write("scratch/go", "");
    assert_merged_in(&env, "other", there(&["resume", "--yes"]));
    assert_eq!((submitted(&env), env.scratch("attempts").lines().count()), (2, 1));
}

#[test]
fn a_run_that_died_while_it_submitted_a_job_submits_no_other() {
    let env = chain();
    env.write("scratch/kill", "");
    env.write("scratch/go", "");
    let ended = env.execute(&[]);
    assert!(ended.was_killed());
    assert_merged(&env, env.resume(&[]));
    assert_eq!(submitted(&env), 2);
}

#[test]
fn a_lane_fails_after_three_jobs_in_a_row_that_did_nothing() {
    let env = slurm("/bin/false");
    env.plan("[[lane]]\nid = 'A'\ncommand = 'true'\nexecutor = 'main'\n");
    env.commit("settings");
    let said = env.execute(&[]).exits(1);
    said.says(&["A failed: 3 jobs in a row ended before the lane did", "its job ended with exit code 1"]);
    assert_eq!(submitted(&env), 3);
}

const ONE: &str = "[[lane]]\nid = 'A'\ncommand = 'echo a >a.txt'\n";

#[test]
fn an_engine_that_refuses_a_job_blocks_the_lane() {
    let env = slurm(this());
    env.plan(ONE);
    env.commit("settings");
    let said = env.execute(&["--executor", "nowhere"]).exits(3);
    said.says(&["A blocked: it cannot be placed: ", "invalid partition specified: nope", "correct what it names"]);
}

#[test]
fn an_engine_that_is_out_is_asked_again() {
    let env = slurm(this());
    env.plan(ONE);
    env.commit("settings");
    env.program("sbatch.real", &fs::read_to_string(env.path("bin/sbatch")).expect("a script"));
    let out = "#!/bin/sh\n[ -e $SCRATCH/back ] && exec sbatch.real \"$@\"\necho x >>$SCRATCH/asked\n\
               echo 'sbatch: error: Unable to contact slurm controller' >&2\nexit 1\n";
    env.program("sbatch", out);
    let run = env.start(&["--executor", "main"]);
    wait_until("a submission", || env.path("scratch/asked").exists());
    env.write("scratch/back", "");
    run.wait().exits(0);
    assert_eq!(submitted(&env), 1);
}

#[test]
fn what_the_job_of_a_lane_prints_now_is_shown_before_it_is_pushed() {
    let env = slurm(this());
    let talks = "echo \"one $A_TOKEN\"; echo $$ >>$SCRATCH/attempts; until [ -e $SCRATCH/go ]; do sleep 0.05; done; \
                 echo two; echo a >a.txt";
    env.plan(&format!(
        "[[lane]]\nid = 'A'\ncommand = '{talks}'\nexecutor = 'main'\n[[lane]]\nid = 'HERE'\ncommand = 'echo here'\n"
    ));
    env.commit("settings");
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    let run = env.start_with(&arguments, |command| command.env("A_TOKEN", "s3cr3t-t0ken-of-A"));
    wait_until("the lane's agent", || has_begun(&env, 1));
    let one = "one [redacted:A_TOKEN]";
    wait_until("its output", || env.lanekeeper(&["logs", "A"]).exits(0).stdout.contains(one));
    assert!(env.lanekeeper(&["logs"]).exits(0).stdout.contains(&format!(" A    | {one}\n")));
    assert_eq!(env.lanekeeper(&["logs", "A", "--raw"]).exits(0).stdout, "", "nothing was pushed");
    let follows = env.start_with(&["logs", "A", "--follow"], |command| command);
    let job = env.scratch("submitted").trim().to_owned();
    let printed = || fs::read_to_string(env.path(&format!("scratch/{job}.out"))).unwrap_or_default();
    assert!(!printed().contains("s3cr3t"), "{}", printed());
    env.write("scratch/go", "");
    run.wait();
    let said = follows.wait().exits(0).stdout;
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("==>")).collect();
    assert_eq!(lines, [one, "two"], "each line once");
    assert_eq!(said.lines().next().map(|line| line.starts_with("==> A/")), Some(true), "{said}");
}

#[test]
fn lanes_share_the_budget_that_is_left_and_come_back_for_more() {
    let env = slurm(this());
    let stream = format!("{}/fixtures/streams/claude/write.log", env!("CARGO_MANIFEST_DIR"));
    let claude = format!(
        "#!/bin/sh\necho $LANEKEEPER_LANE >>$SCRATCH/calls\ncat >\"$LANEKEEPER_LANE-$(wc -l <$SCRATCH/calls)\"\ncat '{stream}'\n"
    );
    env.program("claude", &claude);
    let lane = |id: &str| {
        let task = |number: u32| format!("[[lane.task]]\nid = '{number}'\nprompt = 'Write'\n");
        format!(
            "[[lane]]\nid = '{id}'\nexecutor = 'main'\nrunner = 'claude'\n{}",
            (1..=3).map(task).collect::<String>()
        )
    };
    env.plan(&[lane("A"), lane("B")].concat());
    // Of the repository's settings, which the jobs see, too.
    env.write("repo/lanekeeper.toml", format!("max_tokens = 1000\n{}", env.read("repo/lanekeeper.toml")));
    env.commit("settings");
    let with_key =
        |arguments: &[&str]| env.lanekeeper_with(arguments, |command| command.env("ANTHROPIC_API_KEY", "k-for-tests"));
    let plan = env.path("plan.toml");
    let blocked = with_key(&["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"]).exits(3);
    // A call uses 340, so each lane has used up its 500 after two. The first that comes back may get more.
    blocked.says(&["budget reached: 1", " of 1000 tokens", "lanekeeper resume r1 --max-tokens"]);
    let calls = || env.scratch("calls").lines().count();
    assert!([4, 5].contains(&calls()), "{}", calls());
    with_key(&["resume", "r1", "--max-tokens", "none"]).exits(0);
    assert_eq!(calls(), 6);
}
