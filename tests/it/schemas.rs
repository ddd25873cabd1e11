//! What the real binary writes for programs, held against the schemas in `docs/schemas`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::documents::{SCHEMAS, Schema};
use crate::report::MIXED;
use crate::support::{CHECKPOINTS, RUN, TestEnv};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Lanes that fail, are tried again, have must-haves, and wait for an approval.
fn env() -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!("{MIXED}[[lane]]\nid = \"D\"\napproval = [\"changes\"]\ncommand = 'echo d > d.txt'\n"));
    env
}

#[test]
fn every_schema_names_its_dialect_and_is_documented() {
    let told = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/report.md")).expect("the document");
    for (name, text) in SCHEMAS {
        Schema::named(name);
        assert_eq!(parsed(text)["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        assert!(told.contains(&format!("schemas/{name}.schema.json")), "docs/report.md does not tell of {name}");
    }
}

#[test]
fn json_outputs_match_their_schemas() {
    let env = env();
    let progress = env.execute(&["--progress", "json"]).exits(1).json_lines();
    progress.iter().for_each(|line| Schema::named("progress").accepts(line));
    let lines = Schema::named("run-log");
    env.log().iter().for_each(|line| lines.accepts(line));
    let status = |env: &TestEnv| parsed(&env.lanewright(&["status", RUN, "--format", "json"]).exits(0).stdout);
    Schema::named("status").accepts(&status(&env));
    let lane = parsed(&env.lanewright(&["status", RUN, "B", "--format", "json"]).exits(0).stdout);
    Schema::named("lane-status").accepts(&lane);
    let graph = ["plan", "graph", "../plan.toml", "--run", RUN, "--format", "json", "--as", "svg"];
    let graph = parsed(&env.lanewright(&graph).exits(0).stdout);
    Schema::named("graph").accepts(&graph);
    let states = |from: &Value| -> BTreeMap<String, Value> {
        let lanes = from["lanes"].as_array().expect("lanes").iter();
        lanes.map(|lane| (lane["lane"].to_string(), lane["state"].clone())).collect()
    };
    assert_eq!(states(&graph), states(&status(&env)), "{graph:#}");
    env.lanewright(&["approve", RUN, "D", "-m", "good"]).exits(0);
    env.lanewright(&["rollback", RUN, "--lane", "B"]).exits(0);
    let ended = env.resume(&["--format", "json", "--progress", "none"]).exits(1);
    Schema::named("status").accepts(&parsed(&ended.stdout));
    env.log().iter().for_each(|line| lines.accepts(line));
    Schema::named("report").accepts(&parsed(&env.lanewright(&["report", "--format", "json"]).exits(0).stdout));
    for record in parsed(&env.read(&format!("repo/{CHECKPOINTS}"))).as_array().expect("an array") {
        Schema::named("checkpoint").accepts(record);
    }
}

#[test]
fn every_event_of_the_golden_log_is_in_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/journals/v1/every-event.jsonl");
    let schema = Schema::named("run-log");
    for line in std::fs::read_to_string(path).expect("the log").lines() {
        schema.accepts(&parsed(line));
    }
}

#[test]
fn the_log_and_the_progress_have_the_same_events() {
    let events = |name: &str| {
        let (_, text) = SCHEMAS.iter().find(|(known, _)| *known == name).expect("a schema");
        let schema = parsed(text);
        (schema["oneOf"].clone(), schema["$defs"].clone())
    };
    assert_eq!(events("run-log"), events("progress"));
}

#[test]
fn an_undocumented_field_is_refused() {
    let line = r#"{"seq":1,"ts":"2026-01-01T00:00:00.000Z","run_id":"r","phase":"P","lane":"-","task":"-","event":"noted","status":"ok","message":"x","crc":"00000000"}"#;
    let schema = Schema::named("run-log");
    schema.accepts(&parsed(line));
    assert!(!schema.takes(&parsed(&line.replace("\"message\"", "\"mood\":1,\"message\""))));
    assert!(!schema.takes(&parsed(&line.replace("\"noted\"", "\"noticed\""))));
}

#[test]
fn errors_and_warnings_are_what_their_schema_says() {
    let env = env();
    let schema = Schema::named("error");
    let refused: [&[&str]; 4] = [&["status", "r9"], &["report", "r9"], &["resume"], &["plan", "check", "none.toml"]];
    for arguments in refused {
        let ended = env.lanewright(&[arguments, &["--format", "json"]].concat());
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert!(!lines.is_empty(), "{arguments:?} says nothing");
        lines.into_iter().for_each(|line| schema.accepts(&parsed(line)));
    }
}
