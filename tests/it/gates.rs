//! Commands that must pass: a task's own, the plan's gates, a lane's tests.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{RUN, TestEnv, wait_until};

/// A lane whose first attempt does half and whose later ones fix it.
const FIXES: &str = "echo $LANEWRIGHT_ATTEMPT > work.txt; [ $LANEWRIGHT_ATTEMPT = 1 ] || touch fixed.txt";

/// Fails, and says why, until the work is fixed.
const GATE: &str = "[ -e fixed.txt ] || { echo it is not fixed; exit 3; }";

/// Runs a plan that needs one retry, and checks that the retry was told of the gate.
fn fixed(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(plan);
    env.execute(&[]).exits(0);
    let context = env.attempt_file("L", "agent", 2, "failure_context.json");
    assert!(context.contains("it is not fixed") && context.contains("code 3"), "{context}");
    assert_eq!(env.file_at("main", "work.txt"), "2");
    env.assert_nothing_left(&["main"]);
    env
}

#[test]
fn a_lane_whose_tests_fail_is_fixed_and_tested_again() {
    let env = fixed(&format!("[[lane]]\nid = \"L\"\ntests = '{GATE}'\ncommand = '{FIXES}'\n"));
    let record = env.checkpoint("L", "after_lane_tests");
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("complete"), &json!(0)));
    assert!(record["command"].as_str().expect("a command").contains("fixed"));
}

#[test]
fn lane_whose_tests_never_pass_fails_unmerged() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 1\ntests = 'exit 9'\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(1);
    let record = env.checkpoint("L", "after_lane_tests");
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(9)));
    assert!(!env.holds("main", "x.txt") && env.holds("lane/P1/L", "x.txt"));
}

#[test]
fn a_gate_of_a_native_plan_that_cannot_fail_is_named() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ntests = 'make test || true'\ncommand = 'echo x > x.txt'\n");
    let told = "`make test || true` cannot fail because of `|| true`";
    env.lanewright(&["plan", "check", "../plan.toml"]).exits(0).says(&[told]);
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ntests = 'grep -r nothing . | head -5'\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(1);
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ntests = 'for ((i = 0; i < 2; i++)); do test -e x.txt; done'\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(0);
}

#[test]
fn the_atomic_gate_judges_every_task() {
    fixed(&format!("[gates]\natomic = '{GATE}'\n[[lane]]\nid = \"L\"\ncommand = '{FIXES}'\n"));
}

#[test]
fn failed_checkpoint_gate_is_fixed_by_agent_retry() {
    fixed(&format!("[gates]\ncheckpoint = '{GATE}'\n[[lane]]\nid = \"L\"\ncommand = '{FIXES}'\n"));
}

#[test]
fn a_tasks_own_commands_judge_it() {
    fixed(&format!("[[lane]]\nid = \"L\"\ncommand = '{FIXES}'\n[[lane.task]]\nverify = ['true', '{GATE}']\n"));
}

#[test]
fn tasks_run_in_order_and_passed_ones_never_again() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         echo \"$LANEWRIGHT_TASK.$LANEWRIGHT_ATTEMPT\" >> \"$SCRATCH/order\"\n\
         [ $LANEWRIGHT_TASK.$LANEWRIGHT_ATTEMPT != 2.1 ] || exit 1\n\
         ls > \"$SCRATCH/seen.$LANEWRIGHT_TASK\"; echo x > $LANEWRIGHT_TASK.txt\n'''\n\
         [[lane.task]]\n[[lane.task]]\n[[lane.task]]\n",
    );
    env.execute(&[]).exits(0);
    assert_eq!(env.scratch("order"), "1.1\n2.1\n2.2\n3.1\n");
    assert_eq!(env.scratch("seen.3"), "1.txt\n2.txt\nREADME.md\n");
    let log = env.git(&[
        "log",
        "--format=%(trailers:key=Task,valueonly,separator=%x2C) %(trailers:key=Lane,valueonly,separator=%x2C)",
        "--no-merges",
        "--topo-order",
        "main",
    ]);
    assert_eq!(log.lines().take(3).collect::<Vec<_>>(), ["3 L", "2 L", "1 L"]);
}

