//! What is checked before a run with lanes on an executor begins: where they could not be placed, nothing is written.

use crate::exchange::clone;
use crate::executors::{slurm, this};
use crate::placement::{assert_merged, chain, in_other};
use crate::support::{Ended, STATE, TestEnv};

const ONE: &str = "[[lane]]\nid = 'A'\nexecutor = 'main'\ncommand = 'echo a >a.txt'\n";

fn one() -> TestEnv {
    let env = slurm(this());
    env.plan(ONE);
    env.commit("settings");
    env
}

/// The run is refused before it has begun.
#[track_caller]
fn refused(env: &TestEnv, flags: &[&str], code: i32) -> Ended {
    let ended = env.execute(flags).exits(code);
    assert!(!env.path(&format!("repo/{STATE}")).exists(), "{}", ended.stderr);
    assert!(!env.path("repo.lanes").exists(), "{}", ended.stderr);
    assert!(env.lanewright(&["list"]).exits(0).stdout.starts_with("No runs"), "{}", ended.stderr);
    ended
}

/// Changes the settings of the repository.
fn set(env: &TestEnv, change: impl Fn(&str) -> String) {
    let settings = env.read("repo/lanewright.toml");
    env.write("repo/lanewright.toml", change(&settings));
    env.commit("other settings");
}

#[test]
fn without_an_exchange_no_run_begins() {
    let env = one();
    let nowhere = env.path("nowhere.git").display().to_string();
    let ended = refused(&env, &["--exchange", &nowhere], 3);
    ended.says(&["the exchange cannot be used", "nowhere.git' does not appear to be a git repository"]);
    set(&env, |settings| settings.lines().skip(1).map(|line| format!("{line}\n")).collect());
    refused(&env, &[], 2).says(&["no exchange is set"]).hints("--exchange REMOTE, or `exchange` in lanewright.toml");
}

/// The lane is blocked at once, and offered again by a resume.
#[track_caller]
fn impossible(accepted: &str, words: &[&str]) {
    let env = one();
    env.write("scratch/impossible", accepted);
    let ended = env.execute(&["--run-id", "r1"]).exits(3).says(words);
    assert!(!ended.stderr.contains("exit code 129") && !ended.stderr.contains("its output"), "{}", ended.stderr);
    assert_eq!(env.scratch("submitted").lines().count(), 1, "{}", ended.stderr);
    let status = env.lanewright(&["status", "r1", "--format", "json"]).stdout;
    assert!(status.contains(words[0]), "{status}");
    std::fs::remove_file(env.path("scratch/impossible")).expect("removed");
    env.resume(&["--yes"]).exits(0);
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn job_that_no_node_can_run_blocks_its_lane() {
    let words = "its job cannot run on this cluster: no node of the cluster has what it asks for (BadConstraints)";
    impossible("accepted", &[words, "correct `arguments` of the executor (--constraint"]);
}

#[test]
fn refused_job_that_slurm_still_lists_is_not_followed() {
    let words = ["it cannot be placed: sbatch: error: Memory specification can not be satisfied", "`memory_mib`"];
    impossible("", &words);
}

#[test]
fn lanes_that_run_here_need_no_exchange() {
    let env = one();
    env.plan(&format!("{ONE}[[lane]]\nid = 'HERE'\ncommand = 'echo h >h.txt'\n"));
    std::fs::rename(env.path("exchange.git"), env.path("away.git")).expect("renamed");
    let plan = env.path("plan.toml").display().to_string();
    env.lanewright(&["execute-lane", &plan, "HERE"]).exits(0);
    assert!(env.holds("main", "h.txt"));
    env.lanewright(&["execute-lane", &plan, "A"]).exits(3).says(&["exchange.git"]);
}

#[test]
fn an_address_with_a_password_is_refused_and_not_shown() {
    let env = one();
    env.git(&["remote", "add", "secret", "https://me:hunter2@localhost/r.git"]);
    refused(&env, &["--exchange", "https://me:hunter2@localhost/r.git"], 2).says(&["credential helper"]);
    let ended = refused(&env, &["--exchange", "secret"], 2);
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    ended.says(&["has a password in it"]).hints("git remote set-url secret ADDRESS");
    set(&env, |settings| settings.lines().skip(1).map(|line| format!("{line}\n")).collect());
    refused(&env, &["--state-remote", "secret"], 2).says(&["has a password in it"]);
}

#[test]
fn undefined_executor_is_refused_before_the_run() {
    let env = one();
    let ended = refused(&env, &["--executor", "mian"], 2);
    ended.says(&["--executor: executor `mian` is not defined; defined: main, nowhere"]).hints("did you mean `main`?");
    set(&env, |settings| format!("executor = 'x'\n{settings}"));
    refused(&env, &[], 2).says(&["lanewright.toml:1:12: executor `x` is not defined; defined: main, nowhere"]);
    refused(&env, &["--rollback"], 2);
    set(&env, |settings| {
        settings.replace("executor = 'x'\n", "").replace("partition = 'main'", "environment.A = '$A'")
    });
    refused(&env, &[], 2).says(&["the variable A, which [executors.main] takes a value from, is not set here"]);
}

#[test]
fn run_id_placed_by_another_clone_is_refused() {
    let env = slurm(this());
    env.plan(&ONE.replace("echo a >a.txt'", "exit 9'\nretries = 0"));
    env.commit("settings");
    clone(&env);
    let plan = env.path("plan.toml").display().to_string();
    in_other(&env, &["execute-phase", &plan, "--run-id", "r1"]).wait().exits(1);
    let place = env.path("other").display().to_string();
    let ended = refused(&env, &[], 2).says(&["run r1 already exists; its lanes are placed by", &place]);
    ended.hints("lanewright state pull r1");
    env.execute(&["--run-id", "r2"]).exits(1);
}

#[test]
fn exchange_path_is_relative_to_the_main_worktree() {
    for exchange in ["../exchange.git", "x"] {
        let env = chain();
        env.git(&["remote", "add", "x", "../exchange.git"]);
        set(&env, |settings| {
            let rest = settings.split_once('\n').map_or("", |(_, rest)| rest);
            format!("exchange = '{exchange}'\n{rest}")
        });
        env.write("scratch/go", "");
        env.write("repo/docs/deep/file", "");
        env.write("repo/docs/exchange.git/HEAD", "another one\n");
        let plan = env.path("plan.toml").display().to_string();
        let run = env.start_with(&["execute-phase", &plan, "--run-id", "r1"], |command| {
            command.current_dir(env.path("repo/docs/deep"))
        });
        assert_merged(&env, run.wait());
    }
}
