//! Real plans, run to the end: every GSD phase and every phase plan below `LANEWRIGHT_CORPUS` (default
//! `../shared/corpus`). Without that directory there is nothing to run, and the test says so.
//!
//! A scripted agent makes the files that its task names, a script says yes to every human gate. The plans' own commands
//! belong to projects that are not here, so `true` takes their place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;

use crate::support::TestEnv;

/// Writes down when a task begins and ends, and makes the files that its prompt lists.
const AGENT: &str = "#!/bin/sh
echo \"begin $LANEWRIGHT_LANE $LANEWRIGHT_TASK\" >> \"$SCRATCH/log\"
awk '/^## Files in scope$/ { on = 1; next } /^## / { on = 0 } on && /^- / { print substr($0, 3) }' \
    \"$LANEWRIGHT_PROMPT_FILE\" | grep -v '[][*?{}()~`|<>]' | grep -v '^/' | grep -v '\\.\\.' | grep '\\.[a-z]*$' |
while read -r file; do mkdir -p \"$(dirname \"$file\")\" && echo \"$LANEWRIGHT_LANE\" >> \"$file\"; done
echo \"end $LANEWRIGHT_LANE $LANEWRIGHT_TASK\" >> \"$SCRATCH/log\"
";

fn plans() -> Vec<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let root = std::env::var_os("LANEWRIGHT_CORPUS").map_or(default, PathBuf::from);
    let mut found = Vec::new();
    collect(&root, &mut found);
    found.sort();
    found
}

/// Directories with GSD plans, and Markdown files in directories called `plans`.
fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut names: Vec<PathBuf> = fs::read_dir(directory).into_iter().flatten().flatten().map(|it| it.path()).collect();
    names.sort();
    let is_gsd = |path: &PathBuf| path.to_string_lossy().ends_with("PLAN.md");
    if names.iter().any(is_gsd) {
        found.push(directory.to_owned());
    }
    for path in names {
        let is_lanes = directory.ends_with("plans") && path.extension().is_some_and(|extension| extension == "md");
        let is_detailed = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("detailed-"));
        if path.is_dir() {
            collect(&path, found);
        } else if is_lanes && !is_detailed {
            found.push(path);
        }
    }
}

/// The plan as a native one whose commands all succeed, and whose agents are all ours: the programs that plans name need
/// not be on this machine.
fn harmless(env: &TestEnv, plan: &Path) -> String {
    let converted = env.lanewright(&["plan", "convert", "--redo", plan.to_str().expect("UTF-8")]).exits(0);
    let mut table: toml::Table = converted.stdout.parse().expect("TOML");
    let pass = || toml::Value::Array(vec!["true".into()]);
    let gates = table.get_mut("gates").and_then(toml::Value::as_table_mut);
    gates.into_iter().flat_map(|gates| gates.iter_mut()).for_each(|(_, gate)| *gate = pass());
    for lane in table["lane"].as_array_mut().expect("lanes").iter_mut().filter_map(toml::Value::as_table_mut) {
        lane.get_mut("tests").into_iter().for_each(|tests| *tests = pass());
        lane.remove("runner");
        let agents = lane.get_mut("agent").and_then(toml::Value::as_array_mut).into_iter().flatten();
        agents.filter_map(toml::Value::as_table_mut).for_each(|agent| drop(agent.remove("runner")));
        let tasks = lane.get_mut("task").and_then(toml::Value::as_array_mut).into_iter().flatten();
        for task in tasks.filter_map(toml::Value::as_table_mut) {
            task.get_mut("verify").into_iter().for_each(|verify| *verify = pass());
        }
    }
    table.to_string()
}

/// Runs the plan to its end, with a yes for whatever a person is asked.
fn run(env: &TestEnv) {
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1", "--max-parallel", "4"];
    let mut ended = env.lanewright(&start);
    for _ in 0..40 {
        if ended.code != 3 {
            break;
        }
        let asked: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("lanewright approve")).collect();
        assert!(!asked.is_empty(), "blocked, and nobody is asked:\n{}", ended.stderr);
        for line in asked {
            let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word != "approve").collect();
            env.lanewright(&words).exits(0);
        }
        ended = env.lanewright(&["resume", "r1"]);
    }
    ended.exits(0);
}

/// What the log of the agents must show of the plan's explanation.
fn check(env: &TestEnv, explanation: &Value) {
    let log = fs::read_to_string(env.path("scratch/log")).unwrap_or_default();
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
    let mut spans: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut began: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (at, words) in lines.iter().enumerate() {
        let span = spans.entry(words[1]).or_insert((at, at));
        span.1 = at;
        if words[0] == "begin" {
            *began.entry((words[1], words[2])).or_default() += 1;
        }
    }
    let lanes = explanation["lanes"].as_array().expect("lanes");
    let mut wanted = BTreeSet::new();
    for lane in lanes {
        let id = lane["lane"]["id"].as_str().expect("an id");
        for task in lane["lane"]["agents"][0]["tasks"].as_array().expect("tasks") {
            if task["type"] == "auto" {
                wanted.insert((id, task["id"].as_str().expect("an id")));
            }
        }
        for on in lane["waits_for"].as_array().expect("lanes") {
            let (Some(before), Some(after)) = (spans.get(on.as_str().expect("an id")), spans.get(id)) else { continue };
            assert!(before.1 < after.0, "{id} began before {on} was done");
        }
    }
    assert_eq!(began.keys().copied().collect::<BTreeSet<_>>(), wanted, "the tasks that were done");
    assert!(began.values().all(|times| *times == 1), "a task was done twice: {began:?}");
    for shared in explanation["shared"].as_array().expect("pairs") {
        let span = |at: usize| shared["lanes"][at].as_str().and_then(|lane| spans.get(lane));
        if let (Some(one), Some(other)) = (span(0), span(1)) {
            assert!(one.1 < other.0 || other.1 < one.0, "at one file at once: {shared}");
        }
    }
}

fn run_and_check(plan: &Path) {
    let env = TestEnv::new();
    env.write(
        "repo/lanewright.toml",
        "runner = 'agent'\nallow_empty = true\nmust_haves = 'report'\n[runners.agent]\ncommand = 'agent.sh'\n",
    );
    env.program("agent.sh", AGENT);
    env.commit("settings");
    let text = harmless(&env, plan);
    env.write("plan.toml", &text);
    let file = env.path("plan.toml");
    let shown = env.lanewright(&["plan", "show", "--format", "json", file.to_str().expect("UTF-8")]).exits(0);
    run(&env);
    check(&env, &serde_json::from_str(&shown.stdout).expect("JSON"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn every_real_plan_runs_to_the_end() {
    let plans = plans();
    if plans.is_empty() {
        println!("skipped: there is no directory of real plans (LANEWRIGHT_CORPUS)");
        return;
    }
    let left = Mutex::new(plans.iter());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(plan) = left.lock().expect("the list").next() else { break };
                    println!("{}", plan.display());
                    run_and_check(plan);
                }
            });
        }
    });
}
