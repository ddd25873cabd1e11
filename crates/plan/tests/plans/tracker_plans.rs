//! The task lists of other programs, as people and programs write them, good and bad: Task Master, Beads and Backlog.md.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use lanewright_model::{CommandLine, Lane, Plan};
use lanewright_plan::{
    Fallbacks, PlanFormat, ReadOptions, Reading, Source, SourceFile, Tick, decode, read, recording_command, ticked,
};

pub fn read_files(files: &[(&str, &str)], companions: &[(&str, &str)], options: ReadOptions<'_>) -> Reading {
    let files: Vec<SourceFile<'_>> = files.iter().map(|&(path, text)| SourceFile { path, text }).collect();
    let companions: Vec<SourceFile<'_>> = companions.iter().map(|&(path, text)| SourceFile { path, text }).collect();
    let fallbacks = Fallbacks { runner: Some("agent"), ..Fallbacks::default() };
    let source = Source { files: &files, companions: &companions, fallbacks, options, ..Source::default() };
    let runner = |_: &str| Some(CommandLine::Arguments(vec!["agent".to_owned()]));
    read(&source, &|_| Err(String::new()), &runner)
}

fn read_one(path: &str, text: &str) -> Reading {
    read_files(&[(path, text)], &[], ReadOptions::default())
}

fn good(reading: Reading) -> Plan {
    reading.plan.unwrap_or_else(|| panic!("{:#?}", reading.diagnostics))
}

/// Each lane with those that it waits for: `T2<T1`.
fn shape(plan: &Plan) -> Vec<String> {
    let lane = |lane: &Lane| {
        let on: Vec<String> = lane.depends_on.iter().map(|&on| plan.lane(on).id.to_string()).collect();
        format!("{}<{}", lane.id, on.join(","))
    };
    plan.lanes.iter().map(lane).collect()
}

fn skipped(plan: &Plan) -> Vec<String> {
    plan.skipped.iter().map(|skipped| format!("{}: {}", skipped.lane, skipped.reason)).collect()
}

/// The faults as `line: message`.
fn faults(reading: &Reading) -> Vec<String> {
    reading.diagnostics.iter().map(|fault| format!("{}: {}", fault.line, fault.message)).collect()
}

const TASKS: &str = r#"{
  "master": {
    "tasks": [
      {"id": 1, "title": "Store", "status": "done", "dependencies": [], "subtasks": []},
      {"id": "2", "title": "Page", "status": "pending", "dependencies": [1, "3.1", 4], "priority": "low",
       "description": "Show it.", "details": "Edit `web/page.ts`.", "testStrategy": "Run `npm test`.", "subtasks": null},
      {"id": 3, "title": "Api", "status": "in-progress", "dependencies": ["1"], "priority": "high", "subtasks": [
        {"id": 1, "title": "Routes", "status": "done", "dependencies": []},
        {"id": 2, "title": "Docs", "status": "pending", "dependencies": [3]},
        {"id": 3, "title": "Errors", "status": "pending", "dependencies": ["3.1"], "testStrategy": "`cargo test`"},
        {"id": 4, "title": "Later", "status": "deferred", "dependencies": []}]},
      {"id": 4, "title": "Look", "status": "review", "dependencies": [2.5, 3], "details": "x"},
      {"id": 5, "title": "Search", "status": "deferred", "dependencies": []},
      {"id": 6, "title": "Filters", "status": "pending", "dependencies": [5]}
    ],
    "metadata": {"description": "The shop"}
  }
}"#;

const TASKS_PATH: &str = ".taskmaster/tasks/tasks.json";

