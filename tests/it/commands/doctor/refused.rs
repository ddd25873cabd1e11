//! Every state in which a resume or a rollback is refused is named, with a way out that works.

use std::fs;

use crate::commands::doctor::patient::Patient;
use crate::support::TestEnv;

const GOOD: (&str, &[&str], &str) = ("SL-1", &[], "mkdir -p SL-1; echo one > SL-1/a");
const FAILS_ONCE: (&str, &[&str], &str) = ("SL-1", &[], "mkdir -p SL-1; echo one > SL-1/a; [ -e $SCRATCH/may-pass ]");
const SLOW: (&str, &[&str], &str) =
    ("SL-1", &[], "mkdir -p SL-1; echo one > SL-1/a; touch $SCRATCH/slow; wait-for may-end");

const RESUME: [&str; 4] = ["resume", "r1", "--progress", "none"];

fn patient(lanes: &[(&str, &[&str], &str)], code: i32) -> Patient {
    let scratch = TestEnv::new();
    scratch.lanes(lanes);
    scratch.execute(&[]).exits(code);
    Patient { scratch }
}

/// The command at the end of what is said about a finding.
#[track_caller]
fn command(patient: &Patient, kind: &str) -> String {
    let looked = patient.look();
    let remedy = patient.finding(&looked, kind)["remedy"].as_str().unwrap().to_owned();
    remedy.rsplit_once(": ").unwrap().1.to_owned()
}

#[track_caller]
fn is_sound(patient: &Patient) {
    assert_eq!(patient.kinds(&patient.look().exits(0)), Vec::<String>::new());
}

#[test]
fn a_rollback_that_was_not_finished() {
    let patient = Patient::new();
    let dies = [("LANEWRIGHT_CRASH_POINT", "rollback_release:1")];
    assert_eq!(patient.scratch.lanewright_in(&["rollback", "r1", "--lane", "SL-2"], &dies).code, 137);
    patient.scratch.lanewright(&RESUME).exits(3);
    patient.is_named(&["rollback-unfinished"], 6);
    let finish = command(&patient, "rollback-unfinished");
    assert!(finish.ends_with("rollback r1 --lane SL-2"), "{finish}");
    patient.paste(&[finish]);
    is_sound(&patient);
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    patient.scratch.lanewright(&RESUME).exits(0);
}

#[test]
fn a_plan_whose_file_has_changed() {
    let patient = patient(&[FAILS_ONCE], 1);
    let plan = patient.scratch.path("plan.toml");
    let text = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, text.replace("retries = 0", "retries = 2")).unwrap();
    patient.scratch.lanewright(&RESUME).exits(2);
    patient.is_named(&["plan-changed"], 6);
    fs::write(&plan, format!("# a remark\n{text}")).unwrap();
    is_sound(&patient);
    fs::write(&plan, text.replace("retries = 0", "retries = 2")).unwrap();
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    patient.paste(&[command(&patient, "plan-changed")]);
    is_sound(&patient);
}

#[test]
fn an_integration_branch_that_is_gone() {
    let patient = patient(&[GOOD, ("SL-2", &["SL-1"], "mkdir SL-2; echo 2 > SL-2/b; [ -e $SCRATCH/may-pass ]")], 1);
    let merged = patient.scratch.main();
    patient.scratch.git(&["checkout", "--quiet", "--detach"]);
    patient.scratch.git(&["branch", "-D", "main"]);
    patient.scratch.lanewright(&["rollback", "r1"]).exits(3);
    patient.is_named(&["base-missing"], 6);
    patient.paste(&[command(&patient, "base-missing")]);
    assert_eq!(patient.scratch.main(), merged, "with the lane that was merged");
    is_sound(&patient);
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    patient.scratch.lanewright(&RESUME).exits(0);
}

#[test]
fn a_run_of_which_no_lane_has_begun() {
    let scratch = TestEnv::new();
    scratch.lanes(&[GOOD]);
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none"];
    assert_eq!(scratch.lanewright_in(&arguments, &[("LANEWRIGHT_CRASH_POINT", "after_sync:1")]).code, 137);
    let patient = Patient { scratch };
    patient.scratch.lanewright(&RESUME).exits(8);
    patient.is_named(&["run-not-begun"], 0);
    patient.paste(&[command(&patient, "run-not-begun")]);
    assert!(patient.scratch.tree("main").contains("SL-1/a"));
}

