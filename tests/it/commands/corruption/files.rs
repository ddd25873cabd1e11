//! Every file of the state, gone, empty, half, garbage, another run's, or of a later format, while the run stands still.

use std::fs;

use serde_json::json;

use super::way_out::{GARBAGE, halve, job, leads_out, of_another_run, overwrite, resealed};
use crate::commands::doctor::patient::{Patient, edit};

macro_rules! ways {
    ($($name:ident: $way:literal, $damage:expr;)*) => {
        $(#[test] fn $name() { leads_out($way, $damage); })*
    };
}

ways! {
    the_log_is_gone: "chosen: log-missing", |it| fs::remove_file(it.scratch.log_file()).unwrap();
    the_log_is_empty: "chosen: log-empty", |it| overwrite(&it.scratch.log_file(), b"");
    the_log_is_half: "resumed again, put back", |it| halve(&it.scratch.log_file());
    the_log_is_garbage: "chosen: log-empty", |it| overwrite(&it.scratch.log_file(), GARBAGE);
    the_log_is_garbage_in_lines: "chosen: log-damaged", |it| overwrite(&it.scratch.log_file(), &b"garbage\n".repeat(40));
    the_log_lost_its_first_line: "chosen: log-damaged", |it| {
        let log = fs::read_to_string(it.scratch.log_file()).unwrap();
        overwrite(&it.scratch.log_file(), log.split_once('\n').unwrap().1.as_bytes());
    };
    the_log_lost_its_last_lines: "resumed again", |it| {
        let log = fs::read_to_string(it.scratch.log_file()).unwrap();
        let lines: Vec<&str> = log.split_inclusive('\n').collect();
        overwrite(&it.scratch.log_file(), lines[..lines.len() - 5].concat().as_bytes());
    };
    the_log_is_there_twice: "fixed: log-damaged", |it| {
        let log = fs::read(it.scratch.log_file()).unwrap();
        overwrite(&it.scratch.log_file(), &log.repeat(2));
    };

    the_checkpoints_are_gone: "resumed", |it| fs::remove_file(it.state("checkpoints.json")).unwrap();
    the_checkpoints_are_empty: "resumed", |it| overwrite(&it.state("checkpoints.json"), b"");
    the_checkpoints_are_half: "fixed: checkpoints-unreadable", |it| halve(&it.state("checkpoints.json"));
    the_checkpoints_are_garbage: "fixed: checkpoints-unreadable", |it| overwrite(&it.state("checkpoints.json"), GARBAGE);
    the_checkpoints_are_another_repositorys: "resumed", |it| {
        overwrite(&it.state("checkpoints.json"), &of_another_run(|it| it.state("checkpoints.json")));
    };
    the_checkpoints_have_fields_of_later: "resumed", |it| edit(&it.state("checkpoints.json"), |all| {
        all[0]["format"] = json!("9.0");
        all[0]["stage"] = json!("a_stage_of_later");
    });

    the_plan_is_gone: "fixed: plan-missing", |it| fs::remove_file(it.state("r1/plan.json")).unwrap();
    the_plan_is_empty: "fixed: plan-unreadable", |it| overwrite(&it.state("r1/plan.json"), b"");
    the_plan_is_half: "fixed: plan-unreadable", |it| halve(&it.state("r1/plan.json"));
    the_plan_is_garbage: "fixed: plan-unreadable", |it| overwrite(&it.state("r1/plan.json"), GARBAGE);
    the_plan_is_another_ones: "fixed: plan-mismatch", |it| {
        let plan = String::from_utf8(of_another_run(|it| it.state("r1/plan.json"))).unwrap();
        overwrite(&it.state("r1/plan.json"), plan.replace("SL-2", "SL-3").as_bytes());
    };
    // Refused, since a newer version may ask for an approval in them; the plan file says what they meant.
    the_plan_has_fields_of_later: "resumed again", |it| edit(&it.state("r1/plan.json"), |plan| plan["of_later"] = json!({"a": 1}));

    a_task_file_is_gone: "resumed", |it| fs::remove_file(it.lane_file("task.json")).unwrap();
    a_task_file_is_empty: "resumed", |it| overwrite(&it.lane_file("task.json"), b"");
    a_task_file_is_half: "resumed", |it| halve(&it.lane_file("task.json"));
    a_task_file_is_garbage: "resumed", |it| overwrite(&it.lane_file("task.json"), GARBAGE);
    a_task_file_is_another_runs: "resumed", |it| {
        overwrite(&it.lane_file("task.json"), &of_another_run(|it| it.lane_file("task.json")));
    };
    a_task_file_is_of_later: "resumed", |it| edit(&it.lane_file("task.json"), |task| {
        task["state"] = json!("A_STATE_OF_LATER");
        task["of_later"] = json!([1]);
    });

    a_status_file_is_gone: "resumed", |it| fs::remove_file(it.lane_file("agents/engineer/status.json")).unwrap();
    a_status_file_is_empty: "resumed", |it| overwrite(&it.lane_file("agents/engineer/status.json"), b"");
    a_status_file_is_half: "resumed", |it| halve(&it.lane_file("agents/engineer/status.json"));
    a_status_file_is_garbage: "resumed", |it| overwrite(&it.lane_file("agents/engineer/status.json"), GARBAGE);
    a_status_file_is_of_later: "resumed", |it| edit(&it.lane_file("agents/engineer/status.json"), |status| {
        status["status"] = json!("ENLIGHTENED");
    });

    a_jobs_directory_is_gone: "resumed", |it| fs::remove_dir_all(job(it, "")).unwrap();
    all_jobs_are_gone: "resumed", |it| fs::remove_dir_all(it.state("r1/lanes")).unwrap();
    a_jobs_description_is_gone: "resumed", |it| fs::remove_file(job(it, "spec.json")).unwrap();
    a_jobs_description_is_garbage: "resumed", |it| overwrite(&job(it, "spec.json"), GARBAGE);
    a_jobs_exit_is_gone: "resumed", |it| fs::remove_file(job(it, "exit.json")).unwrap();
    a_jobs_exit_is_empty: "resumed", |it| overwrite(&job(it, "exit.json"), b"");
    a_jobs_exit_is_another_jobs: "resumed", |it| {
        let other = it.state("r1/lanes/SL-1/agents/engineer/tasks/1/attempt-1/exit.json");
        overwrite(&job(it, "exit.json"), &fs::read(other).unwrap());
    };
    a_prompt_is_gone: "resumed", |it| fs::remove_file(job(it, "prompt.md")).unwrap();
    an_output_is_gone: "resumed", |it| fs::remove_file(job(it, "output.log")).unwrap();
    an_output_is_garbage: "resumed", |it| overwrite(&job(it, "output.log"), &GARBAGE.repeat(999));

    the_errors_are_gone: "resumed", |it| fs::remove_file(it.state("r1/errors.jsonl")).unwrap();
    the_errors_are_garbage: "resumed", |it| overwrite(&it.state("r1/errors.jsonl"), GARBAGE);
    the_errors_are_a_directory: "resumed", |it| {
        fs::remove_file(it.state("r1/errors.jsonl")).unwrap();
        fs::create_dir(it.state("r1/errors.jsonl")).unwrap();
    };
    the_escalations_are_a_directory: "resumed", |it| {
        fs::remove_file(it.state("r1/escalations.md")).unwrap();
        fs::create_dir(it.state("r1/escalations.md")).unwrap();
    };
    the_lock_of_the_run_is_gone: "resumed", |it| fs::remove_file(it.state("r1/run.lock")).unwrap();
    the_lock_of_the_run_is_garbage: "resumed", |it| overwrite(&it.state("r1/run.lock"), GARBAGE);
    the_lock_of_the_run_is_another_runs: "resumed", |it| {
        overwrite(&it.state("r1/run.lock"), &of_another_run(|it| it.state("r1/run.lock")));
    };
    all_locks_are_gone: "resumed", |it| fs::remove_dir_all(it.state(".locks")).unwrap();
    requests_are_garbage: "resumed", |it| {
        for (name, bytes) in [("0.json", GARBAGE), ("1.json", b"".as_slice()), ("2.taken", GARBAGE)] {
            fs::write(it.state("r1/requests").join(name), bytes).unwrap();
        }
    };
    requests_are_gone: "resumed", |it| fs::remove_dir_all(it.state("r1/requests")).unwrap();
    requests_are_of_later: "resumed", |it| {
        fs::write(it.state("r1/requests/0.json"), "{\"request\":\"levitate\"}").unwrap();
    };
    the_runs_directory_is_gone: "fixed: plan-missing", |it| fs::remove_dir_all(it.state("r1")).unwrap();
}

/// Damage that only a person can undo: everybody says so, and nothing changes.
#[track_caller]
fn is_left_alone(words: &str, damage: impl FnOnce(&Patient, &str)) {
    let patient = Patient::new();
    let manifest = patient.manifest();
    let log = fs::read_to_string(patient.scratch.log_file()).unwrap();
    damage(&patient, &log);
    for command in [["resume", "r1"].as_slice(), &["doctor", "--fix"], &["rollback", "r1"]] {
        let ended = patient.scratch.lanewright(command);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!([3, 6].contains(&ended.code) && said.contains(words), "{command:?}: {ended:?}");
    }
    manifest.assert_all_there();
    let _ = fs::remove_dir(patient.scratch.log_file());
    fs::write(patient.scratch.log_file(), log).unwrap();
    patient.goes_on();
}

#[test]
fn the_log_is_of_a_later_format() {
    is_left_alone("format 2.0", |patient, log| {
        fs::write(patient.scratch.log_file(), log.replacen("\"format\":\"1.0\"", "\"format\":\"2.0\"", 1)).unwrap();
    });
}

#[test]
fn the_log_is_a_directory() {
    is_left_alone("a directory", |patient, _| {
        fs::remove_file(patient.scratch.log_file()).unwrap();
        fs::create_dir(patient.scratch.log_file()).unwrap();
    });
}

#[test]
fn the_log_is_another_runs() {
    is_left_alone("put the right file there", |patient, log| {
        let other = resealed(log, |line| line.replace("\"run_id\":\"r1\"", "\"run_id\":\"r2\""));
        overwrite(&patient.scratch.log_file(), other.as_bytes());
    });
}