#[test]
fn task_master_tasks_become_lanes() {
    let text = TASKS.replace("2.5, ", "");
    let reading = read_one(TASKS_PATH, &text);
    assert_eq!(reading.format, Some(PlanFormat::TaskMaster));
    assert_eq!(faults(&reading), ["11: subtask `3.4` is left out because of its status"]);
    let plan = good(reading);
    // Task 2 waits for 4 and so for 3, of which the subtask that it names is done.
    assert_eq!(shape(&plan), ["T3<", "T4<T3", "T2<T4"]);
    assert_eq!(
        skipped(&plan),
        ["T1: its status is `done`", "T5: its status is `deferred`", "T6: it waits for T5, which is left out",]
    );
    assert_eq!((plan.phase.as_str(), plan.title.as_deref()), ("master", Some("The shop")));
    let page = &plan.lanes[2];
    assert_eq!((page.tests.len(), page.owns.as_slice()), (1, &["web/page.ts".to_owned()][..]));
    assert!(
        page.agents[0].tasks[0].prompt.contains("Show it.")
            && page.agents[0].tasks[0].prompt.contains("- 1: Store (done)")
    );
    let steps: Vec<(&str, usize)> =
        plan.lanes[0].agents[0].tasks.iter().map(|task| (task.id.as_str(), task.verify.len())).collect();
    assert_eq!(steps, [("3.3", 1), ("3.2", 0)]);
    assert!(plan.lanes[0].agents[0].tasks[0].prompt.contains("- 3.4: Later (not to be done)"));
}

#[test]
fn task_master_faults_are_reported_at_once() {
    let text = r#"{"tasks": [
{"id": 1, "title": "a", "status": "pending", "dependencies": [9]},
{"id": 1, "title": "b", "status": "pending", "dependencies": []},
{"id": 2, "title": "c", "status": "nearly", "dependencies": []},
{"id": 3, "title": "d", "status": "pending", "dependencies": [4], "subtasks": [
  {"id": 1, "title": "x", "dependencies": [2]}, {"id": 2, "title": "y", "dependencies": [1]}, {"id": 2, "title": "z"}]},
{"id": 4, "title": "e", "status": "pending", "dependencies": ["3"]},
{"title": "f"}, 7
]}"#;
    let reading = read_one("tasks.json", text);
    assert_eq!(
        faults(&reading),
        [
            "2: task `T1` depends on `9`, but there is no such task",
            "3: there are two tasks `T1`, the first in tasks.json:2",
            "4: the status `nearly` of task `2` is not known",
            "5: these lanes wait for each other: T3 -> T4 -> T3",
            "6: subtasks of task `3` wait for each other",
            "6: task `3` has two subtasks `2`",
            "8: this task has no `id`",
            "8: a task is a table, not a number",
        ]
    );
}

