//! `rollback` on real repositories: nothing is lost, history only grows, and whatever dies in between is finished.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::fs;

use crate::support::{TestEnv, wait_until};
use rustix::process::{Pid, Signal, test_kill_process};

const ONE: (&str, &[&str], &str) =
    ("SL-1", &[], "mkdir -p SL-1 && echo one > SL-1/a && git add . && git commit -qm own");
const TWO: (&str, &[&str], &str) = ("SL-2", &["SL-1"], "mkdir -p SL-2 && echo two > SL-2/b && cat SL-1/a >> SL-2/b");
/// Fails, and leaves a changed, a new, a staged, an ignored and a removed file, and a commit of its own.
const MESSY: (&str, &[&str], &str) = (
    "SL-3",
    &[],
    "mkdir -p SL-3 ignored; echo mine > SL-3/committed; git add .; git commit -qm half; echo changed > README.md; \
     echo new > SL-3/untracked; echo staged > SL-3/staged; git add SL-3/staged; echo x > ignored/cache; exit 3",
);
/// Writes, says so, and works until it is stopped or may end.
const SLOW: (&str, &[&str], &str) = (
    "SL-4",
    &[],
    "mkdir -p SL-4; echo begun > SL-4/a; echo $$ > $SCRATCH/slow.pid.new; mv $SCRATCH/slow.pid.new $SCRATCH/slow.pid; \
     wait-for may-end; echo ended > SL-4/a",
);

fn is_alive(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(Pid::from_raw(pid).unwrap()).is_ok() && !state.contains(") Z")
}

fn checkpoints(scratch: &TestEnv) -> Vec<serde_json::Value> {
    let path = scratch.path("repo/.claude/ai-dev-kit/run-logs/checkpoints.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn rollback_reverts_a_merged_lane_with_a_commit() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE, TWO]);
    scratch.execute(&[]).exits(0);
    let (merged, tree) = (scratch.main(), scratch.tree("main"));
    let only_one = scratch.tree("main~1");
    let rolled_back = scratch.lanewright(&["rollback", "r1", "--lane", "SL-2", "--yes"]).exits(0);
    assert_eq!(scratch.tree("main"), only_one);
    assert_eq!(scratch.git(&["rev-parse", "main~1"]), merged, "history only grows");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "the checkout moved along");
    assert!(rolled_back.stdout.contains("lanewright resume r1"), "{}", rolled_back.stdout);
    assert!(rolled_back.stderr.contains("Checkpoints: "), "{}", rolled_back.stderr);
    assert!(rolled_back.stdout.contains(&format!("git revert {}", scratch.main())), "{}", rolled_back.stdout);
    let kept = scratch.kept();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(scratch.tree(&kept[0]).contains("SL-2/b"));

    scratch.resume(&["--accept-plan-change"]).exits(0);
    assert_eq!(scratch.tree("main"), tree);
}

#[test]
fn rollback_of_whole_run_is_complete_and_idempotent() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE, TWO, MESSY]);
    let before = scratch.tree("main");
    scratch.execute(&[]).exits(1);
    let worktree = scratch.code("SL-3");
    fs::write(worktree.join("SL-3/by-hand"), "after the failure was kept\n").unwrap();
    let manifest = scratch.manifest(&worktree);
    assert!(manifest.iter().any(|(file, _)| file == "SL-3/untracked"), "{manifest:?}");
    let (merged, head) = (scratch.main(), scratch.git_in(&worktree, &["rev-parse", "HEAD"]));

    let first = scratch.lanewright(&["rollback", "r1", "--yes", "--format", "json"]).exits(0).json();
    let order: Vec<&str> = first["lanes"].as_array().unwrap().iter().map(|it| it["lane"].as_str().unwrap()).collect();
    let place = |lane: &str| order.iter().position(|it| *it == lane).unwrap();
    assert!(place("SL-2") < place("SL-1"), "{order:?}");
    assert_eq!(scratch.tree("main"), before);
    scratch.git(&["merge-base", "--is-ancestor", &merged, "main"]);
    assert_eq!(scratch.branches(), "main");
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
    let reachable = scratch.reachable();
    for (file, blob) in manifest.iter().chain([&("the commit".to_owned(), head)]) {
        assert!(reachable.contains(blob), "{file} is lost");
    }
    assert!(!scratch.path("repo.lanes/r1/SL-3/code").is_symlink());

    let (tip, kept) = (scratch.main(), scratch.kept());
    let second = scratch.lanewright(&["rollback", "r1"]).exits(0);
    assert!(second.stdout.contains("Run r1 is already rolled back"), "{}", second.stdout);
    assert_eq!((scratch.main(), scratch.kept()), (tip, kept));

    scratch.lanes(&[ONE, TWO, ("SL-3", &[], "mkdir -p SL-3; echo good > SL-3/c")]);
    scratch.resume(&["--accept-plan-change"]).exits(0);
    assert!(scratch.tree("main").contains("SL-3/c") && scratch.tree("main").contains("SL-2/b"));
}

