//! Commands that only look: however often they come, and whatever the run is at, they move nothing (seed 003, Multiple
//! Interruption Handling). What they tell a person to type works as it is told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use lanewright_model::task_file::Interruption;
use lanewright_model::{LaneId, RunId, Timestamp};
use lanewright_store::LaneDirectory;
use lanewright_store::add_interruption;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::sessions::events;
use crate::support::{Ended, RUN, TestEnv, all_files, wait_until};

const WAITS: &str = "[[lane]]\nid = \"L\"\napproval = [\"plan\"]\ncommand = 'touch \"$SCRATCH/began\"; wait-for go; \
     echo l > l.txt'\n";

fn with(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(plan);
    env
}

/// Every file of the repository, its state and its worktrees: what it holds, and when that was written.
fn everything(env: &TestEnv) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let files = ["repo", "repo.lanes"].into_iter().flat_map(|below| all_files(&env.path(below)));
    let look = |path: PathBuf| {
        let written = std::fs::symlink_metadata(&path).and_then(|file| file.modified()).expect("its time");
        let contents = std::fs::read(&path).unwrap_or_default();
        (path, (contents, written))
    };
    files.map(look).collect()
}

/// Looks twenty times in every way that there is.
fn look_often(env: &TestEnv) {
    let plan = env.path("plan.toml");
    let plan = plan.to_str().expect("UTF-8");
    let before = everything(env);
    let refs = env.git(&["for-each-ref"]);
    let ways: [&[&str]; 12] = [
        &["status"],
        &["status", RUN, "--format", "json"],
        &["status", "--settings"],
        &["logs", RUN],
        &["logs", RUN, "L", "--format", "json"],
        &["report", RUN],
        &["report", RUN, "--format", "junit"],
        &["plan", "check", plan],
        &["plan", "show", plan],
        &["plan", "graph", plan],
        &["plan", "convert", plan],
        &["execute-phase", plan, "--dry-run"],
    ];
    for way in ways {
        for _ in 0..20 {
            env.lanewright(way).exits(0);
        }
        let after = everything(env);
        let changed: Vec<&PathBuf> =
            before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
        assert_eq!(changed, [] as [&PathBuf; 0], "{way:?} changed files");
        assert_eq!(env.git(&["for-each-ref"]), refs, "{way:?} changed refs");
    }
}

#[test]
fn read_only_commands_keep_waiting_run_unchanged() {
    let env = with(WAITS);
    env.execute(&[]).exits(3);
    look_often(&env);
    env.lanewright(&["approve", RUN, "L"]).exits(0);
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
}

#[test]
fn looking_at_a_blocked_run_changes_nothing() {
    let env = with("[[lane]]\nid = \"L\"\nsetup = [\"true\"]\ncommand = 'echo l > l.txt'\n");
    env.git(&["branch", "lane/P1/L"]);
    env.execute(&[]).exits(3);
    look_often(&env);
    env.git(&["branch", "-D", "lane/P1/L"]);
    env.resume(&[]).exits(0);
}

#[test]
fn looking_at_a_paused_run_changes_nothing() {
    let env = with(&WAITS.replace("approval = [\"plan\"]\n", ""));
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    run.signal(Signal::INT);
    run.wait().exits(130);
    look_often(&env);
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
}

#[test]
fn looking_at_a_live_run_changes_nothing() {
    let env = with(&WAITS.replace("approval = [\"plan\"]\n", ""));
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN];
    // Nothing but a look may change anything: the run's own processes are held.
    let run = env.start_with(&arguments, |command| command);
    wait_until("the agent", || env.path("scratch/began").exists());
    wait_until("the log", || !events(&env, RUN, "job_started").is_empty());
    run.signal(Signal::STOP);
    let supervisor = events(&env, RUN, "job_started")[0]["supervisor"]["pid"].as_i64().expect("a pid");
    let supervisor = i32::try_from(supervisor).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(supervisor, Signal::STOP).expect("it supervises");
    look_often(&env);
    kill_process(supervisor, Signal::CONT).expect("it supervises");
    run.signal(Signal::CONT);
    env.write("scratch/go", "");
    run.wait().exits(0);
}

