//! What commands show of work that takes long: a spinner, a bar, lines, or nothing.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use lanewright_programs::process::ignores;
use rustix::process::Signal;

use crate::support::{RUN, Running, Terminal, TestEnv, wait_until};

const LANE: &str = "[[lane]]\nid = \"L\"\nretries = 0\n";

/// The command on a terminal.
fn watched(env: &TestEnv, arguments: &[&str]) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command).args(arguments).env("TERM", "xterm-256color");
    Terminal::start(command, 24, 200)
}

/// A lock of Lanewright's in the repository below, held until it is dropped.
fn hold(env: &TestEnv, repository: &str, lock: &str) -> File {
    env.write(&format!("{repository}/.git/lanewright/{lock}.guard"), "");
    let file = File::open(env.path(&format!("{repository}/.git/lanewright/{lock}.guard"))).expect("a file");
    file.lock().expect("a lock");
    file
}

/// A run that is done, and a remote that takes a push once there is help.
fn pushable() -> TestEnv {
    let env = with_remote(&format!("{LANE}command = 'echo l > l.txt'\n"), 0);
    env.program("pre-receive", "#!/bin/sh\nwait-for help\n");
    let hooks = env.path("bin");
    env.git_at("origin.git", &["config", "core.hooksPath", hooks.to_str().expect("UTF-8")]);
    env
}

/// A run that ended with `code`, its worktrees still there, and an empty remote.
fn with_remote(plan: &str, code: i32) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "keep_pool = true\n");
    env.commit("settings");
    env.git_at("", &["init", "--quiet", "--bare", "origin.git"]);
    env.git(&["remote", "add", "origin", "../origin.git"]);
    env.plan(plan);
    env.execute(&[]).exits(code);
    env
}

/// A run whose lane failed and left work in its worktree.
fn failed() -> TestEnv {
    with_remote(&format!("{LANE}command = 'echo l > l.txt; exit 3'\n"), 1)
}

/// A plan that is read once something writes it.
fn pipe(env: &TestEnv, below: &str) -> PathBuf {
    let pipe = env.path(below);
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    pipe
}

#[test]
fn spinner_shows_slow_push_and_leaves_nothing_behind() {
    let env = pushable();
    let mut terminal = watched(&env, &["state", "push"]);
    terminal.wait_for("Pushing run r1 to origin");
    env.write("scratch/help", "");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.text().starts_with("Pushed run r1 "), "{}", terminal.text());
    assert!(!terminal.text().contains("Pushing") && terminal.is_whole(), "{}", terminal.text());
}

#[test]
fn interrupt_removes_spinner_and_ends_command() {
    let env = pushable();
    // A shell has the interrupt ignored by what a script starts in the background, such as these tests.
    for signal in [Signal::INT, Signal::TERM].into_iter().filter(|signal| !ignores(signal.as_raw())) {
        let mut terminal = watched(&env, &["state", "push"]);
        terminal.wait_for("Pushing run r1 to origin");
        terminal.signal(signal);
        assert_eq!(terminal.end(), None, "{signal:?} did not end it");
        assert!(terminal.text().trim().is_empty() && terminal.is_whole(), "{}", terminal.text());
    }
}

#[test]
fn plain_progress_writes_lines_without_terminal() {
    let env = pushable();
    let push = env.start_with(&["state", "push", "--progress", "plain"], |command| command);
    wait_until("the first line", || push.has_said("Pushing run r1 to origin\n"));
    env.write("scratch/help", "");
    let stderr = push.wait().exits(0).stderr;
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(matches!(lines[..], ["Pushing run r1 to origin", end] if end.contains("origin took ")), "{stderr}");
}

#[test]
fn nothing_is_shown_without_terminal_or_beside_json() {
    let env = TestEnv::new();
    let flags: [&[&str]; 4] =
        [&[], &["--progress", "live"], &["--progress", "none"], &["--format", "json", "--progress", "plain"]];
    let checks: Vec<(Running, File)> = (0..)
        .zip(flags)
        .map(|(number, flags)| {
            let pipe = pipe(&env, &format!("{number}.toml"));
            let arguments = [&["plan", "check", pipe.to_str().expect("UTF-8")], flags].concat();
            let check = env.start_with(&arguments, |command| command);
            // Opens when the other end is read.
            (check, File::options().write(true).open(pipe).expect("a pipe"))
        })
        .collect();
    // Longer than anything waits before it is shown.
    std::thread::sleep(Duration::from_secs(1));
    for (check, mut pipe) in checks {
        std::io::Write::write_all(
            &mut pipe,
            format!("phase = 'P1'\n{LANE}command = 'true'\nmax_time = '5m'\ntests = './test.sh'\n").as_bytes(),
        )
        .expect("it is read");
        drop(pipe);
        assert_eq!(check.wait().exits(0).stderr, "");
    }
}

#[test]
fn short_work_shows_nothing() {
    let env = TestEnv::new();
    env.plan(&format!("{LANE}command = 'true'\n"));
    let started = Instant::now();
    let mut terminal = watched(&env, &["plan", "check", "../plan.toml"]);
    assert_eq!(terminal.end(), Some(0));
    // On a machine that is busy it may have taken long.
    let is_short = started.elapsed() < Duration::from_millis(300);
    let shows = terminal.written().contains("Reading") || terminal.written().contains('\u{1b}');
    assert!(!(is_short && shows), "{}", terminal.written());
}

