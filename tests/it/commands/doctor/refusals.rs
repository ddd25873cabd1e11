//! What the doctor tells of and leaves to a person, or leaves alone.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::damages::{append, change_byte, insert_zeros, lines};
use crate::commands::doctor::patient::{Patient, edit};
use crate::support::{TestEnv, wait_until};

/// Works until it may end.
const SLOW: (&str, &[&str], &str) =
    ("SL-1", &[], "mkdir -p SL-1; echo one > SL-1/a; touch $SCRATCH/slow; wait-for may-end");

/// Asserts that `--fix` changes nothing and says which three ways there are; answers their commands.
#[track_caller]
fn escalates(patient: &Patient, kind: &str) -> Vec<Vec<String>> {
    let manifest = patient.manifest();
    let fixed = patient.fix().exits(6);
    manifest.assert_all_there();
    let finding = patient.finding(&fixed, kind);
    assert_eq!(finding["outcome"], "found");
    let escalation = &finding["escalation"];
    for field in ["issue", "current_state", "recovery_attempts", "impact"] {
        assert!(!escalation[field].is_null(), "{escalation}");
    }
    let text = patient.scratch.lanewright(&["doctor"]).exits(6).stdout;
    assert!(text.contains("Options:") && text.contains("  3. "), "{text}");
    let options = escalation["options"].as_array().unwrap();
    assert_eq!(options.len(), 3, "{escalation}");
    let words = |command: &serde_json::Value| command.as_str().unwrap().to_owned();
    options.iter().map(|option| option["commands"].as_array().unwrap().iter().map(words).collect()).collect()
}

#[test]
fn log_damaged_in_the_middle_is_escalated() {
    let patient = Patient::new();
    let manifest = patient.manifest().without_files_like("/ignored/");
    let log = fs::read(patient.scratch.log_file()).unwrap();
    change_byte(&patient.scratch.log_file(), 9, 20);
    patient.is_found(&["log-damaged"]);
    let looked = patient.look();
    assert!(patient.finding(&looked, "log-damaged")["evidence"].as_str().unwrap().contains("line 10"));
    let damaged = fs::read(patient.scratch.log_file()).unwrap();
    let ways = escalates(&patient, "log-damaged");
    assert_eq!(fs::read(patient.scratch.log_file()).unwrap(), damaged);
    assert_ne!(damaged, log);
    assert!(ways[0][0].contains("--new-run --lane SL-2"), "SL-1 is merged: {ways:?}");
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    patient.paste(&ways[0]);
    assert!(patient.scratch.tree("main").contains("SL-2/done"));
    manifest.assert_all_there();
}

#[test]
fn a_log_that_is_gone_is_escalated_with_what_git_holds() {
    let patient = Patient::new();
    let manifest = patient.manifest().without_files_like("/ignored/");
    fs::rename(patient.scratch.log_file(), patient.scratch.path("backup")).unwrap();
    patient.is_found(&["log-missing"]);
    let ways = escalates(&patient, "log-missing");
    let by_hand = ways[1].join("\n");
    for held in ["lane/P1/SL-2", "lane-agent/P1/SL-2/engineer", "refs/lanewright/checkpoint/P1-SL-2/", "worktree add"] {
        assert!(by_hand.contains(held), "{held} is not in {by_hand}");
    }
    patient.paste(&ways[1]);
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    patient.paste(&ways[0]);
    assert!(patient.scratch.tree("main").contains("SL-2/done"));
    manifest.assert_all_there();
    // With the log in its place again the old run goes on as well.
    fs::rename(patient.scratch.path("backup"), patient.scratch.log_file()).unwrap();
    patient.look().exits(0);
}

#[test]
fn a_log_that_contradicts_itself_is_escalated() {
    let patient = Patient::new();
    let log = patient.scratch.log_file();
    let whole = fs::read(&log).unwrap();
    let count = lines(&log).len();
    // The same step again, under the next number and with the right checksum.
    let step = patient.scratch.events("lane_moved").remove(0);
    let mut step = step.as_object().unwrap().clone();
    step.remove("crc");
    step["seq"] = json!(count);
    let text = serde_json::to_string(&step).unwrap();
    let body = text.strip_suffix('}').unwrap();
    append(&log, format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes())).as_bytes());
    patient.is_found(&["log-contradiction"]);
    escalates(&patient, "log-contradiction");
    fs::write(&log, whole).unwrap();
    patient.goes_on();
}

