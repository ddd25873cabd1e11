//! The protocol of tasks: which agents a resume starts, what their status says, and what the doctor finds (seed 003).

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{RUN, STATE, TestEnv, wait_until};

#[test]
fn p12_a_resume_starts_only_incomplete_requirements() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "on_orphan = \"stop\"\n");
    env.commit("settings");
    env.plan(
        r#"
[[lane]]
id = "L"
[[lane.agent]]
name = "analyst"
round = "requirements"
command = 'echo analyst >> "$SCRATCH/began"; echo "The ledger has two sides." > "$LANEWRIGHT_REPORT_FILE"'
[[lane.agent]]
name = "historian"
round = "requirements"
command = 'echo historian >> "$SCRATCH/began"; wait-for go; echo "It was tried before."'
[[lane.agent]]
name = "engineer"
command = 'cp "$LANEWRIGHT_PROMPT_FILE" "$SCRATCH/prompt"; echo x > x.txt'
"#,
    );
    let running = env.execute_until("scratch/began");
    wait_until("the historian", || env.scratch("began").contains("historian"));
    let has_ended = |job: &Value| job["job"]["role"]["attempt"]["agent"] == "analyst";
    wait_until("the analyst's end", || env.events("job_exited").iter().any(has_ended));
    running.signal(Signal::KILL);
    running.wait().exits(137);
    let attempt = "lanes/L/agents/historian/tasks/report/attempt-1";
    wait_until("the historian's end", || env.path(&format!("repo/{STATE}/{RUN}/{attempt}/exit.json")).exists());
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    let began = env.scratch("began");
    assert_eq!((began.matches("analyst").count(), began.matches("historian").count()), (1, 2), "{began}");
    let prompt = env.scratch("prompt");
    assert!(prompt.contains("The ledger has two sides.") && prompt.contains("It was tried before."), "{prompt}");
}

#[test]
fn p29_the_status_file_counts_retries() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         cp \"$LANEWRIGHT_STATUS_FILE\" \"$SCRATCH/status.$LANEWRIGHT_ATTEMPT\"\n\
         [ $LANEWRIGHT_ATTEMPT = 3 ] && echo x > x.txt\n'''\n",
    );
    env.execute(&[]).exits(0);
    let counts = [1, 2, 3].map(|attempt| {
        let status: Value = serde_json::from_str(&env.scratch(&format!("status.{attempt}"))).expect("an object");
        status["retry_count"].clone()
    });
    assert_eq!(counts, [json!(0), json!(1), json!(2)]);
}

/// The `task.json` of lane L, below the test's directory.
const TASK: &str = "repo.lanes/r1/L/task.json";

/// A run of session `s1` that has failed and can be resumed.
fn failed() -> TestEnv {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'exit 1'\n");
    env.execute(&["--session-id", "s1"]).exits(1);
    env
}

fn task(env: &TestEnv) -> Value {
    serde_json::from_str(&env.read(TASK)).expect("an object")
}

/// Damages `task.json`, asserts that the doctor finds `kind`, and has it repair that.
fn assert_found_and_repaired(env: &TestEnv, kind: &str, damage: impl FnOnce(&mut Value)) {
    let mut damaged = task(env);
    damage(&mut damaged);
    env.write(TASK, damaged.to_string());
    let report = env.lanewright(&["doctor", RUN, "--format", "json"]).exits(6).json();
    let is_found = |finding: &Value| finding["kind"] == kind;
    assert!(report["findings"].as_array().expect("a list").iter().any(is_found), "no {kind}: {report}");
    env.lanewright(&["doctor", RUN, "--fix"]).exits(0);
    env.lanewright(&["doctor", RUN]).exits(0);
}

#[test]
fn p44_the_doctor_finds_another_session() {
    let env = failed();
    assert_found_and_repaired(&env, "session-mismatch", |task| task["session_id"] = json!("somebody"));
    assert_eq!(task(&env)["session_id"], "s1");
}

#[test]
fn p47_the_doctor_finds_a_damaged_transition_log() {
    let env = failed();
    let steps = task(&env)["transition_log"].clone();
    assert_found_and_repaired(&env, "transition-log-missing", |task| {
        task.as_object_mut().expect("an object").remove("transition_log");
    });
    assert_eq!(task(&env)["transition_log"], steps);
    assert_found_and_repaired(&env, "transition-log-missing", |task| task["transition_log"] = json!([]));
    assert_eq!(task(&env)["transition_log"], steps);
    assert_found_and_repaired(&env, "transition-impossible", |task| {
        task["transition_log"][1]["to"] = json!("VALIDATION");
    });
    assert_eq!(task(&env)["transition_log"], steps);
}