#[test]
fn bar_counts_plans_below_their_results() {
    let env = TestEnv::new();
    // A warning of several lines.
    let plan = |number: u32| {
        format!(
            "# P{number}: Part {number}\n\n## Lane Index & Dependencies\n\n- SL-1 - One; Depends on: SL-9\n\n## Lanes\n\n\
             ### SL-1 - One\n\n- **Scope**: it\n- **Owned files**: `{number}.txt`\n- **Tasks**:\n  - impl: write it\n"
        )
    };
    env.write("repo/lanewright.toml", "runner = 'agent'\n[runners.agent]\ncommand = 'agent.sh'\n");
    env.write("repo/ROADMAP.md", "# Roadmap\n\n## Phase 1: One\n\n## Phase 2: Two\n\n## Phase 3: Three\n");
    let [first, last] = ["repo/P1.md", "repo/P3.md"].map(|below| pipe(&env, below));
    env.write("repo/P2.md", plan(2));
    let mut terminal = watched(&env, &["plan", "check", "ROADMAP.md"]);
    terminal.wait_for("Reading plans [                    ] 0/3");
    std::fs::write(first, plan(1)).expect("it is read");
    terminal.wait_for("] 2/3");
    let rows: Vec<String> = terminal.rows().into_iter().map(|(row, _)| row).filter(|row| !row.is_empty()).collect();
    let (bar, results) = rows.split_last().expect("rows");
    assert!(bar.contains("Reading plans [====") && !results.iter().any(|row| row.contains("/3")), "{rows:#?}");
    assert_eq!(results.iter().filter(|row| row.contains("did you mean `SL-1`?")).count(), 2, "{rows:#?}");
    std::fs::write(last, plan(3)).expect("it is read");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
    let text = terminal.text();
    assert!(text.contains("P3.md: valid") && !text.contains("/3") && terminal.is_whole(), "{text}");
}

/// What is shown by commands that wait for a lock which the test holds.
#[test]
fn slow_commands_show_what_they_do() {
    let cases: [(&[&str], &str, &str); 5] = [
        (&["clean", "--yes", "--force", RUN], "pool", "Removing leftovers ["),
        (&["rollback", RUN, "--yes"], "pool", "Resetting lanes ["),
        (&["checkpoints", "prune", RUN, "--keep", "1", "--force"], "references", "Removing snapshots ["),
        (&["doctor", "--fix"], "pool", "Repairing ["),
        (&["-C", "../second", "state", "pull"], "pool", "Restoring run r1"),
    ];
    let env = failed();
    env.git(&["push", "--quiet", "origin", "main"]);
    env.lanewright(&["state", "push"]).exits(0);
    for text in ["two", "three"] {
        env.write("repo.lanes/r1/L/code/more.txt", text);
        env.lanewright(&["checkpoints", "create", RUN, "L"]).exits(0);
    }
    env.git_at("", &["clone", "--quiet", "origin.git", "second"]);
    for (arguments, lock, shown) in cases.into_iter().rev() {
        if arguments[0] == "doctor" {
            std::fs::remove_file(env.path("repo.lanes/slots/01.claim")).expect("a claim");
        }
        let held = hold(&env, if arguments[0] == "-C" { "second" } else { "repo" }, lock);
        let mut terminal = watched(&env, arguments);
        terminal.wait_for(shown);
        drop(held);
        assert_eq!(terminal.end(), Some(0), "{arguments:?}: {}", terminal.text());
        assert!(!terminal.text().contains(shown) && terminal.is_whole(), "{}", terminal.text());
    }
}

/// A run whose lane is merged and whose last gate waits for help.
fn gated() -> TestEnv {
    let env = TestEnv::new();
    env.git(&["switch", "--quiet", "--create", "desk"]);
    let gate = "[gates]\nfinal = 'touch \"$SCRATCH/gate\"; wait-for help'\n";
    env.plan(&format!("base_branch = \"main\"\n{gate}{LANE}command = 'echo l > l.txt'\n"));
    env
}

/// Lets the last gate end once the pool cannot be emptied.
fn hold_pool_and_help(env: &TestEnv) -> File {
    wait_until("the gate", || env.path("scratch/gate").exists());
    let held = hold(env, "repo", "pool");
    env.write("scratch/help", "");
    held
}

#[test]
fn live_block_shows_removal_of_worktrees() {
    let env = gated();
    let mut terminal = watched(&env, &["execute-phase", "../plan.toml", "--run-id", RUN]);
    let held = hold_pool_and_help(&env);
    terminal.wait_for("Removing worktrees");
    let block = terminal.text();
    assert!(block.contains("\nP1 · 1/1 lanes") && block.contains("\nRemoving worktrees\n1 merged"), "{block}");
    drop(held);
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
    assert!(!terminal.text().contains("Removing worktrees"), "{}", terminal.text());
}

#[test]
fn plain_run_has_one_line_about_removal_of_worktrees() {
    let env = gated();
    let run = env.start(&["--progress", "plain"]);
    let held = hold_pool_and_help(&env);
    wait_until("the line", || run.has_said(" removing worktrees\n"));
    drop(held);
    let ended = run.wait().exits(0);
    assert_eq!(ended.stderr.matches("removing worktrees").count(), 1, "{}", ended.stderr);
}
