//! Commands of long tasks: events, checkpoints with context, gates and recovery by hand (seed 000).

use std::fs::File;

use serde_json::{Value, json};

use crate::support::{Ended, RUN, STATE, TestEnv, wait_until};

/// A command that reads `input`.
fn with_input(env: &TestEnv, arguments: &[&str], input: &str) -> Ended {
    env.write("input", input);
    let file = env.path("input");
    env.lanewright_with(arguments, |command| command.stdin(File::open(&file).expect("a file")))
}

fn log_text(env: &TestEnv) -> String {
    env.read(&format!("repo/{STATE}/{RUN}.jsonl"))
}

#[test]
fn l43_a_command_writes_an_event() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt; touch \"$SCRATCH/began\"; wait-for go'\n");
    let running = env.execute_until("scratch/began");
    let data = r#"{"times": [1, 2.5], "unit": "ms"}"#;
    env.lanewright(&["log-event", "measured", RUN, "--lane", "L", "--data", data]).exits(0);
    let live = env.events("event_logged");
    assert_eq!((&live[0]["name"], &live[0]["lane"]), (&json!("measured"), &json!("L")));
    assert_eq!(live[0]["data"], json!({"times": [1, 2.5], "unit": "ms"}));
    env.write("scratch/go", "");
    let ended = running.wait().exits(0);
    assert!(ended.stderr.contains(r#"measured {"times":[1,2.5],"unit":"ms"}"#), "{}", ended.stderr);
    let large = format!("\"{}\"", "x".repeat(900_000));
    with_input(&env, &["log-event", "deployed", "--data", "-"], &large).exits(0);
    assert_eq!(env.events("event_logged").len(), 2);
    // The run is what it was.
    env.resume(&[]).exits(7);
    let notes = env.lanewright(&["report", RUN, "--format", "json"]).exits(0).json()["notes"].clone();
    assert_eq!(notes[0]["message"], r#"measured {"times":[1,2.5],"unit":"ms"}"#);
    assert!(notes[1]["message"].as_str().is_some_and(|note| note.starts_with("deployed \"xxx") && note.len() < 1000));
    let before = log_text(&env);
    let deep = "[".repeat(120) + &"]".repeat(120);
    for (arguments, fault) in [
        (&["log-event", "x", "--data", "{no}"][..], "--data is not valid JSON"),
        (&["log-event", "x", "--data", &deep], "more than 100 levels"),
        (&["log-event", "../x"], "an id begins with a letter or a digit"),
        (&["log-event", "x", "--lane", "M"], "no lane `M`"),
    ] {
        env.lanewright(arguments).exits(2).says(&[fault]);
    }
    let longer = format!("\"{}\"", "x".repeat(1_000_000));
    with_input(&env, &["log-event", "x", "--data", "-"], &longer)
        .exits(2)
        .says(&["longer than 1 MB; nothing was written"]);
    assert_eq!(log_text(&env), before);
}

#[test]
fn l44_a_checkpoint_has_the_context_that_is_given() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.$LANEWRIGHT_TASK\"; echo x > $LANEWRIGHT_TASK.txt\n\
         touch \"$SCRATCH/began\"; wait-for go\n'''\n[[lane.task]]\n[[lane.task]]\n",
    );
    let running = env.execute_until("scratch/began");
    let context = r#"{"decisions": [{"decision": "use the v2 API", "reason": "v1 ends in May"}],
                      "blockers": "the key is missing", "next_task": "2"}"#;
    let call = ["checkpoints", "create", RUN, "L", "agent", "--context", context, "--format", "json"];
    let name = env.lanewright(&call).exits(0).json()["name"].as_str().expect("a name").to_owned();
    let before = log_text(&env);
    for (context, fault) in [
        ("{", "--context is not valid JSON"),
        ("[]", "is not a JSON object"),
        (r#"{"decision": "x"}"#, "has the unknown key `decision`"),
        (r#"{"next_task": "3"}"#, "has no task `3`"),
        (r#"{"decisions": [{"reason": "b"}]}"#, "is neither a text nor"),
        (r#"{"decisions": ["a", ""]}"#, "is neither a text nor"),
        (r#"{"decisions": [{"decision": "a", "extra": 1}]}"#, "has a decision with the unknown key `extra`"),
        (r#"{"blockers": [{"text": "b"}]}"#, "`blockers` that is not a text"),
    ] {
        env.lanewright(&["checkpoints", "create", RUN, "L", "--context", context]).exits(2).says(&[fault]);
    }
    assert_eq!(log_text(&env), before);
    let shown = env.lanewright(&["checkpoints", "show", &name, "--format", "json"]).exits(0).json();
    let kept = &shown["snapshot"]["context"];
    assert_eq!(kept["decisions"], json!(["agent: use the v2 API: v1 ends in May"]), "{shown}");
    assert_eq!((&kept["blockers"], &kept["next_task"]), (&json!(["the key is missing"]), &json!("2")));
    env.write("scratch/go", "");
    running.wait().exits(0);
    let prompt = env.scratch("prompt.2");
    assert!(prompt.contains("use the v2 API (v1 ends in May)"), "{prompt}");
}

#[test]
fn l44_a_lane_without_worktree_is_kept_by_its_branch() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n[[lane]]\nid = \"M\"\ncommand = 'exit 1'\nretries = 0\n[[lane]]\nid = \"N\"\ndepends_on = [\"M\"]\ncommand = 'true'\n");
    env.execute(&["--merge", "none"]).exits(1);
    env.lanewright(&["path", RUN, "L"]).exits(8);
    let call = ["checkpoints", "create", RUN, "L", "-m", "reviewed", "--context", r#"{"decisions": "keep it"}"#];
    let made = env.lanewright(&[&call[..], &["--format", "json"]].concat()).exits(0).json();
    let commit = made["commit"].as_str().expect("a commit");
    assert!(env.holds(commit, "x.txt"));
    assert!(env.git(&["log", "-1", "--format=%B", commit]).contains("reviewed"));
    let shown = env.lanewright(&["checkpoints", "show", made["name"].as_str().expect("a name")]).exits(0);
    assert!(shown.stdout.contains("\n  keep it\n"), "{}", shown.stdout);
    let call = ["checkpoints", "create", RUN, "N"];
    env.lanewright(&call).exits(8).says(&["N has no worktree and no branch"]);
}

#[test]
fn l47_gates_are_run_by_a_command() {
    let env = TestEnv::new();
    env.plan(
        "[gates]\natomic = ['echo $LANEWRIGHT_LANE; test -e ok.txt']\nfinal = ['test -e z.txt']\n\
         [[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt; touch ok.txt'\n\
         [[lane]]\nid = \"M\"\nretries = 0\ntests = ['test -e y.txt; touch written.txt']\n\
         command = 'echo y > y.txt'\n",
    );
    env.execute(&[]).exits(1);
    let before = log_text(&env);
    let gate = |arguments: &[&str]| env.lanewright(&[&["gate"], arguments].concat());
    let failed = gate(&["atomic", "M"]).exits(1);
    assert!(failed.stdout.starts_with("M\n") && failed.stdout.contains("(exit code 1)"), "{}", failed.stdout);
    let worktree = env.lanewright(&["path", RUN, "M"]).exits(0).stdout.trim().to_owned();
    let result = gate(&["tests", RUN, "M", "--format", "json"]).exits(0).json();
    assert_eq!((&result["gate"], &result["passed"], &result["exit_code"]), (&json!("tests"), &json!(true), &json!(0)));
    assert!(std::path::Path::new(&worktree).join("written.txt").exists());
    gate(&["final"]).exits(1);
    env.write("repo/z.txt", "");
    env.commit("by the user");
    gate(&["final", RUN]).exits(0);
    gate(&["checkpoint", "M"])
        .exits(2)
        .says(&["no commands for the gate `checkpoint`"])
        .hints("`checkpoint` in [gates]");
    gate(&["atomik", "M"]).exits(2).says(&["'atomic'"]);
    gate(&["tests", "N"]).exits(8).says(&["`N`"]);
    gate(&["final", RUN, "M"]).exits(2).says(&["one of the run, not of lane M"]);
    assert_eq!(log_text(&env), before, "a gate changed the run");
    // It may as well be a person's: no gate has written it before.
    env.resume(&[]).exits(5).says(&["M: written.txt in"]);
}

#[test]
fn l47_edits_during_a_gate_are_changes_by_hand() {
    let env = TestEnv::new();
    let program = env!("CARGO_BIN_EXE_lanewright");
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'echo x > x.txt'\ntests = '''\n\
         date +%N > generated.txt\n{program} log-event tested --lane L\n\
         [ ! -e \"$SCRATCH/by-hand\" ] || {{ touch \"$SCRATCH/tests\"; wait-for go; }}\ntest -e fixed.txt'''\n",
    ));
    env.execute(&[]).exits(1);
    env.write("scratch/by-hand", "");
    let worktree = env.lanewright(&["path", RUN, "L"]).exits(0).stdout.trim().to_owned();
    let gate = env.start_with(&["gate", "tests", "L"], |command| command);
    wait_until("the gate", || env.path("scratch/tests").exists());
    env.lanewright(&["log-event", "meanwhile", "--lane", "L"]).exits(0);
    env.resume(&[]).exits(4).says(&["a gate of run r1 is run by hand by pid"]);
    std::fs::write(std::path::Path::new(&worktree).join("fixed.txt"), "by hand").expect("the worktree");
    env.write("scratch/go", "");
    gate.wait().exits(0);
    let conflict = env.resume(&[]).exits(5);
    assert!(conflict.stderr.contains("fixed.txt") && !conflict.stderr.contains("generated.txt"), "{}", conflict.stderr);
    env.resume(&["--on-conflict", "override"]).exits(0);
    assert!(env.holds("main", "fixed.txt") && !env.holds("main", "generated.txt"));
    let names: Vec<Value> = env.events("event_logged").iter().map(|event| event["name"].clone()).collect();
    // The run has the gate run on the base as well.
    let tested = || json!("tested");
    assert_eq!(names, [tested(), tested(), tested(), json!("meanwhile"), tested()]);
}

#[test]
fn l47_gates_by_hand_have_the_secrets_of_the_plan() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\nenv = { API_TOKEN = \"abc123secret\" }\ncommand = 'echo x > x.txt'\n\
         tests = ['echo $API_TOKEN; test ${#API_TOKEN} = 12 && test -e \"$SCRATCH/go\"']\n",
    );
    env.execute(&[]).exits(1);
    env.write("scratch/go", "");
    let passed = env.lanewright(&["gate", "tests", "L"]).exits(0);
    assert!(passed.stdout.contains("[redacted:API_TOKEN]") && !passed.stdout.contains("abc123"), "{}", passed.stdout);
}

#[test]
fn l47_a_lane_without_worktree_has_no_gate() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ntests = ['test -e x.txt']\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(0);
    env.lanewright(&["gate", "tests"]).exits(8).says(&["L has no worktree"]).hints("gate final r1");
}

