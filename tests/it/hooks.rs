//! The hooks of Claude Code: what they say, what they note, and that they disturb nothing.

use std::fs;
use std::io::{Seek, Write};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Ended, RUN, STATE, TestEnv, wait_until};

/// A hook called by a session that works in `cwd`, below the test's directory.
fn hook_in(env: &TestEnv, cwd: &str, event: &str, mut input: Value, more: &[(&str, &str)]) -> Ended {
    input["cwd"] = env.path(cwd).to_str().into();
    raw(env, &[event], &input.to_string(), more)
}

fn hook(env: &TestEnv, event: &str, input: Value) -> Ended {
    hook_in(env, "repo", event, input, &[])
}

/// A hook with these arguments that reads `text`.
fn raw(env: &TestEnv, arguments: &[&str], text: &str, more: &[(&str, &str)]) -> Ended {
    let mut stdin = tempfile::tempfile().expect("a file");
    stdin.write_all(text.as_bytes()).and_then(|()| stdin.rewind()).expect("the input");
    let with = |command: &mut Command| {
        command.stdin(stdin.try_clone().expect("a file")).envs(more.iter().copied());
    };
    let ended = env.lanewright_with(&[&["hook"], arguments].concat(), |command| {
        with(command);
        command
    });
    ended.exits(0)
}

/// What the model is told.
fn context(ended: &Ended, event: &str) -> String {
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], event);
    answer["hookSpecificOutput"]["additionalContext"].as_str().expect("text").to_owned()
}

#[track_caller]
fn silent(ended: &Ended) {
    assert_eq!((ended.stdout.as_str(), ended.code), ("", 0), "{ended:?}");
}

/// Run r1 of session s1, whose lane A waits for approval and whose lane B failed.
fn waiting() -> TestEnv {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ncommand = 'echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\nretries = 0\ncommand = 'exit 1'\n",
    );
    env.execute(&["--session-id", "s1"]).exits(1);
    env
}

fn task(env: &TestEnv, lane: &str) -> Value {
    serde_json::from_str(&env.read(&format!("repo.lanes/{RUN}/{lane}/task.json"))).expect("JSON")
}

#[test]
fn session_start_lists_own_and_other_unfinished_runs() {
    let env = waiting();
    let own = context(&hook(&env, "session-start", json!({"session_id": "s1", "source": "resume"})), "SessionStart");
    for said in [
        "This session's run r1",
        "A is at awaiting user approval (waits for an answer to its changes)",
        "lanewright resume r1",
        "rollback r1",
    ] {
        assert!(own.contains(said), "it does not say {said}: {own}");
    }
    let other = context(&hook(&env, "session-start", json!({"session_id": "s2"})), "SessionStart");
    assert!(other.contains("Another session's run r1"), "{other}");
    let (leave, resume) = (other.find("choose other work;").unwrap(), other.find("lanewright resume r1").unwrap());
    assert!(leave < resume, "{other}");
}

/// What a prompt of `session` is answered.
fn answered(env: &TestEnv, session: &str, prompt: &str) -> Ended {
    hook(env, "user-prompt-submit", json!({"session_id": session, "prompt": prompt}))
}

const APPROVE: &str = "lanewright approve r1 A --gate changes --resume";
const REJECT: &str = "lanewright reject r1 A --gate changes -m 'what to change' --resume";

#[test]
fn words_of_approval_are_answered_with_approve() {
    let env = waiting();
    for prompt in ["Looks good, proceed with implementation", "approved", "LGTM", "Go ahead."] {
        let said = context(&answered(&env, "s1", prompt), "UserPromptSubmit");
        assert!(said.contains(APPROVE) && !said.contains("reject"), "{prompt}: {said}");
        assert!(said.contains("Only if the user's words mean it") && said.contains("in the background"), "{said}");
    }
    assert_eq!(env.events("gate_answered"), [] as [Value; 0]);
}

