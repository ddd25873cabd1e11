//! Whole task lists.

use lanewright_model::{Approval, CommandLine, LaneOrder, LaneSplit, ListOptions, Plan, TaskKind};

use crate::{Fallbacks, PlanFormat, ReadOptions, Reading, Source, SourceFile, read};

fn runner(_: &str) -> Option<CommandLine> {
    Some(CommandLine::Arguments(vec!["agent".to_owned()]))
}

fn read_with(text: &str, companions: &[SourceFile<'_>], options: ReadOptions<'_>) -> Reading {
    let files = [SourceFile { path: "specs/007-notes/tasks.md", text }];
    let fallbacks = Fallbacks { runner: Some("agent"), ..Fallbacks::default() };
    let source = Source { files: &files, companions, fallbacks, options, ..Source::default() };
    read(&source, &|_| Err(String::new()), &runner)
}

fn read_as(text: &str, lists: ListOptions) -> Reading {
    let files = [SourceFile { path: "specs/007-notes/tasks.md", text }];
    let fallbacks = Fallbacks { runner: Some("agent"), lists, ..Fallbacks::default() };
    read(&Source { files: &files, fallbacks, ..Source::default() }, &|_| Err(String::new()), &runner)
}

fn plan(text: &str) -> Plan {
    let reading = read_with(text, &[], ReadOptions::default());
    reading.plan.unwrap_or_else(|| panic!("{:#?}", reading.diagnostics))
}

/// The ids of lanes with what they wait for.
fn edges(text: &str) -> Vec<String> {
    edges_of(&plan(text))
}

fn edges_of(plan: &Plan) -> Vec<String> {
    let after = |lane: &lanewright_model::Lane| {
        let on: Vec<String> = lane.depends_on.iter().map(|on| plan.lane(*on).id.to_string()).collect();
        format!("{} < {}", lane.id, on.join(" "))
    };
    plan.lanes.iter().map(after).collect()
}

fn faults(text: &str) -> Vec<String> {
    let reading = read_with(text, &[], ReadOptions::default());
    reading
        .diagnostics
        .iter()
        .filter(|fault| fault.is_error())
        .map(|fault| format!("{}: {}", fault.line, fault.message))
        .collect()
}

const STORIES: &str = "\
# Tasks: Notes

## Phase 1: Setup
- [ ] T001 Create the project in app/
## Phase 2: Foundational
- [ ] T002 Add the store in app/store.py
## Phase 3: User Story 1 - Write (Priority: P1) 🎯 MVP
**Goal**: Notes are kept.
**Independent Test**: Write one and read it.
- [ ] T003 [P] [US1] Write a test in tests/test_write.py
- [ ] T004 [US1] Add writing in app/write.py
- [ ] T005 [US1] Verify the tests pass: `pytest -q` in app/
## Phase 4: User Story 2 - Search (Priority: P2)
- [ ] T006 [US2] Add search in app/search.py
## Phase 5: Polish
- [ ] T007 Update README.md
- [ ] T008 Run quickstart.md validation
- [ ] T009 Run `ruff check app/`
";

#[test]
fn phases_become_lanes_in_their_order() {
    assert_eq!(edges(STORIES), ["SETUP < ", "FOUND < SETUP", "US1 < FOUND", "US2 < FOUND", "POLISH < US1 US2"]);
    let plan = plan(STORIES);
    assert_eq!((plan.phase.as_str(), plan.title.as_deref()), ("007-notes", Some("Notes")));
    let story = &plan.lanes[2];
    assert_eq!(story.name.as_deref(), Some("User Story 1 - Write"));
    assert_eq!(story.owns, ["tests/test_write.py", "app/write.py"]);
    assert_eq!(story.tests, [CommandLine::Shell("cd app && pytest -q".to_owned())]);
    assert_eq!(story.criteria.as_deref(), Some("**Independent Test**: Write one and read it."));
    let ids: Vec<&str> = story.agents[0].tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["T003", "T004"]);
    let prompt = &story.agents[0].tasks[1].prompt;
    assert!(
        prompt.contains("**Goal**: Notes are kept.") && prompt.contains("# Task T004\n\nAdd writing in app/write.py")
    );
    let polish: Vec<TaskKind> = plan.lanes[4].agents[0].tasks.iter().map(|task| task.kind).collect();
    assert_eq!(polish, [TaskKind::Auto, TaskKind::HumanVerify]);
    assert_eq!(plan.lanes[4].tests, [CommandLine::Shell("ruff check app/".to_owned())]);
}

