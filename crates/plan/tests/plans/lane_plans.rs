//! Phase plans in Markdown: `fixtures/plans/lanes`, each trap of real plans once.
//!
//! Beside each plan stands what a person takes from it, `NAME.expected`: its diagnostics, and the plan in short;
//! `UPDATE_EXPECTED=1` writes it anew, to be read by a person before it is kept.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_model::{CommandLine, LaneIndex, Plan};
use lanewright_plan::{Fallbacks, PlanFormat, ReadOptions, Reading, Source, SourceFile, decode, native_toml, read};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/lanes")
}

fn text(name: &str) -> String {
    fs::read_to_string(directory().join(name)).unwrap()
}

fn runners(name: &str) -> Option<CommandLine> {
    ["claude", "codex"].contains(&name).then(|| CommandLine::Arguments(vec![name.to_owned(), "--print".to_owned()]))
}

fn read_with(path: &str, text: &str, format: Option<PlanFormat>, options: ReadOptions<'_>) -> Reading {
    let fallbacks = Fallbacks { runner: Some("claude"), ..Default::default() };
    let source = Source { files: &[SourceFile { path, text }], format, fallbacks, options, ..Source::default() };
    read(&source, &|_| Err("no such file".to_owned()), &runners)
}

fn read_text(text: &str) -> Reading {
    read_with("plan.md", text, None, ReadOptions::default())
}

fn good(text: &str) -> Plan {
    let reading = read_text(text);
    assert!(reading.plan.is_some(), "{}", faults(&reading));
    reading.plan.unwrap()
}

fn faults(reading: &Reading) -> String {
    reading.diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}

/// The plan as a person would note it down.
fn in_short(plan: &Plan) -> String {
    let id = |lane: LaneIndex| plan.lane(lane).id.to_string();
    let pairs = |pairs: &[(LaneIndex, LaneIndex)], between: &str| {
        pairs.iter().map(|&(one, other)| format!("{}{between}{}", id(one), id(other))).collect::<Vec<_>>().join(", ")
    };
    let mut short = String::new();
    let phase = &plan.phase;
    writeln!(short, "phase {phase}: {:?}, base {:?}", plan.title, plan.base_branch).unwrap();
    for gate in &plan.interfaces {
        let state = if gate.closed { "closed" } else { "open" };
        writeln!(short, "gate {} {state}, provided by {:?}", gate.id, gate.provider.map(id)).unwrap();
    }
    for edge in &plan.added_edges {
        writeln!(short, "added {} after {}: {:?}", id(edge.lane), id(edge.on), edge.origin).unwrap();
    }
    writeln!(short, "apart {}; in a row {}", pairs(&plan.exclusions, "|"), pairs(&plan.sequences, "<")).unwrap();
    for command in &plan.gates.last {
        writeln!(short, "at the end: {command}").unwrap();
    }
    for lane in &plan.lanes {
        let after = lane.depends_on.iter().map(|&lane| id(lane)).collect::<Vec<_>>().join(", ");
        writeln!(short, "\nlane {}: {:?} after [{after}]", lane.id, lane.name).unwrap();
        writeln!(short, "  {} {:?}", lane.ownership, lane.owns).unwrap();
        writeln!(short, "  runner {} {:?}", lane.agents[0].runner, lane.env).unwrap();
        lane.tests.iter().for_each(|command| writeln!(short, "  tests: {command}").unwrap());
        for task in &lane.agents[0].tasks {
            writeln!(short, "  task {} {:?} {:?}", task.id, task.name, task.files).unwrap();
            task.verify.iter().for_each(|command| writeln!(short, "    verify: {command}").unwrap());
            task.acceptance_criteria.iter().for_each(|text| writeln!(short, "    done when: {text}").unwrap());
        }
    }
    short
}

fn fixtures() -> Vec<PathBuf> {
    let entries = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut plans: Vec<PathBuf> = entries.filter(|path| path.extension().unwrap() == "md").collect();
    plans.sort();
    assert!(plans.len() >= 10);
    plans
}

#[test]
fn lane_plans_match_expected_files() {
    for path in fixtures() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let reading = read_with(name, &text(name), None, ReadOptions::default());
        let found = format!("{}{}", faults(&reading), reading.plan.as_ref().map(in_short).unwrap_or_default());
        let beside = path.with_extension("expected");
        if std::env::var("UPDATE_EXPECTED").is_ok_and(|wish| wish == "1") {
            fs::write(&beside, &found).unwrap();
        }
        assert_eq!(found, fs::read_to_string(&beside).unwrap_or_default(), "{name}");
        assert_eq!(reading.plan.is_none(), reading.diagnostics.iter().any(|fault| fault.is_error()), "{name}");
    }
}