#[test]
fn printed_restore_command_restores_the_saved_work() {
    let scratch = TestEnv::new();
    scratch.lanes(&[MESSY]);
    scratch.execute(&[]).exits(1);
    let manifest = scratch.manifest(&scratch.code("SL-3"));
    let told = scratch.lanewright(&["rollback", "r1", "--format", "json"]).exits(0).json();
    let kept = told["lanes"][0]["kept"].as_array().unwrap().last().unwrap().clone();
    let restore = kept["restore"].as_str().unwrap().replace("git ", "");
    let words: Vec<&str> = restore.split(' ').collect();
    scratch.git(&words);
    assert_eq!(scratch.manifest(&scratch.path("repo")), manifest);
}

#[test]
fn rollback_stops_an_orphan_agent_and_saves_its_work() {
    let scratch = TestEnv::new();
    scratch.lanes(&[SLOW, ONE]);
    scratch.execute_and_kill_at("scratch/slow.pid");
    let pid: i32 = fs::read_to_string(scratch.path("scratch/slow.pid")).unwrap().trim().parse().unwrap();
    assert!(is_alive(pid));
    let manifest = scratch.manifest(&scratch.code("SL-4"));
    let rolled_back = scratch.lanewright(&["rollback", "--lane", "SL-4"]).exits(0);
    assert!(!is_alive(pid), "{}", rolled_back.stderr);
    let exits = scratch.events("job_exited");
    assert!(exits.iter().any(|exit| exit["lane"] == "SL-4"), "{exits:?}");
    let reachable = scratch.reachable();
    assert!(manifest.iter().all(|(_, blob)| reachable.contains(blob)), "{manifest:?}");

    fs::write(scratch.path("scratch/may-end"), "").unwrap();
    scratch.resume(&["--accept-plan-change"]).exits(0);
    assert_eq!(scratch.git(&["show", "main:SL-4/a"]), "ended");
}

#[test]
fn a_run_that_is_held_is_left_alone() {
    let scratch = TestEnv::new();
    scratch.lanes(&[SLOW]);
    let running = scratch.execute_until("scratch/slow.pid");
    let (log, refused) = (scratch.events("lane_moved"), scratch.lanewright(&["rollback", "r1"]).exits(4));
    assert!(refused.stderr.contains("lanewright stop r1"), "{}", refused.stderr);
    assert_eq!(scratch.events("lane_moved"), log);
    fs::write(scratch.path("scratch/may-end"), "").unwrap();
    running.wait().exits(0);
}

#[test]
fn a_lane_that_others_were_built_on_does_not_go_alone() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE, TWO]);
    scratch.execute(&[]).exits(0);
    let before = (scratch.main(), fs::read(scratch.log_file()).unwrap());
    let refused = scratch.lanewright(&["rollback", "r1", "--lane", "SL-1"]).exits(2);
    assert!(refused.stderr.contains("SL-2"), "{}", refused.stderr);
    assert!(refused.stderr.contains("lanewright rollback r1 --lane SL-1 --lane SL-2"), "{}", refused.stderr);
    assert_eq!((scratch.main(), fs::read(scratch.log_file()).unwrap()), before);
}