#[test]
fn section_on_dependencies_gives_edges() {
    let section = |line: &str| edges(&format!("{STORIES}\n## Dependencies & Execution Order\n\n{line}\n"));
    for line in [
        "- **User Story 2 (P2)**: Depends on US1 (uses its store)",
        "- **User Story 2 (Phase 4)**: Can start after Foundational (Phase 2) - Best implemented after US1",
        "2. **Phase 4 (US2)**: Depends on US1 → search",
        "- **User Stories 2-3**: All depend on US1 completion",
        "- **User Story 1 (P1)**: Must be complete before User Story 2",
        "- US2: should follow US1",
        "- **US2**: Depends on Setup + T004",
    ] {
        assert_eq!(section(line)[3], "US2 < US1", "{line}");
    }
    for line in [
        "- **User Story 2 (P2)**: Can start after Foundational (Phase 2) - independent of US1",
        "- **User Story 2 (P2)**: Depends on Foundational - Can run parallel to US1",
        "- **User Story 2 (P2)**: Independent, but conceptually relies on US1",
        "- **User Story 2 (P2)**: Uses US1 for test data but independently testable",
        "```text\n- **US2**: Depends on US1\n```",
        "### Within Each User Story\n\n- **US2**: Depends on US1",
        "- **User Stories (Phase 3+)**: All depend on Foundational",
    ] {
        assert_eq!(section(line)[3], "US2 < FOUND", "{line}");
    }
}

