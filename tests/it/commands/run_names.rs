//! How runs, lanes and agents are named on the command line, on run logs made by hand.

use lanewright_model::event::{Event, RunOutcome};

use super::run_commands::{Run, attempt, waiting_run};
use crate::support::TestEnv;

/// An old unfinished run, a newer one, and a finished one that is newer still.
fn three_runs() -> (TestEnv, [Run; 3]) {
    let scratch = TestEnv::new();
    let old = waiting_run(&scratch, "old-1");
    let mut newer = Run::begun(&scratch, "newer-2", 3);
    newer.checkpoint();
    let mut done = Run::begun(&scratch, "done-3", 9);
    done.checkpoint();
    done.finished(RunOutcome::Done);
    (scratch, [old, newer, done])
}

const SHOWN: &str = "Run newer-2, the newest unfinished one. Others: old-1.\n";

#[test]
fn run_is_named_by_id_prefix_or_default() {
    let (scratch, _runs) = three_runs();
    let reported = |arguments: &[&str]| {
        let ended = scratch.lanewright(&[&["report", "--format", "json"], arguments].concat()).exits(0);
        (ended.json()["run_id"].as_str().expect("a run").to_owned(), ended.stderr)
    };
    for (named, run, note) in
        [(&["old-1"][..], "old-1", ""), (&["ol"], "old-1", ""), (&["@latest"], "done-3", ""), (&[], "newer-2", SHOWN)]
    {
        assert_eq!(reported(named), (run.to_owned(), note.to_owned()), "{named:?}");
    }
}

#[test]
fn default_run_is_the_newest_if_none_is_unfinished() {
    let scratch = TestEnv::new();
    for (name, day) in [("a", 0), ("b", 1)] {
        let mut run = Run::begun(&scratch, name, day);
        run.checkpoint();
        run.finished(RunOutcome::Done);
    }
    for (words, code) in [
        (&["status"][..], 0),
        (&["report"], 0),
        (&["logs"], 0),
        (&["checkpoints", "list"], 0),
        (&["stop"], 0),
        (&["resume"], 7),
        (&["approve"], 7),
    ] {
        let unnamed = scratch.lanewright(words).exits(code);
        let named = scratch.lanewright(&[words, &["b"]].concat());
        assert_eq!(
            (unnamed.code, unnamed.stdout, unnamed.stderr),
            (named.code, named.stdout, named.stderr),
            "{words:?}"
        );
    }
}

#[test]
fn ambiguous_run_id_prefix_is_refused_with_matches() {
    let scratch = TestEnv::new();
    for (name, day) in [("P1-a", 0), ("P1-b", 1), ("P1", 2)] {
        Run::begun(&scratch, name, day).checkpoint();
    }
    let ambiguous = scratch.lanewright(&["status", "P1-"]).exits(2).says(&["beginning of 2 runs"]).hints("P1-b, P1-a");
    assert!(!ambiguous.stderr.contains("the newest unfinished one"), "{}", ambiguous.stderr);
    let whole = scratch.lanewright(&["status", "P1"]).exits(0).stdout;
    assert!(whole.contains("run P1\n"), "an id is itself, whatever else begins like it: {whole}");
    scratch.lanewright(&["status", "P2-a"]).exits(8).hints("did you mean `P1-a`?");
    scratch.lanewright(&["status", "@newest"]).exits(2).says(&["not with `@`"]);
}

#[test]
fn every_run_command_accepts_run_id_prefix() {
    let (scratch, _runs) = three_runs();
    for command in [
        &["status", "old"][..],
        &["logs", "old"],
        &["report", "old"],
        &["stop", "old"],
        &["checkpoints", "list", "old"],
        &["checkpoints", "prune", "old", "--keep", "5"],
        &["clean", "don", "--dry-run"],
        &["approve", "old", "SL-1"],
    ] {
        let ended = scratch.lanewright(command).exits(0);
        assert!(!ended.stdout.contains("newer-2"), "{command:?}: {}", ended.stdout);
    }
    scratch.lanewright(&["doctor", "old"]).says(&[]);
    scratch.lanewright(&["doctor", "olf-1"]).exits(8).hints("did you mean `old-1`?");
}

