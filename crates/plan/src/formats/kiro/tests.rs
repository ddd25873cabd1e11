use lanewright_model::{Approval, ListOptions, Plan, PlanFormat, TaskKind};

use super::is_plan;
use crate::ticks::{Tick, ticked};
use crate::{Fallbacks, ReadOptions, Reading, Source, SourceFile, read};

const LIST: &str = "# Implementation Plan\n\n- [x] 1. Store\n  - [x] 1.1 Add `src/store.rs`\n\n- [ ] 2. Server\n  - Small\n  - [-] 2.1 (P) Serve it\n    - _Files: src/server.rs_\n    - [ ] with a limit\n    - _Requirements: 1.1_\n  - [ ] 2.2 (P) Log to `src/log.rs`\n  - [ ]* 2.3 Test the log\n- [ ] 3. Checkpoint - all tests pass\n  - Run `cargo test`\n- [ ] 4. Manually look at the page\n";

fn reading(files: &[(&str, &str)], options: ReadOptions<'_>) -> Reading {
    let (plans, companions): (Vec<_>, Vec<_>) =
        files.iter().map(|(path, text)| SourceFile { path, text }).partition(|file| file.path.ends_with("tasks.md"));
    let source =
        Source { files: &plans, companions: &companions, options, format: Some(PlanFormat::Kiro), ..Source::default() };
    read(&source, &|_| Err("no file".to_owned()), &|_| None)
}

fn plan(files: &[(&str, &str)]) -> Plan {
    let reading = reading(files, ReadOptions::default());
    reading.plan.unwrap_or_else(|| panic!("{:?}", reading.diagnostics))
}

fn messages(files: &[(&str, &str)]) -> String {
    let reading = reading(files, ReadOptions::default());
    reading
        .diagnostics
        .iter()
        .map(|fault| format!("{}: {}", fault.severity, fault.message))
        .collect::<Vec<_>>()
        .join("; ")
}

const AT: &str = "/r/.kiro/specs/login/tasks.md";