#[test]
fn l48_a_command_takes_the_next_level_of_recovery() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\ncommand = '''\n\
         ls > \"$SCRATCH/found.$LANEWRIGHT_TASK.$LANEWRIGHT_ATTEMPT\"\n\
         cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.$LANEWRIGHT_TASK.$LANEWRIGHT_ATTEMPT\"\n\
         [ $LANEWRIGHT_TASK = 2 ] || { echo one > one.txt; exit 0; }\n\
         echo left > left.$LANEWRIGHT_ATTEMPT; exit 1\n'''\n[[lane.task]]\n[[lane.task]]\n",
    );
    env.execute(&[]).exits(1);
    let before = log_text(&env);
    let planned = env.lanewright(&["recover", "L", "--dry-run", "--format", "json"]).exits(0).json();
    assert_eq!((&planned["level"], &planned["reason"]), (&json!(1), &json!("0 of 1 retries used")));
    assert_eq!(log_text(&env), before);
    env.lanewright(&["recover", "L", "--error", "the port is taken"]).exits(1).says(&["level 1 of 3, retry"]);
    assert!(env.scratch("found.2.2").contains("left.1"), "level 1 continues in the worktree as it is");
    assert!(env.scratch("prompt.2.2").contains("the port is taken"));
    env.lanewright(&["recover", RUN, "L"]).exits(1).says(&["level 2 of 3, reset to the last state that passed"]);
    assert_eq!(env.scratch("found.2.3"), "README.md\none.txt\n");
    assert!(env.scratch("prompt.2.3").contains("different approach"), "{}", env.scratch("prompt.2.3"));
    let ended = env.lanewright(&["recover", "L"]).exits(3);
    assert!(ended.stdout.contains("level 3 of 3, escalate") && ended.stdout.contains("Options:"), "{}", ended.stdout);
    assert!(!env.path("scratch/found.2.4").exists());
    let logged = env.events("event_logged");
    let levels: Vec<&Value> = logged.iter().map(|event| &event["data"]["level"]).collect();
    assert_eq!(levels, [1, 2, 3]);
}