#[test]
fn task_master_tag_is_asked_for() {
    let list = |status: &str| format!(r#"{{"tasks": [{{"id": 1, "title": "a", "status": "{status}"}}]}}"#);
    let text = format!(
        r#"{{"tags": {{"master": {}, "old": {}}}, "sprint": {}}}"#,
        list("done"),
        list("pending"),
        list("pending")
    );
    let with = |tag, state: &[(&str, &str)]| {
        read_files(&[(TASKS_PATH, &text)], state, ReadOptions { tag, ..ReadOptions::default() })
    };
    let undecided = with(None, &[]);
    assert_eq!(faults(&undecided), ["1: this file has 3 lists of tasks"]);
    assert_eq!(undecided.diagnostics[0].help.as_deref(), Some("name one with --tag: tags.master, tags.old, sprint"));
    assert_eq!(shape(&good(with(Some("tags.old"), &[]))), ["T1<"]);
    assert_eq!(faults(&with(Some("tags.master"), &[])), ["1: all tasks of this list are done"]);
    let state = [(".taskmaster/state.json", "{\"currentTag\": \"sprint\"}")];
    assert_eq!(good(with(None, &state)).phase.as_str(), "sprint");
    let state = [(".taskmaster/state.json", "{\"currentTag\": \"sprnt\"}")];
    assert_eq!(
        faults(&with(None, &state)),
        ["1: the tag `sprnt`, which `.taskmaster/state.json` names, is not in this file"]
    );
}

#[test]
fn task_master_bytes_are_checked() {
    let marked = [b"\xef\xbb\xbf", TASKS.replace("2.5, ", "").as_bytes()].concat();
    let text = decode(TASKS_PATH, &marked).unwrap();
    assert_eq!(good(read_one(TASKS_PATH, text)).lanes.len(), 3);
    let damaged = read_one(TASKS_PATH, &TASKS[..TASKS.len() / 2]);
    assert!(damaged.plan.is_none() && damaged.diagnostics[0].message.starts_with("invalid JSON"), "{damaged:?}");
    let huge = format!("{{\"tasks\": [{}]}}", "{\"id\": 1},".repeat(2_000_000));
    assert_eq!(
        faults(&read_one(TASKS_PATH, &huge)),
        [format!("1: a plan has at most 16777216 bytes, this one has {}", huge.len())]
    );
}

#[test]
fn other_json_is_no_task_list() {
    for (path, text) in [
        (".vscode/tasks.json", r#"{"version": "2.0.0", "tasks": [{"label": "a", "type": "shell", "dependsOn": []}]}"#),
        ("package.json", r#"{"name": "a", "tasks": {"x": 1}}"#),
        ("plan.json", r#"{"phase": "P1", "lane": [{"id": "A", "task": [{"name": "x"}]}]}"#),
    ] {
        assert_ne!(read_one(path, text).format, Some(PlanFormat::TaskMaster), "{path}");
    }
}

fn tick<'a>(format: PlanFormat, text: &'a str, lane: &'a str, tasks: &'a [&'a str], done: bool) -> Option<String> {
    ticked(&Tick { format, path: "p", text, companions: &[], phase: "master", lane, tasks, done })
}

#[test]
fn task_master_ticks_replace_statuses_in_place() {
    let own = |text, lane, tasks, done| tick(PlanFormat::TaskMaster, text, lane, tasks, done);
    let page = own(TASKS, "T2", &["2"], true).unwrap();
    assert_eq!(page, TASKS.replace(r#""title": "Page", "status": "pending""#, r#""title": "Page", "status": "done""#));
    assert_eq!(own(&page, "T2", &["2"], false).as_deref(), Some(TASKS));
    assert_eq!(own(&page, "T2", &["2"], true), None);
    // A subtask that is deferred keeps its task open.
    let api = own(TASKS, "T3", &["3.2", "3.3"], true).unwrap();
    let expected = TASKS
        .replace(r#""Docs", "status": "pending""#, r#""Docs", "status": "done""#)
        .replace(r#""Errors", "status": "pending""#, r#""Errors", "status": "done""#);
    assert_eq!(api, expected);
    assert_eq!(own("{\"tasks\": [", "T1", &[], true), None);
    assert_eq!(own(TASKS, "T9", &[], true), None);
}

const ISSUES: &str = r#"{"id":"a-1","title":"Base","status":"open","priority":2,"issue_type":"epic"}
{"id":"a-1.1","title":"Store","description":"In `src/store.rs`.\n\nAcceptance criteria:\n- `cargo test` passes\n- It is fast","status":"open","priority":1,"issue_type":"task","dependencies":[{"issue_id":"a-1.1","depends_on_id":"a-1","type":"parent-child"}]}
{"id":"a-1.2","title":"Cache","status":"in_progress","priority":0,"issue_type":"task"}
{"id":"a-2","title":"Shop","status":"open","priority":1,"issue_type":"epic","dependencies":[{"issue_id":"a-2","depends_on_id":"a-1","type":"blocks"}]}
{"id":"a-3","title":"Cart","status":"open","priority":1,"issue_type":"feature","labels":["web"],"dependencies":[{"depends_on_id":"a-2","type":"parent-child"},{"depends_on_id":"a-9","type":"discovered-from"}]}
{"id":"a-4","title":"Old","status":"closed","priority":1,"issue_type":"task"}
{"id":"a-5","title":"Ice","status":"deferred","priority":1,"issue_type":"task"}
{"id":"a-6","title":"On ice","status":"open","priority":1,"issue_type":"bug","dependencies":[{"depends_on_id":"a-5","type":"blocks"},{"depends_on_id":"a-4","type":"blocks"}]}
{"id":"a-7","title":"Gone","status":"tombstone","priority":1,"issue_type":"task"}
{"id":"a-8","title":"Gate","status":"open","issue_type":"gate"}
{"id":"a-9","title":"Big","status":"open","priority":3,"issue_type":"task","labels":["wide"]}
{"id":"a-9.1","title":"Part","status":"open","priority":3,"issue_type":"task","dependencies":[{"depends_on_id":"a-7","type":"blocks"},{"depends_on_id":"ext-1","type":"blocks"}]}
{"id":"a-10","title":"Ended","status":"open","issue_type":"epic"}
{"id":"a-10.1","title":"x","status":"closed","issue_type":"task"}
{"id":"a-11","title":"Alone","status":"open","priority":4,"issue_type":"epic"}
"#;

const ISSUES_PATH: &str = ".beads/issues.jsonl";

#[test]
fn beads_issues_become_lanes() {
    let reading = read_one(ISSUES_PATH, ISSUES);
    assert_eq!(reading.format, Some(PlanFormat::Beads));
    assert_eq!(faults(&reading), ["12: task `a-9.1` depends on `ext-1`, but there is no such task"]);
    let plan = good(reading);
    assert_eq!(shape(&plan), ["a-1.2<", "a-1.1<", "a-3<a-1.1,a-1.2", "a-9.1<", "a-9<a-9.1", "a-11<"]);
    assert_eq!(
        skipped(&plan),
        [
            "a-4: its status is `closed`",
            "a-5: its status is `deferred`",
            "a-6: it waits for a-5, which is left out",
            "a-8: it is of the type `gate`",
            "a-10: all of its issues are closed",
            "a-10.1: its status is `closed`",
        ]
    );
    let store = &plan.lanes[1];
    assert_eq!(store.owns, ["src/store.rs"]);
    assert_eq!(store.tests.len(), 1);
    let task = &store.agents[0].tasks[0];
    assert_eq!(task.acceptance_criteria, ["`cargo test` passes", "It is fast"]);
    assert!(task.prompt.contains("In `src/store.rs`.") && task.prompt.contains("It is part of a-1: Base"));
    assert!(!task.prompt.contains("It is fast"));
}

#[test]
fn beads_epic_or_label_selects_issues() {
    let with =
        |tag| read_files(&[(ISSUES_PATH, ISSUES)], &[], ReadOptions { tag: Some(tag), ..ReadOptions::default() });
    let base = good(with("a-1"));
    assert_eq!((shape(&base), base.phase.as_str()), (vec!["a-1.2<".to_owned(), "a-1.1<".to_owned()], "a-1"));
    let waits = with("wide");
    assert_eq!(faults(&waits), ["11: no task of this list can start: 0 are done, 1 are left out"]);
    let why = "a-9: it waits for a-9.1, which is not part of this plan and not done";
    assert_eq!(waits.diagnostics[0].help.as_deref(), Some(why));
    assert_eq!(faults(&with("wbe")), ["1: no issue has the id or the label `wbe`"]);
}

#[test]
fn beads_issue_may_wait_for_its_own_parts() {
    let text = r#"{"id":"a-1","title":"Both","status":"open","issue_type":"task","dependencies":[{"depends_on_id":"a-1.1","type":"blocks"},{"depends_on_id":"a-1.2","type":"blocks"}]}
{"id":"a-1.1","title":"One","status":"open","issue_type":"task","dependencies":[{"depends_on_id":"a-1.2","type":"blocks"}]}
{"id":"a-1.2","title":"Two","status":"open","issue_type":"task"}
{"id":"a-2","title":"First","status":"open","issue_type":"task"}
{"id":"a-2.1","title":"Then","status":"open","issue_type":"task","dependencies":[{"depends_on_id":"a-3","type":"blocks"}]}
{"id":"a-3","title":"Between","status":"open","issue_type":"task","dependencies":[{"depends_on_id":"a-2","type":"blocks"}]}
{"id":"a-4","title":"Old","status":"done","issue_type":"task"}
{"id":"a-5","title":"New","status":"open","issue_type":"task","dependencies":[{"depends_on_id":"a-4","type":"blocks"}]}
"#;
    let plan = good(read_one(ISSUES_PATH, text));
    assert_eq!(shape(&plan), ["a-1.2<", "a-1.1<a-1.2", "a-1<a-1.1", "a-2<", "a-3<a-2", "a-2.1<a-3", "a-5<"]);
    assert_eq!(skipped(&plan), ["a-4: its status is `done`"]);
}

#[test]
fn beads_damaged_lines_are_named() {
    let text = "{\"id\":\"a-1\",\"issue_type\":\"task\",\"status\":\"open\"}\n<<<<<<< HEAD\n{\"id\":\"a-2\",\n\n[1]\n{\"id\":\"a-1\",\"status\":\"open\"}\n{\"title\":\"x\"}\n{\"id\":\"a-3\",\"status\":\"open\",\"dependencies\":[{\"type\":\"blocks\"}]}\n";
    let reading = read_one("list.jsonl", text);
    assert_eq!(reading.format, Some(PlanFormat::Beads));
    assert_eq!(
        faults(&reading),
        [
            "2: this line is the mark of a conflict in git",
            "3: invalid JSON: EOF while parsing an object",
            "5: an issue is a table, not a list",
            "6: there are two tasks `a-1`, the first in list.jsonl:1",
            "7: this issue has no `id`",
            "8: a dependency of issue `a-3` names no issue",
        ]
    );
    assert_eq!(faults(&read_one(ISSUES_PATH, "\n")), ["1: this list has no tasks"]);
}

#[test]
fn beads_records_through_its_program() {
    assert_eq!(tick(PlanFormat::Beads, ISSUES, "a-1.1", &["a-1.1"], true), None);
    let command = recording_command(PlanFormat::Beads, "a-1.1").unwrap();
    assert_eq!(command[..3], ["bd", "close", "a-1.1"]);
    assert_eq!(recording_command(PlanFormat::TaskMaster, "T1"), None);
}

const BOARD: [(&str, &str); 2] = [
    ("backlog/config.yml", "project_name: shop\nstatuses: [\"To Do\", \"In Progress\", \"Done\"]\n"),
    ("backlog/completed/task-9 - Old.md", ""),
];

fn task_file(id: &str, status: &str, more: &str, body: &str) -> String {
    format!("---\nid: {id}\ntitle: Title of {id}\nstatus: {status}\nassignee: []\n{more}---\n\n{body}")
}

#[test]
fn backlog_tasks_become_lanes() {
    let body = "## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\nChange `src/a.rs`.\n<!-- SECTION:DESCRIPTION:END -->\n\n## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [ ] #1 `make check` passes\n- [x] #2 It is kept\n<!-- AC:END -->\n";
    let files = [
        (
            "backlog/tasks/task-10 - A.md",
            task_file("TASK-10", "To Do", "dependencies:\n  - task-2\n  - TASK-9\n", body),
        ),
        ("backlog/tasks/task-2 - B.md", task_file("task-02", "In Progress", "dependencies: []\npriority: high\n", "")),
        (
            "backlog/tasks/task-2.1 - C.md",
            task_file("task-2.1", "To Do", "parent_task_id: TASK-2\nlabels:\n  - web\n", ""),
        ),
        ("backlog/tasks/deep/task-3 - D.md", task_file("TASK-3", "done", "", "")),
        ("backlog/tasks/task-4 - E.md", task_file("TASK-4", "Blocked", "", "")),
        ("backlog/tasks/task-5 - F.md", task_file("TASK-5", "To Do", "dependencies: [task-4, TASK-3]\n", "")),
        ("backlog/tasks/readme.md", "# Tasks\n".to_owned()),
        ("backlog/tasks/notes.md", "# Notes\n- [ ] x\n".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let reading = read_files(&files, &BOARD, ReadOptions::default());
    assert_eq!(reading.format, Some(PlanFormat::Backlog));
    assert_eq!(faults(&reading), ["1: without an `id` in front matter, so left out: `notes.md`"]);
    let plan = good(reading);
    assert_eq!(shape(&plan), ["task-2.1<", "task-02<task-2.1", "TASK-10<task-02"]);
    assert_eq!(
        skipped(&plan),
        [
            "TASK-3: its status is `done`",
            "TASK-4: its status is `Blocked`",
            "TASK-5: it waits for TASK-4, which is left out",
        ]
    );
    assert_eq!(plan.phase.as_str(), "shop");
    let lane = &plan.lanes[2];
    assert_eq!((lane.owns.as_slice(), lane.tests.len()), (&["src/a.rs".to_owned()][..], 1));
    let task = &lane.agents[0].tasks[0];
    assert_eq!(task.acceptance_criteria, ["`make check` passes"]);
    assert!(task.prompt.contains("Change `src/a.rs`.") && task.prompt.contains("- It is kept"));
    assert!(!task.prompt.contains("<!--") && !task.prompt.contains("`make check`"), "{}", task.prompt);
    assert!(plan.lanes[1].agents[0].allow_empty || plan.lanes[1].agents[0].tasks[0].allow_empty);
    let tagged = read_files(&files, &BOARD, ReadOptions { tag: Some("Web"), ..ReadOptions::default() });
    assert_eq!(shape(&good(tagged)), ["task-2.1<"]);
}

#[test]
fn backlog_faults_are_reported_at_once() {
    let files = [
        ("backlog/tasks/a.md", task_file("TASK-1", "To Do", "dependencies: [task-77]\n", "")),
        ("backlog/tasks/b.md", task_file("task-01", "To Do", "", "")),
        ("backlog/tasks/c.md", task_file("TASK-3", "Nearly", "labels: [a, \"b\n", "")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let reading = read_files(&files, &BOARD, ReadOptions::default());
    let messages = faults(&reading);
    assert_eq!(messages[0], "6: task `TASK-1` depends on `task-77`, but there is no such task");
    assert_eq!(messages[1], "2: there are two tasks `task-01`, the first in backlog/tasks/a.md:2");
    assert!(messages[2..].iter().any(|message| message.contains("invalid YAML in the front matter")), "{messages:?}");
    assert!(
        messages[2..].iter().any(|message| message.contains("`Nearly` of task `TASK-3` is not known")),
        "{messages:?}"
    );
}

#[test]
fn backlog_file_alone_knows_its_neighbours() {
    let text = task_file("TASK-1", "To Do", "dependencies: [task-2]\n", "");
    let read = |status: &str| {
        let other = task_file("TASK-2", status, "", "");
        read_files(&[("backlog/tasks/a.md", &text)], &[("backlog/tasks/b.md", &other)], ReadOptions::default())
    };
    assert_eq!(shape(&good(read("Done"))), ["TASK-1<"]);
    assert_eq!(faults(&read("To Do")), ["2: no task of this list can start: 0 are done, 1 are left out"]);
}

#[test]
fn done_tasks_run_again_when_asked() {
    let options = ReadOptions { redo: true, ..ReadOptions::default() };
    let plan = good(read_files(&[(ISSUES_PATH, ISSUES)], &[], options));
    assert!(plan.lanes.iter().any(|lane| lane.id.as_str() == "a-4"));
    let unfinished = ["T1".to_owned()];
    let options = ReadOptions { unfinished: &unfinished, ..ReadOptions::default() };
    let text = TASKS.replace("2.5, ", "");
    let plan = good(read_files(&[(TASKS_PATH, &text)], &[], options));
    assert_eq!(shape(&plan)[..2], ["T1<", "T3<T1"]);
}

#[test]
fn ticks_are_no_change_of_a_plan() {
    let text = TASKS.replace("2.5, ", "");
    let of = |path: &str, text: &str| read_one(path, text).sha256;
    let ticked = tick(PlanFormat::TaskMaster, &text, "T2", &["2"], true).unwrap();
    assert_eq!(of(TASKS_PATH, &ticked), of(TASKS_PATH, &text));
    assert_ne!(of(TASKS_PATH, &text.replace("deferred", "pending")), of(TASKS_PATH, &text));
    let body = "## Acceptance Criteria\n- [ ] a\n";
    let [open, done] = ["To Do", "Done"].map(|status| task_file("TASK-1", status, "", body));
    let done = done.replace("[ ]", "[x]");
    assert_eq!(tick(PlanFormat::Backlog, &open, "TASK-1", &["TASK-1"], true).as_deref(), Some(done.as_str()));
    assert_eq!(of("backlog/tasks/a.md", &done), of("backlog/tasks/a.md", &open));
    let closed = ISSUES.replace(
        r#""title":"Cache","status":"in_progress""#,
        r#""title":"Cache","closed_at":"2026-01-01T00:00:00Z","close_reason":"a \"b\"","status":"closed""#,
    );
    assert_eq!(of(ISSUES_PATH, &closed), of(ISSUES_PATH, ISSUES));
}