#[test]
fn words_of_change_are_answered_with_reject() {
    let env = waiting();
    let prompts = ["this needs changes", "please change the name", "not yet", "Not approved", "don't go ahead"];
    for prompt in prompts.into_iter().chain(["looks good but change x", "approved once the tests pass"]) {
        let said = context(&answered(&env, "s1", prompt), "UserPromptSubmit");
        assert!(said.contains(REJECT) && !said.contains("lanewright approve"), "{prompt}: {said}");
    }
    assert_eq!(env.events("gate_answered"), [] as [Value; 0]);
}

#[test]
fn answers_are_named_only_while_a_lane_waits() {
    let env = waiting();
    env.lanewright(&["approve", RUN, "A"]).exits(0);
    for prompt in ["approved", "LGTM", "please change the name"] {
        silent(&answered(&env, "s1", prompt));
    }
}

#[test]
fn answer_of_another_session_names_whose_run_it_is() {
    let env = waiting();
    let said = context(&answered(&env, "s2", "approved"), "UserPromptSubmit");
    let (leave, approve) = (said.find("choose other work").unwrap(), said.find(APPROVE).unwrap());
    assert!(leave < approve && said.starts_with("Run r1 is another session's"), "{said}");
    silent(&answered(&env, "s2", "please change the name"));
    assert_eq!(task(&env, "A")["interruptions"], json!([]));
}

#[test]
fn answer_to_a_live_run_does_not_resume_it() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ncommand = 'echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = 'wait-for go; echo b > b.txt'\n",
    );
    let running = env.start(&["--session-id", "s1"]);
    wait_until("the question", || {
        env.path(&format!("repo/{STATE}/{RUN}.jsonl")).exists()
            && env.events("lane_moved").iter().any(|moved| moved["to"] == "AWAITING_USER_APPROVAL")
    });
    let said = context(&answered(&env, "s1", "looks good"), "UserPromptSubmit");
    assert!(said.contains("lanewright approve r1 A --gate changes") && !said.contains("--resume"), "{said}");
    env.lanewright(&["approve", RUN, "A", "--gate", "changes"]).exits(0);
    env.write("scratch/go", "");
    running.wait().exits(0);
}

#[test]
fn a_run_that_was_resumed_belongs_to_who_resumed_it() {
    let env = waiting();
    env.resume(&["--session-id", "s2"]).exits(1);
    let told = context(&hook(&env, "session-start", json!({"session_id": "s2"})), "SessionStart");
    assert!(told.contains("This session's run r1"), "{told}");
    silent(&hook(&env, "stop", json!({"session_id": "s1"})));
}

#[test]
fn hook_is_silent_without_an_unfinished_run() {
    let env = TestEnv::new();
    let all = ["session-start", "user-prompt-submit", "post-tool-use", "stop"];
    all.iter().for_each(|event| silent(&hook(&env, event, json!({"session_id": "s1", "prompt": "continue"}))));
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&["--session-id", "s1"]).exits(0);
    all.iter().for_each(|event| silent(&hook(&env, event, json!({"session_id": "s1", "prompt": "continue"}))));
}

#[test]
fn within_an_agent_of_ours_nothing_is_said() {
    let env = waiting();
    for event in ["session-start", "user-prompt-submit", "stop"] {
        let input = json!({"session_id": "s1", "prompt": "continue"});
        silent(&hook_in(&env, "repo", event, input, &[("LANEWRIGHT_RUN_ID", RUN)]));
    }
    assert_eq!(task(&env, "A")["interruptions"], json!([]));
}