#[test]
fn parallel_tasks_are_lanes_of_their_own() {
    let plan = plan(&[
        (AT, LIST),
        (".kiro/specs/login/design.md", "# How\n"),
        (".kiro/steering/tech.md", "Rust.\n"),
        (".kiro/steering/ui.md", "---\ninclusion: manual\n---\nBlue.\n"),
    ]);
    assert_eq!(plan.phase.as_str(), "login");
    let lanes: Vec<(&str, usize, &[String])> =
        plan.lanes.iter().map(|lane| (lane.id.as_str(), lane.depends_on.len(), lane.owns.as_slice())).collect();
    let owned = |path: &str| vec![path.to_owned()];
    let expected =
        [("login.2.1", 0, owned("src/server.rs")), ("login.2.2", 0, owned("src/log.rs")), ("login.3", 2, Vec::new())];
    assert_eq!(lanes, expected.each_ref().map(|(id, count, owns)| (*id, *count, owns.as_slice())));
    let tasks = &plan.lanes[2].agents[0].tasks;
    let shown: Vec<(&str, TaskKind, bool, usize)> =
        tasks.iter().map(|task| (task.id.as_str(), task.kind, task.allow_empty, task.verify.len())).collect();
    assert_eq!(shown, [("3", TaskKind::Auto, true, 1), ("4", TaskKind::HumanVerify, true, 0)]);
    let prompt = &plan.lanes[0].agents[0].tasks[0].prompt;
    for part in [
        "## Your task: 2.1 Serve it",
        "\n- [ ] with a limit",
        "## Part of 2\n\nServer\n- Small",
        "## Design",
        "## Steering: tech",
        "- `.kiro/steering/ui.md`",
        "Rust.",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert_eq!(plan.lanes[2].tests.len(), 1, "a checkpoint judges the lane");
    assert_eq!(plan.skipped.len(), 1, "the optional task");
}

#[test]
fn specifications_run_side_by_side() {
    let other = "/r/.kiro/specs/audit/tasks.md";
    let both = plan(&[(AT, "- [ ] 1. a\n- [ ] 2. b\n"), (other, "# Audit\n- [ ] 1. c\n")]);
    let ids: Vec<&str> = both.lanes.iter().map(|lane| lane.id.as_str()).collect();
    assert_eq!((both.phase.as_str(), ids), ("kiro", vec!["login", "audit"]));
    assert_eq!(both.lanes[1].name.as_deref(), Some("Audit"));
    assert!(both.lanes.iter().all(|lane| lane.depends_on.is_empty()));
}

#[test]
fn lists_without_open_tasks_are_refused() {
    assert_eq!(
        messages(&[(AT, "- [x] 1. a\n")]),
        "error: the specification `login` is done: the boxes of all its tasks are ticked"
    );
    assert_eq!(
        messages(&[(AT, "- [ ]* 1. a\n")]),
        "error: the specification `login` has optional tasks only, which are left out"
    );
    assert_eq!(
        messages(&[(AT, "nothing\n")]),
        "error: the specification `login` has no task: its list has no check box"
    );
    let redo = reading(&[(AT, "- [x] 1. a\n")], ReadOptions { redo: true, ..ReadOptions::default() });
    assert_eq!(redo.plan.expect("a plan").lanes.len(), 1);
}

#[test]
fn finished_lanes_of_a_run_stay_in_the_plan() {
    let done = LIST.replace("[-] 2.1", "[x] 2.1");
    let ids = |unfinished: &[String]| -> Vec<String> {
        let options = ReadOptions { unfinished, ..ReadOptions::default() };
        let plan = reading(&[(AT, &done)], options).plan.expect("a plan");
        plan.lanes.iter().map(|lane| lane.id.to_string()).collect()
    };
    assert_eq!(ids(&[]), ["login.2.2", "login.3"]);
    assert_eq!(ids(&["login.2.1".to_owned()]), ["login.2.1", "login.2.2", "login.3"]);
}

#[test]
fn unapproved_tasks_ask_a_person() {
    let record = |approved: bool| format!("{{\"approvals\": {{\"tasks\": {{\"approved\": {approved}}}}}}}");
    let approval =
        |record: &str| plan(&[(AT, LIST), (".kiro/specs/login/spec.json", record)]).lanes[0].approval.clone();
    assert_eq!(approval(&record(false)), [Approval::Plan]);
    assert_eq!(approval(&record(true)), []);
    assert_eq!(approval("no"), []);
}

#[test]
fn faults_of_numbers_and_graphs_are_reported() {
    let text = "- [ ] 1. a\n- [ ] 1. b\n```json\n{\"waves\": [[\"1\", \"7\"]]}\n```\n";
    let found = messages(&[(AT, text)]);
    assert!(found.contains("which is called `1-2` here") && found.contains("does not have: 7"), "{found}");
    assert!(messages(&[(AT, "- [ ] 1. a\n```\n{\"waves\": [\n```\n")]).contains("one after the other"));
    let many: String = (1..1002).map(|at| format!("- [ ] {at}. a\n")).collect();
    assert!(messages(&[(AT, &many)]).contains("at most 1000 tasks"));
}

#[test]
fn boxes_of_the_lanes_tasks_are_ticked() {
    let tick = |text: &str, lane: &str, tasks: &[&str], done| {
        ticked(&Tick { format: PlanFormat::Kiro, path: AT, text, companions: &[], phase: "login", lane, tasks, done })
    };
    let one = tick(LIST, "login.2.1", &["2.1"], true).expect("ticks");
    assert_eq!(one, LIST.replace("[-] 2.1", "[x] 2.1"), "its parts are text, and 2 has an open part");
    let two = tick(&one, "login.2.2", &["2.2"], true).expect("ticks");
    assert_eq!(
        two,
        one.replace("[ ] 2.2", "[x] 2.2").replace("[ ] 2. ", "[x] 2. "),
        "the optional part does not count"
    );
    assert_eq!(tick(&two, "login.2.2", &["2.2"], false), Some(one));
    assert_eq!(tick(LIST, "other", &["2.1"], true), None);
    let flat = "- [ ] 1. A\r\n- [ ] 1.1 a\r\n";
    assert_eq!(tick(flat, "login", &["1.1"], true).as_deref(), Some("- [x] 1. A\r\n- [x] 1.1 a\r\n"));
}

#[test]
fn plans_are_known_by_place_or_by_their_requirements() {
    assert!(is_plan(AT, "") && is_plan(".kiro/specs/a/tasks.md", ""));
    let text = "- [ ] 1. a\n  - _Requirements: 1.1_\n";
    assert!(is_plan("docs/tasks.md", text));
    for (path, text) in [("README.md", text), ("docs/tasks.md", "- [ ] 1. a\n"), ("a/.kiro/tasks.md", "")] {
        assert!(!is_plan(path, text), "{path}");
    }
}

#[test]
fn manual_tasks_are_left_out_and_checkpoints_approved_on_request() {
    let read_as = |text: &str, lists: ListOptions| {
        let files = [SourceFile { path: AT, text }];
        let fallbacks = Fallbacks { lists, ..Fallbacks::default() };
        read(&Source { files: &files, fallbacks, ..Source::default() }, &|_| Err(String::new()), &|_| None)
    };
    let last = |lists: ListOptions| -> Vec<(String, TaskKind, usize)> {
        let plan = read_as(LIST, lists).plan.expect("a plan");
        let tasks = &plan.lanes[2].agents[0].tasks;
        tasks.iter().map(|task| (task.id.to_string(), task.kind, task.verify.len())).collect()
    };
    let skip = ListOptions { skip_manual: true, ..ListOptions::default() };
    assert_eq!(last(skip), [("3".to_owned(), TaskKind::Auto, 1)]);
    let plan = read_as(LIST, skip).plan.expect("a plan");
    assert_eq!(plan.skipped[1].reason, "a person does these, and they are left out: 4");
    let rest = read_as(&LIST.replace("[ ]", "[x]").replace("[-]", "[x]").replace("[x] 4.", "[ ] 4."), skip);
    assert_eq!(
        rest.diagnostics[0].message,
        "the specification `login` has only open tasks that a person does, which are left out"
    );
    let stop = ListOptions { stop_at_checkpoints: true, ..ListOptions::default() };
    let expected =
        [("3", TaskKind::Auto, 1), ("3-approval", TaskKind::HumanVerify, 0), ("4", TaskKind::HumanVerify, 0)];
    assert_eq!(last(stop), expected.map(|(id, kind, gates)| (id.to_owned(), kind, gates)));
}

const HEADINGS: &str = "# Implementation Tasks

## Overview
Two parts.

## Task 1: Store ✅
**Requirements**: 1.1

- [x] Add `src/store.rs`
- [x] Test it

## Task 2: Serve (P)

- [ ] Add `src/server.rs`
  - [x] with a limit
- Answers in JSON
- _Requirements: 1.2_

### Acceptance criteria
- [ ] It answers

---

## Task 3: Log (P)

- Write to `src/log.rs`

## Task 4: Notes
Written.

### Status: completed

## Notes
- Ask for help.
";

#[test]
fn headings_with_boxes_or_points_are_tasks() {
    let reading = reading(&[(AT, HEADINGS)], ReadOptions::default());
    let plan = reading.plan.expect("a plan");
    let lanes: Vec<(&str, &[String])> =
        plan.lanes.iter().map(|lane| (lane.id.as_str(), lane.owns.as_slice())).collect();
    assert_eq!(lanes, [("login.2", &["src/server.rs".to_owned()][..]), ("login.3", &["src/log.rs".to_owned()][..])]);
    let prompt = &plan.lanes[0].agents[0].tasks[0].prompt;
    assert!(prompt.contains("## Your task: 2 Serve\n") && prompt.contains("- [ ] It answers"), "{prompt}");
    assert!(!prompt.contains("Write to") && !prompt.contains("Ask for help"), "{prompt}");
    let warnings: Vec<&str> = reading.diagnostics.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(warnings[0], "nothing in the list records that these tasks are done: 3");
    let tick = |lane: &str, tasks: &[&str]| {
        let format = PlanFormat::Kiro;
        ticked(&Tick { format, path: AT, text: HEADINGS, companions: &[], phase: "login", lane, tasks, done: true })
    };
    assert_eq!(tick("login.2", &["2"]).expect("ticks"), HEADINGS.replace("[ ]", "[x]"));
    assert_eq!(tick("login.3", &["3"]), None);
}

#[test]
fn numbered_headings_are_tasks_where_they_have_boxes() {
    let ids = |text: &str| -> Vec<String> {
        let plan = plan(&[(AT, text)]);
        plan.lanes.iter().flat_map(|lane| &lane.agents[0].tasks).map(|task| task.id.to_string()).collect()
    };
    let text = "# Plan\n## 1. Introduction\nWhy.\n## 2. Store\n### 2.1 Table\n- [ ] Add it\n- [ ] Index it\n### 2.2 Cache\n- [ ] Add it\n\
                ## Done when\n- [ ] All of it works\n";
    assert_eq!(ids(text), ["2.1", "2.2", "3"], "what is below no task is one by itself, as in any list");
    let sections = "## Task 1: Store\n- [ ] 1.1 Add it\n- [ ] 1.2 Test it\n## Task 2: Notes\nNone.\n";
    assert_eq!(ids(sections), ["1.1", "1.2"], "headings of numbered boxes are sections");
    let steps = "## Task 1: Store\n### 1. Table\n- [ ] a\n### 2. Cache\n- [ ] b\n## Task 2: Serve\n- c\n";
    assert_eq!(ids(steps), ["1", "2"], "below tasks, numbers are of steps");
    let parts = "## Task 1: Store\nAll of it.\n### Task 1.1: Table\n- [ ] a\n### Task 1.2: Cache (optional)\n- [ ] b\n";
    assert_eq!(ids(parts), ["1"], "a task that says what to do has its parts done with it");
    assert!(messages(&[(AT, "## 1. Introduction\nWhy.\n- One\n")]).contains("no check box"));
    assert!(messages(&[(AT, "## Task 1: Store ✅\n- Add it\n## Task 2: Serve\nStatus: Done\n")]).contains("is done"));
    assert!(!is_plan("README.md", HEADINGS) && !is_plan("docs/tasks.md", HEADINGS));
}
