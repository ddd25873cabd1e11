//! `checkpoints.json`, which Lanewright shares with others (seed 004, Recovery Contract).

use serde_json::{Value, json};

use crate::support::{CHECKPOINTS, TestEnv};

#[test]
fn records_stages_and_fields_of_others_survive_a_run() {
    let env = TestEnv::new();
    let theirs = [
        r#"{"run_id":"P0-SL-AUTH-20251227","phase":"P0","lane":"SL-AUTH","stage":"retry_attempt","status":"retrying","retry_attempt":2,"max_retries":3,"failure_context":["Attempt 1: TypeError"],"timestamp":"2025-12-27T10:30:00Z"}"#,
        r#"{ "stage" : "after_lunch", "run_id":"r1","phase":"P1","lane":"A",   "status":"half-way", "mood": {"tired": 1.50} }"#,
        r#"{"nothing": "we know"}"#,
    ];
    let ours = r#"{"run_id":"r1","phase":"P1","lane":"A","stage":"pre_pr","status":"ready","their_field":[1, 2.0]}"#;
    env.write(
        &format!("repo/{CHECKPOINTS}"),
        format!("[\n  {},\n  {},\n  {},\n  {ours}\n]\n", theirs[0], theirs[1], theirs[2]),
    );
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    let text = env.read(&format!("repo/{CHECKPOINTS}"));
    for record in theirs {
        assert!(text.contains(record), "{record}\nis not in\n{text}");
    }
    let records: Vec<Value> = serde_json::from_str(&text).expect("an array");
    assert_eq!(records.len(), theirs.len() + 6, "{text}");
    assert_eq!(records[1]["stage"], "after_lunch", "the order changed");
    let merged =
        records.iter().filter(|record| record["stage"] == "pre_pr" && record["lane"] == "A").collect::<Vec<_>>();
    assert_eq!(merged.len(), 1, "the record was not replaced");
    assert_eq!((&merged[0]["status"], &merged[0]["their_field"]), (&json!("complete"), &json!([1, 2.0])));
}

#[test]
fn every_stage_of_a_lane_has_its_record() {
    let env = TestEnv::new();
    let base = env.git(&["rev-parse", "main"]);
    env.plan("[[lane]]\nid = \"A\"\ntests = 'test -e a.txt'\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    let field = |stage: &str, field: &str| env.checkpoint("A", stage)[field].clone();
    assert_eq!(field("before_lane_start", "head_sha"), json!(base));
    assert_eq!(field("after_lane_start", "git")["branch"], "lane/P1/A");
    assert_eq!(field("after_lane_tests", "command"), "test -e a.txt");
    assert_eq!(field("after_lane_tests", "exit_code"), 0);
    assert_eq!(field("pre_pr", "target_branch"), "main");
    assert_eq!(field("pre_pr", "head_sha"), env.git(&["rev-parse", "main^2"]));
}

#[test]
fn each_stage_is_on_record_before_what_it_guards_begins() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ntests = 'true'\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    let log = env.log();
    let at = |what: &dyn Fn(&Value) -> bool| log.iter().position(what).expect("the event");
    let stage = |stage: &'static str| at(&move |event| event["stage"] == stage);
    let first = |kind: &'static str| at(&move |event| event["event"] == kind);
    assert!(stage("before_lane_start") < first("worktree_opened"));
    assert!(stage("after_lane_start") < first("job_planned"));
    assert!(stage("after_lane_tests") < stage("pre_pr"));
    assert!(stage("pre_pr") < first("merge_staged") && stage("pre_pr") < first("lane_merged"));
}

#[test]
fn unreadable_checkpoint_file_stops_run_at_start() {
    for text in ["{\"no\": \"array\"}", "[{\"run_id\": ", "\u{0}\u{0}"] {
        let env = TestEnv::new();
        env.write(&format!("repo/{CHECKPOINTS}"), text);
        env.plan("[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/began\"'\n");
        let before = env.refs();
        env.execute(&[]).exits(6).says(&["checkpoints.json"]);
        assert_eq!(env.read(&format!("repo/{CHECKPOINTS}")), text);
        assert_eq!(env.refs(), before);
        assert!(!env.path("scratch/began").exists() && !env.path("repo.lanes").exists());
    }
}

#[test]
fn custom_checkpoint_and_log_paths_appear_in_hints() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'exit 1'\n");
    env.execute(&["--checkpoint-path", "../here/c.json", "--log-path", "../here/log.jsonl"]).exits(1);
    let records: Vec<Value> = serde_json::from_str(&env.read("here/c.json")).expect("an array");
    let hint = records[0]["resume_hint"].as_str().expect("a hint");
    assert!(hint.contains("here/c.json") && hint.contains("here/log.jsonl"), "{hint}");
    assert!(env.read("here/log.jsonl").contains("run_finished"));
}

