//! The terminal interface on a terminal, beside a run.

use std::process::Command;

use rustix::process::Signal;

use crate::executors::{slurm, this};
use crate::placement::has_begun;
use crate::support::{RUN, Terminal, TestEnv, wait_until};

const PLAN: &str = "[[lane]]\nid = \"L\"\napproval = [\"changes\"]\n\
                    command = 'printf \"first\\ndraft $LANEWRIGHT_ATTEMPT\\n\" > work.txt; echo done'\n\
                    [[lane]]\nid = \"M\"\ndepends_on = [\"L\"]\ncommand = 'echo m > m.txt'\n";

fn interface(env: &TestEnv) -> Terminal {
    interface_with(env, |command| command)
}

fn interface_with(env: &TestEnv, more: impl Fn(&mut Command) -> &mut Command) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    more(env.pin(&mut command).arg("ui").env("TERM", "xterm-256color"));
    Terminal::asking(command)
}

/// A run that has ended, and the worktree of its lane is still there.
fn ended() -> TestEnv {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'exit 1'\nretries = 0\n");
    env.execute(&[]).exits(1);
    env
}

#[test]
fn diff_comment_reaches_the_agent_and_approval_the_run() {
    let env = TestEnv::new();
    env.plan(PLAN);
    let run = env.start(&["--wait"]);
    wait_until("the question", || run.has_said("waits for your approval"));
    let mut terminal = interface(&env);
    terminal.wait_for("needs approval");
    terminal.press("4");
    terminal.wait_for("+draft 1");
    terminal.press("G");
    terminal.press("cSay which one.\r");
    terminal.wait_for("▌ Say which one.");
    terminal.press("r");
    terminal.wait_for("reject the changes of L with 1 comment, message:");
    terminal.press("Not yet.\r");
    terminal.wait_for("The changes of L were rejected");
    // The next attempt is committed, and the diff is read again.
    terminal.wait_for("+draft 2");
    let prompt = env.attempt_file("L", "agent", 2, "prompt.md");
    for said in ["Not yet.", "work.txt:2: Say which one.", "> +draft 1"] {
        assert!(prompt.contains(said), "{said} is not in\n{prompt}");
    }
    terminal.press("5");
    terminal.wait_for("L  needs approval");
    terminal.press("a\r");
    run.wait().exits(0);
    terminal.wait_for("2 merged");
    terminal.wait_for("L  merged");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.is_whole(), "{:?}", terminal.written());
    assert_eq!(env.file_at("main", "work.txt"), "first\ndraft 2");
}

#[test]
fn killed_run_is_resumed_from_the_ui_in_the_background() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'wait-for go; echo l > l.txt'\n");
    let mut run = env.start(&[]);
    wait_until("the agent", || run.has_said("attempt 1 started"));
    let mut terminal = interface(&env);
    terminal.wait_for("running");
    assert!(!terminal.is_whole() && !terminal.text().contains("not active"));
    run.kill();
    terminal.wait_for("not active; R resumes it");
    terminal.press("R");
    terminal.wait_for("resume: the run continues");
    // Signals end it in order.
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end(), Some(143));
    assert!(terminal.is_whole(), "{:?}", terminal.written());
    env.write("scratch/go", "");
    wait_until("the end of the run", || !env.events("run_finished").is_empty());
    assert_eq!(env.file_at("main", "l.txt"), "l");
}

#[test]
fn a_panic_leaves_the_terminal_whole_with_its_message() {
    let env = ended();
    let mut terminal = interface_with(&env, |command| command.env("LANEWRIGHT_CRASH_POINT", "panic_drawn:2"));
    terminal.wait_for("failed");
    terminal.press("j");
    assert_eq!(terminal.end(), Some(101));
    assert!(terminal.is_whole(), "{:?}", terminal.written());
    assert!(terminal.text().contains("the crash point panic_drawn was chosen"), "{}", terminal.text());
    // A terminal moves its cursor back each time.
    assert_eq!(terminal.written().matches("\u{1b}[?1049l").count(), 1);
}