#[test]
fn l48_levels_that_the_run_has_used_count() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 1\ncommand = 'exit 1'\n[[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n",
    );
    env.execute(&[]).exits(1);
    env.lanewright(&["recover", "L"]).exits(3);
    env.lanewright(&["recover", "M"]).exits(7).says(&["neither failed nor is it blocked"]);
}

#[test]
fn l48_a_level_that_was_not_taken_is_not_recorded() {
    let env = TestEnv::new();
    let plan = "[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'exit 1'\n[[lane]]\nid = \"M\"\ndepends_on = ['L']\n\
                command = 'echo m > m.txt'\n";
    env.plan(plan);
    env.execute(&[]).exits(1);
    env.lanewright(&["recover", "M"]).exits(7).says(&["lane M waits for L"]).hints("lanewright recover r1 L");
    env.plan(&plan.replace("exit 1", "exit 2"));
    let refused = env.lanewright(&["recover", "L", "--error", "of the port"]).exits(2);
    refused.hints("lanewright recover r1 L --error 'of the port' --accept-plan-change");
    assert!(env.events("event_logged").is_empty());
    let ended = env.lanewright(&["recover", "L", "--error", "of the port", "--accept-plan-change"]).exits(1);
    ended.says(&["2 attempts, no retry of its own"]);
    assert_eq!(env.events("event_logged").len(), 1);
}