#[test]
fn bad_usage_is_an_error_and_changes_nothing() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE]);
    scratch.execute(&[]).exits(0);
    let before = fs::read(scratch.log_file()).unwrap();
    let stage = scratch.lanewright(&["rollback", "r1", "--lane", "SL-1", "--to", "pre_prr"]).exits(2);
    assert!(stage.stderr.contains("did you mean `pre_pr`"), "{}", stage.stderr);
    let lane = scratch.lanewright(&["rollback", "r1", "--lane", "SL-11"]).exits(2);
    assert!(lane.stderr.contains("did you mean `SL-1`"), "{}", lane.stderr);
    scratch.lanewright(&["rollback", "nowhere"]).exits(8);
    assert_eq!(fs::read(scratch.log_file()).unwrap(), before);
}

#[test]
fn files_changed_since_are_left_to_the_user() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE]);
    scratch.execute(&[]).exits(0);
    let merge = scratch.main();
    scratch.write("repo/SL-1/a", "somebody else's\n");
    scratch.git(&["commit", "--quiet", "--all", "--message=later"]);
    let before = (scratch.main(), fs::read(scratch.log_file()).unwrap());
    let refused = scratch.lanewright(&["rollback", "r1"]).exits(3);
    assert!(refused.stderr.contains("SL-1/a"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("git revert -m 1 {merge}")), "{}", refused.stderr);
    assert_eq!((scratch.main(), fs::read(scratch.log_file()).unwrap()), before);

    // A person undoes it by hand, and later work stands where it stood.
    scratch.git(&["rm", "--quiet", "SL-1/a"]);
    let message = format!("undone\n\nThis reverts commit {merge}, reversing\nchanges made to x.");
    scratch.git(&["commit", "--quiet", "--message", &message]);
    scratch.write("repo/SL-1/a", "again\n");
    scratch.git(&["add", "SL-1/a"]);
    scratch.git(&["commit", "--quiet", "--message=again"]);
    let tip = scratch.main();
    scratch.lanewright(&["rollback", "r1"]).exits(0);
    assert_eq!(scratch.main(), tip);
}

#[test]
fn rollback_refuses_a_dirty_base_checkout_first() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE]);
    scratch.execute(&[]).exits(0);
    scratch.write("repo/SL-1/a", "in the middle of something\n");
    let before = (scratch.main(), fs::read(scratch.log_file()).unwrap());
    let refused = scratch.lanewright(&["rollback", "r1"]).exits(3);
    assert!(refused.stderr.contains("commit or stash"), "{}", refused.stderr);
    assert_eq!((scratch.main(), fs::read(scratch.log_file()).unwrap()), before);
    assert_eq!(fs::read_to_string(scratch.path("repo/SL-1/a")).unwrap(), "in the middle of something\n");
}

#[test]
fn a_checkout_of_another_branch_is_not_touched() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE]);
    scratch.execute(&[]).exits(0);
    scratch.git(&["checkout", "--quiet", "-b", "mine"]);
    scratch.write("repo/README.md", "my own\n");
    scratch.write("repo/notes", "untracked\n");
    let mine = || (scratch.git(&["status", "--porcelain"]), scratch.git(&["rev-parse", "mine"]));
    let before = mine();
    scratch.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert_eq!(mine(), before);
    assert!(scratch.path("repo/SL-1/a").exists() && !scratch.tree("main").contains("SL-1/a"));
}

#[test]
fn rollback_refuses_branch_checked_out_by_user() {
    let scratch = TestEnv::new();
    scratch.lanes(&[MESSY]);
    scratch.execute(&[]).exits(1);
    let (code, other) = (scratch.code("SL-3"), scratch.path("other"));
    scratch.git_in(&code, &["stash", "--quiet"]);
    scratch.git_in(&code, &["checkout", "--quiet", "--detach"]);
    scratch.git(&["worktree", "add", "--quiet", other.to_str().unwrap(), "lane-agent/P1/SL-3/engineer"]);
    let before = fs::read(scratch.log_file()).unwrap();
    let refused = scratch.lanewright(&["rollback", "r1"]).exits(3);
    assert!(refused.stderr.contains(other.to_str().unwrap()), "{}", refused.stderr);
    assert_eq!(fs::read(scratch.log_file()).unwrap(), before);
    scratch.git_in(&other, &["checkout", "--quiet", "--detach"]);
    scratch.lanewright(&["rollback", "r1"]).exits(0);
    assert_eq!(scratch.branches(), "main");
}

