//! Plan files as people write them, good and bad: `fixtures/plans/{ok,bad}`.
//!
//! A bad plan's diagnostics stand beside it as `NAME.expected`; `UPDATE_EXPECTED=1` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_model::{CommandLine, ExecutorKind, Plan, Task};
use lanewright_plan::explain::explain;
use lanewright_plan::schema::json_schema;
use lanewright_plan::{
    Fallbacks, MAX_TEXT, PlanFormat, ReadOptions, Reading, Source, SourceFile, decode, native_toml, read,
};
use proptest::prelude::*;
use serde_json::Value;

fn fixtures(kind: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans").join(kind);
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_plan = |path: &PathBuf| path.is_file() && path.extension().unwrap() != "expected";
    let mut plans: Vec<PathBuf> = entries.filter(is_plan).collect();
    plans.sort();
    assert!(plans.len() >= 10, "{kind} has too few plans");
    plans
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn load(path: &str) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/ok");
    fs::read_to_string(root.join(path)).map_err(|_| "no such file".to_owned())
}

pub fn runners(name: &str) -> Option<CommandLine> {
    let known = ["claude", "codex"].contains(&name);
    known.then(|| CommandLine::Arguments(vec![name.to_owned(), "--print".to_owned()]))
}

fn read_text(path: &str, text: &str, format: Option<PlanFormat>) -> Reading {
    let executors = &[("hpc", ExecutorKind::Slurm), ("pods", ExecutorKind::Kubernetes)];
    let fallbacks = Fallbacks { executors, ..Fallbacks::default() };
    read(&Source { files: &[SourceFile { path, text }], format, fallbacks, ..Source::default() }, &load, &runners)
}

fn read_file(path: &Path) -> Reading {
    let bytes = fs::read(path).unwrap();
    read_text(name(path), decode(name(path), &bytes).unwrap(), None)
}

fn good(name: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/ok").join(name);
    read_file(&path).plan.unwrap()
}

fn shown(reading: &Reading) -> String {
    reading.diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}

#[test]
fn good_plans_have_no_diagnostics() {
    for path in fixtures("ok") {
        let reading = read_file(&path);
        assert_eq!(shown(&reading), "", "{}", path.display());
        assert!(reading.plan.is_some(), "{}", path.display());
    }
}

#[test]
fn toml_yaml_and_json_give_the_same_plan() {
    let plan = good("billing.toml");
    assert_eq!(good("billing.yaml"), plan);
    assert_eq!(good("billing.json"), plan);
}

#[test]
fn bad_plans_get_expected_diagnostics() {
    for path in fixtures("bad") {
        let reading = read_file(&path);
        let beside = PathBuf::from(format!("{}.expected", path.display()));
        if std::env::var("UPDATE_EXPECTED").is_ok_and(|wish| wish == "1") {
            fs::write(&beside, shown(&reading)).unwrap();
        }
        assert_eq!(shown(&reading), fs::read_to_string(&beside).unwrap(), "{}", path.display());
        let any_error = reading.diagnostics.iter().any(|diagnostic| diagnostic.is_error());
        assert_eq!(reading.plan.is_none(), any_error, "{}", path.display());
    }
}

#[test]
fn misspelt_key_is_an_error_unless_x_prefixed() {
    let text = |key: &str| {
        let tables = ["[timeouts]", "[gates]", "[defaults]", "[[interface]]\nid = 'I'"];
        let of_lane = ["[[lane.task]]", "[[lane.agent]]\ncommand = 'x'", "[lane.must_haves]"];
        let lane = format!("[[lane]]\nid = 'A'\ncommand = 'x'\n{key} = 1");
        let tables = tables.iter().map(|table| format!("{table}\n{key} = 1"));
        let of_lane = of_lane.iter().map(|table| format!("{table}\n{key} = 1"));
        let parts: Vec<String> = tables.chain([lane]).chain(of_lane).collect();
        format!("phase = 'P'\n{key} = 1\n{}", parts.join("\n"))
    };
    let refused = read_text("p.toml", &text("aproval"), None);
    let errors = reading_errors(&refused);
    assert_eq!((errors.len(), refused.plan.is_none()), (9, true), "{errors:?}");
    let accepted = read_text("p.toml", &text("x-aproval"), None);
    assert!(accepted.plan.is_some() && accepted.diagnostics.is_empty(), "{}", shown(&accepted));
    let schema = validator();
    assert_eq!(schema(&toml::from_str(&text("x-aproval")).unwrap()), Ok(()));
}

