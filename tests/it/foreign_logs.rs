//! Run logs of other programs in the directory of ours, which the contract shares.

use crate::support::{STATE, TestEnv};

#[test]
fn foreign_log_is_not_listed_and_never_changed() {
    let env = TestEnv::new();
    let file = format!("repo/{STATE}/P4-20260204.jsonl");
    let theirs =
        "{\"ts\":\"2026-02-04T07:00:00Z\",\"run_id\":\"P4-20260204\",\"event\":\"lane_start\",\"status\":\"ok\"}\n";
    env.write(&file, theirs);
    env.lanewright(&["status"]).exits(8).says(&["no runs in this repository yet"]);
    env.lanewright(&["status", "P4-20260204"]).exits(8).says(&["there is no run `P4-20260204` here"]);
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x'\n");
    env.execute(&[]).exits(0);
    assert!(env.lanewright(&["status"]).exits(0).stdout.contains("run r1"));
    env.lanewright(&["doctor", "--fix"]).exits(0);
    env.lanewright(&["clean", "--yes", "--logs"]).exits(0);
    assert_eq!(env.read(&file), theirs);
}
