//! Files that end after every tenth byte.

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_model::RunId;
use lanewright_store::checkpoints;
use lanewright_store::run_log;
use lanewright_store::salvage;

use super::way_out::{job, says_something};
use crate::commands::doctor::patient::Patient;

/// Cuts the file at every tenth byte and looks at what is left of it; then the file is whole again.
#[track_caller]
fn at_every_tenth_byte(path: &Path, look: impl Fn(usize)) {
    let whole = fs::read(path).unwrap();
    // Without its last line break the file is still whole.
    for length in (0..whole.trim_ascii_end().len()).step_by(10) {
        fs::write(path, &whole[..length]).unwrap();
        look(length);
    }
    fs::write(path, whole).unwrap();
}

/// Asserts that the doctor finds each cut of the file, and that the run continues when all is well again.
#[track_caller]
fn each_is_found(place: impl Fn(&Patient) -> PathBuf) {
    let patient = Patient::new();
    at_every_tenth_byte(&place(&patient), |length| {
        let looked = patient.look();
        says_something(&looked);
        assert_eq!(looked.code, 6, "nothing is wrong with the first {length} bytes: {}", looked.stdout);
    });
    patient.goes_on();
}

#[test]
fn of_a_plan() {
    each_is_found(|it| it.state("r1/plan.json"));
}

#[test]
fn of_a_task_file() {
    each_is_found(|it| it.lane_file("task.json"));
}

#[test]
fn of_a_status_file() {
    each_is_found(|it| it.lane_file("agents/engineer/status.json"));
}

#[test]
fn of_a_jobs_files_are_never_read_again() {
    let patient = Patient::new();
    for name in ["spec.json", "exit.json", "supervisor.json"] {
        at_every_tenth_byte(&job(&patient, name), |_| {
            let looked = patient.look().exits(0);
            says_something(&looked);
        });
    }
    patient.goes_on();
}

/// Read in this process, because the file is long; where it is empty, nothing was written yet.
#[test]
fn of_the_checkpoints() {
    let patient = Patient::new();
    let path = patient.state("checkpoints.json");
    at_every_tenth_byte(&path, |length| assert_eq!(checkpoints::read(&path).is_ok(), length == 0, "{length}"));
    patient.goes_on();
}

/// What is left is an intact beginning, never something else, and is the more the longer it is.
#[test]
fn of_the_log() {
    let patient = Patient::new();
    let (path, run) = (patient.scratch.log_file(), RunId::new("r1").unwrap());
    let whole = run_log::read(&path).unwrap().records;
    at_every_tenth_byte(&path, |length| {
        let left = run_log::read(&path).unwrap();
        assert!(left.damage.is_empty() && whole.starts_with(&left.records), "{length}: {left:?}");
        assert_eq!(salvage(&path, &run).unwrap().records, left.records, "{length}");
        if length % 1000 == 0 {
            says_something(&patient.look());
        }
    });
    patient.goes_on();
}
