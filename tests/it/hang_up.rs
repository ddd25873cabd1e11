//! SIGHUP: a closed window or connection. The jobs of a run outlive it, and a resume finds them.

use std::process::Command;

use rustix::process::Signal;

use crate::support::{RUN, Running, Terminal, TestEnv, wait_until};

/// Adds a word to a file before and after it waits for `go`: both are there once if it ran once, to its end.
fn once(name: &str) -> String {
    format!("echo begins >> \"$SCRATCH/{name}\"; wait-for go; echo ends >> \"$SCRATCH/{name}\"")
}

const ONCE: &str = "begins\nends\n";

fn start_and_wait_for(env: &TestEnv, file: &str, flags: &[&str]) -> Running {
    let run = env.start(flags);
    wait_until(file, || env.path(&format!("scratch/{file}")).exists());
    run
}

/// The words for a shell that starts the binary with SIGHUP ignored.
const IGNORING: [&str; 3] = ["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""];

/// The binary with its words, behind the words of `before`.
fn command(env: &TestEnv, before: &[&str], words: &[&str]) -> Command {
    let words = [before, &[env!("CARGO_BIN_EXE_lanewright")], words].concat();
    let mut command = Command::new(words[0]);
    env.pin(&mut command).args(&words[1..]);
    command
}

fn execute(env: &TestEnv, before: &[&str]) -> Command {
    command(env, before, &["execute-phase", "../plan.toml", "--run-id", RUN])
}

/// Asserts that the run was left, and can be resumed to an end at which what writes to `name` ran so many times.
fn assert_resumes(env: &TestEnv, name: &str, times: usize) {
    assert_eq!(env.events("run_finished"), [] as [serde_json::Value; 0]);
    assert_eq!(env.events("stop_requested"), [] as [serde_json::Value; 0]);
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    assert_eq!(env.scratch(name), ONCE.repeat(times), "{name}");
    assert!(env.events("retry_planned").is_empty());
    env.assert_nothing_left(&["main"]);
}

#[test]
fn agent_works_on_after_sighup() {
    let env = TestEnv::new();
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{}; echo l > l.txt'\n", once("agent")));
    let run = start_and_wait_for(&env, "agent", &[]);
    run.signal(Signal::HUP);
    run.wait().exits(129).says(&["the terminal was closed (SIGHUP)"]).hints("lanewright resume");
    let last = env.log().pop().expect("a record");
    let said = last["message"].as_str().expect("words");
    assert!(said.contains("agents continue") && said.contains("lanewright resume r1"), "{said}");
    assert_eq!(env.scratch("agent"), "begins\n");
    // It ends while no Lanewright runs.
    env.write("scratch/go", "");
    wait_until("the agent", || env.scratch("agent") == ONCE);
    assert_resumes(&env, "agent", 1);
    assert_eq!(env.file_at("main", "l.txt"), "l");
    assert_eq!(env.events("job_planned").len(), 1);
}

#[test]
fn gate_and_setup_are_not_repeated_after_sighup() {
    // A setup runs in the lane's worktree and in the agent's.
    for (key, times) in [("tests", 1), ("setup", 2)] {
        let env = TestEnv::new();
        env.plan(&format!(
            "[[lane]]\nid = \"L\"\nagent_worktrees = \"on\"\ncommand = 'echo l > l.txt'\n{key} = '{}'\n",
            once(key)
        ));
        let run = start_and_wait_for(&env, key, &[]);
        run.signal(Signal::HUP);
        run.wait().exits(129);
        assert_resumes(&env, key, times);
    }
}

#[test]
fn sighup_stops_agents_where_on_orphan_is_stop() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "on_orphan = \"stop\"\n");
    env.commit("settings");
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n[ $LANEWRIGHT_ATTEMPT = 1 ] || { cat half.txt > l.txt; exit 0; }\n\
         trap 'touch \"$SCRATCH/asked\"; exit 1' TERM\necho half > half.txt; touch \"$SCRATCH/began\"\n\
         while [ -d \"$SCRATCH\" ]; do sleep 0.02; done\n'''\n",
    );
    let run = start_and_wait_for(&env, "began", &[]);
    run.signal(Signal::HUP);
    run.wait().exits(129).says(&["on_orphan"]);
    wait_until("the stop", || env.path("scratch/asked").exists());
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "l.txt"), "half");
}