#[test]
fn the_log_of_another_run_is_not_taken_for_a_runs_own() {
    let patient = Patient::new();
    let log = patient.scratch.log_file();
    fs::copy(&log, patient.state("r2.jsonl")).unwrap();
    patient.is_found(&["log-unreadable"]);
    patient.fix().exits(6);
    fs::remove_file(patient.state("r2.jsonl")).unwrap();
    patient.goes_on();
}

#[test]
fn the_records_of_a_run_that_was_cleaned_are_no_damage() {
    let scratch = TestEnv::new();
    scratch.lanes(&[("SL-1", &[], "mkdir -p SL-1; echo one > SL-1/a")]);
    scratch.execute(&[]).exits(0);
    scratch.lanewright(&["clean", "--yes", "--logs"]).exits(0);
    let looked = Patient { scratch }.look().exits(0);
    assert!(!looked.stdout.contains("log-missing"), "{}", looked.stdout);
}

#[test]
fn doctor_fix_keeps_empty_and_newer_format_logs() {
    let patient = Patient::new();
    let log = patient.scratch.log_file();
    let whole = fs::read_to_string(&log).unwrap();
    fs::write(&log, whole.replacen("\"format\":\"1.0\"", "\"format\":\"2.0\"", 1)).unwrap();
    let later = fs::read(&log).unwrap();
    patient.is_found(&["log-newer-format"]);
    let fixed = patient.fix().exits(6);
    assert!(patient.finding(&fixed, "log-newer-format")["evidence"].as_str().unwrap().contains("2.0"));
    assert_eq!(fs::read(&log).unwrap(), later);
    fs::write(&log, "").unwrap();
    patient.is_found(&["log-empty"]);
    escalates(&patient, "log-empty");
    assert_eq!(fs::read(&log).unwrap(), b"");
    fs::write(&log, whole).unwrap();
    patient.goes_on();
}

#[test]
fn a_stranger_in_a_worktrees_place_is_left_alone() {
    let patient = Patient::new();
    let (slot, aside) = (patient.slot(), patient.scratch.path("far/away"));
    fs::create_dir_all(aside.parent().unwrap()).unwrap();
    fs::rename(&slot, &aside).unwrap();
    fs::create_dir(&slot).unwrap();
    patient.scratch.git_in(&slot, &["init", "--quiet"]);
    fs::write(slot.join("theirs"), "precious\n").unwrap();
    patient.is_found(&["worktree-foreign"]);
    let ways = escalates(&patient, "worktree-foreign");
    assert_eq!(fs::read_to_string(slot.join("theirs")).unwrap(), "precious\n");
    fs::remove_dir_all(patient.scratch.path("far")).unwrap();
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    patient.paste(&ways[1][..2]);
    assert_eq!(fs::read_to_string(slot.with_extension("foreign").join("theirs")).unwrap(), "precious\n");
    patient.goes_on();
}

#[test]
fn uncommitted_work_on_another_branch_stays_where_it_is() {
    let patient = Patient::new();
    let slot = patient.lane_slot();
    patient.scratch.git(&["branch", "other", "main~1"]);
    patient.scratch.git_in(&slot, &["checkout", "--quiet", "other"]);
    fs::write(slot.join("mine"), "by hand\n").unwrap();
    patient.is_found(&["worktree-wrong-branch"]);
    let fixed = patient.fix().exits(6);
    let finding = patient.finding(&fixed, "worktree-wrong-branch");
    assert_eq!(finding["outcome"], "not_repaired");
    assert!(finding["told"].as_str().unwrap().contains("mine"), "{finding}");
    let link = format!("repo.lanes/r1/{}/code", finding["lane"].as_str().unwrap());
    assert!(finding["where"].as_str().unwrap().ends_with(&link), "{finding}");
    assert_eq!(fs::read_to_string(slot.join("mine")).unwrap(), "by hand\n");
    assert_eq!(patient.scratch.git_in(&slot, &["branch", "--show-current"]), "other");
    fs::remove_file(slot.join("mine")).unwrap();
    patient.is_repaired();
    patient.goes_on();
}

