//! What a rollback asks before it undoes merged work, and what a run is afterwards.

use std::fs;
use std::process::Command;

use crate::support::{Ended, Terminal, TestEnv};

const ONE: (&str, &[&str], &str) = ("SL-1", &[], "mkdir -p SL-1 && echo one > SL-1/a && echo two > SL-1/b");
const TWO: (&str, &[&str], &str) = ("SL-2", &["SL-1"], "mkdir -p SL-2 && echo two > SL-2/b");
const FAILS: (&str, &[&str], &str) = ("SL-3", &[], "mkdir -p SL-3; echo half > SL-3/a; exit 3");

fn done() -> TestEnv {
    let env = TestEnv::new();
    env.lanes(&[ONE, TWO]);
    env.execute(&[]).exits(0);
    env
}

/// Ends the test if standard output lacks one of the texts.
fn prints(ended: &Ended, texts: &[&str]) {
    for text in texts {
        assert!(ended.stdout.contains(text), "it does not print `{text}`:\n{}{}", ended.stdout, ended.stderr);
    }
}

/// What a rollback may change.
fn state(env: &TestEnv) -> (Vec<String>, Vec<u8>, String) {
    (env.refs(), fs::read(env.log_file()).expect("the log"), env.git(&["status", "--porcelain"]))
}

#[test]
fn rollback_of_merged_work_without_yes_is_refused() {
    let env = done();
    let before = state(&env);
    let merge = env.git(&["log", "--first-parent", "-1", "--format=%H", "--grep=Merge lane SL-1", "main"]);
    let listed = format!("SL-1: merge {}, 3 commits, 2 files", &merge[..10]);
    let refused = env.lanewright(&["rollback", "r1"]).exits(2);
    let refused = refused.says(&["undoes merged work on main", &listed, "SL-2: merge "]);
    refused.hints("lanewright rollback r1 --yes");
    env.lanewright(&["rollback", "r1", "--lane", "SL-2"]).exits(2).hints("lanewright rollback r1 --lane SL-2 --yes");
    let plan = ["execute-phase", "../plan.toml", "--rollback", "--run-id", "r1"];
    env.lanewright(&plan).exits(2).says(&[&listed]);
    assert_eq!(state(&env), before);
    env.lanewright(&[&plan[..], &["--yes"]].concat()).exits(0);
    assert!(!env.tree("main").contains("SL-1/a"));
}

#[test]
fn interrupted_rollback_of_done_run_can_be_finished() {
    let both = "lanewright rollback r1 --lane SL-1 --lane SL-2 --yes";
    let last = "lanewright rollback r1 --lane SL-1 --yes\n";
    for (point, finish) in [("undo_merges:1", both), ("delete_branches:1", both), ("delete_branches:2", last)] {
        let env = done();
        let point = format!("rollback_{point}");
        let died = env.lanewright_with(&["rollback", "r1", "--yes"], |it| it.env("LANEWRIGHT_CRASH_POINT", &point));
        assert_ne!(died.code, 0, "{point}");
        prints(&env.lanewright(&["status"]), &["half rolled back", "was interrupted. Finish it first:", finish]);
        prints(&env.lanewright(&["list"]), &["half rolled back"]);
        prints(&env.lanewright(&["doctor"]).exits(6), &["rollback-unfinished", finish]);
        env.resume(&[]).exits(3).says(&["was interrupted"]).hints(finish.trim_end());
        env.lanewright(&["rollback", "--yes"]).exits(0);
        prints(&env.lanewright(&["status", "r1"]), &["rolled back"]);
        assert!(!env.tree("main").contains("SL-"), "{point}");
        env.lanewright(&["doctor"]).exits(0);
    }
}

#[test]
fn question_on_a_terminal_lists_what_is_undone() {
    let env = done();
    let before = state(&env);
    for (answer, is_undone) in [("n", false), ("", false), ("y", true)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
        env.pin(&mut command).args(["rollback", "r1"]);
        let mut terminal = Terminal::asking(command);
        terminal.wait_for("Undo it?");
        let shown = terminal.text();
        assert!(shown.contains("SL-1: merge ") && shown.contains("SL-2: merge "), "{shown}");
        assert_eq!(state(&env), before, "asked before anything is changed");
        terminal.enter(answer);
        assert_eq!(terminal.end(), Some(0));
        assert_eq!(!env.tree("main").contains("SL-1/a"), is_undone, "{answer}");
    }
}

#[test]
fn dry_run_lists_the_rollback_and_changes_nothing() {
    let env = TestEnv::new();
    env.lanes(&[ONE, FAILS, ("SL-4", &["SL-3"], "true")]);
    env.execute(&[]).exits(1);
    let before = state(&env);
    let shown = env.lanewright(&["rollback", "r1", "--dry-run", "--format", "json"]).exits(0).json();
    assert_eq!(shown["undoes"].as_array().expect("a list").len(), 1, "{shown}");
    assert_eq!((&shown["undoes"][0]["lane"], &shown["undoes"][0]["files"]), (&"SL-1".into(), &2.into()));
    assert_eq!(shown["lanes"].as_array().expect("a list").len(), 2, "{shown}");
    assert_eq!(shown["never_began"], serde_json::json!(["SL-4"]));
    let text = env.lanewright(&["rollback", "r1", "--dry-run", "--yes"]).exits(0);
    prints(&text, &["SL-3: would be rolled back", "Nothing was changed (--dry-run)"]);
    let plan = ["execute-phase", "../plan.toml", "--rollback", "--run-id", "r1", "--dry-run"];
    prints(&env.lanewright(&plan).exits(0), &["SL-1: merge "]);
    assert_eq!(state(&env), before);
}