#[test]
fn hook_exits_0_silently_on_any_error() {
    let env = waiting();
    for text in ["", "{", "[]", "null", "\u{feff}", "{\"cwd\": 7}", &"[".repeat(100_000)] {
        for event in ["session-start", "user-prompt-submit", "post-tool-use", "stop"] {
            silent(&raw(&env, &[event], text, &[]));
        }
    }
    silent(&raw(&env, &["no-such-hook"], "{}", &[]));
    silent(&raw(&env, &["session-start", "--no-such-flag"], "{}", &[]));
    silent(&raw(&env, &["stop", "-C", "/no/such/directory"], "{}", &[]));
    // Neither the session nor its project is in a repository, and neither are we.
    let outside = ["session-start", "-C", "/"];
    silent(&raw(&env, &outside, &json!({"session_id": "s1", "cwd": env.path("scratch")}).to_string(), &[]));
}

#[test]
fn damaged_state_is_passed_over() {
    let env = waiting();
    let log = env.path(&format!("repo/{STATE}/{RUN}.jsonl"));
    let text = fs::read_to_string(&log).expect("a log");
    env.write("repo/lanewright.toml", "nonsense = [\n");
    env.write(&format!("repo.lanes/{RUN}/A/task.json"), "{half");
    let told = context(&hook(&env, "session-start", json!({"session_id": "s1"})), "SessionStart");
    assert!(told.contains("r1"), "{told}");
    fs::write(&log, &text[..text.len() / 2]).expect("a torn log");
    hook(&env, "session-start", json!({"session_id": "s1"}));
    fs::write(&log, text.replace("run_started", "run_xtarted")).expect("a damaged log");
    silent(&hook(&env, "session-start", json!({"session_id": "s1"})));
    fs::write(&log, "").expect("an empty log");
    silent(&hook(&env, "stop", json!({"session_id": "s1"})));
}

#[test]
fn a_prompt_is_noted_in_the_lanes_and_moves_nothing() {
    let env = waiting();
    let before = (task(&env, "A"), env.log());
    for prompt in ["What about thread safety?", "/audit-session", "where are we?", "rename it"] {
        silent(&hook(&env, "user-prompt-submit", json!({"session_id": "s1", "prompt": prompt})));
    }
    let said = hook(&env, "user-prompt-submit", json!({"session_id": "s1", "prompt": "Continue working"}));
    let said = context(&said, "UserPromptSubmit");
    assert!(said.contains("lanewright resume r1") && said.contains("awaiting user approval"), "{said}");
    for lane in ["A", "B"] {
        let noted = task(&env, lane)["interruptions"].clone();
        let kinds: Vec<&str> = noted.as_array().expect("a list").iter().filter_map(|it| it["type"].as_str()).collect();
        assert_eq!(kinds, ["QUESTION", "AUDIT", "STATUS_REQUEST", "OTHER", "RESUMPTION"]);
    }
    let mut after = task(&env, "A");
    after["interruptions"] = json!([]);
    assert_eq!((after, env.log()), before);
}

#[test]
fn prompts_of_other_sessions_are_not_noted() {
    let env = waiting();
    silent(&hook(&env, "user-prompt-submit", json!({"session_id": "s2", "prompt": "continue"})));
    assert_eq!(task(&env, "A")["interruptions"], json!([]));
}

#[test]
fn stop_hook_reminds_once_per_change_and_never_blocks() {
    let env = waiting();
    let stop = || hook(&env, "stop", json!({"session_id": "s1", "stop_hook_active": false}));
    silent(&hook(&env, "stop", json!({"session_id": "s1", "stop_hook_active": true})));
    silent(&hook(&env, "stop", json!({"session_id": "s2"})));
    let answer: Value = serde_json::from_str(&stop().stdout).expect("JSON");
    assert!(answer["systemMessage"].as_str().is_some_and(|text| text.contains("lanewright resume r1")), "{answer}");
    assert!(answer.get("decision").is_none() && answer.get("continue").is_none(), "{answer}");
    silent(&stop());
    env.lanewright(&["approve", RUN, "A"]).exits(0);
    assert!(stop().stdout.contains("systemMessage"));
}

