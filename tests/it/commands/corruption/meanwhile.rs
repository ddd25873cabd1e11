//! Damage while Lanewright, or an agent without it, is at work.

use std::fs;

use super::way_out::{GARBAGE, overwrite, resealed, says_something, way_out};
use crate::commands::content_manifest::BlobManifest;
use crate::commands::doctor::patient::Patient;
use crate::support::{TestEnv, wait_until};

/// Works until it may end.
const SLOW: (&str, &[&str], &str) =
    ("SL-1", &[], "mkdir -p SL-1; echo one > SL-1/a; touch $SCRATCH/slow; wait-for may-end");

/// A job's directory, and what else is named after the lane.
const JOB: &str = "r1/lanes/SL-1/agents/engineer/tasks/1/attempt-1";

/// Damages a run while it runs, and lets it end: whatever is wrong is said, and the run comes to its end.
#[track_caller]
fn is_survived(damage: impl FnOnce(&Patient)) {
    let scratch = TestEnv::new();
    scratch.lanes(&[SLOW]);
    let running = scratch.execute_until("scratch/slow");
    let patient = Patient { scratch };
    damage(&patient);
    fs::write(patient.scratch.path("scratch/may-end"), "").unwrap();
    let ended = running.wait();
    assert!(ended.code <= 8, "{ended:?}");
    comes_to_its_end(&patient, ended.code == 0);
}

/// Kills Lanewright while an agent works, damages the run, and lets the agent end.
#[track_caller]
fn is_survived_by_what_is_left(damage: impl FnOnce(&Patient)) {
    let scratch = TestEnv::new();
    scratch.lanes(&[SLOW]);
    scratch.execute_and_kill_at("scratch/slow");
    let patient = Patient { scratch };
    damage(&patient);
    fs::write(patient.scratch.path("scratch/may-end"), "").unwrap();
    comes_to_its_end(&patient, false);
}

#[track_caller]
fn comes_to_its_end(patient: &Patient, is_done: bool) {
    let roots = [patient.scratch.path("repo.lanes")];
    let manifest = BlobManifest::take(&patient.scratch.path("repo"), &roots);
    if is_done {
        says_something(&patient.scratch.lanewright(&["status", "r1"]));
        says_something(&patient.fix());
    } else {
        way_out(patient, &manifest);
    }
    manifest.assert_all_there();
    assert!(patient.scratch.tree("main").contains("SL-1/a"));
}

macro_rules! ways {
    ($survived:ident: $($name:ident: $damage:expr;)*) => {
        $(#[test] fn $name() { $survived($damage); })*
    };
}

ways! { is_survived:
    the_checkpoints_become_garbage: |it| overwrite(&it.state("checkpoints.json"), GARBAGE);
    the_checkpoints_vanish: |it| fs::remove_file(it.state("checkpoints.json")).unwrap();
    the_plan_vanishes: |it| fs::remove_file(it.state("r1/plan.json")).unwrap();
    a_task_file_becomes_garbage: |it| {
        fs::write(it.scratch.path("repo.lanes/r1/SL-1/task.json"), GARBAGE).unwrap();
    };
    the_lock_of_the_run_vanishes: |it| fs::remove_file(it.state("r1/run.lock")).unwrap();
    requests_are_garbage: |it| fs::write(it.state("r1/requests/0.json"), GARBAGE).unwrap();
    an_output_vanishes: |it| fs::remove_file(it.state(JOB).join("output.log")).unwrap();
    a_description_vanishes: |it| fs::remove_file(it.state(JOB).join("spec.json")).unwrap();
    a_supervisors_mark_becomes_garbage: |it| overwrite(&it.state(JOB).join("supervisor.json"), GARBAGE);
    an_index_is_locked: |it| {
        let slot = it.scratch.code("SL-1");
        fs::write(it.entry(&slot).join("index.lock"), "").unwrap();
    };
    everything_loose_is_collected: |it| {
        it.scratch.git(&["gc", "--quiet", "--prune=now"]);
        it.scratch.git(&["worktree", "prune"]);
    };
    the_code_link_vanishes: |it| {
        fs::remove_file(it.scratch.path("repo.lanes/r1/SL-1/agents/engineer/code")).unwrap();
    };
}

mod without_lanewright {
    use super::*;

    ways! { is_survived_by_what_is_left:
        a_description_vanishes: |it| fs::remove_file(it.state(JOB).join("spec.json")).unwrap();
        a_prompt_vanishes: |it| fs::remove_file(it.state(JOB).join("prompt.md")).unwrap();
        a_heartbeat_becomes_garbage: |it| {
            let heartbeat = it.state(JOB).join("heartbeat");
            wait_until("the first heartbeat", || heartbeat.exists());
            overwrite(&heartbeat, GARBAGE);
        };
        the_checkpoints_become_garbage: |it| overwrite(&it.state("checkpoints.json"), GARBAGE);
        everything_loose_is_collected: |it| {
            it.scratch.git(&["gc", "--quiet", "--prune=now"]);
            it.scratch.git(&["worktree", "prune"]);
        };
    }
}

/// A year is added to the times in the log: what the same program writes while the clock is a year ahead.
#[test]
fn a_clock_that_was_set_back_keeps_no_retry_waiting() {
    let scratch = TestEnv::new();
    scratch.lanes(&[(
        "SL-1",
        &[],
        "echo >> $SCRATCH/tries; [ $(wc -l < $SCRATCH/tries) -gt 3 ] && mkdir SL-1 && touch SL-1/a",
    )]);
    let plan = fs::read_to_string(scratch.path("plan.toml")).unwrap();
    scratch.write("plan.toml", plan.replace("retries = 0", "retries = 1"));
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none"];
    scratch.lanewright_in(&arguments, &[("LANEWRIGHT_BACKOFF", "1ms")]).exits(1);
    let patient = Patient { scratch };
    let log = fs::read_to_string(patient.scratch.log_file()).unwrap();
    let ahead = |line: &str| {
        let (before, rest) = line.split_once("\"ts\":\"").unwrap();
        let year: u32 = rest[..4].parse().unwrap();
        format!("{before}\"ts\":\"{}{}", year + 1, &rest[4..])
    };
    fs::write(patient.scratch.log_file(), resealed(&log, ahead)).unwrap();
    // The files that follow from the log have the other times.
    patient.fix().exits(0);
    patient.shell("LANEWRIGHT_BACKOFF=1ms timeout --kill-after=5 60 lanewright resume r1 --progress none").exits(0);
    assert!(patient.scratch.tree("main").contains("SL-1/a"));
}
