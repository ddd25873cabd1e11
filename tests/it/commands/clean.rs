//! `clean` on real repositories: finished runs vanish, work that is nowhere else does not.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::fs;

use crate::support::{TestEnv, wait_until};
use rustix::process::Signal;
use serde_json::Value;

const GOOD: (&str, &[&str], &str) = ("SL-1", &[], "mkdir -p SL-1 && echo one > SL-1/a");
const BAD: (&str, &[&str], &str) = ("SL-2", &[], "mkdir -p SL-2 && echo two > SL-2/b; exit 3");
const SLOW: (&str, &[&str], &str) =
    ("SL-3", &[], "mkdir -p SL-3; echo three > SL-3/c; touch $SCRATCH/slow; wait-for may-end");

/// What became of things of a kind: action and name.
fn things<'a>(cleaned: &'a Value, kind: &str) -> Vec<(&'a str, &'a str)> {
    let all = cleaned["runs"].as_array().unwrap().iter().flat_map(|run| run["things"].as_array().unwrap());
    let text = |thing: &'a Value, field: &str| thing[field].as_str().unwrap();
    all.filter(|thing| thing["kind"] == kind).map(|thing| (text(thing, "action"), text(thing, "name"))).collect()
}

/// Everything goes, logs too, without being asked.
fn clean(scratch: &TestEnv, more: &[&str]) -> Value {
    scratch.lanewright(&[&["clean", "--format", "json", "--yes", "--logs"], more].concat()).exits(0).json()
}

fn run_directory(scratch: &TestEnv) -> std::path::PathBuf {
    scratch.path("repo/.claude/ai-dev-kit/run-logs/r1")
}

fn everything(scratch: &TestEnv) -> (String, String, bool, bool) {
    let refs = scratch.git(&["for-each-ref"]);
    let worktrees = scratch.git(&["worktree", "list"]);
    (refs, worktrees, scratch.log_file().exists(), run_directory(scratch).join("plan.json").exists())
}

#[test]
fn clean_keeps_only_work_and_checkpoints_of_done_run() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD]);
    scratch.execute(&[]).exits(0);
    let (tip, records) = (scratch.main(), scratch.path("repo/.claude/ai-dev-kit/run-logs/checkpoints.json"));
    let before = fs::read(&records).unwrap();
    clean(&scratch, &[]);
    assert!(!scratch.log_file().exists() && !run_directory(&scratch).exists());
    assert!(!scratch.path("repo.lanes").exists());
    assert_eq!((scratch.main(), fs::read(&records).unwrap()), (tip, before));
    let again = scratch.lanewright(&["clean"]).exits(0);
    assert_eq!(again.stdout, "There is nothing to clean.\n");
}

#[test]
fn clean_removes_only_after_confirmation() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD]);
    scratch.write("repo/lanewright.toml", "keep_pool = true\n");
    scratch.execute(&[]).exits(0);
    let before = everything(&scratch);
    let refused = scratch.lanewright(&["clean", "r1", "--force"]).exits(2);
    assert!(refused.stderr.contains("lanewright clean r1 --force --yes"), "{}", refused.stderr);
    assert_eq!(everything(&scratch), before);
    scratch.lanewright(&["clean", "r1", "--force", "--yes"]).exits(0);
    assert_ne!(everything(&scratch), before);
}

#[test]
fn clean_without_logs_option_keeps_run_log() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD]);
    scratch.write("repo/lanewright.toml", "keep_pool = true\n");
    scratch.execute(&[]).exits(0);
    let log = fs::read(scratch.log_file()).unwrap();
    scratch.lanewright(&["clean", "--yes"]).exits(0);
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(fs::read(scratch.log_file()).unwrap(), log);
    for words in [["status", "r1"], ["report", "r1"], ["doctor", "r1"]] {
        scratch.lanewright(&words).exits(0);
    }
    assert_eq!(scratch.lanewright(&["clean"]).exits(0).stdout, "There is nothing to clean.\n");
}

#[test]
fn lanes_whose_unmerged_work_was_removed_begin_again() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD, ("SL-2", &[], "mkdir -p SL-2 && echo two > SL-2/b; [ -e $SCRATCH/help ]")]);
    scratch.execute(&[]).exits(1);
    scratch.lanewright(&["clean", "r1", "--force", "--yes"]).exits(0);
    assert_eq!((scratch.kept(), scratch.branches()), (vec![], "main".to_owned()));
    scratch.lanewright(&["doctor", "r1"]).exits(0);
    let status = scratch.lanewright(&["status", "r1"]).exits(0).stdout;
    assert!(status.contains("rolled back"), "{status}");
    fs::write(scratch.path("scratch/help"), "").unwrap();
    scratch.resume(&["--accept-plan-change"]).exits(0);
    assert!(scratch.path("repo/SL-2/b").exists());
}