#[test]
fn damaged_checkpoint_file_stops_resume_and_is_kept() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo again >> \"$SCRATCH/began\"; exit 1'\n");
    env.execute(&[]).exits(1);
    env.write(&format!("repo/{CHECKPOINTS}"), "[{]");
    env.resume(&[]).exits(6).says(&["checkpoints.json"]);
    assert_eq!(env.read(&format!("repo/{CHECKPOINTS}")), "[{]");
    assert_eq!(env.scratch("began"), "again\n");
}

#[test]
fn failures_are_in_the_error_log() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 1\ncommand = 'echo no such table; exit 5'\n");
    env.execute(&[]).exits(1);
    let text = env.read("repo/.claude/ai-dev-kit/run-logs/r1/errors.jsonl");
    let errors: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(errors.len(), 4, "three attempts and the lane: {text}");
    for error in &errors {
        assert_eq!((&error["phase"], &error["error_type"]), (&json!("P1"), &json!("crash")));
        assert!(error["details"].as_str().expect("text").contains("no such table"), "{error}");
    }
    assert_eq!(errors[0]["specialist"], "agent");
}

#[test]
fn running_lane_shows_its_task_file_and_worktrees() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nagent_worktrees = \"on\"\nallow_empty = true\ncommand = '''\n\
         cd \"$SCRATCH/../repo.lanes/r1/L\"\n\
         while [ -d \"$SCRATCH\" ] && ! grep -q IMPLEMENTATION task.json 2>/dev/null; do sleep 0.02; done\n\
         cp task.json \"$SCRATCH\"; ls code/ agents/agent/code/ > \"$SCRATCH/seen\"\n'''\n",
    );
    env.execute(&["--session-id", "s1"]).exits(0);
    let task: Value = serde_json::from_str(&env.scratch("task.json")).expect("an object");
    assert_eq!((&task["session_id"], &task["phase"]), (&json!("s1"), &json!("P1")));
    let steps: Vec<&Value> =
        task["transition_log"].as_array().expect("a list").iter().map(|step| &step["to"]).collect();
    assert_eq!(steps, ["INIT", "CLASSIFIED", "REQUIREMENTS", "SYNTHESIS", "IMPLEMENTATION"]);
    assert_eq!(env.scratch("seen").matches("README.md").count(), 2);
}

#[test]
fn the_state_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    let directory = env.path("repo/.claude/ai-dev-kit/run-logs");
    // An index is git's to write, as the user's umask says; nobody else gets as far as that.
    let files = crate::support::all_files(&directory).into_iter().filter(|path| !path.ends_with("snapshot.index"));
    for path in files.chain([directory]) {
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
}

#[test]
fn decisions_and_blockers_of_agents_are_kept() {
    let env = TestEnv::new();
    env.plan(
        r#"
[[lane]]
id = "A"
retries = 1
command = '''
cp "$LANEWRIGHT_PROMPT_FILE" "$SCRATCH/prompt.$LANEWRIGHT_ATTEMPT"; echo a > a.txt
echo '{"status": "COMPLETE", "decisions": [{"decision": "SQLite", "reason": "one file"}], "blockers": ["no index"]}' \
  > "$LANEWRIGHT_STATUS_FILE"
exit 1
'''
[[lane]]
id = "B"
retries = 0
command = 'echo b > b.txt; exit 1'
"#,
    );
    env.execute(&[]).exits(1);
    assert!(!env.scratch("prompt.1").contains("SQLite"));
    assert!(env.scratch("prompt.2").contains("- SQLite (one file)"), "{}", env.scratch("prompt.2"));
    let report = env.lanewright(&["report", "r1", "--format", "json"]).exits(0).stdout;
    assert!(report.contains("\"SQLite\"") && report.contains("\"no index\""), "{report}");
    for format in ["text", "md", "html"] {
        let report = env.lanewright(&["report", "r1", "--format", format]).exits(0).stdout.replace('\\', "");
        assert!(report.contains("Decisions") && report.contains("agent: SQLite: one file"), "{report}");
        assert!(!report.contains("agent: PENDING"), "an agent that wrote nothing decided nothing: {report}");
    }
    let of_b = env.lanewright(&["checkpoints", "create", "B", "--format", "json"]).exits(0).json();
    let of_b = env.lanewright(&["checkpoints", "show", of_b["name"].as_str().expect("a name")]).exits(0).stdout;
    assert!(!of_b.contains("PENDING"), "{of_b}");
    let log = env.events("snapshot_taken");
    let taken = log.iter().find(|event| event["reason"] == "failure" && event["lane"] == "A").expect("a snapshot");
    let name = taken["reference"].as_str().expect("a ref");
    let shown = env.lanewright(&["checkpoints", "show", name]).exits(0).stdout;
    assert!(shown.contains("SQLite: one file") && shown.contains("no index"), "{shown}");
}