#[test]
fn allow_unknown_turns_unknown_keys_into_warnings() {
    let text = "phase = 'P'\n[[lane]]\nid = 'A'\ncommand = 'x'\naproval = ['changes']\n";
    let options = ReadOptions { allow_unknown: true, ..ReadOptions::default() };
    let files = [SourceFile { path: "p.toml", text }];
    let reading = read(&Source { files: &files, options, ..Source::default() }, &load, &runners);
    assert!(reading.plan.is_some());
    assert!(shown(&reading).contains("warning: a lane has no key `aproval`; it is ignored"), "{}", shown(&reading));
    assert!(shown(&reading).contains("did you mean `approval`?"), "{}", shown(&reading));
}

#[test]
fn unused_image_is_a_warning() {
    let warned = |executor: &str| {
        let text = format!("[[lane]]\nid = 'A'\ncommand = 'x'\nimage = 'node:2'\n{executor}");
        let reading = read_text("p.toml", &format!("phase = 'P'\n{text}"), None);
        assert_eq!(reading.plan.as_ref().unwrap().lanes[0].resources.image.as_deref(), Some("node:2"));
        shown(&reading)
    };
    assert!(warned("").contains("warning: `image` has no effect: lane `A` works on this machine"), "{}", warned(""));
    let slurm = warned("executor = 'hpc'");
    assert!(slurm.contains("warning: `image` has no effect: lane `A` works on hpc, which is a Slurm"), "{slurm}");
    assert_eq!(warned("executor = 'pods'"), "");
}

fn reading_errors(reading: &Reading) -> Vec<&str> {
    let errors = reading.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    errors.map(|diagnostic| diagnostic.message.as_str()).collect()
}

/// A plan file as an editor's schema checker sees it.
fn as_json(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).unwrap();
    match path.extension().unwrap().to_str().unwrap() {
        "toml" => toml::from_str(&text).ok(),
        "json" => serde_json::from_str(&text).ok(),
        _ => {
            let options = serde_saphyr::options! { strict_booleans: true };
            serde_saphyr::from_str_with_options(&text, options).ok()
        }
    }
}

/// What an editor says of a plan.
fn validator() -> impl Fn(&serde_json::Value) -> Result<(), String> {
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("plan.json", json_schema()).expect("the schema is JSON");
    let schema = compiler.compile("plan.json", &mut schemas).expect("the schema is a JSON Schema");
    move |plan| schemas.validate(plan, schema).map_err(|error| error.to_string())
}

#[test]
fn schema_accepts_good_plans() {
    let accepts = validator();
    for path in fixtures("ok") {
        let plan = as_json(&path).unwrap();
        assert_eq!(accepts(&plan), Ok(()), "{}", path.display());
    }
}

#[test]
fn schema_rejects_malformed_plans() {
    let accepts = validator();
    let of_shape = [
        "defaults.toml",
        "durations.toml",
        "empty-commands.toml",
        "everything-at-once.yaml",
        "ids.toml",
        "lanes-mistyped.yaml",
        "merge.toml",
        "missing-ids.yaml",
        "no-lane.toml",
        "no-lane.yaml",
        "not-a-table.json",
        "numbers.toml",
        "unknown-keys.toml",
        "words.yaml",
        "wrong-types.toml",
        "wrong-types.yaml",
    ];
    let bad = fixtures("bad");
    for file in of_shape {
        let path = bad.iter().find(|path| name(path) == file).unwrap();
        assert!(accepts(&as_json(path).unwrap()).is_err(), "{file}");
    }
}