#[test]
fn lane_plan_diagnostics_have_help() {
    for path in fixtures() {
        let reading = read_text(&fs::read_to_string(&path).unwrap());
        for fault in reading.diagnostics {
            let by_lowering = fault.message.contains("so they run one after the other")
                || fault.message.contains("wait for each other");
            assert!(fault.help.is_some() || by_lowering, "{}: {fault}", path.display());
        }
    }
}

#[test]
fn diagnostics_point_to_the_faulty_word() {
    let reading = read_text(&text("traps.md"));
    let at = |part: &str| {
        let found = reading.diagnostics.iter().find(|fault| fault.message.contains(part));
        found.map(|fault| (fault.line, fault.column)).unwrap_or_else(|| panic!("{part}"))
    };
    assert_eq!(at("depends on itself"), (11, Some(29)));
    assert_eq!(at("`SL-9`"), (11, Some(35)));
    assert_eq!(at("`the release`"), (12, Some(60)));
    assert_eq!(at("`../outside.rs`"), (22, Some(38)));
}

#[test]
fn lane_plans_ignore_line_ends_and_bom() {
    for name in ["one-line.md", "stanzas.md", "nested.md"] {
        let plan = in_short(&good(&text(name)));
        let crlf = text(name).replace('\n', "\r\n");
        assert_eq!(in_short(&good(&crlf)), plan, "{name}");
        let marked = format!("\u{feff}{}", text(name));
        assert_eq!(in_short(&good(decode(name, marked.as_bytes()).unwrap())), plan, "{name}");
        assert_eq!(in_short(&good(text(name).trim_end())), plan, "{name}");
    }
}

#[test]
fn task_text_is_in_its_own_prompt_only() {
    let plan = good(&text("one-line.md"));
    let prompts: Vec<&str> = tasks(&plan).map(|task| task.prompt.as_str()).collect();
    for told in [
        "Write the gap list.",
        "Cover a torn write in",
        "Read lazily.",
        "Review `docs/ledger.md` by hand.",
        "Write `src/ledger/append.rs`.",
    ] {
        assert_eq!(prompts.iter().filter(|prompt| prompt.contains(told)).count(), 1, "{told}");
    }
    let append = prompts.iter().find(|prompt| prompt.contains("Cover a torn write")).unwrap();
    for part in
        ["Append entries.", "extend `__all__`", "SL-0 gap list", "Entries are never rewritten.", "may fail until"]
    {
        assert!(append.contains(part), "{part}: {append}");
    }
    let read = prompts.iter().find(|prompt| prompt.contains("Read lazily.")).unwrap();
    assert!(read.contains("a fast tier is enough") && !read.contains("No entry is lost."), "{read}");
    // Its other task runs the lane's own test, which needs no agent.
    let last = prompts.iter().find(|prompt| prompt.contains("No entry is lost.")).unwrap();
    assert!(last.contains("cargo test --workspace") && last.contains("owns no file"), "{last}");
}

#[test]
fn notes_reach_their_lanes() {
    let plan = good(&text("stanzas.md"));
    let prompt = |lane: usize| plan.lanes[lane].agents[0].tasks[0].prompt.as_str();
    assert!(prompt(1).contains("SL-1 alone may be slow.") && prompt(1).contains("SL-1.2 builds lazily."));
    assert!(!prompt(2).contains("SL-1 alone may be slow."));
    assert!((0..4).all(|lane| prompt(lane).contains("stop when the base is old")));
    assert!(prompt(2).contains("`src/index.ts`: SL-0 alone"), "{}", prompt(2));
    assert!(prompt(0).contains("small/low"));
    let store = good(&text("nested.md"));
    assert!(store.lanes[2].agents[0].tasks[0].prompt.contains("Orders are kept in memory."));
}

fn tasks(plan: &Plan) -> impl Iterator<Item = &lanewright_model::Task> {
    plan.lanes.iter().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.tasks)
}

#[test]
fn strict_turns_missing_parts_into_errors() {
    let strict = |name: &str, options: ReadOptions<'_>| {
        let reading = read_with(name, &text(name), None, options);
        reading.diagnostics.into_iter().filter(|fault| fault.is_error()).map(|fault| fault.message).collect::<Vec<_>>()
    };
    let all = ReadOptions { strict: true, strict_gates: true, ..ReadOptions::default() };
    assert_eq!(strict("nested.md", ReadOptions::default()), Vec::<String>::new());
    let errors = strict("nested.md", all);
    assert!(errors.iter().any(|error| error.contains("not described in full")), "{errors:?}");
    let errors = strict("no-index.md", all);
    assert!(errors.iter().any(|error| error.contains("no test execution plan")), "{errors:?}");
    let errors = strict("traps.md", all);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("`IF-0-P4-NOBODY` is open and no lane provides it"), "{errors:?}");
    assert_eq!(strict("stanzas.md", all), Vec::<String>::new(), "only plans of the first version say so much");
}

