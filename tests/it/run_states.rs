//! `checkpoints.json` alone says where every lane and the phase stand: the reader of the examples beside `status`.

use lanewright_model::{CheckpointStatus, LaneId};
use rustix::process::Signal;

use crate::support::{CHECKPOINTS, TestEnv};

#[expect(dead_code, reason = "a program, of which the tests use the reader")]
#[path = "../../crates/model/examples/run_states.rs"]
mod reader;

/// Lane, status and notes as the file has them, those of the phase first.
fn read(env: &TestEnv) -> Vec<(String, CheckpointStatus, String)> {
    let states = reader::states(&env.read(&format!("repo/{CHECKPOINTS}"))).expect("an array");
    let lanes = states.into_values().next().expect("a run").into_iter();
    let name = |lane: Option<LaneId>| lane.map_or("-".to_owned(), String::from);
    lanes.map(|(lane, record)| (name(lane), record.status, record.notes)).collect()
}

/// What `status` says of each lane, in the words of the file.
fn shown(env: &TestEnv) -> Vec<(String, CheckpointStatus)> {
    use CheckpointStatus::{Blocked, Complete, Failed, Ready, RolledBack};
    let status = env.lanewright(&["status", "r1", "--format", "json"]).json();
    let word = |lane: &serde_json::Value| match lane["state"].as_str().expect("a word") {
        "merged" | "proposed" => Complete,
        "failed" => Failed,
        "rolled back" => RolledBack,
        "stopped" => Ready,
        "waiting" if lane["waiting_for"].get("lanes").is_none() => Ready,
        _ => Blocked,
    };
    let lanes = status["lanes"].as_array().expect("lanes").iter();
    let mut lanes: Vec<_> = lanes.map(|lane| (lane["lane"].as_str().expect("a name").to_owned(), word(lane))).collect();
    lanes.sort();
    lanes
}

pub(crate) fn assert_same(env: &TestEnv) -> Vec<(String, CheckpointStatus, String)> {
    let read = read(env);
    let lanes: Vec<_> = read.iter().skip(1).map(|(lane, status, _)| (lane.clone(), *status)).collect();
    assert_eq!(lanes, shown(env), "{read:?}");
    read
}

const PLAN: &str = r#"
[[lane]]
id = "A"
command = 'echo a > a.txt'
[[lane]]
id = "B"
retries = 0
command = '[ -e "$SCRATCH/may-pass" ] && echo b > b.txt'
[[lane]]
id = "C"
depends_on = ["B"]
command = 'echo c > c.txt'
[[lane]]
id = "D"
approval = ["changes"]
command = 'echo d > d.txt'
"#;

#[test]
fn file_says_what_status_says() {
    let env = TestEnv::new();
    env.plan(PLAN);
    env.execute(&["--keep-going"]).exits(1);
    let read = assert_same(&env);
    assert_eq!(read[0].1, CheckpointStatus::Failed);
    assert!(read[0].2.contains("B failed") && read[0].2.contains("approve r1 D"), "{}", read[0].2);
    assert!(read[1].2.starts_with("merged as "), "{}", read[1].2);
    assert!(read[3].2.contains('B'), "{}", read[3].2);
    assert!(read[4].2.starts_with("waits for approval of its changes"), "{}", read[4].2);

    // What it says is to be typed works from any directory.
    let command = read[4].2.rsplit_once(": ").expect("a command").1;
    env.lanewright_with(&[], |it| it.current_dir("/").args(shlex::split(command).expect("words").split_off(1)))
        .exits(0);
    assert_eq!(assert_same(&env)[4].2, "approved, resume to merge");
    env.write("scratch/may-pass", "");
    env.resume(&[]).exits(0);
    let read = assert_same(&env);
    assert_eq!(read[0].1, CheckpointStatus::Complete);

    env.lanewright(&["rollback", "r1", "--lane", "C", "--yes"]).exits(0);
    assert_same(&env);
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert_eq!(assert_same(&env)[0].1, CheckpointStatus::RolledBack);
}

