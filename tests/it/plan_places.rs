//! Plans of other programs at the places that users name: a file, its directory, `.`.

use crate::support::TestEnv;

const KIRO: &str = ".kiro/specs/login/tasks.md";

const LIST: &str =
    "# Login\n\n- [x] 1. Prepare\n- [ ] 2. Write the file\n  - Write `login.txt`\n  - _Requirements: 1.1_\n";

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "runner = 'agent'\n[runners.agent]\ncommand = 'agent.sh'\n");
    env.program(
        "agent.sh",
        "#!/bin/sh\n\
         cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.$LANEWRIGHT_LANE\"\n\
         [ ! -e \"$SCRATCH/broken\" ] || exit 9\n\
         echo \"$LANEWRIGHT_LANE\" >> \"$LANEWRIGHT_LANE.txt\"\n",
    );
    env
}

/// The lanes of the plan at `place`.
fn lanes(env: &TestEnv, place: &str) -> Vec<String> {
    let shown = env.lanewright(&["plan", "show", place, "--format", "json"]).exits(0).json();
    let lanes = shown["lanes"].as_array().expect("lanes");
    lanes.iter().map(|lane| lane["lane"]["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn one_plan_is_found_from_file_directories_and_dot() {
    let env = env();
    env.write(&format!("repo/{KIRO}"), LIST);
    env.write("repo/.kiro/specs/login/design.md", "# The design of the login\n");
    for place in [".", ".kiro", ".kiro/specs", ".kiro/specs/login", KIRO] {
        assert_eq!(lanes(&env, place), ["login"], "{place}");
    }
    let check = env.lanewright(&["plan", "check", ".kiro/specs/login"]).exits(0);
    assert!(check.stdout.starts_with(&format!("{KIRO}: valid: phase login, 1 lane")), "{}", check.stdout);
    env.lanewright(&["plan", "graph", "."]).exits(0);
    let converted = env.lanewright(&["plan", "convert", "."]).exits(0).stdout;
    env.write("repo/native.toml", converted);
    env.lanewright(&["plan", "check", "native.toml"]).exits(0);
    let prompts = env.lanewright(&["plan", "show", ".", "--prompts"]).exits(0).stdout;
    assert!(prompts.contains("The design of the login") && prompts.contains("Write the file"), "{prompts}");
}

#[test]
fn several_plans_are_listed_to_choose_from() {
    let env = env();
    env.write(&format!("repo/{KIRO}"), LIST);
    env.write("repo/openspec/changes/add-it/tasks.md", "## 1. A\n- [ ] 1.1 a\n");
    env.write("repo/openspec/changes/add-it/proposal.md", "# Change: Add it\n");
    for command in [["plan", "check", "."].as_slice(), &["run", "."], &["execute-lane", ".", "login"]] {
        env.lanewright(command)
            .exits(2)
            .says(&["has several plans"])
            .hints("lanewright run .kiro/specs")
            .hints("lanewright run openspec/changes");
    }
    assert_eq!(lanes(&env, "openspec"), ["add-it"]);
    env.write("repo/openspec/changes/add-it/tasks.md", "## 1. A\n- [x] 1.1 a\n");
    assert_eq!(lanes(&env, "."), ["login"], "what is done is no choice");
    env.write("repo/plan.toml", "phase = \"P1\"\n[[lane]]\nid = \"A\"\ncommand = \"true\"\n");
    env.lanewright(&["plan", "check", "."]).exits(2).hints("lanewright run plan.toml");
}

#[test]
fn files_that_only_look_like_plans_are_refused() {
    let env = env();
    env.write("repo/README.md", "# Project\n\n## To do\n- [ ] 1. a\n- [ ] 2. b\n");
    env.write("repo/docs/tasks.md", "# Notes\n- [ ] buy milk\n");
    env.write("repo/openspec/project.md", "no change yet\n");
    for place in ["README.md", "docs/tasks.md", ".", "docs", "openspec", "nothing", "speckit"] {
        env.lanewright(&["plan", "check", place]).exits(2);
        env.lanewright(&["run", place]).exits(2);
    }
    env.lanewright(&["plan", "check", "."]).exits(2).says(&["there is no plan in the directory"]).hints("Kiro");
}

#[test]
fn archived_and_finished_changes_are_not_run() {
    let env = env();
    env.write("repo/openspec/changes/archive/2025-01-01-old/tasks.md", "- [ ] a\n");
    let old = "openspec/changes/archive/2025-01-01-old";
    let archived = env.lanewright(&["run", old]).exits(0);
    assert!(archived.stdout.contains("every task of 2025-01-01-old is done"), "{}", archived.stdout);
    env.write("repo/openspec/changes/a/tasks.md", "- [x] a\n");
    let done = env.lanewright(&["run", "."]).exits(0);
    assert!(done.stdout.contains("nothing to do: every task of a is done"), "{}", done.stdout);
}

#[test]
fn run_from_dot_is_resumed_although_boxes_were_ticked() {
    let env = env();
    env.write("repo/openspec/changes/a/tasks.md", "## 1. A\n- [ ] 1.1 a\n");
    env.write("repo/openspec/changes/b/tasks.md", "## 1. B\n- [ ] 1.1 b\n- [ ] 1.2 c\n");
    env.commit("the changes");
    env.write("scratch/broken", "");
    env.lanewright(&["run", ".", "--run-id", "r1", "--retries", "0"]).exits(1);
    env.write("repo/openspec/changes/b/tasks.md", "## 1. B\n- [ ] 1.1 b\n- [x] 1.2 c\n");
    std::fs::remove_file(env.path("scratch/broken")).expect("removed");
    env.lanewright(&["retry", "r1", "a", "b"]).exits(0);
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
    assert!(env.scratch("prompt.b").contains("1.2 c"));
}

const SPEC_KIT: &str = "specs/001-login/tasks.md";

/// Two stories whose lines in the list are beside each other.
const TASKS: &str = "# Tasks: Login\n\n## Phase 1: Setup\n\n- [x] T001 Create package.json\n\n\
                     ## Phase 2: User Story 1 - Sign in (Priority: P1)\n\n- [ ] T002 [US1] Write src/in.txt\n\
                     ## Phase 3: User Story 2 - Sign out (Priority: P2)\n\n- [ ] T003 [US2] Write src/out.txt\n";

#[test]
fn a_merge_ticks_what_its_lane_did_and_a_rollback_unticks_it() {
    let env = env();
    env.program(
        "agent.sh",
        "#!/bin/sh\necho \"$LANEWRIGHT_LANE\" > \"$LANEWRIGHT_LANE.txt\"\nsed -i 's/- \\[ \\]/- [X]/; s/T001/T999/' specs/001-login/tasks.md\n",
    );
    env.write(&format!("repo/{SPEC_KIT}"), TASKS);
    env.commit("the list");
    let ended = env.lanewright(&["run", "specs/001-login", "--run-id", "r1"]).exits(0);
    ended.says(&["what the lane says in specs/001-login/tasks.md is left out"]);
    assert_eq!(env.file_at("main", SPEC_KIT), TASKS.replace("- [ ]", "- [x]").trim_end());
    let merged = env.git(&["log", "--first-parent", "--merges", "--format=%H", "main"]);
    for merge in merged.lines() {
        let changed = env.git(&["diff", "--numstat", &format!("{merge}^1"), merge, "--", SPEC_KIT]);
        assert!(changed.starts_with("1\t1\t"), "{changed}");
    }
    let again = env.lanewright(&["run", "specs/001-login"]).exits(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
    env.lanewright(&["rollback", "r1", "--lane", "US1", "--yes"]).exits(0);
    let open = TASKS.replace("- [ ] T003", "- [x] T003");
    assert_eq!(env.file_at("main", SPEC_KIT), open.trim_end());
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert_eq!(env.file_at("main", SPEC_KIT), TASKS.trim_end());
}

#[test]
fn an_edit_of_what_is_left_is_accepted_although_merged_lanes_are_ticked() {
    let env = env();
    let tasks = TASKS.replace("- [ ] T002", "- [x] T004 [US1] Write src/a.txt\n- [ ] T002");
    env.write(&format!("repo/{SPEC_KIT}"), &tasks);
    env.commit("the list");
    env.write("scratch/broken", "");
    env.program(
        "agent.sh",
        "#!/bin/sh\n[ $LANEWRIGHT_LANE = US1 ] || [ ! -e $SCRATCH/broken ] || exit 1\necho a > $LANEWRIGHT_LANE.txt\n",
    );
    env.lanewright(&["run", "specs/001-login", "--run-id", "r1", "--retries", "0"]).exits(1);
    let ticked = env.file_at("main", SPEC_KIT);
    assert!(ticked.contains("[x] T002") && ticked.contains("[ ] T003"), "{ticked}");
    env.write(&format!("repo/{SPEC_KIT}"), ticked.replace("src/out.txt", "src/exit.txt"));
    env.commit("another file");
    std::fs::remove_file(env.path("scratch/broken")).unwrap();
    let refused = env.lanewright(&["resume", "r1"]).exits(2);
    assert!(!refused.stderr.contains("US1") && !refused.stderr.contains("SETUP"), "{}", refused.stderr);
    refused.says(&["has changed since run r1 started", "US2"]).hints("--accept-plan-change");
    let more = env.read(&format!("repo/{SPEC_KIT}")).replace("- [x] T002", "- [ ] T005 [US1] Write more\n- [x] T002");
    env.write(&format!("repo/{SPEC_KIT}"), more);
    env.commit("another task");
    let accepted = env.lanewright(&["resume", "r1", "--accept-plan-change"]).exits(0);
    accepted.says(&["lane US1 is merged, so this run does not do T005"]);
    assert!(env.holds("main", "US2.txt"));
}

#[test]
fn a_run_is_resumed_with_the_choices_for_its_list() {
    let env = env();
    let list = "# Tasks: Login\n\n## Phase 1: Setup\n\n- [ ] T001 [P] Add src/a.txt\n- [ ] T002 [P] Add src/b.txt\n\
                - [ ] T003 Manually test it\n\n## Phase 2: User Story 1 - In\n\n- [ ] T004 [US1] Add src/in.txt\n";
    env.write(&format!("repo/{SPEC_KIT}"), list);
    env.commit("the list");
    let choices = ["--split", "p", "--skip-manual", "--stop-at-checkpoints"];
    env.write("scratch/broken", "");
    let run = [["run", "specs/001-login", "--run-id", "r1", "--retries", "0"].as_slice(), &choices].concat();
    env.lanewright(&run).exits(1);
    env.lanewright(&["doctor"]).exits(0);
    let changed = list.replace("Add src/in.txt", "Add src/in.txt and docs/in.md");
    env.write(&format!("repo/{SPEC_KIT}"), &changed);
    env.commit("more");
    std::fs::remove_file(env.path("scratch/broken")).expect("removed");
    env.lanewright(&["resume", "r1", "--accept-plan-change"]).exits(3).says(&["US1"]);
    assert!(env.holds("main", "SETUP.T001.txt") && env.holds("main", "SETUP.T002.txt"));
    env.lanewright(&["approve", "r1", "US1", "--resume"]).exits(0);
    assert!(env.scratch("prompt.US1").contains("docs/in.md"));
    let ticked = changed.replace("[ ]", "[x]").replace("[x] T003", "[ ] T003");
    assert_eq!(env.file_at("main", SPEC_KIT), ticked.trim_end());
    let again = env.lanewright(&[["run", "specs/001-login"].as_slice(), &choices].concat()).exits(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
}

#[test]
fn flags_of_task_lists_are_named_for_other_plans() {
    let env = env();
    env.write("repo/plan.toml", "phase = \"P1\"\n[[lane]]\nid = \"A\"\ncommand = \"true\"\n");
    let flags = ["--order", "file", "--skip-manual"];
    let checked = env.lanewright(&[["plan", "check", "plan.toml"].as_slice(), &flags].concat()).exits(0);
    checked.says(&["this plan is not a task list, so nothing follows from --order, --skip-manual"]);
}

#[test]
fn a_gate_runs_in_the_package_of_its_script() {
    let env = env();
    env.write("repo/web/package.json", r#"{"scripts": {"check": "test -s check.txt"}}"#);
    let list = TASKS.replace("src/in.txt\n", "web/check.txt\n- [ ] T004 [US1] Run `npm run check`\n");
    env.write(&format!("repo/{SPEC_KIT}"), list);
    let shown = env.lanewright(&["plan", "show", SPEC_KIT, "--explain"]).exits(0);
    assert!(shown.stdout.contains("gate `cd web && npm run check`"), "{}", shown.stdout);
    shown.says(&["`npm run check` runs in `web/`"]);
}

#[test]
fn a_list_that_the_user_changed_is_left_to_the_user() {
    let env = env();
    env.write(&format!("repo/{SPEC_KIT}"), TASKS);
    env.commit("the list");
    let edited = format!("{TASKS}\nA note.\n");
    env.write(&format!("repo/{SPEC_KIT}"), &edited);
    let ended = env.lanewright(&["run", "specs/001-login", "--run-id", "r1"]).exits(0);
    ended.says(&["US1: not ticked in specs/001-login/tasks.md, which you changed and have not committed"]);
    assert_eq!(env.file_at("main", SPEC_KIT), TASKS.trim_end());
    assert_eq!(std::fs::read_to_string(env.path("repo").join(SPEC_KIT)).expect("the list"), edited);
}

#[test]
fn a_rollback_opens_only_what_the_run_ticked() {
    let env = env();
    env.write(&format!("repo/{SPEC_KIT}"), TASKS.replace("- [ ]", "- [x]"));
    env.commit("a finished list");
    env.lanewright(&["run", "specs/001-login", "--redo", "--run-id", "r1"]).exits(0);
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert_eq!(env.file_at("main", SPEC_KIT), TASKS.replace("- [ ]", "- [x]").trim_end());
}

#[test]
fn a_list_that_is_not_committed_is_named() {
    let env = env();
    env.write(&format!("repo/{SPEC_KIT}"), TASKS);
    let ended = env.lanewright(&["run", "specs/001-login", "--run-id", "r1"]).exits(0);
    ended.says(&["US1: not ticked in specs/001-login/tasks.md, which is not committed"]);
}

#[test]
fn bd_records_what_is_merged_of_beads() {
    let issue = |id: &str| {
        format!(
            "{{\"id\":\"{id}\",\"title\":\"Write {id}\",\"status\":\"open\",\"priority\":1,\"issue_type\":\"task\"}}\n"
        )
    };
    for has_bd in [true, false] {
        let env = env();
        env.program("agent.sh", "#!/bin/sh\necho x > \"$LANEWRIGHT_LANE.txt\"\necho damaged >> .beads/issues.jsonl\n");
        env.write("repo/.beads/issues.jsonl", issue("p-1"));
        env.commit("the issues");
        if has_bd {
            env.program("bd", "#!/bin/sh\necho \"$(pwd -P)|$*\" >> \"$SCRATCH/bd\"\n");
        }
        let ended = env.lanewright(&["run", ".", "--run-id", "r1"]).exits(0);
        if has_bd {
            let checkout = env.path("repo").canonicalize().expect("the checkout");
            let call = format!("{}|close p-1 --reason Merged by Lanewright", checkout.display());
            assert_eq!(env.scratch("bd").trim_end(), call);
        } else {
            ended.says(&["bd is not on PATH; to record that the lane is done: bd close p-1"]);
        }
        assert!(env.holds("main", "p-1.txt"));
        assert_eq!(env.file_at("main", ".beads/issues.jsonl"), issue("p-1").trim_end());
    }
}

const TASK_MASTER: &str = ".taskmaster/tasks/tasks.json";

/// Two tasks, one of them in progress and with subtasks of which one is done.
const JSON_LIST: &str = r#"{
  "master": {
    "tasks": [
      {
        "id": 1,
        "title": "Write in.txt",
        "status": "in-progress",
        "subtasks": [
          {"id": 1, "title": "Prepare", "status": "done"},
          {"id": 2, "title": "Write", "status": "pending"}
        ]
      },
      {
        "id": 2,
        "title": "Write out.txt",
        "status": "pending"
      },
      {
        "id": 3,
        "title": "Think",
        "status": "deferred"
      }
    ]
  }
}
"#;

/// The list in a repository whose lanes are merged.
fn merged_task_master(list: &str) -> TestEnv {
    let env = env();
    env.write(&format!("repo/{TASK_MASTER}"), list);
    env.commit("the list");
    env.lanewright(&["run", ".", "--run-id", "r1"]).exits(0);
    env
}

#[test]
fn a_rollback_restores_a_json_list_byte_for_byte() {
    let minified = "{\"master\":{\"tasks\":[{\"id\":1,\"title\":\"Write in.txt\",\"status\":\"pending\"},\
                    {\"id\":2,\"title\":\"Write out.txt\",\"status\":\"pending\"}]}}";
    for list in [JSON_LIST, minified] {
        let env = merged_task_master(list);
        let file = || env.read(&format!("repo/{TASK_MASTER}"));
        assert!(!file().contains("pending") && !file().contains("in-progress"), "{}", file());
        env.lanewright(&["rollback", "r1", "--lane", "T1", "--yes"]).exits(0);
        let second = list.rfind("\"pending\"").expect("the second task");
        assert_eq!(file(), format!("{}\"done\"{}", &list[..second], &list[second + "\"pending\"".len()..]));
        env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
        assert_eq!(file(), list);
        assert_eq!(env.git(&["status", "--porcelain", "--untracked-files=no"]), "");
    }
}

#[test]
fn a_rollback_leaves_ticks_that_the_user_changed_since_and_names_the_list() {
    let env = merged_task_master(JSON_LIST);
    let list = format!("repo/{TASK_MASTER}");
    let done = env.read(&list);
    // The user takes back one of the two statuses that the merge of T1 wrote.
    let edited = done.replacen(
        "\"status\": \"done\",\n        \"subtasks\"",
        "\"status\": \"review\",\n        \"subtasks\"",
        1,
    );
    assert_ne!(edited, done);
    env.write(&list, &edited);
    env.commit("the user's status");
    let ended = env.lanewright(&["rollback", "r1", "--lane", "T1", "--yes"]).exits(0);
    assert!(ended.stdout.contains("what it did stays ticked in .taskmaster/tasks/tasks.json"), "{}", ended.stdout);
    assert_eq!(env.read(&list), edited, "all of a lane's ticks are opened, or none");
    assert!(!env.holds("main", "T1.txt"));
    assert!(env.events("noted").iter().any(|note| note.to_string().contains("stays ticked in")));
    // Other parts of the list are no reason.
    let more = edited.replace("Think", "Think again");
    env.write(&list, &more);
    env.commit("another title");
    let ended = env.lanewright(&["rollback", "r1", "--lane", "T2", "--yes"]).exits(0);
    assert!(!ended.stdout.contains("stays ticked"), "{}", ended.stdout);
    assert_eq!(env.read(&list).matches("\"pending\"").count(), 1);
    assert!(env.read(&list).contains("Think again"));
}

#[test]
fn a_rollback_does_not_touch_a_list_with_uncommitted_changes() {
    let env = merged_task_master(JSON_LIST);
    let list = format!("repo/{TASK_MASTER}");
    let edited = env.read(&list).replace("Think", "Think again");
    env.write(&list, &edited);
    let ended = env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    assert!(ended.stdout.contains("what it did stays ticked in"), "{}", ended.stdout);
    assert_eq!(env.read(&list), edited);
}

#[test]
fn edits_of_other_features_lists_are_left_out() {
    let env = env();
    let other = "specs/002-other/tasks.md";
    env.program(
        "agent.sh",
        "#!/bin/sh\necho x > \"$LANEWRIGHT_LANE.txt\"\nsed -i 's/- \\[ \\]/- [x]/' specs/002-other/tasks.md\n\
         mkdir -p specs/003-new && echo new > specs/003-new/tasks.md\n",
    );
    env.write(&format!("repo/{SPEC_KIT}"), TASKS);
    env.write(&format!("repo/{other}"), TASKS);
    env.commit("the lists");
    let ended = env.lanewright(&["run", "specs/001-login", "--run-id", "r1"]).exits(0);
    ended.says(&["what the lane says in specs/002-other/tasks.md is left out"]);
    assert_eq!(env.file_at("main", other), TASKS.trim_end());
    assert_eq!(env.file_at("main", "specs/003-new/tasks.md"), "new", "a list that did not exist is work");
    let notes: Vec<String> = env.events("noted").iter().map(ToString::to_string).collect();
    assert!(!notes.iter().any(|note| note.contains("summary")), "{notes:?}");
}

#[test]
fn the_start_names_lists_that_will_not_be_ticked() {
    let env = env();
    env.write(&format!("repo/{SPEC_KIT}"), TASKS);
    let shown = |env: &TestEnv, reason: &str, hint: &str| {
        let ended = env.lanewright(&["run", "specs/001-login", "--redo"]).exits(0);
        let stderr = &ended.stderr;
        let warning = stderr.find(&format!("what lanes do will not be ticked in {SPEC_KIT}: {reason}"));
        // Before the first agent is paid.
        assert!(warning.is_some_and(|at| stderr.find("US1: starts").is_none_or(|first| at < first)), "{stderr}");
        ended.hints(hint);
    };
    shown(
        &env,
        "not committed on main",
        "git add -- specs/001-login/tasks.md && git commit -m Plan -- specs/001-login",
    );
    env.commit("the list");
    let ended = env.lanewright(&["run", "specs/001-login", "--redo"]).exits(0);
    assert!(!ended.stderr.contains("will not be ticked"), "{}", ended.stderr);
    env.write(&format!("repo/{SPEC_KIT}"), format!("{TASKS}\nA note.\n"));
    shown(&env, "uncommitted changes", "git commit -m Plan -- specs/001-login/tasks.md");
}
