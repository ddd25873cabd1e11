//! Run logs of other writers: `status` reads them, and nobody writes them.

use serde_json::Value;

use crate::support::{STATE, TestEnv};

const CLEAN: &str = include_str!("../../fixtures/foreign_logs/clean.jsonl");
const MIXED: &str = include_str!("../../fixtures/foreign_logs/mixed.jsonl");

#[test]
fn status_lists_and_shows_logs_of_other_writers_and_leaves_them_as_they_are() {
    let env = TestEnv::new();
    env.write("repo/.claude/run-logs/P3-20260203-090000.jsonl", CLEAN);
    env.write(&format!("repo/{STATE}/P4-20260204.jsonl"), MIXED);
    let alone = env.lanekeeper(&["status"]).exits(0).stdout;
    for part in
        ["Other run logs:", "P3-20260203-090000 · P3 · 5 records", "SL-TREE: test_done error", "6 damaged lines"]
    {
        assert!(alone.contains(part), "{part} is not in {alone}");
    }
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x'\n");
    env.execute(&[]).exits(0);
    let beside = env.lanekeeper(&["status"]).exits(0).stdout;
    assert!(beside.find("run r1").expect("our run") < beside.find("Other run logs:").expect("the others"), "{beside}");
    let listed: Value =
        serde_json::from_str(&env.lanekeeper(&["status", "--format", "json"]).exits(0).stdout).expect("JSON");
    assert_eq!((&listed["run_id"], listed["other_run_logs"].as_array().map(Vec::len)), (&"r1".into(), Some(2)));
    let file = format!("{STATE}/P4-20260204.jsonl");
    for named in ["P4-20260204", &file] {
        let shown = env.lanekeeper(&["status", named]).exits(0).stdout;
        assert!(shown.contains("Starting | the orchard") && shown.contains("6 lines could not be read"), "{shown}");
    }
    let one = env.lanekeeper(&["status", "P3-20260203-090000", "--format", "json"]).exits(0).stdout;
    let one: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(one["other_run_log"]["lanes"][0]["standing"], "error");
    env.lanekeeper(&["doctor", "--fix"]).exits(0);
    assert_eq!(env.read("repo/.claude/run-logs/P3-20260203-090000.jsonl"), CLEAN);
    assert_eq!(env.read(&format!("repo/{file}")), MIXED);
    env.lanekeeper(&["status", "P9"]).exits(8).says(&["there is no run `P9` here"]);
    env.lanekeeper(&["status", "README.md"]).exits(8).says(&["no run log of another writer"]);
    env.lanekeeper(&["status", "../x"]).exits(2).says(&["neither a run nor the file of a run log"]);
}
