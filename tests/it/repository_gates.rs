//! Lanes without a gate: what the repository is tested by is proposed, written by `init`, and judges them.

use crate::support::TestEnv;

const PACKAGE: &str = "{\n  \"scripts\": {\"test\": \"sh test.sh\", \"lint\": \"eslint . --fix\"}\n}\n";
const TASKS: &str = "# Tasks: Login\n\n## Phase 1: User Story 1 - Sign in\n\n- [ ] T001 [US1] Extend src/app.txt\n\
                     ## Phase 2: User Story 2 - Sign out\n\n- [ ] T002 [US2] Extend src/app.txt\n";
const LIST: &str = "specs/001-login/tasks.md";

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "runner = 'agent'\n[runners.agent]\ncommand = 'agent.sh'\n");
    env.program("agent.sh", "#!/bin/sh\necho \"$LANEWRIGHT_LANE\" > \"$LANEWRIGHT_LANE.txt\"\n");
    env.write(&format!("repo/{LIST}"), TASKS);
    env
}

#[test]
fn plan_check_proposes_what_the_repository_is_tested_by() {
    let env = env();
    let none = env.lanewright(&["plan", "check", "specs/001-login"]).exits(0);
    none.says(&["2 lanes have no gate, so only the agent says that the work is done: US1, US2", "lanewright.toml"]);
    env.write("repo/Makefile", "test:\n\tsh test.sh\n");
    env.write("repo/package.json", PACKAGE);
    for command in ["check", "show"] {
        let found = env.lanewright(&["plan", command, "specs/001-login"]).exits(0);
        found.says(&[
            "tasks.md:5: warning: 2 lanes have no gate",
            "(`test` of Makefile), write `tests = [\"make test\"]` into lanewright.toml; `lanewright init --gates` does that",
        ]);
    }
    let json = env.lanewright(&["plan", "check", "specs/001-login", "--format", "json"]).exits(0).json();
    let helps: Vec<&str> =
        json["diagnostics"].as_array().expect("a list").iter().filter_map(|it| it["help"].as_str()).collect();
    assert!(helps.iter().any(|help| help.contains("make test")), "{json}");
}

#[test]
fn manifest_that_does_not_parse_is_a_warning_with_its_place() {
    let env = env();
    env.write("repo/package.json", "{\n  \"scripts\": {,\n");
    env.write("repo/go.mod", "module a\n");
    let found = env.lanewright(&["plan", "check", "specs/001-login"]).exits(0);
    found.says(&["package.json:2: warning: invalid JSON", "go test ./..."]);
    let shown = env.lanewright(&["init", "--gates", "--dry-run"]).exits(0);
    assert!(shown.stdout.contains("+tests = [\"go test ./...\"]"), "{}", shown.stdout);
    shown.says(&["package.json:2: warning"]);
}

#[test]
fn init_writes_the_gates_once_and_they_judge_lanes() {
    let env = env();
    env.write("repo/package.json", PACKAGE);
    env.program("npm", "#!/bin/sh\necho tested >> \"$SCRATCH/npm.$LANEWRIGHT_LANE\"\n[ ! -e US2.txt ]\n");
    let before = env.read("repo/lanewright.toml");
    env.lanewright(&["init", "--gates", "--yes"]).exits(0);
    let comment = "# What must pass on a lane's branch before it is merged; from `scripts.test` of package.json.\n";
    assert_eq!(env.read("repo/lanewright.toml"), format!("{comment}tests = [\"npm test\"]\n{before}"));
    let again = env.lanewright(&["init", "--gates"]).exits(0);
    assert!(again.stdout.contains("Everything is in place"), "{}", again.stdout);
    env.commit("the list and the settings");
    let checked = env.lanewright(&["plan", "check", "specs/001-login"]).exits(0);
    assert!(!checked.stderr.contains("no gate"), "{}", checked.stderr);
    let shown = env.lanewright(&["plan", "show", "specs/001-login", "--explain"]).exits(0).stdout;
    assert!(shown.contains("lanewright.toml:2:9: US1 gate `npm test`:"), "{shown}");
    // Both lanes change the same file, and their tests judge what is merged.
    assert!(!checked.stdout.contains("1 lane at most"), "{}", checked.stdout);
    let ended = env.lanewright(&["run", "specs/001-login", "--run-id", "r1", "--retries", "0"]).exits(1);
    ended.says(&["US2", "npm test"]);
    assert!(env.holds("main", "US1.txt") && !env.holds("main", "US2.txt"));
    assert!(!env.scratch("npm.US1").is_empty());
}

#[test]
fn a_resume_judges_by_the_tests_that_were_corrected() {
    let env = env();
    let settings = env.read("repo/lanewright.toml");
    env.write("repo/lanewright.toml", format!("tests = ['false']\n{settings}"));
    env.commit("the list and the settings");
    env.lanewright(&["run", "specs/001-login", "--run-id", "r1", "--retries", "0"]).exits(1);
    env.write("repo/lanewright.toml", format!("tests = ['test -e $LANEWRIGHT_LANE.txt']\n{settings}"));
    env.commit("the right tests");
    env.lanewright(&["resume", "r1"]).exits(0);
    assert!(env.holds("main", "US1.txt") && env.holds("main", "US2.txt"));
}

#[test]
fn tests_of_the_user_are_not_replaced() {
    let env = env();
    env.write("repo/Cargo.toml", "[package]\nname = 'a'\n");
    for own in ["tests = ['make mine']\n", "tests = []\n"] {
        env.write("repo/lanewright.toml", own);
        env.lanewright(&["init", "--gates", "--yes"]).exits(0);
        env.lanewright(&["init", "--config", "--yes"]).exits(0);
        assert_eq!(env.read("repo/lanewright.toml"), own);
        let checked = env.lanewright(&["plan", "check", "specs/001-login", "--runner", "codex"]);
        assert!(!checked.stderr.contains("cargo test"), "{}", checked.stderr);
    }
    std::fs::remove_file(env.path("repo/lanewright.toml")).expect("removed");
    env.lanewright(&["init", "--config", "--yes"]).exits(0);
    assert!(env.read("repo/lanewright.toml").contains("\ntests = [\"cargo test\"]\n"));
    env.lanewright(&["status", "--settings"]).exits(0);
    let bare = TestEnv::new();
    bare.lanewright(&["init", "--gates", "--yes"]).exits(0).says(&["names a command that tests it", "lanewright.toml"]);
}

#[test]
fn lanes_that_are_merged_do_not_run_again_for_a_new_setting() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    env.write("repo/lanewright.toml", "tests = ['true && test -e a.txt']\n");
    let again = env.execute(&[]).exits(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
}

#[test]
fn new_plans_take_the_repositorys_tests() {
    let env = TestEnv::new();
    env.write("repo/go.mod", "module a\n");
    env.lanewright(&["plan", "new"]).exits(0);
    let line = "tests = [\"go test ./...\"]    # must pass before a lane is merged; from go.mod\n";
    assert!(env.read("repo/plan.toml").contains(line), "{}", env.read("repo/plan.toml"));
    env.lanewright(&["plan", "new", "--test", "make check", "--force"]).exits(0);
    assert!(env.read("repo/plan.toml").contains("tests = [\"make check\"]"));
    env.write("repo/lanewright.toml", "tests = ['make']\n");
    env.lanewright(&["plan", "new", "--force"]).exits(0);
    assert!(env.read("repo/plan.toml").contains("# tests = "), "the settings have them");
}