#[test]
fn the_branches_of_another_run_of_the_same_phase_stay() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE]);
    scratch.execute(&[]).exits(0);
    scratch.lanes(&[("SL-1", &[], "mkdir -p SL-1; echo other > SL-1/a; exit 3")]);
    scratch.lanewright(&["execute-phase", "../plan.toml", "--run-id", "r2", "--progress", "none"]).exits(1);
    let branches = scratch.branches();
    assert!(branches.contains("lane/P1/SL-1"), "{branches}");
    scratch.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert_eq!(scratch.branches(), branches);
}

#[test]
fn a_repository_within_a_worktree_is_not_lost() {
    let scratch = TestEnv::new();
    scratch.lanes(&[("SL-5", &[], "mkdir SL-5; git init -q SL-5/own; echo x > SL-5/own/x; exit 3")]);
    scratch.execute(&[]).exits(1);
    let own = scratch.code("SL-5").join("SL-5/own");
    let refused = scratch.lanewright(&["rollback", "r1"]).exits(3);
    assert!(refused.stderr.contains("SL-5/own"), "{}", refused.stderr);
    assert!(own.join("x").exists());
    fs::rename(&own, scratch.path("saved")).unwrap();
    scratch.lanewright(&["rollback", "r1"]).exits(0);
}

#[test]
fn rollback_marks_checkpoint_records_of_its_lane() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE, MESSY]);
    scratch.execute(&[]).exits(1);
    scratch.lanewright(&["execute-phase", "../plan.toml", "--rollback", "--run-id", "r1", "--lane", "SL-3"]).exits(0);
    let records = checkpoints(&scratch);
    let status = |record: &&serde_json::Value| record["status"] == "rolled_back";
    let of = |lane: &str| records.iter().filter(|record| record["lane"] == lane).collect::<Vec<_>>();
    assert!(!of("SL-3").is_empty() && of("SL-3").iter().all(status), "{records:?}");
    assert!(!of("SL-1").is_empty() && !of("SL-1").iter().any(status), "{records:?}");
}

/// A rollback of a merged lane and of one whose agent runs, which dies at `crash` and is asked for again.
fn dies_at(crash: &str) {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE, SLOW]);
    let before = scratch.tree("main");
    let running = scratch.execute_until("scratch/slow.pid");
    let cleaned = || scratch.events("lane_cleaned").iter().any(|event| event["lane"] == "SL-1");
    wait_until("SL-1 is merged", cleaned);
    running.signal(Signal::KILL);
    running.wait().exits(137);
    let manifest = scratch.manifest(&scratch.code("SL-4"));
    let merged = scratch.main();

    let died = scratch.lanewright_in(&["rollback", "r1", "--yes"], &[("LANEWRIGHT_CRASH_POINT", crash)]);
    assert_eq!(died.code, 137, "{crash} was not reached: {}{}", died.stdout, died.stderr);
    let half_way = scratch.resume(&["--accept-plan-change"]).exits(3);
    assert!(half_way.stderr.contains("lanewright rollback r1"), "{}", half_way.stderr);

    scratch.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert_eq!(scratch.tree("main"), before);
    assert_eq!(scratch.git(&["rev-list", "--count", &format!("{merged}..main")]), "1", "undone once");
    assert_eq!(scratch.branches(), "main");
    let reachable = scratch.reachable();
    assert!(manifest.iter().all(|(_, blob)| reachable.contains(blob)), "{manifest:?}");
    fs::write(scratch.path("scratch/may-end"), "").unwrap();
    scratch.resume(&["--accept-plan-change"]).exits(0);
    assert_eq!(scratch.git(&["show", "main:SL-4/a"]), "ended");
    assert!(scratch.path("repo/SL-1/a").exists());
}