#[test]
fn cycles_and_unknown_stories_are_refused() {
    let section =
        "\n## Dependencies\n- **US1**: Depends on US2\n- **US2**: Depends on US1\n- **Polish**: Depends on US7\n";
    let found = faults(&format!("{STORIES}{section}"));
    assert!(found[0].contains("US1 -> US2 -> US1"), "{found:?}");
    assert!(found.iter().any(|fault| fault.contains("waits for US7, but this file has no such lane")), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
    let text = format!("{STORIES}{section}");
    let helps: Vec<Option<String>> =
        read_as(&text, ListOptions::default()).diagnostics.into_iter().map(|it| it.help).collect();
    assert_eq!(helps.iter().flatten().filter(|help| help.contains("with `--order file`")).count(), 2, "{helps:?}");
}

#[test]
fn order_of_the_list_replaces_its_dependencies() {
    let section =
        "\n## Dependencies\n- **US1**: Depends on US2\n- **US2**: Depends on US1\n- **Polish**: Depends on US7\n";
    let reading =
        read_as(&format!("{STORIES}{section}"), ListOptions { order: LaneOrder::File, ..ListOptions::default() });
    let plan = reading.plan.unwrap();
    assert_eq!(edges_of(&plan), ["SETUP < ", "FOUND < SETUP", "US1 < FOUND", "US2 < US1", "POLISH < US2"]);
    let ignored: Vec<String> = reading.diagnostics.iter().map(|it| format!("{}: {}", it.line, it.message)).collect();
    let expected = [
        "21: lane `US1` depends on `US2`, but comes before it in the list, whose order holds",
        "23: `Polish` waits for US7, but this file has no such lane",
    ];
    assert_eq!(ignored[..2], expected);
}

#[test]
fn ticked_tasks_are_left_out() {
    let text = STORIES
        .replacen("[ ] T001", "[x] T001", 1)
        .replacen("[ ] T002", "[X] T002", 1)
        .replacen("[ ] T003", "[x] T003", 1);
    let plan = plan(&text);
    assert_eq!(plan.lanes[0].id.as_str(), "US1");
    assert!(plan.lanes[0].depends_on.is_empty());
    assert!(plan.lanes[0].agents[0].tasks[0].prompt.contains("## Done already\n\n- T003 Write a test"));
    assert_eq!(plan.skipped.len(), 2);
    let all = STORIES.replace("[ ]", "[x]");
    assert_eq!(faults(&all), ["1: all 9 tasks of this feature are ticked"]);
    let again = read_with(&all, &[], ReadOptions { redo: true, ..ReadOptions::default() });
    assert_eq!(again.plan.unwrap().lanes.len(), 5);
}

#[test]
fn finished_lanes_of_a_run_stay_in_the_plan() {
    let ids = |text: &str, unfinished: &[&str]| -> Vec<String> {
        let unfinished: Vec<String> = unfinished.iter().map(|&id| id.to_owned()).collect();
        let reading = read_with(text, &[], ReadOptions { unfinished: &unfinished, ..ReadOptions::default() });
        reading.plan.map_or_else(Vec::new, |plan| plan.lanes.iter().map(|lane| lane.id.to_string()).collect())
    };
    let all = STORIES.replace("[ ]", "[x]");
    assert_eq!(ids(&all, &[]), [""; 0]);
    assert_eq!(ids(&all, &["US1", "SETUP"]), ["SETUP", "US1"]);
}

#[test]
fn numbers_are_unique() {
    let text = STORIES.replace("T004", "T003");
    assert_eq!(faults(&text), ["11: the task `T003` is in line 10 already"]);
}

#[test]
fn files_that_look_alike_are_no_task_lists() {
    let detect = |text: &str| super::is_plan("README.md", text);
    assert!(detect(STORIES) && detect(&STORIES.replace('\n', "\r\n")));
    for text in [
        "# Readme\n## Features\n- [x] Fast\n- [ ] T-shirts\n",
        "# Spec Kit\n## Phase 1: Setup\n```md\n- [ ] T001 a\n```\n",
        "# Roadmap\n## Phase 1: Base\n- [ ] Phase 1: a\n",
        "# Notes\n- [ ] T001 a\n",
        "",
    ] {
        assert!(!detect(text), "{text}");
    }
    let template = STORIES.replace("Notes", "[FEATURE NAME]") + "<!-- SAMPLE TASKS -->";
    assert_eq!(faults(&template), ["1: this is Spec Kit's template of a task list"]);
}

#[test]
fn companions_are_part_of_prompts() {
    let companions = [
        SourceFile {
            path: "specs/007-notes/spec.md",
            text: "# Spec\n### User Story 1 - Write\nAs a writer.\n### User Story 2 - Search\nAs a reader.\n",
        },
        SourceFile {
            path: "specs/007-notes/plan.md",
            text: "# Plan\n## Summary\nNotes.\n## Gates\nNo.\n**Goals**: [e.g., 10 ms]\n",
        },
        SourceFile { path: ".specify/memory/constitution.md", text: "# Rules\nTest first.\n" },
        SourceFile { path: "specs/007-notes/data-model.md", text: "# Model\n" },
    ];
    let reading = read_with(STORIES, &companions, ReadOptions::default());
    let plan = reading.plan.unwrap();
    let prompt = &plan.lanes[2].agents[0].tasks[0].prompt;
    assert!(prompt.contains("As a writer.") && !prompt.contains("As a reader."), "{prompt}");
    assert!(prompt.contains("## Summary\nNotes.") && !prompt.contains("## Gates") && prompt.contains("Test first."));
    assert!(prompt.contains("- `specs/007-notes/data-model.md`"));
    assert!(reading.diagnostics.iter().any(|fault| fault.message.contains("specs/007-notes/plan.md:6 still has")));
    let strict = read_with(STORIES, &companions, ReadOptions { strict: true, ..ReadOptions::default() });
    assert!(strict.plan.is_none());
}

#[test]
fn headings_of_other_languages_are_understood() {
    let text = "# タスク: ノート\n## フェーズ 1: セットアップ\n- [ ] T001 作成 app/\n## フェーズ 2: 基盤\n- [ ] T002 app/store.py を作成\n\
        ## フェーズ 3: ユーザーストーリー1 - 書く (優先度: P1)\n- [ ] T003 [US1] app/write.py を作成\n\
        ## フェーズ 4: 検索 (優先度: P2)\n- [ ] T004 [US2] app/search.py を作成\n## フェーズ 5: 仕上げ\n- [ ] T005 README.md を更新\n\
        ## 依存関係\n- **ユーザーストーリー2**: ユーザーストーリー1 に依存\n";
    assert_eq!(edges(text), ["SETUP < ", "FOUND < SETUP", "US1 < FOUND", "US2 < US1", "POLISH < US2"]);
}

#[test]
fn clause_may_name_what_comes_before_and_behind() {
    for line in [
        "Depends on Setup completion, BLOCKS all user stories",
        "Depends on Setup and blocks US1/US2.",
        "depends on Phase 1; blocks all user-story phases.",
        "Must be complete before US2, after Setup",
        "依賴 Phase 1 完成，阻塞 US1 與 US2",
    ] {
        let text = format!("{STORIES}## Dependencies\n- **Foundational (Phase 2)**: {line}\n");
        assert_eq!(edges(&text)[..4], ["SETUP < ", "FOUND < SETUP", "US1 < FOUND", "US2 < FOUND"], "{line}");
    }
    let text = format!("{STORIES}## 依賴\n- **US1**: US2 的前置條件\n");
    assert_eq!(edges(&text)[3], "US2 < US1");
    let text =
        format!("{STORIES}## Dependencies\n- **US2**: depends only on Phases 2+3.\n- **Polish**: depends on all.\n");
    assert_eq!(edges(&text)[3..], ["US2 < US1", "POLISH < US2"]);
    let reading = read_with(&text, &[], ReadOptions::default());
    assert!(!reading.diagnostics.iter().any(|fault| fault.message.contains("order")), "{:#?}", reading.diagnostics);
}

#[test]
fn phase_says_what_it_waits_for() {
    for line in ["**Prerequisites**: Phase 3 complete", "**Depends on:** US1 (its API)", "**前置**：Phase 1–3 完成"]
    {
        let text = STORIES
            .replace("## Phase 4: User Story 2 - Search (Priority: P2)\n", "## Phase 4: User Story 2 - Search\n")
            .replace("- Search\n", &format!("- Search\n\n{line}\n\n"));
        assert_eq!(edges(&text)[2..], ["US1 < FOUND", "US2 < US1", "POLISH < US2"], "{line}");
    }
    let text = format!("{STORIES}## Dependencies\n- **US2**: after Setup, but should not ship before US1\n");
    assert_eq!(edges(&text)[2..4], ["US1 < FOUND", "US2 < FOUND"]);
}

#[test]
fn heading_that_reports_about_a_phase_is_none() {
    let text = STORIES.replace("## Phase 1: Setup", "## Phase 3 completion - done\nAll good.\n## Phase 1: Setup");
    let text = format!("{text}## Dependencies\n- **Phase 3 (US1)**: depends on Phase 2\n");
    assert_eq!(edges(&text)[..3], ["SETUP < ", "FOUND < SETUP", "US1 < FOUND"]);
}

#[test]
fn command_behind_a_persons_task_is_a_test_of_the_lane() {
    let text = STORIES.replace(
        "- [ ] T008 Run quickstart.md validation\n",
        "- [ ] T008 Run quickstart.md validation\n- [ ] T018 Run `npm test`\n- [ ] T019 Update docs/a.md\n",
    );
    let plan = plan(&text);
    let lane = plan.lanes.last().unwrap();
    let person = &lane.agents[0].tasks[1];
    assert_eq!((person.kind, person.verify.len()), (TaskKind::HumanVerify, 0));
    assert_eq!(lane.tests[0], CommandLine::Shell("npm test".to_owned()));
}

#[test]
fn phases_without_stories_run_in_turn() {
    let text = "## Phase 3.1: Setup\n- [ ] T001 a\n## Phase 3.2: Tests First\n- [ ] T002 b\n## Phase 3.3: Core\n- [ ] T003 c\n";
    assert_eq!(edges(text), ["SETUP < ", "P3.2 < SETUP", "P3.3 < P3.2"]);
}

#[test]
fn file_that_one_story_creates_is_not_merged() {
    let text = |first: &str, second: &str| {
        STORIES.replace("Add writing in app/write.py", first).replace("Add search in app/search.py", second)
    };
    let with = |text: &str, rule| {
        let files = [SourceFile { path: "tasks.md", text }];
        let fallbacks = Fallbacks { runner: Some("agent"), shared_files: rule, ..Fallbacks::default() };
        read(&Source { files: &files, fallbacks, ..Source::default() }, &|_| Err(String::new()), &runner).sharing
    };
    use lanewright_model::plan::SharedFiles::{Exclude, Merge};
    let changed = text("Extend app/store.py", "Extend app/store.py");
    assert_eq!(
        [with(&changed, None), with(&changed, Some(Exclude)), with(&changed, Some(Merge))].map(|all| all.side_by_side),
        [1, 1, 2]
    );
    let tested = |rule| {
        let files = [SourceFile { path: "tasks.md", text: &changed }];
        let tests = ["make test".to_owned()];
        let fallbacks = Fallbacks { runner: Some("agent"), tests: &tests, shared_files: rule, ..Fallbacks::default() };
        read(&Source { files: &files, fallbacks, ..Source::default() }, &|_| Err(String::new()), &runner)
    };
    let reading = tested(None);
    assert_eq!(reading.sharing.side_by_side, 2, "the tests of the settings judge what is merged");
    assert!(reading.plan.unwrap().lanes.iter().all(|lane| !lane.tests.is_empty()));
    assert_eq!(tested(Some(Exclude)).sharing.side_by_side, 1);
    let created = text("Create the routes in app/routes.py", "Extend app/routes.py");
    let sharing = with(&created, Some(Merge));
    assert_eq!((sharing.side_by_side, sharing.by_order), (1, 2), "{sharing:?}");
    assert_eq!(read_with(STORIES, &[], ReadOptions::default()).format, Some(PlanFormat::SpecKit));
}

#[test]
fn parallel_tasks_of_the_first_phases_are_split_on_request() {
    let text = STORIES.replace(
        "- [ ] T002 Add the store in app/store.py\n",
        "**Purpose**: The base.\n**Checkpoint**: All is there.\n- [x] T010 Add app/base.py\n- [ ] T011 [P] Add app/a.py\n\
         - [ ] T012 [P] Add app/b/ with models\n- [ ] T013 [P] Add app/b/c.py\n- [ ] T014 [P] Add app/d.py\n\
         - [ ] T015 [P] Name nothing\n- [ ] T016 Add app/e.py\n- [ ] T017 Run `make test`\n",
    );
    let split = ListOptions { split: LaneSplit::Parallel, ..ListOptions::default() };
    let plan = read_as(&text, split).plan.unwrap();
    let expected = [
        "SETUP < ",
        "FOUND.T011 < SETUP",
        "FOUND.T012 < SETUP",
        "FOUND.T013 < FOUND.T011 FOUND.T012",
        "FOUND.T014 < FOUND.T011 FOUND.T012",
        "FOUND.T015 < FOUND.T013 FOUND.T014",
        "US1 < FOUND.T015",
        "US2 < FOUND.T015",
        "POLISH < US1 US2",
    ];
    assert_eq!(edges_of(&plan), expected);
    let names: Vec<_> = plan.lanes[1..6].iter().map(|lane| lane.name.as_deref().unwrap()).collect();
    assert_eq!(names[0], "Add app/a.py");
    assert_eq!(names[4], "Foundational, from T015");
    let part = &plan.lanes[1];
    assert!(part.criteria.is_none(), "the checkpoint is about the whole phase");
    let prompt = &part.agents[0].tasks[0].prompt;
    assert!(prompt.contains("**Purpose**: The base.") && prompt.contains("- T010 Add app/base.py"), "{prompt}");
    assert!(!prompt.contains("T014"), "{prompt}");
    assert_eq!(plan.lanes[5].tests, [CommandLine::Shell("make test".to_owned())]);
    assert_eq!(edges(&text)[1], "FOUND < SETUP");

    // Ticks change no id, and are set for the lane's own tasks.
    let ticked = |lane: &str, tasks: &[&str]| {
        let format = PlanFormat::SpecKit;
        let tick =
            crate::Tick { format, path: "tasks.md", text: &text, companions: &[], phase: "", lane, tasks, done: true };
        crate::ticked(&tick).unwrap()
    };
    let done = ticked("FOUND.T012", &["T012"]);
    assert_eq!(done, text.replace("[ ] T012", "[x] T012"));
    let last = ticked("FOUND.T015", &["T015", "T016"]);
    assert_eq!(
        last,
        text.replace("[ ] T015", "[x] T015").replace("[ ] T016", "[x] T016").replace("[ ] T017", "[x] T017")
    );
    let rest = edges_of(&read_as(&done, split).plan.unwrap());
    assert_eq!(rest[1..4], ["FOUND.T011 < SETUP", "FOUND.T013 < FOUND.T011", "FOUND.T014 < FOUND.T011"]);
}

#[test]
fn tasks_of_a_person_are_left_out_on_request() {
    let skip = ListOptions { skip_manual: true, ..ListOptions::default() };
    let plan = read_as(STORIES, skip).plan.unwrap();
    let polish = &plan.lanes[4];
    assert_eq!(polish.agents[0].tasks.len(), 1);
    assert_eq!(polish.tests, [CommandLine::Shell("ruff check app/".to_owned())]);
    let left_out: Vec<String> =
        plan.skipped.iter().map(|skipped| format!("{}: {}", skipped.lane, skipped.reason)).collect();
    assert_eq!(left_out, ["007-notes-manual: a person does these, and they are left out: T008"]);
    assert!(!polish.agents[0].tasks[0].prompt.contains("T008"), "it is not done");

    // Where only those are open, the lane is none, and so is the plan.
    let done = STORIES.replace("[ ]", "[x]").replace("[x] T008", "[ ] T008").replace("[x] T006", "[ ] T006");
    let plan = read_as(&done, skip).plan.unwrap();
    assert_eq!(edges_of(&plan), ["US2 < "]);
    assert!(plan.skipped.iter().any(|it| it.lane.as_str() == "POLISH" && it.reason.contains("only a person")));
    let rest = read_as(&done.replace("[ ] T006", "[x] T006"), skip);
    assert_eq!(rest.diagnostics[0].message, "only tasks that a person does are open in this feature");
    let unfinished = ["POLISH".to_owned()];
    let fallbacks = Fallbacks { runner: Some("agent"), lists: skip, ..Fallbacks::default() };
    let options = ReadOptions { unfinished: &unfinished, ..ReadOptions::default() };
    let files = [SourceFile { path: "tasks.md", text: &done }];
    let source = Source { files: &files, fallbacks, options, ..Source::default() };
    let resumed = read(&source, &|_| Err(String::new()), &runner).plan.unwrap();
    assert_eq!(edges_of(&resumed), ["US2 < ", "POLISH < US2"], "a lane of a run stays");
}

#[test]
fn stories_are_approved_on_request() {
    let stop = ListOptions { stop_at_checkpoints: true, ..ListOptions::default() };
    let plan = read_as(STORIES, stop).plan.unwrap();
    let asked: Vec<&str> =
        plan.lanes.iter().filter(|lane| lane.approval == [Approval::Changes]).map(|lane| lane.id.as_str()).collect();
    assert_eq!(asked, ["US1", "US2"]);
}

#[test]
fn gates_run_in_the_package_that_has_their_script() {
    let text = STORIES
        .replace("Add writing in app/write.py", "Add writing in web/src/write.ts")
        .replace("`pytest -q` in app/", "`npm run check`")
        .replace("Run `ruff check app/`", "Run `npm test`");
    let package = |directory: &str, scripts: &[&str]| {
        let scripts: Vec<String> = scripts.iter().map(|name| format!("\"{name}\": \"true\"")).collect();
        crate::Package::read(directory, &format!("{{\"scripts\": {{{}}}}}", scripts.join(", "))).unwrap()
    };
    let read_in = |packages: &[crate::Package]| {
        let files = [SourceFile { path: "tasks.md", text: &text }];
        let fallbacks = Fallbacks { runner: Some("agent"), ..Fallbacks::default() };
        read(&Source { files: &files, packages, fallbacks, ..Source::default() }, &|_| Err(String::new()), &runner)
    };
    let tests = |reading: &Reading, lane: usize| -> Vec<String> {
        reading.plan.as_ref().unwrap().lanes[lane].tests.iter().map(ToString::to_string).collect()
    };
    let below = [package("web", &["check", "test"]), package("examples/a", &["test"])];
    let reading = read_in(&below);
    assert_eq!(tests(&reading, 2), ["cd web && npm run check"]);
    assert_eq!(tests(&reading, 4), ["cd web && npm test"], "the plan is not about examples/a");
    let prompt = &reading.plan.as_ref().unwrap().lanes[2].agents[0].tasks[0].prompt;
    assert!(prompt.contains("\n    cd web && npm run check\n"), "{prompt}");
    let gate = reading.origins.iter().find(|origin| origin.lane == "US1" && origin.what.starts_with("gate")).unwrap();
    assert_eq!(gate.what, "gate `cd web && npm run check`");
    let root = read_in(&[&[package("", &["lint"])], &below[..]].concat());
    assert_eq!(tests(&root, 4), [""; 0], "two packages have it, and the root is another one");
    assert!(
        root.diagnostics.iter().any(|it| it.message.starts_with("`npm test` is not a gate: the root has no script"))
    );
    assert_eq!(tests(&read_in(&[package("", &["check", "test"]), below[0].clone()]), 2), ["npm run check"]);
    assert_eq!(tests(&read_in(&[]), 2), ["npm run check"]);
}

#[test]
fn check_that_needs_an_account_is_a_persons() {
    let text = STORIES.replace("Run quickstart.md validation", "Verify webhooks: run `stripe trigger charge.failed`");
    let lane = plan(&text).lanes[4].clone();
    let kinds: Vec<TaskKind> = lane.agents[0].tasks.iter().map(|task| task.kind).collect();
    assert_eq!(kinds, [TaskKind::Auto, TaskKind::HumanVerify]);
    assert_eq!(lane.tests, [CommandLine::Shell("ruff check app/".to_owned())]);
    let both = STORIES.replace("Run `ruff check app/`", "Run `ruff check app/` and `gh run list`");
    let reading = read_with(&both, &[], ReadOptions::default());
    let lane = reading.plan.unwrap().lanes[4].clone();
    assert_eq!(lane.agents[0].tasks.last().unwrap().kind, TaskKind::Auto, "one of the commands is a gate");
    assert!(reading.diagnostics.iter().any(|it| it.message == "`gh run list` needs an account of a service"));
}