#[test]
fn every_good_plan_survives_conversion() {
    for path in fixtures("ok") {
        let plan = read_file(&path).plan.unwrap();
        let text = native_toml::write(&plan, &runners);
        let again = read_text("converted.toml", &text, Some(PlanFormat::Toml));
        assert_eq!(again.plan.as_ref(), Some(&plan), "{}{text}", shown(&again));
    }
}

#[test]
fn candidates_are_agents_with_numbers() {
    let plan = good("candidates.toml");
    let agents = |lane: usize| -> Vec<String> {
        let agents = plan.lanes[lane].agents.iter();
        let shown = agents.map(|agent| {
            let model = agent.options.model.as_deref().unwrap_or("-");
            format!("{} {:?} {} {model} {}", agent.name, agent.candidate, agent.runner, agent.round)
        });
        shown.collect()
    };
    let count = ["claude-1 Some(1) claude -", "claude-2 Some(2) claude -", "claude-3 Some(3) claude -"];
    assert_eq!(agents(0), count.map(|agent| format!("{agent} implementation")));
    assert_eq!(
        agents(1),
        [
            "claude-1 Some(1) claude - implementation",
            "claude-2 Some(2) claude opus implementation",
            "codex-3 Some(3) codex - implementation",
            "codex-4 Some(4) codex - implementation",
            "judge None codex o9 judge",
        ]
    );
    assert_eq!(
        agents(2)[..2],
        ["engineer-1 Some(1) command - implementation", "engineer-2 Some(2) command - implementation"]
    );
    assert_eq!(agents(3), ["codex None codex - implementation"]);
    let lane = &plan.lanes[1];
    let gates: Vec<String> = plan.gate_after(lane, 0, &lane.agents[0].tasks[0]).map(ToString::to_string).collect();
    assert_eq!(gates, ["make test"], "the lane's tests judge a candidate");
    assert!(!plan.is_gated(lane, 4, &lane.agents[4].tasks[0]), "and no other agent");
}

#[test]
fn a_runner_for_all_agents_is_that_of_all_candidates() {
    let fallbacks = Fallbacks { runner: Some("codex"), runner_outranks_plan: true, ..Fallbacks::default() };
    let text = "phase = 'P'\n[[lane]]\nid = 'A'\ncandidates = ['claude:opus', 'claude']\n";
    let files = [SourceFile { path: "p.toml", text }];
    let plan = read(&Source { files: &files, fallbacks, ..Source::default() }, &load, &runners).plan.unwrap();
    let shown = plan.lanes[0].agents.iter().map(|agent| (agent.runner.as_str(), agent.options.model.as_deref()));
    assert_eq!(shown.collect::<Vec<_>>(), [("codex", None), ("codex", None)]);
}

#[test]
fn converted_plan_omits_defaults() {
    let text = native_toml::write(&good("flow.yaml"), &runners);
    let expected = r#"phase = "P6"

[[lane]]
id = "A"
runner = "codex"

[[lane]]
id = "B"
depends_on = ["A"]
runner = "codex"
"#;
    assert_eq!(text, expected);
}

#[test]
fn digest_covers_text_and_prompt_files() {
    let text = "phase = 'P'\n[[lane]]\nid = 'A'\ncommand = 'x'\nprompt_file = 'p.md'\n";
    let digest = |text: &str, prompt: &str| {
        let load = |_: &str| Ok(prompt.to_owned());
        read(&Source { files: &[SourceFile { path: "p.toml", text }], ..Source::default() }, &load, &runners).sha256
    };
    let first = digest(text, "do it");
    assert_eq!(first.len(), 64);
    assert_eq!(first, digest(text, "do it"));
    assert_ne!(first, digest(text, "do it now"));
    assert_ne!(first, digest(&format!("{text}#"), "do it"));
    assert_ne!(digest(&format!("{text}#a"), "b"), digest(&format!("{text}#"), "ab"), "lengths are part of it");
}