macro_rules! a_rollback_that_dies_is_finished_by_the_same_command {
    ($($when:ident: $crash:literal,)*) => {
        mod a_rollback_that_dies_is_finished_by_the_same_command {
            $(#[test] fn $when() { super::dies_at($crash); })*
        }
    };
}

a_rollback_that_dies_is_finished_by_the_same_command! {
    when_it_has_said_that_it_begins: "after_sync:1",
    when_an_agent_was_stopped: "rollback_stop_job:1",
    when_the_first_work_is_kept: "rollback_keep:1",
    when_the_second_work_is_kept: "rollback_keep:2",
    when_that_is_written_down: "after_sync:3",
    when_the_merges_are_undone: "rollback_undo_merges:1",
    when_the_worktrees_are_given_back: "rollback_release:1",
    when_the_first_branches_are_gone: "rollback_delete_branches:1",
    when_the_second_branches_are_gone: "rollback_delete_branches:2",
    before_the_last_lane_is_written_down: "before_sync:6",
}

#[test]
fn rollback_reverts_an_unrecorded_merge() {
    let scratch = TestEnv::new();
    scratch.lanes(&[ONE]);
    let before = scratch.tree("main");
    let crash = [("LANEWRIGHT_CRASH_POINT", "after_publish_merge:1")];
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none"];
    assert_eq!(scratch.lanewright_in(&arguments, &crash).code, 137);
    assert_ne!(scratch.tree("main"), before);
    assert!(scratch.events("lane_merged").is_empty());
    scratch.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert_eq!(scratch.tree("main"), before);
    scratch.resume(&["--accept-plan-change"]).exits(0);
}

/// Kills git and the Lanewright that runs it while git writes the files of a slot, as long as `die` exists.
const DYING: &str = "if [ -e $SCRATCH/die ]; then \
    kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID; fi; cat";

#[test]
fn a_slot_whose_checkout_was_cut_short_is_rolled_back() {
    let scratch = TestEnv::new();
    scratch.git(&["config", "filter.dying.smudge", DYING]);
    scratch.write("repo/.gitattributes", "slow.txt filter=dying\n");
    scratch.write("repo/slow.txt", "slow\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message=files with a filter"]);
    scratch.lanes(&[ONE]);
    scratch.write("scratch/die", "");
    assert_eq!(scratch.execute(&[]).code, 137);
    let claim = fs::read_to_string(scratch.path("repo.lanes/slots/01.claim")).unwrap();
    assert!(claim.contains("\"started\""), "{claim}");
    fs::remove_file(scratch.path("scratch/die")).unwrap();
    let rolled_back = scratch.lanewright(&["rollback", "r1"]).exits(0);
    assert!(rolled_back.stdout.contains("SL-1: rolled back"), "{}", rolled_back.stdout);
    assert_eq!(scratch.kept(), Vec::<String>::new(), "half a checkout is no work");
    assert_eq!((scratch.branches().as_str(), scratch.git(&["worktree", "list"]).lines().count()), ("main", 1));
    scratch.resume(&["--accept-plan-change"]).exits(0);
    assert!(scratch.tree("main").contains("SL-1/a"));
}

#[test]
fn hints_to_finish_or_repeat_have_the_yes() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'echo $LANEWRIGHT_TASK > $LANEWRIGHT_TASK.txt'\n[[lane.task]]\n[[lane.task]]\n",
    );
    env.execute(&[]).exits(0);
    let same = "rollback r1 --lane A --to 1 --yes";
    let words: Vec<&str> = same.split(' ').collect();
    let point = "rollback_undo_merges:1";
    env.lanewright_with(&words, |command| command.env("LANEWRIGHT_CRASH_POINT", point)).exits(137);
    env.resume(&[]).exits(3).hints(&format!("to finish it: lanewright {same}"));
    env.lanewright(&words).exits(0);
    env.resume(&[]).exits(0);
    env.write("repo/2.txt", "of the user\n");
    env.commit("over it");
    env.lanewright(&words).exits(3).hints(&format!("then the same again: lanewright {same}"));
}