#[test]
fn an_interruption_that_is_noted_moves_nothing() {
    let env = with(&WAITS.replace("plan", "changes"));
    env.write("scratch/go", "");
    env.execute(&[]).exits(3);
    let file = || serde_json::from_str::<Value>(&env.read("repo.lanes/r1/L/task.json")).expect("JSON");
    let before = file();
    let run = RunId::new(RUN).expect("an id");
    let lane = LaneDirectory::new(&env.path("repo.lanes"), &run, &LaneId::new("L").expect("an id"));
    for (millis, kind) in [(5, "question"), (6, "audit"), (7, "question")] {
        let interruption = Interruption { kind: kind.to_owned(), timestamp: Timestamp::from_unix_millis(millis) };
        add_interruption(&lane, &interruption).expect("it is noted");
        env.lanewright(&["status", RUN]).exits(0);
    }
    let after = file();
    assert_eq!((&after["state"], &after["transition_log"]), (&before["state"], &before["transition_log"]));
    env.resume(&[]).exits(3).says(&["waits for your approval"]);
    assert_eq!(file()["interruptions"].as_array().map(Vec::len), Some(3), "they were forgotten");
    assert!(!env.holds("main", "l.txt"));
    env.lanewright(&["approve", RUN, "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "l.txt"));
}

/// A run whose files are elsewhere, and `lanewright` on the `PATH`.
fn elsewhere(plan: &str) -> (TestEnv, String) {
    let env = with(plan);
    env.program("lanewright", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_lanewright")));
    let flags = ["--log-path", "../other place/log.jsonl", "--checkpoint-path", "../other place/c.json"];
    let ended = env.execute(&flags);
    assert!(ended.code == 1 || ended.code == 3, "{ended:?}");
    (env, ended.stderr)
}

/// Types a line into a shell in the repository.
fn paste(env: &TestEnv, line: &str) -> Ended {
    let mut command = Command::new("sh");
    env.pin(&mut command).args(["-c", line]);
    let output = command.output().expect("a shell");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let code = output.status.code().expect("a code");
    let ended = Ended { code, stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(![2, 8, 127].contains(&ended.code), "{line} does not work: {ended:?}");
    ended
}

/// The lines of a text that call Lanewright.
fn commands_in(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.find("lanewright ").map(|at| line[at..].trim().to_owned()));
    let mut commands: Vec<String> = lines.filter(|line| line.contains("r1")).collect();
    commands.sort();
    commands.dedup();
    commands
}

#[test]
fn printed_commands_are_quoted_for_a_shell() {
    let (env, told) =
        elsewhere("[[lane]]\nid = \"L\"\nretries = 0\ncommand = '[ -e \"$SCRATCH/help\" ] && echo l > l.txt'\n");
    let mut commands = commands_in(&told);
    let words = |command: &str| commands.iter().any(|line| line.contains(&format!(" {command} r1")));
    assert!(["resume", "rollback", "status"].into_iter().all(words), "{commands:?}");
    // What ends the run comes last.
    commands.sort_by_key(|line| line.contains(" rollback "));
    for line in &commands {
        paste(&env, line);
    }
    let checkpoints: Vec<Value> = serde_json::from_str(&env.read("other place/c.json")).expect("an array");
    let record = checkpoints.last().expect("a record");
    for hint in ["rollback_hint", "resume_hint"] {
        env.write("scratch/help", "");
        paste(&env, record[hint].as_str().expect("a hint"));
    }
    assert!(env.holds("main", "l.txt"));
    assert!(!env.path("repo/.claude/ai-dev-kit/run-logs/r1.jsonl").exists());
}

#[test]
fn an_answer_finds_a_run_whose_files_are_elsewhere() {
    let (env, told) = elsewhere(WAITS);
    env.write("scratch/go", "");
    let approve = commands_in(&told).into_iter().find(|line| line.contains(" approve ")).expect("how to say yes");
    let resume = paste(&env, &approve).exits(0).stdout;
    let resume = commands_in(&resume);
    paste(&env, &resume[0]).exits(0);
    assert!(env.holds("main", "l.txt"));
    let places = ["--log-path", "../other place/log.jsonl"];
    for command in [&["status"][..], &["logs", "r1"], &["stop", "r1"], &["status", "r1"]] {
        env.lanewright(&[command, &places].concat()).exits(0);
    }
    env.lanewright(&[&["status", "r2"][..], &places].concat()).exits(8).says(&["no run `r2`"]);
    env.lanewright(&[&["resume"][..], &places].concat()).exits(7);
}

#[test]
fn a_resume_may_set_another_time_limit() {
    let env = with(&WAITS.replace("approval = [\"plan\"]\n", ""));
    env.execute(&["--timeout", "1s"]).exits(124);
    env.resume(&["--timeout", "1ms"]).exits(124);
    env.write("scratch/go", "");
    env.resume(&["--timeout", "none"]).exits(0);
}
