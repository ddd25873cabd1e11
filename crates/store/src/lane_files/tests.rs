use std::collections::BTreeMap;
use std::fs;

use lanewright_model::{TaskAgent, TaskCheckpoint, Transition};
use serde_json::json;

use super::*;
use crate::samples::{agent, at, commit, lane, phase, run};

fn lane_directory() -> (tempfile::TempDir, LaneDirectory) {
    let root = tempfile::tempdir().unwrap();
    let directory = LaneDirectory::new(root.path(), &run(), &lane());
    (root, directory)
}

fn task(state: &str) -> TaskFile {
    TaskFile {
        task_name: "SL-1".into(),
        session_id: "s".into(),
        state: state.into(),
        created: at(0),
        phase: phase(),
        required_agents: vec![agent()],
        agents: BTreeMap::from([(
            agent(),
            TaskAgent { status: "WORKING".into(), retry_count: 1, ..TaskAgent::default() },
        )]),
        checkpoint: TaskCheckpoint { commit_sha: Some(commit('a')) },
        transition_log: vec![Transition { from: "WAITING".into(), to: state.into(), timestamp: at(1) }],
        interruptions: vec![],
    }
}

fn interruption(millis: i64) -> Interruption {
    Interruption { kind: "user_prompt".into(), timestamp: at(millis) }
}

fn value(directory: &LaneDirectory) -> Value {
    serde_json::from_str(&fs::read_to_string(directory.task_file()).unwrap()).unwrap()
}

#[test]
fn task_file_round_trips_contract_fields() {
    let (_root, directory) = lane_directory();
    assert_eq!(read_task(&directory.task_file()).unwrap(), None);
    write_task(&directory, &task("INIT")).unwrap();
    assert_eq!(read_task(&directory.task_file()).unwrap(), Some(task("INIT")));
    let value = value(&directory);
    let fields: Vec<&String> = value.as_object().unwrap().keys().collect();
    let contract =
        "task_name session_id state created phase required_agents agents checkpoint transition_log interruptions";
    assert_eq!(fields, contract.split(' ').collect::<Vec<_>>());
    assert_eq!(value["checkpoint"]["commit_sha"], commit('a').as_str());
    assert_eq!(value["transition_log"][0], json!({"from": "WAITING", "to": "INIT", "timestamp": at(1)}));
}

#[test]
fn task_update_keeps_foreign_fields() {
    let (_root, directory) = lane_directory();
    write_task(&directory, &task("INIT")).unwrap();
    add_interruption(&directory, &interruption(5)).unwrap();
    let mut foreign = value(&directory);
    foreign["colour"] = json!("red");
    foreign["checkpoint"]["note"] = json!([1.5]);
    foreign["interruptions"][0]["prompt"] = json!("why?");
    fs::write(directory.task_file(), foreign.to_string()).unwrap();
    let later = TaskFile { checkpoint: TaskCheckpoint::default(), ..task("REVIEW") };
    write_task(&directory, &later).unwrap();
    foreign["state"] = json!("REVIEW");
    foreign["transition_log"][0]["to"] = json!("REVIEW");
    foreign["checkpoint"]["commit_sha"] = Value::Null;
    assert_eq!(value(&directory), foreign);
}

#[test]
fn interruption_is_added_once_in_place() {
    let (_root, directory) = lane_directory();
    add_interruption(&directory, &interruption(5)).unwrap();
    assert!(!directory.task_file().exists());
    write_task(&directory, &task("REVIEW")).unwrap();
    add_interruption(&directory, &interruption(5)).unwrap();
    add_interruption(&directory, &interruption(6)).unwrap();
    let known = TaskFile { interruptions: vec![interruption(5), interruption(6)], ..task("REVIEW") };
    assert_eq!(read_task(&directory.task_file()).unwrap(), Some(known.clone()));
    write_task(&directory, &known).unwrap();
    assert_eq!(read_task(&directory.task_file()).unwrap(), Some(known));
}

#[test]
fn damaged_task_file_is_set_aside() {
    let (_root, directory) = lane_directory();
    write_task(&directory, &task("INIT")).unwrap();
    fs::write(directory.task_file(), "{\"task_name\": ").unwrap();
    assert!(matches!(read_task(&directory.task_file()), Err(LaneFileError::Unreadable { .. })));
    write_task(&directory, &task("REVIEW")).unwrap();
    assert_eq!(read_task(&directory.task_file()).unwrap(), Some(task("REVIEW")));
    assert_eq!(fs::read_to_string(directory.path().join("task.json.bad")).unwrap(), "{\"task_name\": ");
}

#[test]
fn task_file_below_link_is_refused() {
    let (root, directory) = lane_directory();
    let elsewhere = tempfile::tempdir().unwrap();
    write_task(&directory, &task("INIT")).unwrap();
    fs::remove_dir_all(directory.path()).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), directory.path()).unwrap();
    assert!(write_task(&directory, &task("INIT")).is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    drop(root);
}