#[test]
fn lost_plan_with_changed_source_is_escalated() {
    let patient = Patient::new();
    let plan = patient.scratch.path("plan.toml");
    let source = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, source.replace("SL-2", "SL-3")).unwrap();
    fs::remove_file(patient.state("r1/plan.json")).unwrap();
    patient.is_found(&["plan-missing"]);
    escalates(&patient, "plan-missing");
    fs::write(&plan, source).unwrap();
    patient.is_repaired();
    patient.goes_on();
}

#[test]
fn doctor_reports_harmless_findings_with_exit_0() {
    let patient = Patient::new();
    let (slot, free) = (patient.lane_slot(), patient.scratch.path("repo.lanes/slots/09"));
    patient.scratch.git(&["worktree", "lock", "--reason", "mine", slot.to_str().unwrap()]);
    patient.scratch.git(&["worktree", "add", "--quiet", "--detach", free.to_str().unwrap()]);
    fs::write(free.join("work"), "by hand\n").unwrap();
    patient.scratch.git(&["update-ref", "refs/lanewright/checkpoint/P9-X/20260101T000000Z", "main"]);
    patient.scratch.git(&["update-ref", "refs/lanewright/rescued/1", "main"]);
    fs::create_dir_all(patient.scratch.path("repo/.git/lanewright/kept/2")).unwrap();
    let kinds = ["worktree-locked", "slot-holds-work", "ref-without-run", "work-kept"];
    patient.is_named(&kinds, 0);
    let manifest = patient.manifest();
    patient.is_repaired();
    manifest.assert_all_there();
    assert_eq!(fs::read_to_string(free.join("work")).unwrap(), "by hand\n");
    patient.is_named(&kinds, 0);
    patient.goes_on();
}

#[test]
fn doctor_fix_keeps_commit_of_lost_worktree() {
    let patient = Patient::new();
    let free = patient.scratch.path("repo.lanes/slots/09");
    patient.scratch.git(&["worktree", "add", "--quiet", "--detach", free.to_str().unwrap()]);
    patient.scratch.git_in(&free, &["commit", "--quiet", "--allow-empty", "--message=only here"]);
    let commit = patient.scratch.git_in(&free, &["rev-parse", "HEAD"]);
    fs::remove_dir_all(&free).unwrap();
    patient.is_found(&["worktree-prunable"]);
    let fixed = patient.fix().exits(6);
    let remedy = patient.finding(&fixed, "worktree-prunable")["remedy"].as_str().unwrap().to_owned();
    assert!(remedy.contains(&format!("git branch rescued {commit}")), "{remedy}");
    patient.scratch.git(&["branch", "rescued", &commit]);
    patient.is_repaired();
    assert_eq!(patient.scratch.git(&["rev-parse", "rescued"]), commit);
}

#[test]
fn a_lock_of_the_users_own_is_named_and_stays() {
    let patient = Patient::new();
    let lock = patient.scratch.path("repo/.git/index.lock");
    fs::write(&lock, "").unwrap();
    patient.is_found(&["index-lock"]);
    let fixed = patient.fix().exits(6);
    assert!(patient.finding(&fixed, "index-lock")["remedy"].as_str().unwrap().contains("rm "));
    assert!(lock.exists());
    fs::remove_file(lock).unwrap();
    patient.goes_on();
}

#[test]
fn a_lock_of_a_git_that_lives_is_no_finding() {
    let patient = Patient::new();
    let slot = patient.slot();
    fs::write(patient.entry(&slot).join("index.lock"), "").unwrap();
    let mut git = Command::new("git");
    // It waits for what it is to look up.
    git.args(["cat-file", "--batch"]).current_dir(&slot).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut living = git.spawn().unwrap();
    wait_until("it is at work", || patient.kinds(&patient.look()).is_empty());
    patient.fix().exits(0);
    assert!(patient.entry(&slot).join("index.lock").exists());
    drop(living.stdin.take());
    living.wait().unwrap();
    patient.is_named(&["index-lock"], 0);
    patient.is_repaired();
}

#[test]
fn work_that_is_gone_from_the_repository_is_reported() {
    let patient = Patient::new();
    let kept = patient.scratch.kept();
    fs::remove_dir_all(patient.slot()).unwrap();
    patient.scratch.git(&["worktree", "prune"]);
    for name in kept.iter().map(String::as_str).chain(["refs/heads/lane-agent/P1/SL-2/engineer"]) {
        patient.scratch.git(&["update-ref", "-d", name]);
    }
    patient.scratch.git(&["reflog", "expire", "--expire=now", "--all"]);
    patient.scratch.git(&["gc", "--quiet", "--prune=now"]);
    patient.is_found(&["branch-missing", "worktree-missing"]);
    let fixed = patient.is_repaired();
    let told = patient.finding(&fixed, "branch-missing")["evidence"].as_str().unwrap().to_owned();
    assert!(told.contains(&format!("what {} kept is gone", kept[0])), "{told}");
    patient.goes_on();
}