#[test]
fn failed_final_gate_blocks_the_phase_with_lanes_merged() {
    let env = TestEnv::new();
    env.plan("[gates]\nfinal = 'ls > \"$SCRATCH/final\"; exit 4'\n[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(3);
    assert!(env.scratch("final").contains("x.txt"), "it did not run on the integration branch");
    assert!(env.holds("main", "x.txt"));
    env.write("plan.toml", env.read("plan.toml").replace("exit 4", "exit 0"));
    env.resume(&["--accept-plan-change"]).exits(0);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn failed_setup_fails_lane_before_agent_starts() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nsetup = 'echo no network; exit 6'\ncommand = 'touch \"$SCRATCH/began\"'\n");
    env.execute(&[]).exits(1).says(&["no network"]);
    assert!(!env.path("scratch/began").exists());
}

#[test]
fn files_left_by_final_gate_are_saved_and_named() {
    let env = TestEnv::new();
    env.plan("[gates]\nfinal = 'echo report > report.txt'\n[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(0);
    let kept: Vec<String> = env.refs().into_iter().filter(|name| name.contains("/P1-final/")).collect();
    assert_eq!(kept.len(), 1, "{:?}", env.refs());
    assert_eq!(env.file_at(&kept[0], "report.txt"), "report");
    assert!(env.events("pool_emptied")[0]["kept"].to_string().contains(&kept[0]));
}

#[test]
fn lane_tests_run_without_uncommitted_gate_changes() {
    let env = TestEnv::new();
    env.plan(
        "[gates]\ncheckpoint = 'echo good > a.txt'\n[[lane]]\nid = \"L\"\nretries = 0\ntests = 'grep -q good a.txt'\n\
         command = 'echo bad > a.txt'\n",
    );
    env.execute(&[]).exits(1);
    assert!(!env.holds("main", "a.txt"));
}

#[test]
fn final_gate_runs_again_on_the_branch_at_resume() {
    let env = TestEnv::new();
    env.plan("[gates]\nfinal = '! grep -q bad l.txt'\n[[lane]]\nid = \"L\"\ncommand = 'echo bad > l.txt'\n");
    env.execute(&[]).exits(3);
    env.resume(&[]).exits(3);
    env.write("repo/l.txt", "good\n");
    env.commit("fix it");
    env.resume(&[]).exits(0);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn failure_inside_gate_pipeline_fails_lane() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ntests = 'no-such-program | tail -20'\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(3);
    assert_eq!(env.checkpoint("L", "after_lane_tests")["exit_code"], json!(127));
    assert!(!env.holds("main", "x.txt"));
}

#[test]
fn lane_without_a_failing_gate_is_named_everywhere() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\ntests = 'false || true'\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'echo b > b.txt'\ntests = 'test -e b.txt'\n",
    );
    let plan = env.path("plan.toml");
    let plan = plan.to_str().expect("UTF-8");
    let shown = env.lanewright(&["plan", "show", plan]).exits(0).stdout;
    let of_b = shown.find("\nB").expect("lane B");
    assert!(shown[..of_b].contains("no gate") && !shown[of_b..].contains("no gate"), "{shown}");
    let shown = env.lanewright(&["plan", "show", plan, "--format", "json"]).exits(0);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let lanes = &shown["lanes"];
    assert_eq!((&lanes[0]["has_gate"], &lanes[1]["has_gate"]), (&json!(false), &json!(true)));
    assert_eq!((&lanes[1]["depends_on"], &lanes[1]["lane"]["depends_on"]), (&json!(["A"]), &json!(null)));
    let ran = env.execute(&[]).exits(0);
    assert!(ran.stderr.contains("no gate") && ran.stderr.contains(": A\n"), "{}", ran.stderr);
    let report = env.lanewright(&["report", RUN]).exits(0).stdout;
    assert!(report.contains("No command judged the work of A before"), "{report}");
}

#[test]
fn gate_with_shell_syntax_error_is_plan_error() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'true'\ntests = 'if true; then'\n");
    let plan = env.path("plan.toml");
    let checked = env.lanewright(&["plan", "check", plan.to_str().expect("UTF-8")]);
    checked.exits(2).says(&["the shell refuses the gate `if true; then`", "tests = 'if true; then'"]);
    env.execute(&[]).exits(2);
}