#[test]
fn ignored_sighup_stays_ignored() {
    let env = TestEnv::new();
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{}; echo l > l.txt'\n", once("agent")));
    let run = Running::start(execute(&env, &IGNORING));
    wait_until("the agent", || env.path("scratch/agent").exists());
    run.signal(Signal::HUP);
    env.write("scratch/go", "");
    run.wait().exits(0);
    assert_eq!(env.scratch("agent"), ONCE);
    assert!(env.events("noted").is_empty());
}

#[test]
fn sighup_ends_a_chain_and_resume_continues_it() {
    let env = TestEnv::new();
    env.write("next.toml", "phase = \"P2\"\n[[lane]]\nid = \"N\"\ncommand = 'echo n > n.txt'\n");
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{}; echo l > l.txt'\n", once("agent")));
    let run = start_and_wait_for(&env, "agent", &["--next-phase", "../next.toml"]);
    run.signal(Signal::HUP);
    run.wait().exits(129);
    assert!(!env.holds("main", "n.txt"));
    assert_resumes(&env, "agent", 1);
    assert!(env.holds("main", "l.txt") && env.holds("main", "n.txt"));
}

#[test]
fn sighup_ends_a_wait_for_an_answer() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\napproval = [\"changes\"]\ncommand = 'echo l > l.txt'\n");
    let run = env.start(&["--wait"]);
    wait_until("the question", || run.has_said("waits for your approval"));
    run.signal(Signal::HUP);
    run.wait().exits(129);
    env.lanewright(&["approve", RUN, "L", "--resume"]).exits(0);
    assert_eq!(env.file_at("main", "l.txt"), "l");
}

#[test]
fn sighup_ends_a_wait_for_a_lock_unless_it_is_ignored() {
    let env = TestEnv::new();
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{}; echo l > l.txt'\n", once("agent")));
    let holder = start_and_wait_for(&env, "agent", &[]);
    let resume = ["resume", RUN, "--on-lock-conflict", "wait"];
    let waits = |before: &[&str]| {
        let waiting = Running::start(command(&env, before, &resume));
        wait_until("the wait", || waiting.has_said("Waiting:"));
        waiting.signal(Signal::HUP);
        waiting
    };
    waits(&["env"]).wait().exits(129).says(&["SIGHUP"]);
    let mut ignoring = waits(&IGNORING);
    env.write("scratch/go", "");
    holder.wait().exits(0);
    // It had the lock at last, of a run that is complete.
    wait_until("its end", || ignoring.has_ended());
    ignoring.wait().exits(7);
}

/// The run on a terminal of its own, which shows its progress; `before` comes between.
fn on_terminal(env: &TestEnv, before: &[&str]) -> Terminal {
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{}; echo l > l.txt'\n", once("agent")));
    let mut command = execute(env, &[&["setsid", "--ctty"], before].concat());
    command.env("TERM", "xterm-256color");
    let terminal = Terminal::asking(command);
    terminal.wait_for("running");
    wait_until("the agent", || env.path("scratch/agent").exists());
    terminal
}

#[test]
fn closed_terminal_leaves_the_agent_at_work() {
    let env = TestEnv::new();
    let mut terminal = on_terminal(&env, &[]);
    terminal.close();
    assert_eq!(terminal.end(), Some(129));
    assert_resumes(&env, "agent", 1);
}

#[test]
fn run_completes_after_hangup_if_sighup_is_ignored() {
    let env = TestEnv::new();
    let mut terminal = on_terminal(&env, &IGNORING);
    terminal.close();
    env.write("scratch/go", "");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(env.events("run_finished")[0]["code"], 0);
    assert_eq!(env.scratch("agent"), ONCE);
    assert_eq!(env.file_at("main", "l.txt"), "l");
}

#[test]
fn closed_pipe_does_not_change_how_a_run_ends() {
    let env = TestEnv::new();
    env.write("next.toml", "phase = \"P2\"\n[[lane]]\nid = \"N\"\nretries = 0\ncommand = 'exit 3'\n");
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo l > l.txt'\n");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let words = ["--format", "json", "execute-phase", "../plan.toml", "--next-phase", "../next.toml"];
    let ended = command(&env, &["env"], &words).stdout(writer).status().expect("the binary ends");
    assert_eq!(ended.code(), Some(1), "the second phase fails");
}