#[test]
fn a_run_whose_phase_a_live_session_works_on() {
    let scratch = TestEnv::new();
    scratch.lanes(&[("SL-0", &[], "exit 3"), SLOW]);
    let lane = |lane, run| ["execute-lane", "../plan.toml", lane, "--run-id", run, "--progress", "none"];
    scratch.lanewright(&lane("SL-0", "r0")).exits(1);
    let running = scratch.start_until(&lane("SL-1", "r1"), "scratch/slow");
    scratch.lanewright(&["rollback", "r0"]).exits(4);
    let patient = Patient { scratch };
    let looked = patient.scratch.lanewright(&["doctor", "r0", "--format", "json"]).exits(0);
    assert!(patient.kinds(&looked).contains(&"phase-held".to_owned()), "{}", looked.stdout);
    let remedy = patient.finding(&looked, "phase-held")["remedy"].as_str().unwrap().to_owned();
    patient.paste(&[remedy.rsplit_once(": ").unwrap().1.to_owned()]);
    running.wait();
    patient.scratch.lanewright(&["rollback", "r0"]).exits(0);
}

#[test]
fn doctor_names_nested_repository_blocking_rollback() {
    let patient = patient(&[("SL-1", &[], "mkdir SL-1; git init -q SL-1/own; echo x > SL-1/own/x; exit 3")], 1);
    patient.scratch.lanewright(&["rollback", "r1"]).exits(3);
    patient.is_named(&["rollback-refused"], 0);
    let looked = patient.look();
    assert!(patient.finding(&looked, "rollback-refused")["evidence"].as_str().unwrap().contains("SL-1/own"));
    fs::rename(patient.scratch.code("SL-1").join("SL-1/own"), patient.scratch.path("saved")).unwrap();
    is_sound(&patient);
    patient.scratch.lanewright(&["rollback", "r1"]).exits(0);
}

#[test]
fn a_lane_that_something_of_the_users_blocks() {
    let scratch = TestEnv::new();
    scratch.lanes(&[("SL-1", &[], "echo one >> README.md")]);
    scratch.write("repo/README.md", "in the middle of something\n");
    scratch.execute(&[]).exits(3);
    let patient = Patient { scratch };
    patient.is_named(&["lane-blocked"], 0);
    let looked = patient.look();
    assert!(patient.finding(&looked, "lane-blocked")["evidence"].as_str().unwrap().contains("commit or stash"));
    patient.scratch.git(&["commit", "--quiet", "--all", "--message=mine"]);
    let root = patient.scratch.path("repo.lanes");
    let _ = fs::remove_dir(&root);
    fs::write(&root, "a file").unwrap();
    patient.scratch.lanewright(&RESUME).exits(3);
    patient.is_named(&["lane-blocked", "resume-refused"], 6);
    fs::remove_file(&root).unwrap();
    patient.paste(&[command(&patient, "lane-blocked")]);
    is_sound(&patient);
}

#[test]
fn a_complete_run_whose_plan_is_gone() {
    let patient = patient(&[GOOD], 0);
    fs::remove_file(patient.state("r1/plan.json")).unwrap();
    patient.scratch.lanewright(&["rollback", "r1", "--yes"]).exits(6);
    patient.is_named(&["plan-missing"], 0);
    patient.fix().exits(0);
    patient.scratch.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert!(!patient.scratch.tree("main").contains("SL-1/a"));
}

#[test]
fn a_file_in_place_of_the_worktrees() {
    let patient = Patient::new();
    let root = patient.scratch.path("repo.lanes");
    fs::rename(&root, patient.scratch.path("away")).unwrap();
    fs::write(&root, "a file").unwrap();
    patient.scratch.lanewright(&RESUME).exits(3);
    let looked = patient.look().exits(6);
    assert!(patient.kinds(&looked).iter().any(|kind| kind == "worktree-missing"), "{}", looked.stdout);
    fs::remove_file(&root).unwrap();
    fs::rename(patient.scratch.path("away"), &root).unwrap();
    is_sound(&patient);
    patient.goes_on();
}

#[test]
fn a_runner_without_its_key() {
    let scratch = TestEnv::new();
    let script = "[ -e $SCRATCH/may-pass ] && mkdir -p SL-1 && echo one > SL-1/a";
    let runner =
        format!("[runners.mine]\ncommand = [\"sh\", \"-c\", {script:?}]\nkey = {{ variables = [\"MINE_KEY\"] }}\n");
    scratch.write("repo/lanewright.toml", &runner);
    let lane = "[[lane]]\nid = \"SL-1\"\nagent_worktrees = \"on\"\nretries = 0\nrunner = \"mine\"\nprompt = \"one\"\n";
    scratch.write("plan.toml", format!("phase = \"P1\"\nbase_branch = \"main\"\n{lane}"));
    let key = [("MINE_KEY", "secret")];
    let start = ["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none"];
    scratch.lanewright_in(&start, &key).exits(1);
    let patient = Patient { scratch };
    patient.scratch.lanewright(&RESUME).exits(3);
    patient.is_named(&["resume-refused"], 6);
    let looked = patient.look();
    assert!(patient.finding(&looked, "resume-refused")["evidence"].as_str().unwrap().contains("MINE_KEY"));
    patient.scratch.lanewright_in(&["doctor"], &key).exits(0);
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    patient.scratch.lanewright_in(&RESUME, &key).exits(0);
    is_sound(&patient);
}