/// An agent that calls the hook as Claude Code does: `call TOOL FILE` writes the answer into a file with the next number.
const WITH_HOOKS: &str = r#"#!/bin/sh
call() {
  n=$((n + 1))
  printf '{"tool_name":"%s","cwd":"%s","tool_input":{"file_path":"%s"}}' "$1" "$PWD" "$2" |
    "$LANEWRIGHT" hook post-tool-use > "$SCRATCH/answer.$n"
}
echo x > x.txt; call Edit "$PWD/x.txt"
call Read "$PWD/x.txt"
call Write "$SCRATCH/notes.txt"
touch ok.txt; call MultiEdit "$PWD/x.txt"
"#;

fn run_with_hooks(env: &TestEnv) {
    env.program("agent-with-hooks", WITH_HOOKS);
    let arguments = ["execute-phase", "../plan.toml", "--run-id", RUN];
    let ended = env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT", env!("CARGO_BIN_EXE_lanewright")));
    ended.exits(0);
}

/// The reason of the hook's answer, which must ask the agent to fix its edit.
fn blocked(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    assert_eq!(answer["decision"], "block", "{answer}");
    answer["reason"].as_str().expect("a reason").to_owned()
}

#[test]
fn l11_an_edit_gate_runs_after_each_edit() {
    let env = TestEnv::new();
    env.plan(
        "[gates]\nedit = 'echo \"judged ${LANEWRIGHT_EDITED_FILE##*/}\"; test -e ok.txt'\n\
         [[lane]]\nid = \"L\"\ncommand = 'agent-with-hooks'\n",
    );
    run_with_hooks(&env);
    let reason = blocked(&env.scratch("answer.1"));
    assert!(reason.contains("ended with exit code 1") && reason.ends_with("\njudged x.txt"), "{reason}");
    for (number, why) in [(2, "a tool that only reads"), (3, "a file elsewhere"), (4, "an edit that passes")] {
        assert_eq!(env.scratch(&format!("answer.{number}")), "", "{why}");
    }
}

