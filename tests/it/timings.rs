//! `--timings`: the trace of a real run holds what its log holds, and can be read whatever ended it.

use std::collections::HashMap;

use rustix::process::Signal;
use serde_json::Value;

use crate::report::MIXED;
use crate::support::{TestEnv, wait_until};

const SECRET: &str = "hunter2-hunter2";

/// A slice: its row, and from when to when it lasts.
struct Slice<'t> {
    event: &'t Value,
    row: &'t str,
    from: u64,
    until: u64,
}

/// The slices of a trace, in the order in which they ended.
fn slices(trace: &[Value]) -> Vec<Slice<'_>> {
    let names = trace.iter().filter(|event| event["name"] == "thread_name");
    let rows: HashMap<u64, &str> =
        names.filter_map(|event| Some((event["tid"].as_u64()?, event["args"]["name"].as_str()?))).collect();
    trace.iter().filter(|event| event["ph"] == "X").filter_map(|event| slice(event, &rows)).collect()
}

fn slice<'t>(event: &'t Value, rows: &HashMap<u64, &'t str>) -> Option<Slice<'t>> {
    let number = |name: &str| event[name].as_u64();
    let from = number("ts")?;
    Some(Slice { event, row: rows[&number("tid")?], from, until: from + number("dur")? })
}

fn parsed(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn holds(outer: &Slice<'_>, inner: &Slice<'_>) -> bool {
    outer.row == inner.row && outer.from <= inner.from && inner.until <= outer.until
}

#[test]
fn timings_trace_holds_every_job_inside_its_step() {
    let env = TestEnv::new();
    env.plan(&format!("{MIXED}\n[lane.env]\nAPI_TOKEN = \"{SECRET}\"\n"));
    let ended = env.execute(&["--timings", "../scratch/trace.json", "--max-parallel", "1"]);
    ended.exits(1);
    let text = env.scratch("trace.json");
    let trace = parsed(&text);
    let slices = slices(&trace);
    let jobs: Vec<&Slice<'_>> = slices.iter().filter(|slice| slice.event["args"].get("job").is_some()).collect();
    let exits = env.events("job_exited");
    assert!(exits.len() >= 5, "{exits:?}");
    assert_eq!(jobs.len(), exits.len());
    for exit in exits.iter().map(|event| &event["exit"]) {
        let same = |job: &&&Slice<'_>| {
            ["started_at", "finished_at", "exit_code"].iter().all(|name| job.event["args"][name] == exit[name])
        };
        let job = jobs.iter().find(same).unwrap_or_else(|| panic!("{exit} is not in {text}"));
        let around = |slice: &&Slice<'_>| slice.event["name"] == "run_job" && holds(slice, job);
        assert_eq!(slices.iter().filter(around).count(), 1, "{}", job.event);
    }
    for (name, least) in [("open_worktree", 2), ("commit_work", 2), ("publish_merge", 1), ("sync log", 5)] {
        assert!(slices.iter().filter(|slice| slice.event["name"] == name).count() >= least, "{name}: {text}");
    }
    let commit = slices.iter().find(|slice| slice.event["name"] == "commit_work").expect("a commit");
    assert!(slices.iter().any(|slice| slice.event["name"] == "git add" && holds(commit, slice)), "{text}");
    assert!(slices.iter().any(|slice| slice.event["name"] == "waiting for a place" && slice.row == "A"), "{text}");
}

#[test]
fn slices_of_a_row_lie_within_or_beside_each_other() {
    let env = TestEnv::new();
    env.plan(MIXED);
    env.execute(&["--timings", "../scratch/trace.json"]).exits(1);
    let trace = parsed(&env.scratch("trace.json"));
    let slices = slices(&trace);
    for one in &slices {
        for other in slices.iter().filter(|other| other.row == one.row && other.from >= one.from) {
            let apart = other.from >= one.until || other.until <= one.until;
            assert!(apart, "{} lies across {}", one.event, other.event);
        }
    }
}

#[test]
fn secrets_are_no_part_of_it() {
    let env = TestEnv::new();
    // With this setting it is the git program that commits, with a message that names the lane.
    env.git(&["config", "author.name", "Author"]);
    env.git(&["config", "author.email", "author@example.invalid"]);
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nname = \"with {SECRET}\"\ncommand = 'echo l > l.txt'\n[lane.env]\nAPI_TOKEN = \"{SECRET}\"\n"
    ));
    env.execute(&["--timings", "../scratch/trace.json"]).exits(0);
    let text = env.scratch("trace.json");
    assert!(text.contains("\"git commit-tree\""), "{text}");
    assert!(text.contains("with [redacted:API_TOKEN]") && !text.contains(SECRET), "{text}");
}

#[test]
fn killed_run_leaves_readable_timings_trace() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'touch \"$SCRATCH/began\"; wait-for go; echo l > l.txt'\n");
    let run = env.start(&["--timings", "../scratch/first.json"]);
    wait_until("the agent", || env.path("scratch/began").exists());
    wait_until("its start in the log", || !env.events("job_started").is_empty());
    run.signal(Signal::KILL);
    run.wait();
    let first = parsed(&format!("{}]", env.scratch("first.json")));
    assert!(slices(&first).iter().any(|slice| slice.event["name"] == "open_worktree"));
    env.write("scratch/go", "");
    env.resume(&["--timings", "../scratch/second.json"]).exits(0);
    let second = parsed(&env.scratch("second.json"));
    assert!(slices(&second).iter().any(|slice| slice.event["args"]["job"] == "L/agent/1 attempt 1"), "{second:?}");
}

#[test]
fn unwritable_output_file_is_reported_first() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo l > l.txt'\n");
    let ended = env.execute(&["--timings", "no/such/place.json"]).exits(2);
    ended.says(&["cannot write the timings to", "no/such/place.json"]).hints("directory");
    assert!(!env.path("repo/.claude").exists(), "a run was begun");
}