#[test]
fn status_file_is_read_as_report() {
    let (_root, directory) = lane_directory();
    assert_eq!(read_status(&directory.status_file(&agent())), None);
    let text = br#"{"agent": "engineer", "task": "1", "status": "BLOCKED", "decision": "REJECTED", "round": "review",
        "retry_count": 2, "error_message": "", "work_remaining": "all", "blocked_by": "a decision",
        "feedback": "smaller", "decisions": [{"decision": "SQLite", "reason": "one file"}, "no cache", {"x": 1}],
        "blockers": "no index yet", "updated_at": "2026-01-01T00:00:00.009Z"}"#;
    let report = AgentReport {
        status: "BLOCKED".into(),
        decision: "REJECTED".into(),
        message: "a decision".into(),
        feedback: "smaller".into(),
        decisions: vec![
            Decision { text: "SQLite".into(), reason: "one file".into() },
            Decision { text: "no cache".into(), reason: String::new() },
        ],
        blockers: vec!["no index yet".into()],
        fault: String::new(),
        own: false,
    };
    assert_eq!(read_text(text, read_status), AgentStatus { report, updated_at: Some(at(9)) });
}

/// What is read from a file that holds `text`.
fn read_text<T>(text: &[u8], read: impl Fn(&Path) -> Option<T>) -> T {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    read(file.path()).unwrap()
}

#[test]
fn status_faults_are_distinguished() {
    for (text, fault) in [
        (&b""[..], "it is empty or half written"),
        (b"{\"status\": \"COMP", "it is empty or half written"),
        (b"{status}", "it is no JSON"),
        (b"[1]", "it holds no JSON object"),
        (b"\xff", "it is not UTF-8"),
        (b"{}", "it has no status"),
        (b"{\"status\": \"DONE\"}", "its status `DONE` is none of WORKING, IN_PROGRESS, COMPLETE, ERROR, BLOCKED"),
        (b"{\"status\": \"COMPLETE\", \"decision\": \"maybe\"}", "its decision `MAYBE` is none of"),
    ] {
        let report = read_text(text, read_status).report;
        assert!(report.fault.contains(fault), "{report:?} lacks {fault}");
    }
    assert_eq!(read_text(b"{\"status\": \"DONE\"}", read_status).report.status, "DONE");
}

#[test]
fn status_of_agent_allows_any_type_and_case() {
    let text = br#"{"status": " complete", "decision": null, "error_message": ["a", 2], "updated_at": "soon"}"#;
    let status = read_text(text, read_status);
    let report = AgentReport { status: "COMPLETE".into(), message: "a; 2".into(), ..AgentReport::default() };
    assert_eq!(status, AgentStatus { report, updated_at: None });
}

#[test]
fn status_reason_synonyms_are_read() {
    let message = |text: &str| read_text(text.as_bytes(), read_status).report.message;
    assert_eq!(message(r#"{"status": "BLOCKED", "reason": "no key", "updated_at": "x"}"#), "no key");
    assert_eq!(message(r#"{"status": "error", "message": "no luck"}"#), "no luck");
    assert_eq!(message(r#"{"status": "BLOCKED", "reason": "no key", "blocked_by": "a person"}"#), "a person");
    let named = "no reason under `error_message` or `blocked_by`, but unknown keys: why, x";
    assert_eq!(message(r#"{"status": "BLOCKED", "why": "no key", "x": 1}"#), named);
    assert_eq!(message(r#"{"status": "COMPLETE", "message": "all done", "why": 1}"#), "");
    assert_eq!(message(r#"{"status": "BLOCKED", "blocked_by": "", "round": "review"}"#), "");
}

#[test]
fn result_file_is_read_as_report() {
    for (text, status, message, fault) in [
        (r#"{"status": "success", "files_modified": ["a"], "logs": []}"#, "COMPLETE", "", ""),
        (r#"{"status": "failed", "error": "no luck"}"#, "ERROR", "no luck", ""),
        (r#"{"status": "blocked", "error": null, "blocking_reason": "SL-2"}"#, "BLOCKED", "SL-2", ""),
        (r#"{"status": "blocked", "reason": "SL-2"}"#, "BLOCKED", "SL-2", ""),
        (r#"{"status": "ok"}"#, "ok", "", "its status `ok` is none of success, failed, blocked"),
    ] {
        let report = read_text(text.as_bytes(), read_result);
        assert_eq!((&*report.status, &*report.message, &*report.fault), (status, message, fault));
    }
    assert!(read_text(b"{", read_result).fault.contains("half written"));
    assert_eq!(read_result(Path::new("/nowhere")), None);
}