#[test]
fn branch_is_restored_with_unrecorded_agent_commits() {
    let patient = Patient::new();
    let head = patient.scratch.git_in(&patient.slot(), &["rev-parse", "HEAD"]);
    fs::remove_dir_all(patient.slot()).unwrap();
    patient.scratch.git(&["worktree", "prune"]);
    patient.scratch.git(&["update-ref", "-d", "refs/heads/lane-agent/P1/SL-2/engineer"]);
    patient.is_found(&["branch-missing", "worktree-missing"]);
    patient.is_repaired();
    assert_eq!(patient.scratch.git(&["rev-parse", "lane-agent/P1/SL-2/engineer"]), head);
    patient.goes_on();
}

#[test]
fn a_run_that_is_held_is_refused_and_not_looked_at() {
    let scratch = TestEnv::new();
    scratch.lanes(&[SLOW]);
    let running = scratch.execute_until("scratch/slow");
    let refused = scratch.lanewright(&["doctor", "r1", "--fix"]).exits(4);
    assert!(refused.stderr.contains("lanewright stop r1"), "{}", refused.stderr);
    let patient = Patient { scratch };
    assert_eq!(patient.kinds(&patient.look().exits(0)), ["run-held"]);
    fs::write(patient.state("checkpoints.json"), "[{").unwrap();
    let fixed = patient.fix();
    assert_eq!(patient.finding(&fixed, "checkpoints-unreadable")["fixable"], false, "the session writes it too");
    fs::remove_file(patient.state("checkpoints.json")).unwrap();
    fs::write(patient.scratch.path("scratch/may-end"), "").unwrap();
    running.wait().exits(0);
    patient.is_repaired();
}

/// Begins run `r1` and kills Lanewright; answers the supervisor's pid and its job's directory.
fn orphaned() -> (Patient, Pid, PathBuf) {
    let scratch = TestEnv::new();
    scratch.lanes(&[SLOW]);
    scratch.execute_and_kill_at("scratch/slow");
    let patient = Patient { scratch };
    let job = patient.state("r1/lanes/SL-1/agents/engineer/tasks/1/attempt-1");
    let marker = || fs::read_to_string(job.join("supervisor.json")).unwrap_or_default();
    wait_until("the supervisor says who it is", || marker().contains("pid"));
    let marker: serde_json::Value = serde_json::from_str(&marker()).unwrap();
    let pid = i32::try_from(marker["supervisor"]["pid"].as_i64().unwrap()).unwrap();
    patient.fix().exits(0);
    (patient, Pid::from_raw(pid).unwrap(), job)
}

#[test]
fn a_job_whose_supervisor_is_gone_is_left_to_a_resume() {
    let (patient, supervisor, job) = orphaned();
    assert_eq!(patient.kinds(&patient.look().exits(0)), Vec::<String>::new(), "it runs as it should");
    kill_process(supervisor, Signal::KILL).unwrap();
    wait_until("it is gone", || !patient.kinds(&patient.look()).is_empty());
    patient.is_named(&["job-without-supervisor"], 0);
    let looked = patient.look();
    let finding = patient.finding(&looked, "job-without-supervisor");
    assert!(finding["remedy"].as_str().unwrap().contains("lanewright resume r1"), "{finding}");
    fs::write(job.join("supervisor.json"), "{").unwrap();
    let looked = patient.look().exits(6);
    let remedy = patient.finding(&looked, "job-damaged")["remedy"].as_str().unwrap().to_owned();
    patient.paste(&[remedy.split_once(": ").unwrap().1.to_owned()]);
    fs::write(patient.scratch.path("scratch/may-end"), "").unwrap();
    patient.scratch.resume(&["--accept-plan-change"]).exits(0);
    assert!(patient.scratch.tree("main").contains("SL-1/a"));
}