#[test]
fn retired_plan_needs_force() {
    let force = ReadOptions { force: true, ..ReadOptions::default() };
    assert!(read_with("retired.md", &text("retired.md"), None, force).plan.is_some());
    assert!(read_text(&text("retired.md")).plan.is_none());
}

#[test]
fn non_plan_is_explained_with_forced_format() {
    for (name, words) in [("roadmap.md", "roadmap"), ("detailed.md", "detailed plan"), ("readme.md", "without lanes")] {
        for format in [None, Some(PlanFormat::Lanes)] {
            let reading = read_with(name, &text(name), format, ReadOptions::default());
            assert_eq!(reading.diagnostics.len(), 1, "{}", faults(&reading));
            assert!(reading.diagnostics[0].message.contains(words), "{}", faults(&reading));
        }
    }
}

#[test]
fn lane_plans_survive_conversion() {
    for name in ["one-line.md", "stanzas.md", "nested.md", "no-index.md"] {
        let plan = good(&text(name));
        let converted = native_toml::write(&plan, &runners);
        let again = read_with("converted.toml", &converted, Some(PlanFormat::Toml), ReadOptions::default());
        // Where an edge comes from is not said by a native plan.
        let kept = |plan: &Plan| {
            in_short(plan).lines().filter(|line| !line.starts_with("added")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(again.plan.as_ref().map(kept), Some(kept(&plan)), "{}", faults(&again));
    }
}

/// A plan of one lane with the given index line and section.
fn one_lane(index: &str, section: &str) -> String {
    format!("# P1: A\n\n## Lane Index & Dependencies\n\n{index}\n\n## Lanes\n\n### SL-1 - One\n\n{section}\n")
}

#[test]
fn parenthesized_lanes_add_no_edges() {
    for value in ["(none)", "(none — disjoint from SL-2's files)", "None (see SL-2)", "(Phase 2)", "—", "n/a"] {
        let index = format!(
            "- SL-1 - One; Depends on: {value}; Blocks: {value}; Parallel-safe: yes\n- SL-2 - Two; Depends on: none; Blocks: none; Parallel-safe: yes"
        );
        let reading = read_text(&one_lane(
            &index,
            "- **Scope**: x\n- **Tasks**:\n  - impl: y\n\n### SL-2 - Two\n\n- **Tasks**:\n  - impl: z",
        ));
        assert_eq!(reading.diagnostics, [], "{value}");
        assert!(reading.plan.unwrap().lanes.iter().all(|lane| lane.depends_on.is_empty()), "{value}");
    }
}

#[test]
fn ambiguous_commands_are_not_gates() {
    for value in
        ["Review the docs", "see `## Verification`", "`README.md`", "`rg -n x src` returns no matches", "tests pass"]
    {
        let plan = good(&one_lane("- SL-1 - One; Depends on: none", &format!("- **Tasks**:\n  - verify: {value}")));
        assert!(plan.lanes[0].tests.is_empty() && tasks(&plan).all(|task| task.verify.is_empty()), "{value}");
    }
}

#[test]
fn test_task_commands_are_not_gates() {
    let table = "| Task ID | Type | Depends on | Files in scope | Tests owned | Test command |\n|---|---|---|---|---|---|\n| A | impl | - | `a.rs` | - | `cargo check` |\n| B | test | - | `b.rs` | - | `cargo test` |\n| C | verify | - | - | - | `cargo test --all` |\n";
    let plan = good(&one_lane("- SL-1 - One; Depends on: none", table));
    let found: Vec<(String, usize)> = tasks(&plan).map(|task| (task.id.to_string(), task.verify.len())).collect();
    // What C runs are the lane's tests, which need no agent.
    assert_eq!(found, [("B".to_owned(), 0), ("A".to_owned(), 1)]);
    assert_eq!(plan.lanes[0].tests, [CommandLine::Shell("cargo test --all".to_owned())]);
}

#[test]
fn lane_plan_reader_never_panics_or_hangs() {
    let big = 60_000;
    let texts = [
        "SL-".repeat(big / 3),
        format!("# P1: A\n## Lanes\n### SL-1 - a\n{}", "- **Tasks**:\n  - test: `".repeat(big / 24)),
        format!("# P1: A\n## Lanes\n### SL-1 - a\n{}", "| Task ID | Type | Files in scope |\n".repeat(big / 36)),
        format!("# P1: A\n## Lanes\n### SL-1 - a\n| Task ID | Type |\n{}", "|`|\\".repeat(big / 4)),
        format!("# P1: A\n## Lane Index\n{}", "- SL-1 - a; Depends on: SL-2; Blocks: SL-1\n".repeat(big / 42)),
        format!("# P1: A\n## Lane Index\n- SL-1 - a; Depends on: {}", "SL-x1, ".repeat(big / 7)),
        format!("# P1: A\n## Lane Index\n- SL-1 - a; Depends on: {}", "(".repeat(big)),
        format!("# P1: A\n## Lane Index\n- SL-1 - a; Depends on: {}", "SL-1 through SL-99999999 ".repeat(big / 25)),
        format!("# P1: A\n{}", "```x\n".repeat(big / 5)),
        format!("# P1: A\n## Lanes\n{}", (0..big / 12).map(|at| format!("### SL-{at}\n")).collect::<String>()),
        format!("---\n{}", "a: b\n".repeat(big / 5)),
        format!("# P1: A\n## Lanes\n### SL-1 - a\n- **Owned files**: {}", "`[`{`a/b`".repeat(big / 9)),
        format!("# P1: A\n## Lanes\n### SL-1 - a\n- **Owned files**: `{}`", "a/".repeat(big / 2)),
        format!(
            "# P1: A\n## Interface Freeze Gates\n{}\n## Lanes\n### SL-1 - a\n",
            "- [ ] IF-1-1 - x\n".repeat(big / 17)
        ),
        format!(
            "# P1: A\n## Execution Notes\n- {}\n## Lanes\n### SL-1 - a\n- **Tasks**:\n{}",
            "x".repeat(big),
            "  - impl: y\n".repeat(3_000)
        ),
        "\0# P1: \0\n## Lanes\n### SL-1 - a\0\n- **Tasks**:\n  - verify: `make \0`\n".to_owned(),
        "# P1: A\r\r## Lanes\r### SL-1 - a\r".to_owned(),
    ];
    for text in texts {
        let start = Instant::now();
        let named = read_with("p.md", &text, Some(PlanFormat::Lanes), ReadOptions::default());
        let guessed = read_text(&text);
        assert!(named.plan.is_some() || named.diagnostics.iter().any(|fault| fault.is_error()));
        assert!(guessed.plan.is_some() || guessed.diagnostics.iter().any(|fault| fault.is_error()));
        // A bound that the slowest is far below, even on a busy machine.
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}: {:?}", text.get(..40), start.elapsed());
    }
}

#[test]
fn phase_context_and_interfaces_reach_prompts() {
    let text = "# P1: A\n\n## Context\n\nThe ledger is new.\n\n## Interface Freeze Gates\n\n\
        - [ ] IF-0-P1-L: entries are never changed\n- [ ] IF-0-P1-X: something else\n\n## Lane Index & Dependencies\n\n\
        - SL-1 - One; Depends on: none\n- SL-2 - Two; Depends on: SL-1\n\n## Lanes\n\n### SL-1 - One\n\n\
        - **Interfaces provided**: IF-0-P1-L\n- **Tasks**:\n  - impl: write it\n  - verify: `make check`\n\n\
        ### SL-2 - Two\n\n- **Interfaces consumed**: IF-0-P1-L\n- **Tasks**:\n  - impl: read it\n\n## Verification\n\n\
        - automation.suite_command: `make all`\n- Look at the report.\n";
    let plan = good(text);
    for task in tasks(&plan) {
        assert!(task.prompt.contains("The ledger is new.") && task.prompt.contains("entries are never changed"));
        assert!(!task.prompt.contains("something else"), "{}", task.prompt);
    }
    let prompts: Vec<&str> = tasks(&plan).map(|task| task.prompt.as_str()).collect();
    assert_eq!(prompts.len(), 2, "the gate's own command needs no agent");
    assert!(prompts[0].contains("    make check") && !prompts[0].contains("Look at the report."));
    assert!(prompts[1].contains("Look at the report."), "{}", prompts[1]);
    assert_eq!(plan.gates.last, [CommandLine::Shell("make all".to_owned())]);
    assert_eq!(plan.lanes[0].tests, [CommandLine::Shell("make check".to_owned())]);
}

#[test]
fn multi_line_commands_keep_line_breaks() {
    let section = "- **Tasks**:\n  - impl: it\n  - verify: `python - <<'END'\n    print(1)\n    END`\n  - verify: `pytest a\n    b`\n  \
        - verify: `make check | tail -5`\n  - verify: `make try || true`";
    let reading = read_text(&one_lane("- SL-1 - One; Depends on: none", section));
    let told = faults(&reading);
    let plan = reading.plan.unwrap_or_else(|| panic!("{told}"));
    let tests: Vec<String> = plan.lanes[0].tests.iter().map(ToString::to_string).collect();
    assert_eq!(tests, ["python - <<'END'\nprint(1)\nEND", "pytest a b", "make check"]);
    assert!(told.contains("`make try || true` cannot fail because of `|| true`"), "{told}");
}