#[test]
fn l11_an_edit_gate_that_prints_too_much_fails() {
    let env = TestEnv::new();
    let answer = |gate: &str| {
        let input = json!({"tool_name": "Edit", "cwd": env.path("repo"), "tool_input": {"file_path": "x.txt"}});
        let variables = [("LANEWRIGHT_EDIT_GATE", json!([gate]).to_string()), ("LANEWRIGHT_WORKTREE", ".".to_owned())];
        env.write("input.json", input.to_string());
        let input = || std::fs::File::open(env.path("input.json")).expect("the input");
        let ended =
            env.lanewright_with(&["hook", "post-tool-use"], |command| command.envs(variables.clone()).stdin(input()));
        blocked(&ended.exits(0).stdout)
    };
    let much = answer("head -c 20000000 /dev/zero; exit 3");
    assert!(much.ends_with("printed more than 16 MiB and was ended"), "{much}");
    let children = answer("sleep 600 & echo $! > pid; exit 4");
    assert!(children.contains("exit code 4"), "{children}");
    let pid = env.read("repo/pid");
    wait_until("the end of the child", || !is_alive(pid.trim()));
    env.write("repo/lanewright.toml", "[gates]\nedit = 'if then'\n");
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n");
    env.lanewright(&["plan", "check", "../plan.toml"]).exits(2).says(&[
        "the shell refuses the gate `if then`",
        "correct it in ",
        "lanewright.toml:2:",
    ]);
}

fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_ok_and(|line| line.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z')))
}

#[test]
fn l02_work_is_judged_after_changes_and_checkpoints() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "[gates]\nedit = 'echo judged >> \"$SCRATCH/edits\"'\n");
    env.commit("settings");
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = 'agent-with-hooks; echo $LANEWRIGHT_TASK > task.txt'\n\
         [[lane.task]]\nverify = ['grep 1 task.txt']\n[[lane.task]]\nverify = ['grep 2 task.txt']\n",
    );
    run_with_hooks(&env);
    assert_eq!(env.scratch("edits").lines().count(), 4, "two edits in each task");
    let steps: Vec<&str> = env
        .log()
        .iter()
        .filter_map(|event| match event["event"].as_str()? {
            "job_exited" if event["job"]["role"]["verify"].is_object() => Some("validated"),
            "snapshot_taken" if event["reason"] == "task" => Some("checkpoint"),
            _ => None,
        })
        .collect();
    assert_eq!(steps, ["validated", "checkpoint", "validated", "checkpoint"]);
}

#[test]
fn l49_hooks_validate_edits_and_make_checkpoints() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "checkpoint_every_tool_calls = 1\n");
    env.commit("settings");
    env.plan(
        "[gates]\nedit = 'ls ok.txt | cat'\nfinal = ['touch \"$SCRATCH/final\"; test -e m.txt']\n\
         [[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n\
         [[lane]]\nid = \"L\"\nretries = 0\ncommand = 'echo x > x.txt; exit 1'\n",
    );
    env.execute(&[]).exits(1);
    let worktree = env.lanewright(&["path", RUN, "L"]).exits(0).stdout.trim().to_owned();
    let call = |tool: &str| {
        let input = json!({"tool_name": tool, "cwd": worktree, "tool_input": {"file_path": "x.txt"}});
        with_input(&env, &["hook", "post-tool-use"], &input.to_string()).exits(0).stdout
    };
    let kept = || env.events("snapshot_taken").iter().filter(|event| event["reason"] == "request").count();
    assert!(blocked(&call("Write")).contains("fix that before you continue"));
    wait_until("the checkpoint", || kept() == 1);
    std::fs::write(format!("{worktree}/ok.txt"), "").expect("a file");
    assert_eq!(call("Edit"), "");
    wait_until("the second checkpoint", || kept() == 2);
    // The final validation is the run's own.
    env.lanewright(&["skip", RUN, "L", "--resume"]).exits(0);
    assert!(env.path("scratch/final").exists());
}

#[test]
fn l07_a_lane_without_a_gate_can_be_refused() {
    let env = TestEnv::new();
    let check = |plan: &str| {
        env.plan(plan);
        env.lanewright(&["plan", "check", "../plan.toml"])
    };
    let lane = |more: &str| format!("[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n{more}");
    check(&lane("")).exits(0);
    check(&format!("require_gates = true\n{}", lane("")))
        .exits(2)
        .says(&["plan.toml:4", "lane L has no gate that can fail"]);
    env.write("repo/lanewright.toml", "require_gates = true\n");
    env.commit("settings");
    check(&lane("tests = ['true']\n")).exits(2).says(&["lane L has no gate that can fail"]);
    env.execute(&[]).exits(2).says(&["lane L has no gate that can fail"]);
    assert!(!env.path(&format!("repo/{STATE}/{RUN}.jsonl")).exists());
    check(&format!("require_gates = false\n{}", lane(""))).exits(0);
    check(&lane("[[lane.task]]\nverify = ['test -e x.txt']\n")).exits(0);
    env.execute(&[]).exits(0);
}

