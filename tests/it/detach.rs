//! `--detach`: a run in the background.

use std::process::Command;

use serde_json::Value;

use crate::support::{Ended, RUN, Terminal, TestEnv, all_files, wait_until};

const LANE: &str = "[[lane]]\nid = \"L\"\ncommand = 'echo begins >> \"$SCRATCH/ran\"; wait-for go; echo l > l.txt'\n";

fn lanewright(env: &TestEnv, words: &[&str]) -> Ended {
    env.lanewright_with(words, |command| command.env("TMPDIR", env.path("home")))
}

fn detach(env: &TestEnv, flags: &[&str]) -> Ended {
    lanewright(env, &[&["execute-phase", "../plan.toml", "--detach"], flags].concat())
}

fn finish(env: &TestEnv) -> Value {
    env.write("scratch/go", "");
    wait_until("the end of the run", || !env.events("run_finished").is_empty());
    env.events("run_finished").remove(0)
}

#[test]
fn detached_run_is_begun_and_its_commands_are_printed() {
    let env = TestEnv::new();
    env.plan(LANE);
    let ended = detach(&env, &["--run-id", RUN]).exits(0);
    assert_eq!(env.log()[0]["event"], "run_started");
    for command in ["status r1", "logs r1 --follow", "ui r1", "stop r1"] {
        assert!(ended.stdout.contains(&format!("lanewright {command}\n")), "{command}: {}", ended.stdout);
    }
    assert_eq!(ended.stderr, "");
    let status = env.lanewright(&["--format", "json", "status", RUN]).exits(0).json();
    assert_eq!(status["held"], true, "{status}");
    assert_eq!(finish(&env)["code"], 0);
}

#[test]
fn detached_run_can_be_stopped_and_resumed_detached() {
    let env = TestEnv::new();
    env.plan(LANE);
    let begun = lanewright(&env, &["--format", "json", "execute-phase", "../plan.toml", "--detach"]).exits(0).json();
    let run = begun["run_id"].as_str().expect("an id");
    assert!(begun["begun"] == true && begun["pid"].is_u64(), "{begun}");
    assert!(std::path::Path::new(begun["output"].as_str().expect("a path")).exists(), "{begun}");
    env.lanewright(&["stop", run]).exits(0);
    let is_active = || env.lanewright(&["--format", "json", "status", run]).json()["held"] == true;
    wait_until("the stop", || !is_active());
    let resumed = lanewright(&env, &["resume", run, "--detach"]).exits(0);
    assert!(resumed.stdout.contains(run), "{}", resumed.stdout);
    env.write("scratch/go", "");
    wait_until("the work", || env.holds("main", "l.txt"));
    wait_until("the end", || !is_active());
}

#[test]
fn refused_detached_run_prints_the_error_with_its_code() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ndepends_on = [\"X\"]\ncommand = 'true'\n");
    detach(&env, &[]).exits(2).says(&["is not a valid plan", "no such lane"]);
    assert!(!env.path("repo/.claude").exists(), "a refused plan leaves state");
    assert_eq!(all_files(&env.path("home")), [] as [std::path::PathBuf; 0], "its output is left");
    detach(&env, &["--dry-run"]).exits(2);
}

#[test]
fn detached_start_of_a_held_run_exits_with_4() {
    let env = TestEnv::new();
    env.plan(LANE);
    detach(&env, &["--run-id", RUN]).exits(0);
    detach(&env, &[]).exits(4).says(&["r1"]);
    lanewright(&env, &["resume", RUN, "--detach"]).exits(4);
    finish(&env);
    assert_eq!(env.scratch("ran"), "begins\n");
}

#[test]
fn detached_chain_may_begin_with_its_second_phase() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&["--run-id", "first"]).exits(0);
    env.write("next.toml", format!("phase = \"P2\"\n{LANE}"));
    let words = ["execute-phase", "../plan.toml", "--resume", "--next-phase", "../next.toml", "--detach"];
    let ended = lanewright(&env, &words).exits(0);
    assert!(ended.stdout.starts_with("Run P2-"), "{}", ended.stdout);
    env.write("scratch/go", "");
    wait_until("the work", || env.holds("main", "l.txt"));
}

#[test]
fn detached_run_outlives_its_terminal() {
    let env = TestEnv::new();
    env.plan(LANE);
    let mut command = Command::new("setsid");
    env.pin(&mut command).env("TMPDIR", env.path("home")).args(["--ctty", "sh", "-c"]);
    // The session's leader is a shell, which is still there when the terminal is closed.
    command.args([
        "\"$0\" execute-phase ../plan.toml --run-id r1 --detach; wait-for closed",
        env!("CARGO_BIN_EXE_lanewright"),
    ]);
    let mut terminal = Terminal::asking(command);
    terminal.wait_for("in the background");
    terminal.close();
    terminal.end();
    assert_eq!(finish(&env)["code"], 0);
    assert_eq!(env.scratch("ran"), "begins\n");
}

#[test]
fn answers_and_retries_continue_a_run_in_the_background() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\napproval = ['changes']\n\
         command = 'echo begins >> \"$SCRATCH/ran\"; [ -e \"$SCRATCH/go\" ] && echo l > l.txt'\n",
    );
    env.execute(&[]).exits(1);
    let is_active = || env.lanewright(&["--format", "json", "status", RUN]).json()["held"] == true;
    lanewright(&env, &["approve", RUN, "L", "--detach"]).exits(2);
    lanewright(&env, &["approve", RUN, "L", "--resume", "--detach"]).exits(7).says(&["does not wait for an answer"]);
    env.write("scratch/go", "");
    let begun = lanewright(&env, &["retry", RUN, "L", "--detach"]).exits(0);
    assert!(begun.stdout.starts_with("Run r1 works in the background"), "{}", begun.stdout);
    wait_until("the question", || env.events("run_finished").len() == 2 && !is_active());
    let begun = lanewright(&env, &["approve", RUN, "L", "--resume", "--detach"]).exits(0);
    assert!(begun.stdout.starts_with("Run r1 works in the background"), "{}", begun.stdout);
    wait_until("the end", || env.events("run_finished").len() == 3 && !is_active());
    assert!(env.holds("main", "l.txt"));
    assert_eq!(env.scratch("ran"), "begins\nbegins\n");
}