#[test]
fn gate_without_its_program_blocks_before_a_retry() {
    let env = TestEnv::new();
    let starts = env.path("starts");
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nretries = 2\ncommand = 'echo s >> {0}; date +%N > a'\n\
         [[lane.task]]\nverify = 'needed-program'\n\
         [[lane]]\nid = \"B\"\nretries = 2\ncommand = 'echo s >> {0}; date +%N > b'\ntests = 'needed-program'\n",
        starts.display()
    ));
    env.execute(&[]).exits(3).says(&["needed-program", "was not found", "`setup` or `copy`"]);
    let attempts = || std::fs::read_to_string(&starts).expect("an agent ran").lines().count();
    assert_eq!(attempts(), 2, "each agent is paid once");
    env.resume(&[]).exits(3);
    assert_eq!(attempts(), 2, "a resume runs the gate first");
    env.program("needed-program", "exit 0\n");
    env.resume(&[]).exits(0);
    assert_eq!(attempts(), 2);
    assert!(env.holds("main", "a") && env.holds("main", "b"));
}

#[test]
fn causes_outside_of_a_gates_output_are_named() {
    let env = TestEnv::new();
    env.git(&["config", "core.fileMode", "false"]);
    env.program(
        "write",
        "#!/bin/sh\necho '#!/bin/sh' > run.sh; chmod +x run.sh\n\
                 [ $LANEWRIGHT_ATTEMPT = 1 ] || git add --chmod=+x run.sh\n",
    );
    env.program("serve", "#!/bin/sh\n[ $(cat b) = 2 ] || { echo 'Error: listen EADDRINUSE: :::3000'; exit 1; }\n");
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'write'\ntests = './run.sh'\n\
         [[lane]]\nid = \"B\"\ncommand = 'echo $LANEWRIGHT_ATTEMPT > b'\ntests = 'serve'\n",
    );
    env.execute(&[]).exits(0).says(&["core.fileMode is false", "git config core.fileMode true"]);
    for (lane, hint) in [("A", "git add --chmod=+x FILE"), ("B", "$LANEWRIGHT_PORT")] {
        let context = env.attempt_file(lane, "agent", 2, "failure_context.json");
        assert!(context.contains(hint), "{context}");
    }
}

#[test]
fn checkout_that_a_gate_declared_bare_is_restored() {
    let env = TestEnv::new();
    let fixture = "G=$(git rev-parse --absolute-git-dir); cd $SCRATCH && GIT_DIR=$G git init --quiet";
    env.plan(&format!("[[lane]]\nid = \"A\"\ncommand = 'echo a > a'\ntests = '{fixture}'\n"));
    env.execute(&[]).exits(0).says(&["core.bare", "is false again"]);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert!(env.path("repo/a").exists());
}

/// What messages say of a gate that the base fails as well.
const IN_BASE: &str = "it fails in the same way without the lane's changes (base ";

/// Fails on the base with what pytest prints, and notes each run there.
const RED: &str = "[ -e own ] || echo run >> \"$SCRATCH/on-base\"; echo \"FAILED tests/test_old.py::test_old - assert 1 == 2\"; exit 1";

/// How often an agent started that notes it, and a gate ran on the base.
fn counted(env: &TestEnv) -> [usize; 2] {
    ["starts", "on-base"]
        .map(|name| std::fs::read_to_string(env.path("scratch").join(name)).map_or(0, |text| text.lines().count()))
}

/// Checks that no slot is held for a gate on the base.
fn assert_base_is_given_back(env: &TestEnv) {
    let slots = std::fs::read_dir(env.path("repo.lanes/slots")).expect("slots").flatten();
    let claims = slots.map(|slot| slot.path()).filter(|path| path.extension().is_some_and(|end| end == "claim"));
    for claim in claims {
        let text = std::fs::read_to_string(&claim).expect("a claim");
        assert!(!text.contains("base-1"), "{}: {text}", claim.display());
    }
}

/// An agent that notes its start and changes a file of its own.
fn agent(rest: &str) -> String {
    format!("command = '''echo start >> \"$SCRATCH/starts\"; date +%N >> own; {rest}'''\n")
}