#[test]
fn doctor_fix_skips_worktree_of_running_agent() {
    let (patient, ..) = orphaned();
    let slot = fs::canonicalize(patient.scratch.path("repo.lanes/r1/SL-1/agents/engineer/code")).unwrap();
    let to = patient.scratch.path("elsewhere");
    fs::rename(&slot, &to).unwrap();
    let fixed = patient.fix().exits(6);
    let remedy = patient.finding(&fixed, "worktree-moved")["remedy"].as_str().unwrap().to_owned();
    assert!(remedy.contains("still runs"), "{remedy}");
    fs::write(patient.scratch.path("scratch/may-end"), "").unwrap();
    wait_until("the agent has ended", || patient.fix().code == 0);
    patient.scratch.resume(&["--accept-plan-change"]).exits(0);
    assert!(patient.scratch.tree("main").contains("SL-1/a"));
}

#[test]
fn a_supervisor_of_an_unknown_run_is_named() {
    let (patient, supervisor, job) = orphaned();
    fs::rename(patient.scratch.log_file(), patient.scratch.path("backup")).unwrap();
    let looked = patient.look().exits(6);
    let finding = patient.finding(&looked, "supervisor-without-run");
    assert_eq!(finding["where"], job.to_str().unwrap());
    let pid = supervisor.as_raw_nonzero().to_string();
    assert!(finding["remedy"].as_str().unwrap().contains(&format!("kill -TERM {pid}")), "{finding}");
    fs::rename(patient.scratch.path("backup"), patient.scratch.log_file()).unwrap();
    fs::write(patient.scratch.path("scratch/may-end"), "").unwrap();
    patient.scratch.resume(&["--accept-plan-change"]).exits(0);
}

#[test]
fn an_unknown_run_is_an_error() {
    let patient = Patient::new();
    patient.scratch.lanewright(&["doctor", "r9"]).exits(8);
}

#[test]
fn a_rollback_fixes_what_cannot_be_repaired() {
    let patient = Patient::new();
    let slot = patient.slot();
    fs::remove_dir_all(&slot).unwrap();
    fs::write(&slot, "a file").unwrap();
    patient.is_found(&["worktree-foreign"]);
    let ways = escalates(&patient, "worktree-foreign");
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    patient.paste(&ways[0]);
    assert!(patient.scratch.tree("main").contains("SL-2/done"));
    // It may have been moved aside to make room, and is there.
    let slots = fs::read_dir(slot.parent().unwrap()).unwrap().flatten();
    let kept: Vec<_> = slots.filter(|it| fs::read_to_string(it.path()).is_ok_and(|text| text == "a file")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

/// Damages of every kind at once, a doctor who dies after a repair, and another one.
fn dies_after(kind: &str) {
    let patient = Patient::new();
    let manifest = patient.manifest();
    insert_zeros(&patient.scratch.log_file(), 2);
    assert!(lines(&patient.scratch.log_file()).len() > 10);
    fs::remove_file(patient.state("r1/plan.json")).unwrap();
    fs::write(patient.state("checkpoints.json"), "[{").unwrap();
    edit(&patient.lane_file("task.json"), |task| task["session_id"] = json!("somebody"));
    fs::remove_dir_all(patient.lane_slot()).unwrap();
    patient.scratch.git(&["update-ref", "-d", "refs/heads/lane-agent/P1/SL-2/engineer"]);
    let crash = format!("doctor_{kind}:1");
    let died = patient.scratch.lanewright_in(&["doctor", "--fix"], &[("LANEWRIGHT_CRASH_POINT", &crash)]);
    assert_eq!(died.code, 137, "{kind} was not reached: {}{}", died.stdout, died.stderr);
    patient.is_repaired();
    manifest.assert_all_there();
    patient.goes_on_without_loss(manifest);
}

macro_rules! a_doctor_who_dies_is_followed_by_another {
    ($($when:ident: $kind:literal,)*) => {
        mod a_doctor_who_dies_is_followed_by_another {
            $(#[test] fn $when() { super::dies_after($kind); })*
        }
    };
}

a_doctor_who_dies_is_followed_by_another! {
    when_the_log_is_fixed: "log-damaged",
    when_the_plan_is_written: "plan-missing",
    when_the_branch_is_made: "branch-missing",
    when_the_worktree_is_made: "worktree-missing",
    when_the_task_is_written: "session-mismatch",
    when_the_checkpoints_are_written: "checkpoints-unreadable",
}
