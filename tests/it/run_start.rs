//! Starting a run: refused before anything is made, or begun over what a process that died left behind.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::support::{Running, STATE, TestEnv, wait_until};

const ONE: &str = "[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n";

fn with(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(plan);
    env
}

/// The words that start the plan as run `r1`, or that do something else with that run.
fn commands(env: &TestEnv) -> Vec<Vec<String>> {
    let plan = env.path("plan.toml").to_str().expect("UTF-8").to_owned();
    let words = |words: &[&str]| words.iter().map(|word| word.replace("PLAN", &plan)).collect();
    [
        &["execute-phase", "PLAN", "--run-id", "r1"] as &[&str],
        &["execute-lane", "PLAN", "L", "--run-id", "r1"],
        &["resume", "r1"],
        &["rollback", "r1"],
        &["clean", "r1"],
    ]
    .map(words)
    .to_vec()
}

fn nothing_was_made(env: &TestEnv) {
    for path in ["repo/.claude", "repo.lanes", "repo/.git/lanewright"] {
        assert!(!env.path(path).exists(), "{path}");
    }
}

#[test]
fn unsupported_ref_format_is_refused() {
    let env = TestEnv::without_repository();
    env.plan(ONE);
    env.git(&["init", "--quiet", "--ref-format=reftable"]);
    env.write("repo/README.md", "A project.\n");
    env.commit("first");
    for words in commands(&env).iter().chain([&vec!["doctor".to_owned()]]) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        env.lanewright(&words).exits(2).says(&["reftable"]).hints("git refs migrate --ref-format=files");
    }
    nothing_was_made(&env);
    env.git_at("", &["clone", "--quiet", "--ref-format=files", "repo", "clone"]);
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8")];
    let clone = env.path("clone");
    env.lanewright_with(&start, |command| command.current_dir(&clone)).exits(0);
}

#[test]
fn follow_without_pull_requests_is_a_warning() {
    let env = with(ONE);
    env.execute(&["--follow", "1h"]).exits(0).says(&["`--follow` has no effect"]).hints("--merge pr");
    let env = with(ONE);
    env.write("config/lanewright/config.toml", "follow = \"1h\"\n");
    assert!(!env.execute(&[]).exits(0).stderr.contains("no effect"), "in settings it is for runs with pull requests");
}

#[test]
fn unknown_git_extension_is_refused() {
    let env = with(ONE);
    env.git(&["config", "core.repositoryFormatVersion", "1"]);
    env.git(&["config", "extensions.fromTheFuture", "true"]);
    env.execute(&[]).exits(3).says(&["fromthefuture"]);
    nothing_was_made(&env);
}