#[test]
fn session_start_names_approve_until_gate_is_answered() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ncommand = 'echo a > a.txt'\n");
    env.execute(&["--session-id", "s1"]).exits(3);
    let said = || context(&hook(&env, "session-start", json!({"session_id": "s1"})), "SessionStart");
    let waiting = said();
    assert!(waiting.contains("lanewright approve r1 A --gate changes --resume\n"), "{waiting}");
    assert!(waiting.contains("lanewright reject r1 A --gate changes -m 'what to change' --resume\n"), "{waiting}");
    assert!(!waiting.contains("lanewright resume r1"), "{waiting}");
    env.lanewright(&["approve", "A"]).exits(0);
    let answered = said();
    assert!(answered.contains("lanewright resume r1\n") && !answered.contains("approve r1"), "{answered}");
}

#[test]
fn answer_to_a_setup_is_named_as_well() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\napproval = [\"setup\"]\ncommand = 'echo a > a.txt'\n");
    env.execute(&["--session-id", "s1"]).exits(3);
    let approve = "lanewright approve r1 A --gate setup --resume";
    for prompt in ["Looks good, proceed with implementation", "approved", "LGTM"] {
        let input = json!({"session_id": "s1", "prompt": prompt});
        let said = context(&hook(&env, "user-prompt-submit", input), "UserPromptSubmit");
        assert!(said.contains(approve) && !said.contains("lanewright resume"), "{prompt}: {said}");
    }
    let said = || context(&hook(&env, "session-start", json!({"session_id": "s1"})), "SessionStart");
    let waiting = said();
    assert!(waiting.contains(approve) && !waiting.contains("lanewright resume"), "{waiting}");
    env.lanewright(&["approve", "A"]).exits(0);
    let answered = said();
    assert!(answered.contains("lanewright resume r1\n") && !answered.contains("approve r1"), "{answered}");
}

#[test]
fn a_run_at_work_is_no_reason_to_remind() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo > \"$SCRATCH/began\"; wait-for go; echo a > a.txt'\n");
    let running = env.start(&["--session-id", "s1"]);
    wait_until("the agent", || env.path("scratch/began").exists());
    silent(&hook(&env, "stop", json!({"session_id": "s1"})));
    let told = context(&hook(&env, "session-start", json!({"session_id": "s1"})), "SessionStart");
    assert!(told.contains("a live process works on it") && !told.contains("To go on"), "{told}");
    env.write("scratch/go", "");
    running.wait().exits(0);
}

#[test]
fn an_agents_tool_calls_reach_its_lanewright() {
    let env = TestEnv::new();
    let secret = "hunter2-of-the-hook";
    env.program(
        "agent-with-hooks",
        &format!(
            "#!/bin/sh\nfor n in 1 2 3; do\n  echo '{{\"tool_name\":\"Read\",\"tool_input\":{{\"file\":\"{secret}\"}}}}' | \
             \"$LANEWRIGHT\" hook post-tool-use || exit 1\ndone\nwait-for kept\necho a > a.txt\n"
        ),
    );
    env.write("repo/lanewright.toml", "checkpoint_every = 'none'\ncheckpoint_every_tool_calls = 3\n");
    env.commit("settings");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'agent-with-hooks'\n");
    let arguments = ["execute-phase", "../plan.toml", "--run-id", RUN];
    let running = env.start_with(&arguments, |command| {
        command.env("LANEWRIGHT", env!("CARGO_BIN_EXE_lanewright")).env("HOOK_TOKEN", secret)
    });
    wait_until("the snapshot", || {
        fs::read_to_string(env.path(&format!("repo/{STATE}/{RUN}.jsonl")))
            .is_ok_and(|log| log.contains("\"reason\":\"tool_calls\""))
    });
    env.write("scratch/kept", "");
    running.wait().exits(0);
    let calls = env.attempt_file("A", "agent", 1, "exchange/tool_calls.jsonl");
    assert_eq!(calls.lines().count(), 3);
    assert!(calls.contains("[redacted:HOOK_TOKEN]") && !calls.contains(secret), "{calls}");
}

