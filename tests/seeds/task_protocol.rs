//! The protocol of tasks: which agents a resume starts, what their status says, and what the doctor finds (seed 003).

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{RUN, STATE, TestEnv, wait_until};

#[test]
fn p12_a_resume_starts_only_incomplete_requirements() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "on_orphan = \"stop\"\n");
    env.commit("settings");
    env.plan(
        r#"
[[lane]]
id = "L"
[[lane.agent]]
name = "analyst"
round = "requirements"
command = 'echo analyst >> "$SCRATCH/began"; echo "The ledger has two sides." > "$LANEWRIGHT_REPORT_FILE"'
[[lane.agent]]
name = "historian"
round = "requirements"
command = 'echo historian >> "$SCRATCH/began"; wait-for go; echo "It was tried before."'
[[lane.agent]]
name = "engineer"
command = 'cp "$LANEWRIGHT_PROMPT_FILE" "$SCRATCH/prompt"; echo x > x.txt'
"#,
    );
    let running = env.execute_until("scratch/began");
    wait_until("the historian", || env.scratch("began").contains("historian"));
    let has_ended = |job: &Value| job["job"]["role"]["attempt"]["agent"] == "analyst";
    wait_until("the analyst's end", || env.events("job_exited").iter().any(has_ended));
    running.signal(Signal::KILL);
    running.wait().exits(137);
    let attempt = "lanes/L/agents/historian/tasks/report/attempt-1";
    wait_until("the historian's end", || env.path(&format!("repo/{STATE}/{RUN}/{attempt}/exit.json")).exists());
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    let began = env.scratch("began");
    assert_eq!((began.matches("analyst").count(), began.matches("historian").count()), (1, 2), "{began}");
    let prompt = env.scratch("prompt");
    assert!(prompt.contains("The ledger has two sides.") && prompt.contains("It was tried before."), "{prompt}");
}

#[test]
fn p29_the_status_file_counts_retries() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         cp \"$LANEWRIGHT_STATUS_FILE\" \"$SCRATCH/status.$LANEWRIGHT_ATTEMPT\"\n\
         [ $LANEWRIGHT_ATTEMPT = 3 ] && echo x > x.txt\n'''\n",
    );
    env.execute(&[]).exits(0);
    let counts = [1, 2, 3].map(|attempt| {
        let status: Value = serde_json::from_str(&env.scratch(&format!("status.{attempt}"))).expect("an object");
        status["retry_count"].clone()
    });
    assert_eq!(counts, [json!(0), json!(1), json!(2)]);
}

/// The `task.json` of lane L, below the test's directory.
const TASK: &str = "repo.lanes/r1/L/task.json";

/// A run of session `s1` that has failed and can be resumed.
fn failed() -> TestEnv {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'exit 1'\n");
    env.execute(&["--session-id", "s1"]).exits(1);
    env
}

fn task(env: &TestEnv) -> Value {
    serde_json::from_str(&env.read(TASK)).expect("an object")
}

/// Damages `task.json`, asserts that the doctor finds `kind`, and has it repair that.
fn assert_found_and_repaired(env: &TestEnv, kind: &str, damage: impl FnOnce(&mut Value)) {
    let mut damaged = task(env);
    damage(&mut damaged);
    env.write(TASK, damaged.to_string());
    let report = env.lanewright(&["doctor", RUN, "--format", "json"]).exits(6).json();
    let is_found = |finding: &Value| finding["kind"] == kind;
    assert!(report["findings"].as_array().expect("a list").iter().any(is_found), "no {kind}: {report}");
    env.lanewright(&["doctor", RUN, "--fix"]).exits(0);
    env.lanewright(&["doctor", RUN]).exits(0);
}

#[test]
fn p44_the_doctor_finds_another_session() {
    let env = failed();
    assert_found_and_repaired(&env, "session-mismatch", |task| task["session_id"] = json!("somebody"));
    assert_eq!(task(&env)["session_id"], "s1");
}

#[test]
fn p47_the_doctor_finds_a_damaged_transition_log() {
    let env = failed();
    let steps = task(&env)["transition_log"].clone();
    assert_found_and_repaired(&env, "transition-log-missing", |task| {
        task.as_object_mut().expect("an object").remove("transition_log");
    });
    assert_eq!(task(&env)["transition_log"], steps);
    assert_found_and_repaired(&env, "transition-log-missing", |task| task["transition_log"] = json!([]));
    assert_eq!(task(&env)["transition_log"], steps);
    assert_found_and_repaired(&env, "transition-impossible", |task| {
        task["transition_log"][1]["to"] = json!("VALIDATION");
    });
    assert_eq!(task(&env)["transition_log"], steps);
}

#[test]
fn l42_the_doctor_finds_an_impossible_state_of_an_agent() {
    let env = failed();
    let steps = task(&env)["agents"]["agent"]["transition_log"].clone();
    for wrong in ["COMPLETED", "DONE"] {
        assert_found_and_repaired(&env, "transition-impossible", |task| {
            task["agents"]["agent"]["transition_log"][1]["to"] = json!(wrong);
        });
    }
    assert_eq!(task(&env)["agents"]["agent"]["transition_log"], steps);
}

#[test]
fn p05_a_nested_repository_is_named() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nowns = [\"c/**\"]\nretries = 0\ncommand = 'git init -q c; echo c > c/c.txt'\n");
    let ended = env.execute(&[]).exits(1).says(&["L failed: a repository inside the worktree: c/.git\n"]);
    assert!(!ended.stderr.contains("outside `owns`"), "c/** is the lane's: {}", ended.stderr);
}

