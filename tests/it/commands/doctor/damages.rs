//! One row for each finding that the doctor repairs.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::commands::doctor::patient::{Patient, edit};

macro_rules! rows {
    ($($name:ident: $kinds:expr, $damage:expr;)*) => {
        $(#[test] fn $name() { Patient::recovers_from(&$kinds, $damage); })*
    };
}

rows! {
    a_task_file_that_is_gone: ["task-missing"], |it| fs::remove_file(it.lane_file("task.json")).unwrap();
    a_task_file_that_is_half_written: ["task-unreadable"], |it| fs::write(it.lane_file("task.json"), "{\"task").unwrap();
    a_task_file_that_lacks_a_field: ["task-unreadable"], |it| edit(&it.lane_file("task.json"), |task| {
        task.as_object_mut().unwrap().remove("state");
    });
    a_task_file_that_says_something_else: ["task-disagrees"], |it| edit(&it.lane_file("task.json"), |task| {
        task["state"] = json!("REVIEW");
    });
    a_task_file_of_another_session: ["session-mismatch"], |it| edit(&it.lane_file("task.json"), |task| {
        task["session_id"] = json!("somebody");
    });
    a_task_file_without_its_transition_log: ["transition-log-missing"], |it| edit(&it.lane_file("task.json"), |task| {
        task.as_object_mut().unwrap().remove("transition_log");
    });
    a_task_file_whose_transition_log_is_empty: ["transition-log-missing"], |it| {
        edit(&it.lane_file("task.json"), |task| task["transition_log"] = json!([]));
    };
    a_transition_past_a_stage: ["transition-impossible"], |it| edit(&it.lane_file("task.json"), |task| {
        task["transition_log"][1]["to"] = json!("VALIDATION");
    });
    a_transition_out_of_nowhere: ["transition-impossible"], |it| edit(&it.lane_file("task.json"), |task| {
        task["transition_log"].as_array_mut().unwrap().remove(1);
    });
    a_status_file_that_is_half_written: ["status-unreadable"], |it| {
        let path = it.lane_file("agents/engineer/status.json");
        fs::write(path, "{\"status\":").unwrap();
    };
    the_worktree_of_a_lane_that_is_gone: ["worktree-missing"], |it| fs::remove_dir_all(it.lane_slot()).unwrap();
    a_worktree_that_was_moved_with_git: ["worktree-moved"], |it| {
        let (from, to) = (it.slot(), it.scratch.path("elsewhere"));
        it.scratch.git(&["worktree", "move", from.to_str().unwrap(), to.to_str().unwrap()]);
    };
    a_worktree_that_was_moved_without_git: ["worktree-moved"], |it| {
        fs::rename(it.slot(), it.scratch.path("repo.lanes/mine")).unwrap();
    };
    a_worktree_that_git_has_forgotten: ["worktree-forgotten"], |it| fs::remove_dir_all(it.entry(&it.slot())).unwrap();
    a_worktree_of_which_git_forgot_what_is_checked_out: ["worktree-forgotten"], |it| {
        fs::write(it.entry(&it.slot()).join("HEAD"), "").unwrap();
    };
    a_worktree_that_git_half_forgot: ["worktree-forgotten"], |it| {
        fs::remove_file(it.entry(&it.slot()).join("HEAD")).unwrap();
    };
    a_worktree_that_git_believes_elsewhere: ["worktree-forgotten"], |it| {
        fs::write(it.entry(&it.slot()).join("gitdir"), "/nowhere/at/all/.git\n").unwrap();
    };
    a_worktree_on_no_branch_that_went_on: ["worktree-wrong-branch"], |it| {
        let slot = it.slot();
        it.scratch.git_in(&slot, &["checkout", "--quiet", "--detach"]);
        fs::write(slot.join("SL-2/more"), "more\n").unwrap();
        it.scratch.git_in(&slot, &["add", "SL-2/more"]);
        it.scratch.git_in(&slot, &["commit", "--quiet", "--message=more"]);
    };
    the_worktree_of_a_lane_on_another_branch: ["worktree-wrong-branch"], |it| {
        it.scratch.git(&["branch", "other", "main~1"]);
        it.scratch.git_in(&it.lane_slot(), &["checkout", "--quiet", "other"]);
    };
    a_branch_of_an_agent_that_is_gone: ["branch-missing"], |it| {
        it.scratch.git(&["update-ref", "-d", "refs/heads/lane-agent/P1/SL-2/engineer"]);
    };
    a_branch_that_a_power_cut_left_empty: ["branch-missing"], |it| {
        fs::write(it.scratch.path("repo/.git/refs/heads/lane-agent/P1/SL-2/engineer"), "").unwrap();
    };
    a_branch_of_a_lane_that_is_gone: ["branch-missing"], |it| {
        it.scratch.git(&["update-ref", "-d", "refs/heads/lane/P1/SL-2"]);
    };
    a_branch_of_a_lane_that_is_gone_with_its_worktree: ["branch-missing", "worktree-missing"], |it| {
        fs::remove_dir_all(it.lane_slot()).unwrap();
        it.scratch.git(&["update-ref", "-d", "refs/heads/lane/P1/SL-2"]);
    };
    a_claim_that_is_gone: ["claim-missing"], |it| fs::remove_file(claim(&it.slot())).unwrap();
    a_claim_that_is_half_written: ["claim-damaged"], |it| fs::write(claim(&it.slot()), "{").unwrap();
    a_claim_of_nobody_that_is_half_written: ["claim-damaged"], |it| {
        fs::write(it.scratch.path("repo.lanes/slots/09.claim"), "").unwrap();
    };
    a_worktree_of_nobody_that_is_gone: ["worktree-prunable"], |it| {
        let free = it.scratch.path("repo.lanes/slots/09");
        it.scratch.git(&["worktree", "add", "--quiet", "--detach", free.to_str().unwrap()]);
        fs::remove_dir_all(free).unwrap();
    };
    a_lock_of_a_git_that_died: ["index-lock"], |it| fs::write(it.entry(&it.slot()).join("index.lock"), "").unwrap();
    an_index_that_is_damaged: ["index-damaged"], |it| change_middle(&it.entry(&it.slot()).join("index"));
    a_file_of_a_snapshot_that_is_emptied: ["objects-damaged"], |it| {
        let blob = it.scratch.git(&["rev-parse", &format!("{}:SL-2/new", it.scratch.kept().pop().unwrap())]);
        let path = it.scratch.path(&format!("repo/.git/objects/{}/{}", &blob[..2], &blob[2..]));
        fs::remove_file(&path).unwrap();
        fs::write(path, "").unwrap();
    };
    checkpoints_that_are_gone: ["checkpoints-behind"], |it| fs::remove_file(it.state("checkpoints.json")).unwrap();
    a_checkpoint_that_is_missing: ["checkpoints-behind"], |it| edit(&it.state("checkpoints.json"), |all| {
        all.as_array_mut().unwrap().remove(1);
    });
    a_checkpoint_that_is_old: ["checkpoints-behind"], |it| edit(&it.state("checkpoints.json"), |all| {
        all[0]["status"] = json!("retrying");
    });
    a_log_that_is_torn: ["log-torn"], |it| append(&it.scratch.log_file(), b"{\"seq\":9");
    a_line_in_the_log_that_is_not_its_own: ["log-damaged"], |it| insert_zeros(&it.scratch.log_file(), 4);
    a_plan_that_is_gone: ["plan-missing"], |it| fs::remove_file(it.state("r1/plan.json")).unwrap();
    a_plan_that_is_half_written: ["plan-unreadable"], |it| fs::write(it.state("r1/plan.json"), "{").unwrap();
    a_plan_that_is_another_one: ["plan-mismatch"], |it| {
        let plan = fs::read_to_string(it.state("r1/plan.json")).unwrap();
        fs::write(it.state("r1/plan.json"), plan.replace("SL-2", "SL-7")).unwrap();
    };
}

fn claim(slot: &Path) -> std::path::PathBuf {
    slot.with_extension("claim")
}

pub fn lines(path: &Path) -> Vec<Vec<u8>> {
    fs::read(path).unwrap().split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

pub fn append(path: &Path, bytes: &[u8]) {
    let mut all = fs::read(path).unwrap();
    all.extend(bytes);
    fs::write(path, all).unwrap();
}

pub fn change_middle(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(path, bytes).unwrap();
}

/// Changes one byte of a line, both counted from 0.
pub fn change_byte(path: &Path, line: usize, place: usize) {
    let mut lines = lines(path);
    lines[line][place] ^= 1;
    fs::write(path, lines.join(&b'\n')).unwrap();
}

/// Puts a line of zeros before a line, counted from 0.
pub fn insert_zeros(path: &Path, line: usize) {
    let mut lines = lines(path);
    lines.insert(line, vec![0; 512]);
    fs::write(path, lines.join(&b'\n')).unwrap();
}

#[test]
fn removed_agent_worktree_is_restored_with_staged_files() {
    let patient = Patient::new();
    let slot = patient.slot();
    fs::write(slot.join("SL-2/staged-later"), "in no snapshot\n").unwrap();
    patient.scratch.git_in(&slot, &["add", "SL-2/staged-later"]);
    let manifest = patient.manifest().without_files_below(&slot.join("ignored"));
    fs::remove_dir_all(&slot).unwrap();
    patient.is_found(&["worktree-missing"]);
    let fixed = patient.is_repaired();
    let told = patient.finding(&fixed, "worktree-missing")["told"].as_str().unwrap().to_owned();
    assert!(told.contains("refs/lanewright/checkpoint/P1-SL-2/"), "{told}");
    manifest.assert_all_there();
    patient.goes_on();
    manifest.assert_all_there();
}

#[test]
fn everything_beside_the_repository_that_is_gone() {
    let patient = Patient::new();
    let manifest = patient.manifest().without_files_below(&patient.slot().join("ignored"));
    fs::remove_dir_all(patient.scratch.path("repo.lanes")).unwrap();
    patient.is_found(&["worktree-missing", "task-missing"]);
    patient.is_repaired();
    manifest.assert_all_there();
    patient.goes_on();
    manifest.assert_all_there();
}

#[test]
fn unreadable_checkpoints_keep_records_of_others() {
    let patient = Patient::new();
    let (path, manifest) = (patient.state("checkpoints.json"), patient.manifest());
    let before = fs::read_to_string(&path).unwrap();
    let theirs = r#"{"run_id":"theirs", "phase":"P9","lane":"L","stage":"their_own","note":1.50}"#;
    let damaged = before.replacen('[', &format!("[\n  {theirs},"), 1);
    let damaged = damaged.trim_end().strip_suffix(']').unwrap().to_owned();
    fs::write(&path, &damaged).unwrap();
    patient.is_found(&["checkpoints-unreadable"]);
    let fixed = patient.is_repaired();
    let told = patient.finding(&fixed, "checkpoints-unreadable")["told"].as_str().unwrap().to_owned();
    let aside = told.rsplit(' ').next().unwrap();
    assert_eq!(fs::read_to_string(aside).unwrap(), damaged, "{told}");
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.contains(theirs), "{after}");
    let ours = |text: &str| serde_json::from_str::<Vec<serde_json::Value>>(text).unwrap().len();
    assert_eq!(ours(&after), ours(&before) + 1);
    patient.goes_on_without_loss(manifest);
}

#[test]
fn a_log_whose_damage_nothing_follows() {
    let patient = Patient::new();
    let manifest = patient.manifest();
    let count = lines(&patient.scratch.log_file()).len() - 1;
    let damaged = fs::read(patient.scratch.log_file()).unwrap();
    // The last record says that the run has ended, and nothing came of that.
    change_byte(&patient.scratch.log_file(), count - 1, 20);
    append(&patient.scratch.log_file(), &[b"\0".repeat(64), b"\n".to_vec()].concat());
    patient.is_found(&["log-damaged"]);
    patient.is_repaired();
    let kept = fs::read_dir(patient.state("")).unwrap().flatten();
    assert!(kept.map(|it| it.file_name()).any(|name| name.to_string_lossy().contains("jsonl.damaged-")));
    assert!(fs::read(patient.scratch.log_file()).unwrap().len() < damaged.len());
    patient.goes_on_without_loss(manifest);
}

#[test]
fn everything_at_once() {
    Patient::recovers_from(
        &["log-damaged", "plan-missing", "branch-missing", "worktree-missing", "task-missing", "checkpoints-behind"],
        |it| {
            insert_zeros(&it.scratch.log_file(), 2);
            fs::remove_file(it.state("r1/plan.json")).unwrap();
            fs::remove_file(it.state("checkpoints.json")).unwrap();
            fs::remove_file(it.lane_file("task.json")).unwrap();
            fs::remove_dir_all(it.lane_slot()).unwrap();
            it.scratch.git(&["update-ref", "-d", "refs/heads/lane-agent/P1/SL-2/engineer"]);
        },
    );
}