#[test]
fn stale_packed_refs_lock_is_named_before_changes() {
    let env = with("[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'echo x > x.txt; [ -e \"$SCRATCH/go\" ]'\n");
    let lock = env.path("repo/.git/packed-refs.lock");
    let lock_since_an_hour = || {
        let file = File::create(&lock).expect("the lock");
        file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("its time");
    };
    lock_since_an_hour();
    env.execute(&[]).exits(3).says(&["packed-refs.lock"]).hints("delete the file");
    nothing_was_made(&env);
    fs::remove_file(&lock).expect("the lock");
    env.execute(&[]).exits(1);
    lock_since_an_hour();
    let before = env.log().len();
    for words in [&["resume", "r1"], &["rollback", "r1"], &["clean", "r1"]] {
        env.lanewright(words).exits(3).says(&["packed-refs.lock"]).hints("delete the file");
    }
    let found = env.lanewright(&["doctor", "--format", "json"]).exits(6);
    assert!(found.stdout.contains("\"ref-lock\"") && found.stdout.contains("packed-refs.lock"), "{}", found.stdout);
    assert_eq!(env.log().len(), before);
    fs::remove_file(&lock).expect("the lock");
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn a_lock_on_packed_refs_that_is_new_is_waited_for() {
    let env = with(ONE);
    let (lock, said) = (env.path("repo/.git/packed-refs.lock"), env.path("said"));
    let file = File::create(&lock).expect("the lock");
    // Lanewright would not wait for it any more by the time a loaded machine has come to the next line.
    file.set_modified(SystemTime::now() + Duration::from_secs(3600)).expect("its time");
    let plan = env.path("plan.toml");
    let script = "exec \"$@\" 2> \"$0\"";
    let words = ["-c", script, said.to_str().expect("UTF-8"), env!("CARGO_BIN_EXE_lanewright"), "execute-phase"];
    let mut command = Command::new("sh");
    env.pin(&mut command).args(words).arg(plan).args(["--run-id", "r1"]);
    let running = Running::start(command);
    wait_until("the wait", || env.path("said").exists() && env.read("said").contains("Waiting:"));
    assert!(env.read("said").contains("packed-refs.lock exists"), "{}", env.read("said"));
    nothing_was_made(&env);
    fs::remove_file(&lock).expect("the lock");
    running.wait().exits(0);
}

#[test]
fn run_killed_before_its_first_record_starts_again() {
    let env = with(ONE);
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    for _ in 0..2 {
        env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", "before_sync:1")).exits(137);
        assert_eq!(env.read(&format!("repo/{STATE}/r1.jsonl")), "");
    }
    env.lanewright(&start).exits(0);
    assert!(env.holds("main", "x.txt"));
    // What has begun is not.
    let again = [&start[..], &["--redo"]].concat();
    let log = env.read(&format!("repo/{STATE}/r1.jsonl"));
    env.lanewright(&again).exits(2).says(&["there was a run r1 already"]);
    assert_eq!(env.read(&format!("repo/{STATE}/r1.jsonl")), log);
    // Nor is a log that lost what the run did.
    env.write(&format!("repo/{STATE}/r1.jsonl"), "");
    env.lanewright(&again).exits(2).says(&["there was a run r1 already"]);
    // Nothing but the lock.
    fs::create_dir(env.path(&format!("repo/{STATE}/r2"))).expect("the run's directory");
    env.write(&format!("repo/{STATE}/r2/run.lock"), "");
    env.plan(&format!("{ONE}allow_empty = true\n"));
    env.execute(&["--run-id=r2", "--new-run"]).exits(0);
}

#[test]
fn run_id_matching_state_file_name_is_refused() {
    let env = with(ONE);
    for name in ["checkpoints", "checkpoints.json", "errors", "slots", "r1.jsonl"] {
        env.execute(&[&format!("--run-id={name}")]).exits(2).says(&[name, "other files of that name"]);
    }
    nothing_was_made(&env);
}

#[test]
fn no_file_is_made_to_try_the_worktree_root() {
    let env = with("[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'false'\n");
    env.write("roots/mine", "");
    env.execute(&["--worktree-root=../roots"]).exits(1);
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::open(env.path("roots")).and_then(|root| root.set_modified(old)).expect("its time");
    // Refused after the root was looked at.
    env.execute(&["--worktree-root=../roots", "--run-id=r2"]).exits(7);
    let modified = fs::metadata(env.path("roots")).and_then(|root| root.modified()).expect("its time");
    assert_eq!(modified, old, "something was made in the worktree root");
}

#[test]
fn worktree_root_that_breaks_gates_is_named() {
    let env = with("[[lane]]\nid = \"L\"\ncommand = 'echo $LANEWRIGHT_RUN_ID > x.txt'\n");
    let workspace = "[workspace]\nmembers = [\"a\"]\nexclude = [\"x\"]\n";
    let start = |run| env.execute(&["--worktree-root=.trees", "--new-run", run]).exits(0).stderr;
    env.write("repo/Cargo.toml", workspace);
    let text = start("--run-id=r1");
    assert!(text.contains("cargo workspace") && text.contains("add \".trees\" to `exclude`"), "{text}");
    env.write("repo/Cargo.toml", workspace.replace("\"x\"", "\"x\", \".trees\""));
    let text = start("--run-id=r2");
    assert!(!text.contains("cargo workspace"), "{text}");

    let place = env.path("noexec");
    fs::create_dir(&place).expect("a directory");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "noexec", "tmpfs"]).arg(&place).output();
    if !mounted.is_ok_and(|it| it.status.success()) {
        return eprintln!("skipped: mounting a file system needs privileges");
    }
    let ended = env.execute(&["--worktree-root=../noexec/w", "--new-run", "--run-id=r3"]);
    Command::new("umount").arg("--lazy").arg(&place).output().expect("umount");
    ended.exits(3).says(&["is mounted noexec", "--worktree-root DIR"]);
}

/// A script that takes a lock keeps it until it ends itself, not until the last supervisor does.
#[test]
fn supervisors_and_agents_inherit_no_descriptors() {
    let env = with(
        "[[lane]]\nid = \"L\"\ncommand = 'ls -l /proc/self/fd /proc/$PPID/fd > \"$SCRATCH/descriptors\"; echo x > x.txt'\n",
    );
    let script = "exec 9> \"$SCRATCH/foreign\"; exec \"$0\" \"$@\"";
    let plan = env.path("plan.toml");
    let mut command = Command::new("sh");
    env.pin(&mut command).args(["-c", script, env!("CARGO_BIN_EXE_lanewright"), "execute-phase"]).arg(plan);
    Running::start(command).wait().exits(0);
    let descriptors = env.scratch("descriptors");
    assert!(descriptors.contains("output.log") && !descriptors.contains("foreign"), "{descriptors}");
}

#[test]
fn a_users_file_in_the_place_of_a_run_log_is_kept() {
    let env = with(ONE);
    for text in ["my notes", "{\"mine\": true}\n"] {
        env.write(&format!("repo/{STATE}/r1.jsonl"), text);
        assert_ne!(env.execute(&["--run-id=r1"]).code, 0);
        assert_eq!(env.read(&format!("repo/{STATE}/r1.jsonl")), text);
    }
}