#[test]
fn gate_that_fails_in_base_blocks_the_lane() {
    let env = TestEnv::new();
    let work = agent("");
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nretries = 3\n{work}tests = '{RED}'\n\
         [[lane]]\nid = \"B\"\nretries = 3\n{work}tests = '{RED}'\n"
    ));
    env.execute(&[]).exits(3).says(&[IN_BASE, "correct the gate"]);
    assert_eq!(counted(&env), [4, 1], "two attempts each, and the base once a run");
    let context = env.attempt_file("A", "agent", 2, "failure_context.json");
    assert!(context.contains(IN_BASE), "{context}");
    env.resume(&[]).exits(3);
    assert_eq!(counted(&env), [4, 1], "a resume runs the gate of the lane only");
    assert_base_is_given_back(&env);
}

#[test]
fn test_first_lane_gets_its_second_attempt() {
    let env = TestEnv::new();
    env.write("repo/check.sh", "grep -q 42 answer || { echo 'FAILED check - no answer'; exit 1; }\n");
    env.commit("the test first");
    let fixes = agent("[ $LANEWRIGHT_ATTEMPT != 2 ] || echo 42 > answer");
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 1\n{fixes}tests = 'sh check.sh'\n"));
    env.execute(&[]).exits(0);
    assert!(env.attempt_file("A", "agent", 2, "failure_context.json").contains(IN_BASE));
    assert!(env.holds("main", "answer"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn program_that_a_gate_lacks_blocks_before_a_retry() {
    let env = TestEnv::new();
    let work = agent("");
    let tests = "tests = 'sh -c \"needed-program; exit 1\"'";
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 3\n{work}{tests}\n"));
    env.execute(&[]).exits(3).says(&["needed-program", "was not found", IN_BASE]);
    assert_eq!(counted(&env)[0], 1);
}

#[test]
fn gate_that_the_lane_broke_fails_it() {
    let env = TestEnv::new();
    let tests = "tests = '[ ! -e own ] || { echo broken; exit 1; }'";
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 1\n{}{tests}\n", agent("")));
    let ended = env.execute(&[]);
    ended.exits(1);
    assert!(env.events("failure_noted").iter().all(|event| event["failure"]["kind"] == "gate"));
    // What is printed without a complaint is said, and may be what the lane is to change.
    let env = TestEnv::new();
    let tests = "tests = 'echo not done; exit 1'";
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 0\n{}{tests}\n", agent("")));
    env.execute(&[]).exits(1).says(&[IN_BASE]);
    // One that names what the lane changed is not run on the base at all.
    let env = TestEnv::new();
    let tests = "tests = '[ -e own ] || echo run >> \"$SCRATCH/on-base\"; echo own: red; exit 1'";
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 0\n{}{tests}\n", agent("")));
    env.execute(&[]).exits(1);
    assert_eq!(counted(&env), [1, 0]);
}

#[test]
fn stop_ends_a_gate_on_the_base() {
    let env = TestEnv::new();
    let tests = "tests = '[ -e own ] || { touch \"$SCRATCH/began\"; wait-for go; }; echo \"FAILED tests/test_old.py::test_old - assert 1 == 2\"; exit 1'";
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 0\n{}{tests}\n", agent("")));
    let run = env.start(&[]);
    wait_until("the gate on the base", || env.path("scratch/began").exists());
    run.signal(Signal::INT);
    run.wait().exits(130);
    env.write("scratch/go", "");
    env.resume(&[]).exits(3).says(&[IN_BASE]);
    assert_eq!(counted(&env)[0], 1);
    assert_base_is_given_back(&env);
}

#[test]
fn killed_run_waits_for_its_gate_on_the_base() {
    let env = TestEnv::new();
    let tests = "tests = '[ -e own ] || { echo run >> \"$SCRATCH/on-base\"; wait-for go; }; echo \"FAILED tests/test_old.py::test_old - assert 1 == 2\"; exit 1'";
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 0\n{}{tests}\n", agent("")));
    let run = env.start(&[]);
    wait_until("the gate on the base", || env.path("scratch/on-base").exists());
    run.signal(Signal::KILL);
    run.wait();
    env.write("scratch/go", "");
    env.resume(&[]).exits(3).says(&[IN_BASE]);
    assert_eq!(counted(&env), [1, 1]);
    assert_base_is_given_back(&env);
}