#[test]
fn hints_work_from_any_directory() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = '[ -e \"$SCRATCH/may-pass\" ] && echo a > a.txt'\n");
    env.execute(&[]).exits(1);
    let type_in = |hint: &str| {
        let record = env.checkpoint("A", "before_lane_start");
        let words = shlex::split(record[hint].as_str().expect("a hint")).expect("words").split_off(1);
        env.lanewright_with(&[], |it| it.current_dir("/").args(words.clone()))
    };
    env.write("scratch/may-pass", "");
    type_in("rollback_hint").exits(0);
    assert!(read(&env).iter().all(|(_, status, _)| *status == CheckpointStatus::RolledBack));
    type_in("resume_hint").exits(0);
    assert!(read(&env).iter().all(|(_, status, _)| *status == CheckpointStatus::Complete));
}

#[test]
fn red_final_gate_is_a_record_of_the_phase() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n[gates]\nfinal = ['[ -e \"$SCRATCH/may-pass\" ]']\n");
    env.execute(&[]).exits(3);
    let tests = env.checkpoint("-", "after_lane_tests");
    assert_eq!((tests["status"].as_str(), tests["exit_code"].as_i64()), (Some("failed"), Some(1)));
    assert!(read(&env)[0].2.contains("The final gate failed"), "{:?}", read(&env));
    env.write("scratch/may-pass", "");
    env.resume(&[]).exits(0);
    let status = |stage: &str| env.checkpoint("-", stage)["status"].clone();
    for stage in ["before_lane_start", "after_lane_tests", "retry_attempt", "pre_pr"] {
        assert_eq!(status(stage), "complete", "{stage}");
    }
}

#[test]
fn commands_name_files_that_are_elsewhere() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ncommand = 'echo a > a.txt'\n");
    let flags = ["--checkpoint-path", "../my points/c.json", "--log-path", "../my points/log.jsonl"];
    env.execute(&flags).exits(3);
    let states = reader::states(&env.read("my points/c.json")).expect("an array");
    let lane = states.values().next().expect("a run").iter().find(|(lane, _)| lane.is_some()).expect("a lane").1;
    let command = lane.notes.rsplit_once(": ").expect("a command").1.to_owned();
    env.lanewright_with(&[], |it| it.current_dir("/").args(shlex::split(&command).expect("words").split_off(1)))
        .exits(0);
}

#[test]
fn skipped_lane_says_how_to_take_it_in_again() {
    let env = TestEnv::new();
    env.plan(PLAN);
    env.execute(&["--keep-going"]).exits(1);
    env.lanewright(&["skip", "r1", "B"]).exits(0);
    let read = read(&env);
    assert!(read[2].2.starts_with("left out: a person skipped it; ") && read[2].2.contains("--lane B"), "{read:?}");
    assert!(read[3].1 == CheckpointStatus::Ready, "{read:?}");
    env.lanewright(&["doctor"]).exits(0);
}

#[test]
fn rollback_after_a_kill_leaves_nothing_in_progress() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/began\"; sleep 600'\n\
         [[lane]]\nid = \"B\"\nretries = 0\ncommand = 'exit 1'\n",
    );
    let run = env.start(&["--keep-going"]);
    crate::support::wait_until("a failure", || {
        env.path("scratch/began").exists() && !env.events("lane_failed").is_empty()
    });
    run.signal(Signal::KILL);
    run.wait().exits(137);
    env.lanewright(&["checkpoints", "create", "r1", "A"]).exits(0);
    assert!(read(&env).iter().all(|(_, status, _)| *status != CheckpointStatus::InProgress), "{:?}", read(&env));
    env.lanewright(&["rollback", "r1", "--lane", "B"]).exits(0);
    let read = read(&env);
    assert!(read.iter().all(|(_, status, _)| *status != CheckpointStatus::InProgress), "{read:?}");
    assert!(read[0].2.contains("lanewright -C") && read[1].2.starts_with("interrupted in "), "{read:?}");
    env.lanewright(&["rollback", "r1"]).exits(0);
}

#[test]
fn stopped_run_has_nothing_in_progress() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/began\"; sleep 600'\n");
    let run = env.start(&[]);
    crate::support::wait_until("an agent", || env.path("scratch/began").exists());
    env.lanewright(&["stop", "r1"]).exits(0);
    run.wait();
    let read = assert_same(&env);
    assert_eq!(read[0].1, CheckpointStatus::Ready);
    assert!(read[1].2.starts_with("stopped in "), "{read:?}");
}