#[test]
fn given_format_overrides_detection() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/ok/billing.json");
    let text = fs::read_to_string(path).unwrap().replace('\t', " ");
    let as_yaml = read_text("p", &text, Some(PlanFormat::Yaml));
    assert_eq!(as_yaml.plan, Some(good("billing.toml")), "JSON is YAML: {}", shown(&as_yaml));
    assert!(read_text("p", &text, Some(PlanFormat::Toml)).plan.is_none());
}

#[test]
fn key_without_value_counts_as_absent() {
    let reading = read_text("p", "phase: P\ntitle:\nlane: [{id: A, command: x, owns: , task: ~}]", None);
    assert_eq!(shown(&reading), "");
    assert_eq!(reading.plan.unwrap().title, None);
}

#[test]
fn oversized_plan_is_refused() {
    let text = format!("phase = 'P' #{}", " ".repeat(MAX_TEXT));
    assert!(shown(&read_text("p", &text, None)).contains("a plan has at most"));
}

#[test]
fn diagnostics_serialize_to_json() {
    let reading = read_text("p.toml", "phase = 'P'\nlane = [{ id = 'A', runner = 'x' }]", None);
    let json = serde_json::to_value(&reading.diagnostics).unwrap();
    assert_eq!(json[0]["severity"], "error");
    assert_eq!((&json[0]["line"], &json[0]["column"]), (&2.into(), &30.into()));
    assert_eq!(json[0]["excerpt"]["caret"], 29);
}

#[test]
fn lane_agents_and_tasks_are_resolved() {
    let plan = good("billing.toml");
    let api = plan.find(&"SL-API".parse().unwrap()).map(|lane| plan.lane(lane)).unwrap();
    let staff = api.agents.iter().map(|agent| {
        let tasks: Vec<&str> = agent.tasks.iter().map(|task| task.id.as_str()).collect();
        format!("{} {} {} {}", agent.name, agent.round, agent.runner, tasks.join("+"))
    });
    let expected = [
        "analyst requirements claude report",
        "engineer implementation command routes+notes",
        "tester implementation claude tests+notes",
        "reviewer review codex review",
    ];
    assert_eq!(staff.collect::<Vec<_>>(), expected);
    assert_eq!(api.env["CI"], "1", "variables of the defaults stay");
    assert_eq!(api.env["RUST_LOG"], "debug", "the lane's own win");
    assert!(api.setup.is_empty(), "an empty list takes the place of the default one");
    assert_eq!((plan.lanes[0].retries, api.retries), (2, 5));
    assert_eq!(plan.lanes[0].agents[0].tasks[1].max_time, Some(std::time::Duration::from_secs(480)));
    assert_eq!(plan.lanes[2].agents[0].name.as_str(), "agent", "a command alone has no runner to be named after");
    assert_eq!(plan.lanes[2].agents[0].tasks[0].prompt, "SL-DOCS");
    assert_eq!(good("smallest.toml").lanes[0].retries, 3);
}

#[test]
fn agents_do_their_own_tasks_with_their_commands() {
    let plan = good("agent-tasks.toml");
    let staff = plan.lanes.iter().flat_map(|lane| &lane.agents).map(|agent| {
        let command = |task: &Task| task.command.as_ref().map_or_else(String::new, |command| format!(" $ {command}"));
        let tasks: Vec<String> = agent.tasks.iter().map(|task| format!("{}{}", task.id, command(task))).collect();
        format!("{} ({}): {}", agent.name, agent.runner, tasks.join(", "))
    });
    let expected = [
        "eng (claude): one $ echo one > one, 4",
        "writer (claude): docs, tidy $ make fmt",
        "left (none): 1 $ echo left > left",
        "right (none): 2 $ echo right > right, last $ echo last > last",
        "agent (none): 1 $ echo c > c",
    ];
    assert_eq!(staff.collect::<Vec<_>>(), expected);
    let runs = |name: &str| {
        let mut all = plan.lanes.iter().flat_map(|lane| &lane.agents);
        all.find(|agent| agent.name.as_str() == name).unwrap().runs_its_command()
    };
    assert_eq!(["eng", "writer", "left"].map(runs), [false, true, false]);
    let shown = explain(&plan).to_string();
    assert!(shown.contains("agent left\n    task 1, at most 30m\n      run  $ echo left > left\n"), "{shown}");
}