#[test]
fn l06_long_tasks_are_warned_of() {
    let env = TestEnv::new();
    let check = |more: &[&str]| env.lanewright(&[&["plan", "check", "../plan.toml"], more].concat());
    let lane = "[[lane]]\nid = \"L\"\ncommand = 'true'\nallow_empty = true\n[[lane.task]]\nmax_time = \"5m\"\n\
                [[lane.task]]\nmax_time = \"2h\"\n";
    let other = "[[lane]]\nid = \"M\"\ncommand = 'true'\nallow_empty = true\n[[lane.task]]\n[[lane.task]]\n";
    env.plan(&format!("{lane}{other}"));
    let said = check(&[]).exits(0).stderr;
    assert!(
        said.contains("plan.toml:9") && said.contains("task 2 of lane L may take 2h 00m, more than 10m 00s"),
        "{said}"
    );
    assert_eq!(said.matches("more than 10m 00s").count(), 2, "{said}");
    assert!(said.contains("tasks without a limit of their own may take 30m 00s"), "{said}");
    let diagnostics = check(&["--strict", "--format", "json"]).exits(2).json()["diagnostics"].clone();
    assert_eq!(diagnostics.as_array().map(Vec::len), Some(2), "{diagnostics}");
    env.plan(other);
    env.write("repo/lanewright.toml", "task_timeout = '10m'\n");
    env.commit("settings");
    let said = check(&["--strict"]).exits(0).stderr;
    assert!(!said.contains("more than"), "{said}");
    // A run says nothing of it.
    env.plan(lane);
    let said = env.execute(&[]).exits(0).stderr;
    assert!(!said.contains("more than"), "{said}");
}

/// The command line of an installed slash command that begins so, with values in place of its placeholders.
fn typed(text: &str, beginning: &str, values: &[(&str, &str)]) -> Vec<String> {
    let line =
        text.split('`').find(|part| part.starts_with(beginning)).unwrap_or_else(|| panic!("no {beginning}: {text}"));
    let line = values.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value));
    let words = shlex::split(&line).expect("a line of shell");
    assert_eq!(words[0], "lanewright");
    words[1..].to_vec()
}

#[test]
fn c12_lines_of_slash_commands_run_as_written() {
    let env = TestEnv::new();
    env.lanewright(&["init", "--commands", "--yes"]).exits(0);
    env.commit("commands");
    env.write(
        "repo/plan.toml",
        "phase = \"P1\"\n[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ntests = ['test -f a.txt']\ncommand = 'echo a > a.txt'\n",
    );
    env.commit("plan");
    let values = [
        ("DOC", "plan.toml"),
        ("${CLAUDE_SESSION_ID}", "s1"),
        ("RUN", RUN),
        ("LANE", "A"),
        ("GATE", "changes"),
        ("FLAGS", "--run-id r1"),
        ("NAME", "seen"),
        ("JSON", "'{}'"),
        ("TEXT", "x"),
    ];
    let runs = |name: &str, beginning: &str| {
        let words = typed(&env.read(&format!("repo/.claude/commands/{name}.md")), beginning, &values);
        env.lanewright(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    runs("execute-phase", "lanewright plan check ").exits(0);
    runs("execute-phase", "lanewright execute-phase ").exits(3);
    assert_eq!(env.log()[0]["owner"]["session_id"], "s1");
    for name in ["execute-phase", "execute-lane"] {
        for line in [
            "status RUN --format",
            "status RUN --watch",
            "logs",
            "diff",
            "path",
            "gate tests",
            "log-event",
            "checkpoints create",
        ] {
            runs(name, &format!("lanewright {line}")).exits(0);
        }
    }
    runs("execute-phase", "lanewright reject ").exits(3);
    runs("execute-lane", "lanewright approve ").exits(0);
    assert_eq!(env.events("gate_answered")[0]["message"], "the words of the user");
    assert!(env.holds("main", "a.txt"));
    runs("execute-phase", "lanewright doctor").exits(0);
}