#[test]
fn unnamed_rollback_means_the_only_unfinished_run() {
    let env = done();
    let before = state(&env);
    env.lanewright(&["rollback", "--yes"]).exits(8).says(&["no unfinished run"]).hints("r1");
    assert_eq!(state(&env), before);
    env.lanes(&[FAILS]);
    let fails = |run: &str| {
        let words = ["execute-phase", "../plan.toml", "--new-run", "--progress", "none", "--run-id", run];
        env.lanewright(&words).exits(1);
    };
    fails("r2");
    fails("r3");
    env.lanewright(&["rollback", "--yes"]).exits(2).says(&["2 runs are unfinished"]).hints("r3, r2");
    env.lanewright(&["rollback", "r3"]).exits(0);
    prints(&env.lanewright(&["rollback"]).exits(0), &["Run r2 is rolled back"]);
    assert!(env.tree("main").contains("SL-1/a"), "the run that is done stays");
}

#[test]
fn rolled_back_run_is_shown_so_and_is_no_default() {
    let env = TestEnv::new();
    env.lanes(&[ONE, FAILS]);
    env.execute(&[]).exits(1);
    let ended = env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    prints(&ended, &["Run r1 is rolled back", "lanewright clean r1"]);
    let status = env.lanewright(&["status", "r1"]).exits(0);
    prints(&status, &["rolled back", "lanewright checkpoints list r1", "lanewright resume r1"]);
    assert!(!status.stdout.contains("interrupted"), "{}", status.stdout);
    assert_eq!(env.lanewright(&["status", "r1", "--format", "json"]).exits(0).json()["outcome"], "rolled_back");
    assert_eq!(env.lanewright(&["list", "--format", "json"]).exits(0).json()["runs"][0]["state"], "rolled back");
    assert_eq!(env.lanewright(&["report", "r1", "--format", "json"]).exits(0).json()["outcome"], "rolled_back");
    for command in ["status", "resume", "rollback"] {
        env.lanewright(&[command]).exits(8).hints("r1");
    }
    env.lanewright(&["status", "@latest"]).exits(0);
    env.lanewright(&["execute-phase", "../plan.toml", "--resume"]).exits(8);
    env.lanes(&[ONE]);
    env.lanewright(&["execute-phase", "../plan.toml", "--run-id", "r2", "--progress", "none"]).exits(0);
    assert_eq!(env.lanewright(&["status", "--format", "json"]).exits(0).json()["run_id"], "r2");
}

#[test]
fn second_rollback_reports_first_and_changes_nothing() {
    let env = TestEnv::new();
    env.lanes(&[ONE, FAILS]);
    env.execute(&[]).exits(1);
    env.lanewright(&["rollback", "r1", "--lane", "SL-1", "--yes"]).exits(0);
    prints(&env.lanewright(&["status", "r1"]).exits(0), &["failed"]);
    let again = env.lanewright(&["rollback", "r1", "--lane", "SL-1"]).exits(0);
    prints(&again, &["SL-1: already rolled back"]);
    assert!(!again.stdout.contains("never began"), "{}", again.stdout);
    prints(&env.lanewright(&["rollback", "r1", "--lane", "SL-3"]).exits(0), &["Run r1 is rolled back"]);
    let (before, undone) = (state(&env), env.git(&["rev-parse", "--short=10", "main"]));
    let again = env.lanewright(&["rollback", "r1"]).exits(0);
    prints(&again, &["Run r1 is already rolled back", &undone]);
    for kept in env.kept() {
        assert!(again.stdout.contains(&kept), "{kept}: {}", again.stdout);
    }
    assert_eq!(state(&env), before);
}

#[test]
fn rolled_back_run_is_resumed_by_its_name() {
    let env = done();
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    env.resume(&[]).exits(0);
    assert!(env.tree("main").contains("SL-2/b"));
    env.resume(&[]).exits(7);
}

#[test]
fn clean_removes_a_rolled_back_run_but_its_snapshots() {
    let env = TestEnv::new();
    env.lanes(&[ONE, FAILS]);
    env.execute(&[]).exits(1);
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    let kept = env.kept();
    assert!(!kept.is_empty());
    let cleaned = env.lanewright(&["clean", "r1", "--yes"]).exits(0);
    prints(&cleaned, &["lanewright checkpoints list r1", "lanewright clean r1 --force"]);
    assert_eq!((env.kept(), env.branches().as_str()), (kept, "main"));
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
    env.lanewright(&["checkpoints", "list", "r1"]).exits(0);
    env.lanewright(&["clean", "r1", "--force", "--yes"]).exits(0);
    assert_eq!(env.kept(), [] as [String; 0]);
}

#[test]
fn rollback_that_died_after_its_last_lane_is_finished() {
    let env = done();
    let die = [("LANEWRIGHT_CRASH_POINT", "rollback_empty_pool:1")];
    assert_eq!(env.lanewright_in(&["rollback", "r1", "--yes"], &die).code, 137);
    let undone = env.main();
    let ended = env.lanewright(&["rollback", "r1"]).exits(0);
    prints(&ended, &["SL-1: already rolled back", "Run r1 is rolled back"]);
    assert_eq!(env.main(), undone);
    assert_eq!(env.events("run_finished").last().expect("an end")["outcome"], "rolled_back");
}
