use lanewright_model::{Approval, ListOptions, Plan, PlanFormat, TaskKind};

use crate::ticks::{Tick, ticked};
use crate::{Fallbacks, ReadOptions, Reading, Source, SourceFile, read};

const LIST: &str = "## 1. Store\n- [x] 1.1 Add `src/store.rs`\n\n## 2. Server\n- [ ] 2.1 Serve it from `src/server.rs`\n  - [ ] with a limit\n\
                    - [x] 2.2 Log\n## 3. Check\n- [ ] 3.1 Run `cargo test`\n- [ ] 3.2 Manually look at the page\n";

const PROPOSAL: &str =
    "# Change: Serve the store\n## Impact\n- Affected specs: `storage`\n- Affected code: `src/server.rs`\n";

fn reading(files: &[(&str, &str)], options: ReadOptions<'_>) -> Reading {
    let (plans, companions): (Vec<_>, Vec<_>) =
        files.iter().map(|(path, text)| SourceFile { path, text }).partition(|file| file.path.ends_with("tasks.md"));
    let source = Source {
        files: &plans,
        companions: &companions,
        options,
        format: Some(PlanFormat::OpenSpec),
        ..Source::default()
    };
    read(&source, &|_| Err("no file".to_owned()), &|_| None)
}

fn plan(files: &[(&str, &str)]) -> Plan {
    let reading = reading(files, ReadOptions::default());
    reading.plan.unwrap_or_else(|| panic!("{:?}", reading.diagnostics))
}

fn error(files: &[(&str, &str)]) -> String {
    let reading = reading(files, ReadOptions::default());
    let errors = reading.diagnostics.iter().filter(|fault| fault.is_error()).map(|fault| fault.message.clone());
    errors.collect::<Vec<_>>().join("; ")
}

#[test]
fn change_is_a_lane_with_its_open_sections() {
    let files = [
        ("/r/openspec/changes/add-it/tasks.md", LIST),
        ("openspec/changes/add-it/proposal.md", PROPOSAL),
        ("openspec/project.md", "p"),
    ];
    let plan = plan(&files);
    assert_eq!((plan.phase.as_str(), plan.lanes.len()), ("add-it", 1));
    let lane = &plan.lanes[0];
    assert_eq!((lane.id.as_str(), lane.name.as_deref()), ("add-it", Some("Serve the store")));
    assert_eq!(lane.owns, ["src/server.rs"]);
    let tasks = &lane.agents[0].tasks;
    let shown: Vec<(&str, TaskKind, usize)> =
        tasks.iter().map(|task| (task.id.as_str(), task.kind, task.verify.len())).collect();
    assert_eq!(shown, [("2", TaskKind::Auto, 0), ("3", TaskKind::Auto, 1), ("3-manual", TaskKind::HumanVerify, 0)]);
    assert!(tasks[1].allow_empty && !tasks[0].allow_empty);
    for part in
        ["## Your task: 2. Server", "  - [ ] with a limit", "- 1. Store", "# Change: Serve", "- `openspec/project.md`"]
    {
        assert!(tasks[0].prompt.contains(part), "{part}: {}", tasks[0].prompt);
    }
}

#[test]
fn changes_of_one_capability_or_namespace_exclude_each_other() {
    let other = "# Change: B\n- Affected specs:\n  - `openspec/specs/storage/spec.md`\n";
    let code = "# Change: C\n- Affected code: `Acme.Core.Runtime` loads\n";
    let files = [
        ("/r/openspec/changes/a/tasks.md", "- [ ] 1 in `lib/Acme.Core/Runtime/a.cs`\n"),
        ("/r/openspec/changes/b/tasks.md", "- [ ] 1 b\n"),
        ("/r/openspec/changes/c/tasks.md", "- [ ] 1 c\n"),
        ("openspec/changes/a/specs/storage/spec.md", "x"),
        ("openspec/changes/b/proposal.md", other),
        ("openspec/changes/c/proposal.md", code),
    ];
    let plan = plan(&files);
    assert_eq!(plan.phase.as_str(), "openspec");
    let pairs: Vec<(&str, &str)> = plan
        .exclusions
        .iter()
        .map(|(one, other)| (plan.lane(*one).id.as_str(), plan.lane(*other).id.as_str()))
        .collect();
    assert_eq!(pairs, [("a", "b"), ("a", "c")]);
}

#[test]
fn proposal_that_depends_on_another_change_waits() {
    let files = [
        ("/r/openspec/changes/add-app/tasks.md", "- [ ] a\n"),
        ("/r/openspec/changes/add-sdk/tasks.md", "- [ ] b\n"),
        ("openspec/changes/add-app/proposal.md", "# A\nThis change depends on `add-sdk`: it needs it.\n"),
        ("openspec/changes/add-sdk/proposal.md", "# B\nUnlike add-app it needs nothing.\n"),
    ];
    let plan = plan(&files);
    assert_eq!(plan.lanes[0].depends_on.len(), 1);
    assert!(plan.lanes[1].depends_on.is_empty());
    let cycle = ("openspec/changes/add-sdk/proposal.md", "Blocked by add-app\n");
    assert!(
        error(&[files[0], files[1], files[2], cycle]).contains("wait for each other"),
        "{}",
        error(&[files[0], files[1], files[2], cycle])
    );
}