#[test]
fn a_dry_run_names_what_would_go_and_changes_nothing() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD]);
    scratch.write("repo/lanewright.toml", "keep_pool = true\n");
    scratch.execute(&[]).exits(0);
    let before = everything(&scratch);
    let listed = clean(&scratch, &["--dry-run"]);
    assert_eq!(everything(&scratch), before);
    assert!(!things(&listed, "worktree").is_empty());
    assert!(things(&listed, "log").iter().all(|(action, _)| *action == "would_remove"), "{listed:#}");
    let removed = clean(&scratch, &["r1"]);
    let names = |cleaned: &Value, kind| things(cleaned, kind).iter().map(|it| it.1.to_owned()).collect::<Vec<_>>();
    for kind in ["worktree", "branch", "snapshot", "log"] {
        assert_eq!(names(&listed, kind), names(&removed, kind), "{kind}");
    }
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn an_unfinished_run_is_left_alone() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD, BAD]);
    scratch.execute(&[]).exits(1);
    let before = everything(&scratch);
    let all = clean(&scratch, &["--force"]);
    assert_eq!(all["runs"][0]["left_alone"], "it is not finished");
    let named = scratch.lanewright(&["clean", "r1"]).exits(7);
    assert!(named.stderr.contains("lanewright resume r1"), "{}", named.stderr);
    assert_eq!(everything(&scratch), before);
}

#[test]
fn clean_force_removes_unmerged_work_and_names_it() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD, BAD]);
    scratch.execute(&[]).exits(1);
    let kept = scratch.kept();
    assert!(!kept.is_empty());
    let removed = clean(&scratch, &["r1", "--force"]);
    let snapshots = things(&removed, "snapshot");
    assert!(kept.iter().all(|name| snapshots.contains(&("removed", name.as_str()))), "{removed:#}");
    assert!(things(&removed, "branch").contains(&("removed", "lane/P1/SL-2")), "{removed:#}");
    assert_eq!((scratch.kept(), scratch.branches()), (vec![], "main".to_owned()));
    assert!(!scratch.path("repo.lanes").exists() && !scratch.log_file().exists());
}

#[test]
fn work_that_was_rolled_back_stays_without_force() {
    let scratch = TestEnv::new();
    scratch.lanes(&[BAD]);
    scratch.execute(&[]).exits(1);
    scratch.lanewright(&["rollback", "r1"]).exits(0);
    let kept = scratch.kept();
    assert!(!kept.is_empty());
    let cleaned = clean(&scratch, &[]);
    assert!(things(&cleaned, "snapshot").iter().all(|(action, _)| *action == "kept"), "{cleaned:#}");
    assert_eq!(scratch.kept(), kept);
    assert!(scratch.log_file().exists(), "the log tells what is kept");
    clean(&scratch, &["--force"]);
    assert_eq!(scratch.kept(), Vec::<String>::new());
    assert!(!scratch.log_file().exists());
}

#[test]
fn an_unmerged_branch_stays_until_it_is_merged() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD]);
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none", "--merge", "none"];
    scratch.lanewright(&arguments).exits(0);
    let tip = scratch.git(&["rev-parse", "lane/P1/SL-1"]);
    let cleaned = clean(&scratch, &[]);
    assert!(things(&cleaned, "branch").contains(&("kept", "lane/P1/SL-1")), "{cleaned:#}");
    assert_eq!(scratch.git(&["rev-parse", "lane/P1/SL-1"]), tip);
    scratch.git(&["merge", "--quiet", "--ff-only", "lane/P1/SL-1"]);
    clean(&scratch, &[]);
    assert_eq!(scratch.branches(), "main");
    assert_eq!((scratch.kept(), scratch.log_file().exists()), (vec![], false));
}

#[test]
fn uncommitted_work_in_a_worktree_stays() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD]);
    scratch.write("repo/lanewright.toml", "keep_pool = true\n");
    scratch.execute(&[]).exits(0);
    let slot = scratch.path("repo.lanes/slots/01");
    fs::write(slot.join("mine"), "by hand\n").unwrap();
    let cleaned = clean(&scratch, &["--force"]);
    assert!(things(&cleaned, "worktree").contains(&("kept", slot.to_str().unwrap())), "{cleaned:#}");
    assert_eq!(fs::read_to_string(slot.join("mine")).unwrap(), "by hand\n");
}

#[test]
fn clean_leaves_held_and_active_runs() {
    let scratch = TestEnv::new();
    scratch.lanes(&[SLOW]);
    let running = scratch.execute_until("scratch/slow");
    let held = scratch.lanewright(&["clean", "r1", "--force"]).exits(4);
    assert!(held.stderr.contains("lanewright stop r1"), "{}", held.stderr);
    running.signal(Signal::KILL);
    running.wait().exits(137);
    let before = everything(&scratch);
    let orphaned = scratch.lanewright(&["clean", "r1", "--force"]).exits(4);
    assert!(orphaned.stderr.contains("lanewright rollback r1"), "{}", orphaned.stderr);
    assert_eq!(everything(&scratch), before);
    fs::write(scratch.path("scratch/may-end"), "").unwrap();
    scratch.resume(&["--accept-plan-change"]).exits(0);
}

#[test]
fn the_branches_of_another_run_of_the_same_phase_stay() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD]);
    scratch.execute(&[]).exits(0);
    scratch.lanes(&[("SL-1", &[], "mkdir -p SL-1; touch $SCRATCH/slow; sleep 1; exit 3")]);
    let again = ["execute-phase", "../plan.toml", "--run-id", "r2", "--progress", "none"];
    scratch.lanewright(&again).exits(1);
    wait_until("r2 left its branch", || scratch.branches().contains("lane/P1/SL-1"));
    let branches = scratch.branches();
    clean(&scratch, &["r1", "--force"]);
    assert_eq!(scratch.branches(), branches);
    scratch.lanewright(&["resume", "r2", "--progress", "none"]).exits(1);
}

#[test]
fn no_such_run_is_bad_luck() {
    let scratch = TestEnv::new();
    scratch.lanewright(&["clean", "r9"]).exits(8);
}