#[test]
fn explanation_shows_derived_facts() {
    insta::assert_snapshot!(explain(&good("billing.toml")), @r##"
    P1: Billing
    3 lanes, 2 waves, onto main, merge local, at most 4 agents at once

    SL-SCHEMA  Ledger schema
      wave 1, at most 18m
      owns src/ledger/**, migrations
      uses heavy
      setup  $ npm ci
      agent claude  $ claude --print
        task 1: Tables, at most 10m
          verify  $ cargo check
        task 2: Indexes, at most 8m
      tests  $ cargo test ledger

    SL-API  HTTP API
      wave 2, at most 2h 35m, after SL-SCHEMA
      owns src/api/**
      uses heavy, database
      approval plan, changes
      copy .env, target/**
      agent analyst (requirements)  $ claude --print
        task report, at most 5m
      agent engineer  $ ./agents/engineer.sh --fast
        task routes, at most 30m
        task notes: Tell in CHANGES.md what is new, at most 30m
      agent tester  $ claude --print
        task tests, at most 30m
        task notes: Tell in CHANGES.md what is new, at most 30m
      agent reviewer (review)  $ codex --print
        task review, at most 30m

    SL-DOCS
      wave 1, at most 30m
      owns docs, *.md
      setup  $ npm ci
      agent agent  $ ./write-docs.sh
        task 1, at most 30m

    critical path  SL-SCHEMA -> SL-API (at most 2h 53m)
    kept apart     SL-SCHEMA, SL-DOCS
    after a task   $ cargo check
    after a merge  $ cargo test
    after a merge  $ cargo clippy --all-targets
    at the end     $ cargo test --workspace
    "##);
    insta::assert_snapshot!(explain(&good("ordered-owners.toml")), @r##"
    P3
    8 lanes, 3 waves

    first
      wave 1, at most 30m
      owns src/**
      agent agent  $ ./work.sh
        task 1, at most 30m
      no gate: nothing judges the work before it is merged

    between
      wave 2, at most 30m, after first
      agent agent  $ ./work.sh
        task 1, at most 30m
      no gate: nothing judges the work before it is merged

    last
      wave 3, at most 30m, after between
      owns src/main.rs
      agent agent  $ ./work.sh
        task 1, at most 30m
      no gate: nothing judges the work before it is merged

    apart
      wave 1, at most 30m
      owns docs/**
      agent agent  $ ./work.sh
        task 1, at most 30m
      no gate: nothing judges the work before it is merged

    apart-too
      wave 1, at most 30m
      owns docs/index.md
      agent agent  $ ./work.sh
        task 1, at most 30m
      no gate: nothing judges the work before it is merged

    pooled
      wave 1, at most 30m
      owns schema.sql
      uses schema
      agent agent  $ ./work.sh
        task 1, at most 30m
      no gate: nothing judges the work before it is merged

    pooled-too
      wave 1, at most 30m
      owns schema.sql
      uses schema
      agent agent  $ ./work.sh
        task 1, at most 30m
      no gate: nothing judges the work before it is merged

    reader
      wave 1, at most 30m
      agent agent  $ ./work.sh
        task 1, at most 30m
      no gate: nothing judges the work before it is merged

    critical path  first -> between -> last (at most 1h 30m)
    kept apart     apart, apart-too
    shared files   first (src/**), last (src/main.rs), for example src/main.rs
    shared files   apart (docs/**), apart-too (docs/index.md), for example docs/index.md
    shared files   pooled (schema.sql), pooled-too (schema.sql), for example schema.sql
    "##);
}

#[test]
fn matrix_makes_a_lane_per_combination() {
    let plan = good("matrix.toml");
    let ids: Vec<&str> = plan.lanes.iter().map(|lane| lane.id.as_str()).collect();
    let builds = ["BUILD-linux-pg-16", "BUILD-linux-my", "BUILD-mac-pg-16", "BUILD-mac-my"];
    assert_eq!(ids, [builds.as_slice(), &["PACK-3.9", "PACK-3.10", "SHIP"]].concat());
    let lane = |id: &str| plan.lanes.iter().find(|lane| lane.id.as_str() == id).unwrap();
    let mac = lane("BUILD-mac-pg-16");
    assert_eq!(mac.name.as_deref(), Some("Build (mac, pg:16)"));
    assert_eq!(mac.owns, ["build/mac-pg:16/**"]);
    assert_eq!(mac.agents[0].tasks[0].prompt, "Build for mac. In CI it is called ${{ matrix.os }}.");
    assert_eq!(mac.tests, [CommandLine::Shell("./test pg:16".to_owned())]);
    assert_eq!(mac.env["OS"], "mac");
    assert_eq!(lane("PACK-3.10").name.as_deref(), Some("Pack 3.10"));
    let names = |id: &str| lane(id).depends_on.iter().map(|&at| plan.lane(at).id.as_str()).collect::<Vec<_>>();
    assert_eq!(names("PACK-3.9"), builds);
    assert_eq!(names("SHIP"), ["PACK-3.9", "PACK-3.10", "BUILD-linux-my"]);
    assert!(lane("SHIP").agents[0].tasks[0].prompt.ends_with("{{ matrix.os }}"));
    assert!(explain(&plan).to_string().contains("BUILD-linux-my  Build (linux, my)"));
}

#[test]
fn matrix_values_may_be_placed_in_id() {
    let text = "phase: P\nlane: [{id: 'ON-{{ matrix.os }}-CI', matrix: {os: ['ubuntu:22', mac]}, command: x}]\n";
    let plan = read_text("p.yaml", text, None).plan.unwrap();
    assert_eq!(plan.lanes.iter().map(|lane| lane.id.as_str()).collect::<Vec<_>>(), ["ON-ubuntu-22-CI", "ON-mac-CI"]);
}

/// Texts near real plans: a fixture with a stretch of it taken out, doubled, or replaced.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let files: Vec<Vec<u8>> =
        ["ok", "bad"].iter().flat_map(|kind| fixtures(kind)).map(|path| fs::read(path).unwrap()).collect();
    let edit =
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..4), 0..3u8);
    (prop::sample::select(files), prop::collection::vec(edit, 1..4)).prop_map(|(mut text, edits)| {
        for (from, length, bytes, kind) in edits {
            let from = from.index(text.len() + 1);
            let to = from + length.index((text.len() - from).min(40) + 1);
            let replacement = if kind == 0 { text[from..to].repeat(2) } else { bytes };
            text.splice(from..to, replacement);
        }
        text
    })
}

fn any_format() -> impl Strategy<Value = Option<PlanFormat>> {
    prop::option::of(prop::sample::select(PlanFormat::ALL))
}

fn read_bytes(bytes: &[u8], format: Option<PlanFormat>) -> Reading {
    let text = String::from_utf8_lossy(bytes);
    let _ = decode("p", bytes);
    read_text("p", &text, format)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn plan_reader_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), format in any_format()) {
        read_bytes(&bytes, format);
    }

    #[test]
    fn damaged_plan_never_panics_or_passes_silently(bytes in mutated(), format in any_format()) {
        let reading = read_bytes(&bytes, format);
        let any_error = reading.diagnostics.iter().any(|diagnostic| diagnostic.is_error());
        prop_assert_eq!(reading.plan.is_none(), any_error);
        if let Some(plan) = reading.plan {
            explain(&plan).to_string();
        }
    }

    #[test]
    fn any_plan_survives_conversion(plan in crate::plan_strategy::plan()) {
        let text = native_toml::write(&plan, &runners);
        let again = read_text("converted.toml", &text, None);
        prop_assert_eq!(again.plan.as_ref(), Some(&plan), "{}\n{}", shown(&again), text);
    }
}