#[test]
fn finished_and_archived_changes_are_not_run() {
    let done = ("/r/openspec/changes/a/tasks.md", "## 1. A\n- [x] a\n- [ ] b (skipped: no need)\n");
    assert_eq!(error(&[done]), "the change `a` is done: all its boxes are ticked");
    assert_eq!(
        error(&[("/r/openspec/changes/archive/2025-01-01-a/tasks.md", "- [ ] a\n")]),
        "the change `2025-01-01-a` is archived, so it is done"
    );
    assert_eq!(
        error(&[("/r/openspec/changes/a/tasks.md", "no box\n")]),
        "the change `a` has no task: its list has no check box"
    );
    let open = ("/r/openspec/changes/b/tasks.md", "- [ ] b\n");
    let table = ("/r/openspec/changes/c/tasks.md", "| T1 | a | open |\n");
    let with_table = reading(&[open, table], ReadOptions::default());
    let messages: Vec<&str> = with_table.diagnostics.iter().map(|fault| fault.message.as_str()).collect();
    assert!(messages.contains(&"the change `c` has no task: its list has no check box"), "{messages:?}");
    assert_eq!(with_table.plan.expect("a plan").lanes.len(), 1);
    let both = plan(&[done, open]);
    assert_eq!((both.lanes.len(), both.skipped.len()), (1, 1));
    let unfinished = ["a".to_owned()];
    let options = ReadOptions { unfinished: &unfinished, ..ReadOptions::default() };
    assert_eq!(reading(&[done, open], options).plan.expect("a plan").lanes.len(), 2);
    let redo = reading(&[done], ReadOptions { redo: true, ..ReadOptions::default() });
    assert_eq!(redo.plan.expect("a plan").lanes.len(), 1);
}

#[test]
fn section_after_approval_asks_a_person() {
    let plan =
        plan(&[("/r/openspec/changes/a/tasks.md", "## 1. Spec\n- [x] a\n## 2. Implementation (follow-up)\n- [ ] b\n")]);
    assert_eq!(plan.lanes[0].approval, [Approval::Plan]);
}

#[test]
fn list_may_have_openspec_validate_but_not_archive() {
    let list = "- [ ] 1.1 `openspec validate a --strict`\n- [ ] 1.2 Run `openspec archive a --yes`\n";
    let plan = plan(&[("/r/openspec/changes/a/tasks.md", list)]);
    let gates: Vec<String> =
        plan.lanes[0].agents[0].tasks.iter().flat_map(|task| &task.verify).map(ToString::to_string).collect();
    assert_eq!(gates, ["openspec validate a --strict"]);
}

#[test]
fn boxes_of_the_lanes_tasks_are_ticked() {
    let tick = |text: &str, lane: &str, tasks: &[&str], done| {
        let path = "/r/openspec/changes/add-it/tasks.md";
        ticked(&Tick { format: PlanFormat::OpenSpec, path, text, companions: &[], phase: "add-it", lane, tasks, done })
    };
    let all = tick(LIST, "add-it", &["2", "3", "3-manual"], true).expect("ticks");
    assert_eq!(all, LIST.replace("[ ]", "[x]"));
    let some = tick(&LIST.replace('\n', "\r\n"), "add-it", &["3"], true).expect("ticks");
    assert_eq!(some, LIST.replace("[ ] 3.1", "[x] 3.1").replace('\n', "\r\n"));
    assert_eq!(tick(LIST, "other", &["2"], true), None);
    assert_eq!(tick(LIST, "add-it", &["9"], true), None);
    assert_eq!(
        tick(&all, "add-it", &["3", "3-manual"], false).as_deref(),
        Some(LIST.replace("[ ] 2.1", "[x] 2.1").replace("[ ] with", "[x] with").as_str())
    );
}

#[test]
fn ticks_do_not_change_the_digest() {
    let path = "/r/openspec/changes/add-it/tasks.md";
    let digest = |text: &str| reading(&[(path, text)], ReadOptions::default()).sha256;
    assert_eq!(digest(LIST), digest(&LIST.replace("[ ] 2.1", "[x] 2.1")));
    assert_ne!(digest(LIST), digest(&LIST.replace("2.1", "2.2")));
}

#[test]
fn manual_tests_are_left_out_on_request() {
    let read_as = |text: &str| {
        let files = [SourceFile { path: "/r/openspec/changes/add-it/tasks.md", text }];
        let lists = ListOptions { skip_manual: true, ..ListOptions::default() };
        let fallbacks = Fallbacks { lists, ..Fallbacks::default() };
        read(&Source { files: &files, fallbacks, ..Source::default() }, &|_| Err(String::new()), &|_| None)
    };
    let plan = read_as(LIST).plan.expect("a plan");
    let ids: Vec<&str> = plan.lanes[0].agents[0].tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["2", "3"]);
    assert_eq!(plan.skipped[0].reason, "a person does these, and they are left out: 3-manual");
    assert!(!plan.lanes[0].agents[0].tasks[1].prompt.contains("Manually"));
    let rest = read_as(&LIST.replace("[ ]", "[x]").replace("[x] 3.2", "[ ] 3.2"));
    let error = rest.diagnostics.iter().find(|fault| fault.is_error()).expect("an error");
    assert_eq!(error.message, "the change `add-it` has only open tasks that a person does, which are left out");
}