#[test]
fn a_lane_without_a_run_is_one_of_the_default_run() {
    let (scratch, [_, mut newer, _]) = three_runs();
    newer.job("SL-2", attempt(), "of the newer run\n");
    let ended = scratch.lanewright(&["logs", "SL-2", "engineer"]).exits(0);
    assert!(ended.stdout.contains("of the newer run"), "{}", ended.stdout);
    assert_eq!(ended.stderr, SHOWN);
    let ended = scratch.lanewright(&["logs", "old", "SL-2", "engineer"]).exits(0);
    assert!(!ended.stdout.contains("of the newer run"), "{}", ended.stdout);
    scratch
        .lanewright(&["logs", "SL-22"])
        .exits(8)
        .says(&["run newer-2 has no such lane"])
        .hints("did you mean `SL-2`?");
    scratch.lanewright(&["logs", "SL-2", "engineer", "x"]).exits(2).says(&["no lane `engineer`"]);
    scratch.lanewright(&["logs", "SL-2", "enginer"]).exits(2).hints("did you mean `engineer`?");
    scratch.lanewright(&["logs", "@lates"]).exits(2).says(&["the newest run is @latest"]);
}

#[test]
fn a_command_for_one_lane_refuses_two() {
    let (scratch, _runs) = three_runs();
    for command in ["approve", "status", "stop", "skip"] {
        scratch.lanewright(&[command, "SL-1", "SL-2"]).exits(2).says(&["SL-1 and SL-2 are two lanes"]);
        scratch.lanewright(&[command, "SL-1", "engineer"]).exits(2).says(&["unexpected argument `engineer`"]);
    }
}

#[test]
fn argument_is_a_run_id_then_a_lane_then_a_prefix() {
    let scratch = TestEnv::new();
    let mut whole = Run::begun(&scratch, "SL-1", 0);
    whole.job("SL-2", attempt(), "in run SL-1\n");
    let mut longer = Run::begun(&scratch, "SL-2-long", 1);
    longer.job("SL-2", attempt(), "in run SL-2-long\n");
    longer.job("SL-1", attempt(), "in its other lane\n");
    longer.checkpoint();
    let logs = |words: &[&str]| scratch.lanewright(&[&["logs"], words].concat()).exits(0).stdout;
    assert!(logs(&["SL-1"]).contains("in run SL-1"));
    assert!(logs(&["SL-2"]).contains("in run SL-2-long") && !logs(&["SL-2"]).contains("in its other lane"));
    assert!(logs(&["SL-2-"]).contains("in its other lane"));
    assert!(logs(&["SL-2-"]).contains("in run SL-2-long"));
    assert!(!logs(&["SL-2-", "SL-1"]).contains("in run"));
}

#[test]
fn answer_finds_the_waiting_run_and_lane() {
    let (scratch, [old, ..]) = three_runs();
    scratch.lanewright(&["approve", "SL-1", "-m", "yes"]).exits(0);
    assert!(matches!(old.last(), Event::GateAnswered { approved: true, .. }));
    scratch.lanewright(&["approve", "SL-1"]).exits(7).says(&["lane SL-1 does not wait for an answer"]);
    scratch.lanewright(&["approve"]).exits(7).says(&["no lane of run newer-2 waits"]);
    let other = waiting_run(&scratch, "other");
    scratch.lanewright(&["reject", "other"]).exits(2).says(&["needs a reason"]).hints("reject other SL-1 -m");
    scratch.lanewright(&["reject", "other", "-m", "smaller"]).exits(0);
    assert!(matches!(other.last(), Event::GateAnswered { approved: false, .. }));
}

#[test]
fn approve_of_lane_waiting_in_two_runs_is_refused() {
    let scratch = TestEnv::new();
    waiting_run(&scratch, "one");
    let two = waiting_run(&scratch, "two");
    scratch.lanewright(&["approve", "SL-1"]).exits(2).says(&["in several runs"]).hints("two, one");
    scratch.lanewright(&["approve", "two", "SL-1"]).exits(0);
    assert!(matches!(two.last(), Event::GateAnswered { approved: true, .. }));
    scratch.lanewright(&["approve", "SL-1"]).exits(0);
}
