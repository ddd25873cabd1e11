//! The terminal interface on a terminal, beside a run.

use std::process::Command;

use rustix::process::Signal;

use crate::support::{RUN, Terminal, TestEnv, wait_until};

const PLAN: &str = "[[lane]]\nid = \"L\"\napproval = [\"changes\"]\n\
                    command = 'printf \"first\\ndraft $LANEKEEPER_ATTEMPT\\n\" > work.txt; echo done'\n\
                    [[lane]]\nid = \"M\"\ndepends_on = [\"L\"]\ncommand = 'echo m > m.txt'\n";

fn interface(env: &TestEnv) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    env.pin(&mut command).arg("ui").env("TERM", "xterm-256color");
    Terminal::asking(command)
}

#[test]
fn a_comment_on_a_line_of_the_diff_reaches_the_agent_and_an_approval_the_run() {
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
    terminal.wait_for("needs approval");
    terminal.press("a\r");
    run.wait().exits(0);
    terminal.wait_for("2 merged");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.is_whole(), "{:?}", terminal.written());
    assert_eq!(env.file_at("main", "work.txt"), "first\ndraft 2");
}

#[test]
fn a_killed_run_is_shown_as_such_and_resumed_by_a_process_that_outlives_the_interface() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'wait-for go; echo l > l.txt'\n");
    let mut run = env.start(&[]);
    wait_until("the agent", || run.has_said("attempt 1 started"));
    let mut terminal = interface(&env);
    terminal.wait_for("running");
    assert!(!terminal.is_whole() && !terminal.text().contains("not active"));
    run.kill();
    terminal.wait_for(&format!("not active, resume: lanekeeper resume {RUN}"));
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
fn without_a_terminal_it_names_what_works_there() {
    let env = TestEnv::new();
    env.lanekeeper(&["ui", RUN]).exits(2).hints(&format!("elsewhere: lanekeeper status {RUN} --watch"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    env.pin(&mut command).arg("ui").env("TERM", "dumb");
    let mut terminal = Terminal::asking(command);
    assert_eq!(terminal.end(), Some(2));
    assert!(terminal.is_whole() && terminal.text().contains("lanekeeper status --watch"), "{}", terminal.text());
}