#[test]
fn every_signal_leaves_the_terminal_whole() {
    let env = ended();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut terminal = interface(&env);
        terminal.wait_for("failed");
        terminal.signal(signal);
        assert_eq!((signal, terminal.end()), (signal, Some(code)));
        assert!(terminal.is_whole(), "{signal:?}: {:?}", terminal.written());
    }
}

#[test]
fn a_mouse_that_an_editor_left_on_is_turned_off() {
    let env = ended();
    let editor = "printf '\\033[?1000h\\033[?1006h'; echo";
    let mut terminal = interface_with(&env, |command| command.env("VISUAL", editor));
    terminal.wait_for("failed");
    terminal.press("e");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.written().contains("\u{1b}[?1000h"), "{:?}", terminal.written());
    assert!(terminal.is_whole(), "{:?}", terminal.written());
}

#[test]
fn a_key_that_comes_with_a_new_size_is_heeded() {
    let env = ended();
    let mut terminal = interface(&env);
    terminal.wait_for("failed");
    terminal.press("/");
    for (at, typed) in (1..).zip(["x", "xk", "xke", "xkey", "xkeys", "xkeyst", "xkeysto", "xkeystol", "xkeystolo"]) {
        terminal.resize(24 + at, 100 + at);
        terminal.signal(Signal::WINCH);
        terminal.press(&typed[typed.len() - 1..]);
        terminal.wait_for(&format!("lanes /{typed}: no lane"));
        wait_until("it is in the last row", || terminal.rows()[usize::from(23 + at)].0 == format!("/{typed}"));
    }
    terminal.press("\u{3}");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_sequence_that_does_not_end_stops_nothing() {
    let env = ended();
    let mut terminal = interface(&env);
    terminal.wait_for("failed");
    terminal.press("\u{1b}[200~");
    terminal.press("\u{1b}[201~?\u{1b}[");
    terminal.wait_for("Keys (");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end(), Some(143));
    assert!(terminal.is_whole(), "{:?}", terminal.written());
}

#[test]
fn cluster_lane_shows_job_output_and_no_worktree() {
    let env = slurm(this());
    env.plan(
        "[[lane]]\nid = 'A'\nexecutor = 'main'\n\
         command = 'echo $$ >>$SCRATCH/attempts; echo one; wait-for go; echo a >a.txt'\n",
    );
    env.commit("settings");
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    let mut terminal = interface(&env);
    terminal.wait_for("executor  job 7 of main on ");
    terminal.press("e");
    terminal.wait_for("has no worktree here: job 7 of main on ");
    terminal.press("2");
    terminal.wait_for("==> A/");
    terminal.wait_for("\none\n");
    env.write("scratch/go", "");
    run.wait().exits(0);
    terminal.wait_for("1 merged");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn removed_run_and_its_successor_are_told_apart() {
    let env = ended();
    let mut terminal = interface(&env);
    terminal.wait_for("failed");
    env.lanewright(&["clean", RUN, "--force", "--logs", "--yes"]).exits(0);
    terminal.wait_for("run r1 was removed; showing its last state");
    env.plan("[[lane]]\nid = \"NEW\"\ncommand = 'echo n > n.txt'\n");
    env.execute(&[]).exits(0);
    terminal.wait_for("1/1 lanes");
    terminal.wait_for("NEW");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn without_a_terminal_it_names_what_works_there() {
    let env = TestEnv::new();
    let piped = env.lanewright(&["ui", RUN]).exits(2);
    piped
        .says(&["needs a terminal", "standard input is not a terminal"])
        .hints(&format!("elsewhere: lanewright status {RUN} --watch"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command).arg("ui").env("TERM", "dumb");
    let mut terminal = Terminal::asking(command);
    assert_eq!(terminal.end(), Some(2));
    let text = terminal.text();
    assert!(terminal.is_whole() && text.contains("TERM is dumb") && text.contains("status --watch"), "{text}");
}