#[test]
fn named_pipe_as_tool_calls_file_does_not_block() {
    let env = TestEnv::new();
    let pipe = env.path("scratch/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let more = [("LANEWRIGHT_RUN_ID", RUN), ("LANEWRIGHT_TOOL_CALLS_FILE", pipe.to_str().expect("UTF-8"))];
    silent(&hook_in(&env, "repo", "post-tool-use", json!({"tool_name": "Bash"}), &more));
}

#[test]
fn a_message_waits_while_the_edit_gate_cannot_be_read() {
    let env = TestEnv::new();
    env.write("scratch/messages", "\"use the v2 API\"\n");
    let path = |below: &str| env.path(below).display().to_string();
    let (messages, calls, worktree) = (path("scratch/messages"), path("scratch/calls"), path("repo"));
    let edit = |gate: &str| {
        let more = [
            ("LANEWRIGHT_RUN_ID", RUN),
            ("LANEWRIGHT_MESSAGES_FILE", messages.as_str()),
            ("LANEWRIGHT_TOOL_CALLS_FILE", calls.as_str()),
            ("LANEWRIGHT_WORKTREE", worktree.as_str()),
            ("LANEWRIGHT_EDIT_GATE", gate),
        ];
        hook_in(&env, "repo", "post-tool-use", json!({"tool_name": "Edit"}), &more)
    };
    silent(&edit("["));
    assert_eq!(context(&edit("[]"), "PostToolUse"), "The user says: use the v2 API");
}

/// The slot in which lane A of [`waiting`] lies, below the test's directory.
fn slot(env: &TestEnv) -> String {
    let link = fs::read_link(env.path(&format!("repo.lanes/{RUN}/A/code"))).expect("a link");
    let slot = env.path(&format!("repo.lanes/{RUN}/A")).join(link);
    let slot = fs::canonicalize(slot).expect("a slot");
    slot.strip_prefix(env.path("")).expect("below").to_str().expect("UTF-8").to_owned()
}

fn kept_by_hand(env: &TestEnv) -> Vec<Value> {
    env.events("snapshot_taken").into_iter().filter(|event| event["reason"] == "request").collect()
}

#[test]
fn manual_work_is_saved_by_tool_calls_and_risky_ones() {
    let env = waiting();
    env.write("repo/lanewright.toml", "checkpoint_every_tool_calls = 2\n");
    let slot = slot(&env);
    env.write(&format!("{slot}/by-hand.txt"), "precious\n");
    let call =
        |input: Value| hook_in(&env, &slot, "post-tool-use", json!({"tool_name": "Edit", "tool_input": input}), &[]);
    silent(&call(json!({"file": "by-hand.txt"})));
    silent(&call(json!({"file": "by-hand.txt"})));
    wait_until("the second call's snapshot", || kept_by_hand(&env).len() == 1);
    let kept = kept_by_hand(&env)[0]["reference"].as_str().expect("a ref").to_owned();
    assert!(env.holds(&kept, "by-hand.txt"), "{:?}", env.files(&kept));
    env.write(&format!("{slot}/by-hand.txt"), "more precious\n");
    // As the process does that takes another snapshot.
    let lock = fs::File::options().write(true).open(env.path(&format!("repo/{STATE}/{RUN}/run.lock"))).unwrap();
    lock.lock().unwrap();
    silent(&call(json!({"command": "rm -rf build"})));
    lock.unlock().unwrap();
    wait_until("the risky call's snapshot", || kept_by_hand(&env).len() == 2);
}

#[test]
fn calls_elsewhere_are_not_counted() {
    let env = waiting();
    for cwd in ["repo", "scratch", "repo.lanes"] {
        silent(&hook_in(&env, cwd, "post-tool-use", json!({"tool_name": "Bash", "tool_input": "rm -rf x"}), &[]));
    }
    assert!(!env.path(&format!("repo/{STATE}/{RUN}/by-hand")).exists());
    assert_eq!(kept_by_hand(&env), [] as [Value; 0]);
}