#[test]
fn p05_a_state_file_in_the_worktree_is_named() {
    let env = TestEnv::new();
    let file = ".claude/ai-dev-kit/run-logs/task.json";
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\ncommand = 'echo l > l.txt; mkdir -p .claude/ai-dev-kit/run-logs; echo {{}} > {file}'\n"
    ));
    let said = format!("L: state files in the worktree of agent are not committed: {file}");
    env.execute(&[]).exits(0).says(&[&said]);
    assert!(!env.files("main").iter().any(|path| path == file));
}

#[test]
fn p13_a_waiting_plan_is_shown_again() {
    let env = TestEnv::new();
    env.plan(
        r#"
[[lane]]
id = "L"
approval = ["plan"]
[[lane.agent]]
name = "analyst"
round = "requirements"
command = 'seq -f "step %g" 12 > "$LANEWRIGHT_REPORT_FILE"'
[[lane.agent]]
name = "engineer"
command = 'echo x > x.txt'
"#,
    );
    let shown = ["L waits for your approval of its plan.", "the plan by analyst:", "  | step 1\n", "  | step 8\n"];
    for ended in [env.execute(&[]), env.resume(&[])] {
        let ended = ended.exits(3).says(&shown).says(&["  and 4 more lines:\n"]);
        assert!(!ended.stderr.contains("step 9"), "the rest is left out: {}", ended.stderr);
        let whole =
            ended.stderr.lines().find_map(|line| line.strip_prefix("  cat ")).expect("the command for the rest");
        assert!(std::fs::read_to_string(whole).expect("the plan").ends_with("step 12\n"), "{whole}");
    }
}

#[test]
fn p13_without_analysts_the_plan_is_the_prompt() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\napproval = [\"plan\"]\nprompt = \"Write x.txt.\"\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(3).says(&["the plan of L:\n  | agent, task 1: Write x.txt.\n"]);
}

#[test]
fn p17_waiting_changes_are_shown_with_their_commit() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\napproval = [\"changes\"]\ncommand = 'echo x > x.txt'\n");
    let first = env.execute(&[]).exits(3).stderr;
    let head = env.git(&["rev-parse", "--short=10", "lane/P1/L"]);
    let said = format!("L waits for your approval of its changes: 1 file changed, +1 -0, at commit {head}.");
    let status = env.lanewright(&["status"]).exits(0).stdout;
    for text in [first, env.resume(&[]).exits(3).stderr, status] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&said), "{said} is not in {text}");
    }
}

/// A run that was killed while both agents of its lane worked.
fn killed_with_two_at_work() -> TestEnv {
    let env = TestEnv::new();
    let agent = |name: &str| {
        format!(
            "[[lane.agent]]\nname = \"{name}\"\n\
             command = 'touch \"$SCRATCH/{name}\"; wait-for go; echo {name} > {name}.txt'\n"
        )
    };
    env.plan(&format!("[[lane]]\nid = \"L\"\n{}{}", agent("one"), agent("two")));
    let running = env.execute_until("scratch/one");
    wait_until("the other agent", || env.path("scratch/two").exists());
    running.signal(Signal::KILL);
    running.wait().exits(137);
    env
}

#[test]
fn p21_an_agent_without_status_file_is_missing() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\n\
         [[lane.agent]]\nname = \"good\"\ncommand = 'echo g > g.txt'\n\
         [[lane.agent]]\nname = \"bad\"\ncommand = '[ -e \"$SCRATCH/fixed\" ] && echo b > b.txt'\n",
    );
    env.execute(&[]).exits(1).says(&["1/2 complete, 1 error, 0 timeouts, 0 missing"]);
    std::fs::remove_file(env.path("repo.lanes/r1/L/agents/bad/status.json")).expect("a status file");
    env.write("scratch/fixed", "");
    let ended =
        env.resume(&[]).exits(0).says(&["L, implementation agents: 1/2 complete, 0 errors, 0 timeouts, 1 missing\n"]);
    ended.says(&["  bad: MISSING - its status.json is gone; else it would be ERROR - "]);
}

#[test]
fn p25_an_agent_at_work_is_listed_with_its_age() {
    let env = killed_with_two_at_work();
    let resumed = env.start_with(&["resume", RUN], |command| command);
    wait_until("the list of agents", || resumed.has_said("  two: WORKING for "));
    env.write("scratch/go", "");
    let said = resumed.wait().exits(0).stderr;
    let age = said.split_once("  one: WORKING for ").expect("its age").1.lines().next().expect("a line");
    let (number, unit) = age.split_at(age.len() - 1);
    assert!(number.parse::<u32>().is_ok() && ["s", "m"].contains(&unit), "{age}");
}

/// What the end of the failed run has, and what `status LANE` prints and `escalations.md` keeps.
fn messages_to_a_person(env: &TestEnv) -> [String; 3] {
    let end = env.execute(&[]).exits(1).stderr;
    let page = env.lanewright(&["status", "L"]).exits(0).stdout;
    [end, page, env.read("repo/.claude/ai-dev-kit/run-logs/r1/escalations.md")]
}

#[test]
fn p58_a_message_to_a_person_has_four_headings() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 1\ncommand = 'exit 1'\n");
    for text in messages_to_a_person(&env) {
        for heading in ["\nIssue: ", "\nCurrent State: implementation", "\nRecovery Attempts: ", "\nImpact: "] {
            assert!(text.contains(heading), "{heading} is not in {text}");
        }
    }
}

#[test]
fn p59_options_have_pros_and_cons() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'exit 1'\n");
    for text in messages_to_a_person(&env) {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let options = words.split_once("Options: 1. ").expect("options").1;
        assert!(options.matches(" for: ").count() == 4 && options.matches("; against: ").count() == 4, "{text}");
        assert!(options.contains(" 4. Abandon the lane: ") && options.contains("lanewright skip r1 L"), "{text}");
    }
}
