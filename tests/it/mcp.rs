//! The server of the Model Context Protocol, with the client of the same library and without any.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use rustix::process::{Pid, getsid};
use serde_json::{Value, json};

use crate::support::{RUN, STATE, TestEnv, wait_until};

/// A client, and the runtime that its server is looked after in.
struct Client {
    runtime: tokio::runtime::Runtime,
    service: RunningService<RoleClient, ()>,
}

impl Client {
    fn new(env: &TestEnv) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
        env.pin(&mut command).arg("mcp");
        let service = runtime.block_on(async {
            let server = TokioChildProcess::new(tokio::process::Command::from(command)).expect("the server");
            ().serve(server).await.expect("a handshake")
        });
        Self { runtime, service }
    }

    /// What a tool answers: whether it is an error, and the answer itself.
    fn call(&self, tool: &str, arguments: Value) -> (bool, Value) {
        let arguments = arguments.as_object().expect("an object").clone();
        let wanted = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.runtime.block_on(self.service.call_tool(wanted)).expect("an answer");
        (result.is_error == Some(true), result.structured_content.expect("structured content"))
    }

    #[track_caller]
    fn succeeds(&self, tool: &str, arguments: Value) -> Value {
        let (is_error, answer) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {answer:#}");
        answer
    }

    #[track_caller]
    fn fails(&self, tool: &str, arguments: Value, code: &str) -> Value {
        let (is_error, answer) = self.call(tool, arguments);
        assert!(is_error && answer["code"] == code, "{tool}: {answer:#}");
        answer
    }

    fn leave(self) {
        self.runtime.block_on(self.service.cancel()).expect("it ends");
    }
}

/// Run r1, whose lane A is merged and whose lane B fails until `help` is in `$SCRATCH`.
fn failed() -> TestEnv {
    let env = TestEnv::new();
    env.plan(
        "[defaults]\nretries = 0\n[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = '[ -e \"$SCRATCH/help\" ] && { echo > \"$SCRATCH/began\"; wait-for go; echo b > b.txt; }'\n",
    );
    env.execute(&[]).exits(1);
    env
}

#[test]
fn the_tools_are_listed_with_what_they_take() {
    let env = TestEnv::new();
    let client = Client::new(&env);
    let server = client.service.peer_info().expect("the server's word").clone();
    assert_eq!(server.server_info.as_ref().map(|it| it.name.as_str()), Some("lanewright"));
    let tools = client.runtime.block_on(client.service.list_all_tools()).expect("tools");
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    names.sort_unstable();
    let expected = [
        "Approve",
        "CreateCheckpoint",
        "Doctor",
        "ExecutePhase",
        "Gate",
        "ListCheckpoints",
        "Pick",
        "ReadDiff",
        "ReadLogs",
        "Reject",
        "ResumeTask",
        "Retry",
        "Rollback",
        "RollbackLane",
        "RunStatus",
        "Tell",
    ];
    assert_eq!(names, expected);
    for tool in &tools {
        assert!(tool.description.as_ref().is_some_and(|text| text.len() > 40), "{}", tool.name);
        let schema = Value::Object((*tool.input_schema).clone());
        let properties = schema["properties"].as_object().expect("properties");
        assert!(properties.contains_key("taskId") || tool.name == "ExecutePhase", "{schema}");
        assert!(properties.values().all(|property| property["description"].is_string()), "{schema}");
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        let output = Value::Object((**tool.output_schema.as_ref().expect("an output schema")).clone());
        assert_eq!(output["type"], "object", "{output}");
        assert!(output["properties"].as_object().is_some_and(|fields| fields.len() > 4), "{output}");
    }
    client.leave();
}

#[test]
fn mcp_answers_equal_the_command_line() {
    let env = failed();
    let client = Client::new(&env);
    assert_eq!(client.succeeds("RunStatus", json!({}))["run_id"], RUN);
    let lane = client.succeeds("RunStatus", json!({"taskId": "r1/A"}));
    assert_eq!((&lane["lane"]["lane"], &lane["lane"]["state"]), (&json!("A"), &json!("merged")));
    let kept = client.succeeds("CreateCheckpoint", json!({"taskId": "r1/B", "message": "-as it is"}));
    assert!(env.refs().iter().any(|name| kept["reference"] == name.as_str()), "{kept}");
    let listed = client.succeeds("ListCheckpoints", json!({"taskId": "r1/B"}));
    let names: Vec<&Value> = listed["snapshots"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&kept["name"]), "{listed}");
    assert!(listed["checkpoints"].as_array().expect("a list").iter().all(|it| it["lane"] == "B"), "{listed}");
    let back = client.succeeds("RollbackLane", json!({"taskId": "r1/B"}));
    assert_eq!(back["lanes"][0]["lane"], "B");
    client.leave();
}

#[test]
fn merged_lane_is_rolled_back_only_with_a_yes() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    let client = Client::new(&env);
    let refused = client.fails("RollbackLane", json!({"taskId": "r1/A"}), "USAGE");
    assert!(refused["message"].as_str().expect("a message").contains("A: merge "), "{refused}");
    assert!(env.holds("main", "a.txt"));
    client.succeeds("RollbackLane", json!({"taskId": "r1/A", "undoMerged": true}));
    assert!(!env.holds("main", "a.txt"));
    client.leave();
}

#[test]
fn mcp_resume_passes_context_and_outlives_server() {
    let env = failed();
    env.write("scratch/help", "");
    let client = Client::new(&env);
    let answer = client.succeeds("ResumeTask", json!({"taskId": RUN, "additionalContext": "-- mind the \"quotes\""}));
    assert_eq!((&answer["begun"], &answer["resume"]), (&json!(true), &json!(1)));
    let held = client.fails("ResumeTask", json!({"taskId": RUN}), "HELD");
    assert_eq!(held["exitCode"], 4);
    wait_until("the agent", || env.path("scratch/began").exists());
    let pid = env.events("run_resumed")[0]["owner"]["process"]["pid"].as_i64().and_then(|pid| pid.try_into().ok());
    let pid = pid.and_then(Pid::from_raw).expect("a pid");
    assert_eq!(getsid(Some(pid)).expect("its session"), pid, "what ends the client's session ends the run");
    client.leave();
    env.write("scratch/go", "");
    wait_until("the end of the run", || {
        !env.events("run_finished").is_empty() && env.events("run_finished").len() == 2
    });
    assert_eq!(env.events("run_finished")[1]["outcome"], "done");
    assert!(env.attempt_file("B", "agent", 2, "prompt.md").contains("- -- mind the \"quotes\""));
    let output = fs::read_to_string(answer["output"].as_str().expect("a path")).expect("what it printed");
    assert!(output.contains("Resuming run r1"), "{output}");
}

#[test]
fn a_phase_is_started_and_outlives_the_server() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'wait-for go; echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = 'echo b > b.txt'\n",
    );
    let client = Client::new(&env);
    let plan = "../plan.toml";
    client.fails("ExecutePhase", json!({"plan": "no-such.toml"}), "USAGE");
    client.fails("ExecutePhase", json!({"plan": plan, "lanes": ["C"]}), "USAGE");
    client.fails("ExecutePhase", json!({"plan": plan, "base": "no-such-branch"}), "USAGE");
    let answer = client.succeeds("ExecutePhase", json!({"plan": plan, "lanes": ["A"]}));
    assert_eq!(answer["begun"], true, "{answer}");
    let run = answer["run_id"].as_str().expect("a run").to_owned();
    client.fails("ExecutePhase", json!({"plan": plan}), "HELD");
    client.leave();
    env.write("scratch/go", "");
    wait_until("the end of the run", || {
        env.lanewright(&["status", &run, "--format", "json"]).json()["outcome"] == "done"
    });
    assert!(!env.path("repo/b.txt").exists(), "only lane A was asked for");
    let output = fs::read_to_string(answer["output"].as_str().expect("a path")).expect("what it printed");
    assert!(output.contains(&run), "{output}");
    fs::remove_file(answer["output"].as_str().expect("a path")).expect("removed");
}

#[test]
fn run_status_waits_for_the_end_of_the_run() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'wait-for go; echo a > a.txt'\n");
    let client = Client::new(&env);
    let run = client.succeeds("ExecutePhase", json!({"plan": "../plan.toml"}))["run_id"].clone();
    assert_eq!(client.succeeds("RunStatus", json!({"taskId": run}))["held"], true);
    env.write("scratch/go", "");
    let ended = client.succeeds("RunStatus", json!({"taskId": run, "wait": 60}));
    assert_eq!((&ended["held"], &ended["outcome"]), (&json!(false), &json!("done")), "{ended}");
    client.leave();
}

#[test]
fn the_last_lines_of_logs_and_changes_are_read() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'seq 1 5; echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = 'echo of b; echo b > b.txt'\n",
    );
    env.execute(&[]).exits(0);
    let client = Client::new(&env);
    let answer = client.succeeds("ReadLogs", json!({"taskId": "r1/A", "agent": "agent", "lines": 2}));
    let lines: Vec<&Value> = answer["lines"].as_array().expect("lines").iter().map(|it| &it["line"]).collect();
    assert_eq!((lines, &answer["omitted"]), (vec![&json!("4"), &json!("5")], &json!(3)));
    assert!(client.succeeds("ReadLogs", json!({"taskId": RUN})).to_string().contains("of b"));
    client.fails("ReadLogs", json!({"taskId": RUN, "agent": "agent"}), "USAGE");
    client.fails("ReadLogs", json!({"taskId": RUN, "lines": 0}), "USAGE");
    client.fails("ReadLogs", json!({"taskId": "r1/C"}), "USAGE");
    client.fails("ReadLogs", json!({"taskId": "no-such-run"}), "INVALID_STATE");
    env.git(&["config", "diff.external", "false"]);
    let changed = client.succeeds("ReadDiff", json!({"taskId": "r1/A"}));
    assert_eq!(changed["diff"]["files"], json!([{"path": "a.txt", "added": 1, "removed": 0}]));
    assert!(changed["diff"]["patch"].as_str().is_some_and(|patch| patch.ends_with("+a\n")), "{changed}");
    assert_eq!(client.succeeds("ReadDiff", json!({"taskId": "r1/A", "stat": true}))["diff"]["patch"], json!(null));
    client.fails("ReadDiff", json!({"taskId": RUN}), "USAGE");
    client.fails("ReadDiff", json!({"taskId": "r1/A", "agent": "--stat"}), "USAGE");
    client.leave();
}

#[test]
fn invalid_tool_calls_are_refused_by_error_code() {
    let env = failed();
    let client = Client::new(&env);
    client.fails("ResumeTask", json!({"taskId": "no-such-run"}), "INVALID_STATE");
    client.fails("ResumeTask", json!({"taskId": "r1/A"}), "INVALID_OPERATION");
    client.fails("ResumeTask", json!({"taskId": "r1/C"}), "USAGE");
    client.fails("ResumeTask", json!({"taskId": "--help"}), "USAGE");
    client.fails("ResumeTask", json!({"taskId": RUN, "additionalContext": "x".repeat(20_000)}), "USAGE");
    client.fails("RunStatus", json!({"taskId": "r1/C"}), "USAGE");
    client.fails("RollbackLane", json!({"taskId": RUN}), "USAGE");
    client.fails("CreateCheckpoint", json!({"taskId": "r1/A"}), "INVALID_STATE");
    client.fails("CreateCheckpoint", json!({"taskId": "r1/B", "agent": "../x"}), "USAGE");
    client.fails("ListCheckpoints", json!({"taskId": "no-such-run"}), "INVALID_STATE");
    assert_eq!(env.events("run_resumed"), [] as [Value; 0]);
    let unknown = CallToolRequestParams::new("NoSuchTool");
    client.runtime.block_on(client.service.call_tool(unknown)).expect_err("no such tool");
    let misspelt = json!({"taskId": RUN, "additionalContxt": "x"}).as_object().expect("an object").clone();
    let misspelt = CallToolRequestParams::new("ResumeTask").with_arguments(misspelt);
    let told = client.runtime.block_on(client.service.call_tool(misspelt)).expect("an answer");
    assert_eq!(told.is_error, Some(true), "{told:?}");
    client.leave();
}

#[test]
fn mcp_resume_refuses_changed_and_completed_runs() {
    let env = failed();
    let client = Client::new(&env);
    let code = fs::canonicalize(env.path(&format!("repo.lanes/{RUN}/B/code"))).expect("a worktree");
    fs::write(code.join("by-hand.txt"), "x\n").expect("a file");
    let refused = client.fails("ResumeTask", json!({"taskId": RUN}), "EXTERNAL_CHANGES");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("by-hand.txt")), "{refused}");
    fs::remove_file(code.join("by-hand.txt")).expect("it goes");
    env.write("scratch/help", "");
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    client.fails("ResumeTask", json!({"taskId": RUN}), "INVALID_OPERATION");
    assert_eq!(
        fs::read_dir(env.path(&format!("repo/{STATE}/{RUN}")))
            .expect("files")
            .flatten()
            .filter(|it| it.file_name().to_string_lossy().starts_with("resume-"))
            .count(),
        0,
        "refused resumes leave nothing"
    );
    client.leave();
}

#[test]
fn outside_of_a_repository_it_serves_and_says_so() {
    let env = TestEnv::without_repository();
    let client = Client::new(&env);
    client.fails("RunStatus", json!({}), "USAGE");
    client.leave();
}

#[test]
fn mcp_server_skips_invalid_json_and_exits_at_eof() {
    let env = TestEnv::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command).arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().expect("the server");
    let mut stdin = server.stdin.take().expect("its input");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "0"}}});
    let lines = [
        "no JSON at all",
        &hello.to_string(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "}{",
        "\u{0}\u{1}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}",
    ];
    for line in lines {
        writeln!(stdin, "{line}").expect("it listens");
    }
    drop(stdin);
    let output = server.wait_with_output().expect("its end");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("the protocol only")).collect();
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "lanewright");
    let listed = answers.iter().find(|answer| answer["id"] == 2).expect("an answer to the last line");
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(16));
}

/// Run r1, whose lane A waits for an approval of its changes.
fn waiting() -> TestEnv {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ntests = ['test \"$(cat a.txt)\" = a']\n\
         command = 'echo a > a.txt; echo ran >> \"$SCRATCH/ran\"'\n",
    );
    env.execute(&[]).exits(3);
    env
}

fn ended(env: &TestEnv, times: usize) {
    wait_until("the end of the run", || env.events("run_finished").len() == times);
}

#[test]
fn approve_answers_and_resumes_in_the_background() {
    let env = waiting();
    let client = Client::new(&env);
    client.fails("Approve", json!({"taskId": RUN}), "USAGE");
    client.fails("Approve", json!({"taskId": "r1/B"}), "USAGE");
    client.fails("Approve", json!({"taskId": "r1/A", "gate": "plan"}), "INVALID_OPERATION");
    assert_eq!(env.events("gate_answered"), [] as [Value; 0]);
    let answer = client.succeeds("Approve", json!({"taskId": "r1/A", "gate": "changes", "message": "-- fine"}));
    assert_eq!((&answer["begun"], &answer["approved"], &answer["lane"]), (&json!(true), &json!(true), &json!("A")));
    ended(&env, 2);
    assert_eq!(env.events("run_finished")[1]["outcome"], "done");
    assert_eq!(
        (env.events("gate_answered")[0]["message"].as_str(), env.scratch("ran").as_str()),
        (Some("-- fine"), "ran\n")
    );
    client.fails("Approve", json!({"taskId": "r1/A"}), "INVALID_OPERATION");
    client.leave();
}

#[test]
fn approve_without_resume_only_answers() {
    let env = waiting();
    let client = Client::new(&env);
    let answer = client.succeeds("Approve", json!({"taskId": "r1/A", "resume": false}));
    assert_eq!(
        (&answer["approved"], &answer["gate"], &answer["live"]),
        (&json!(true), &json!("changes"), &json!(false))
    );
    assert_eq!(env.events("run_resumed"), [] as [Value; 0]);
    client.leave();
}

#[test]
fn reject_needs_words_and_passes_them_to_the_agent() {
    let env = waiting();
    let client = Client::new(&env);
    client.fails("Reject", json!({"taskId": "r1/A", "message": " "}), "USAGE");
    assert_eq!(env.events("gate_answered"), [] as [Value; 0]);
    let answer = client.succeeds("Reject", json!({"taskId": "r1/A", "message": "use another word"}));
    assert_eq!((&answer["begun"], &answer["approved"]), (&json!(true), &json!(false)));
    ended(&env, 2);
    assert!(env.attempt_file("A", "agent", 2, "prompt.md").contains("use another word"));
    client.leave();
}

#[test]
fn answer_to_a_live_run_reaches_its_process() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ncommand = 'echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = 'wait-for go; echo b > b.txt'\n",
    );
    let running = env.start(&[]);
    wait_until("the question", || {
        env.path(&format!("repo/{STATE}/{RUN}.jsonl")).exists()
            && env.events("lane_moved").iter().any(|moved| moved["to"] == "AWAITING_USER_APPROVAL")
    });
    let client = Client::new(&env);
    let answer = client.succeeds("Approve", json!({"taskId": "r1/A"}));
    assert_eq!((&answer["live"], &answer["begun"]), (&json!(true), &json!(false)), "{answer}");
    env.write("scratch/go", "");
    running.wait().exits(0);
    client.leave();
}

#[test]
fn retry_runs_a_failed_lane_in_the_background() {
    let env = failed();
    env.write("scratch/help", "");
    env.write("scratch/go", "");
    let client = Client::new(&env);
    client.fails("Retry", json!({"taskId": RUN}), "USAGE");
    client.fails("Retry", json!({"taskId": "no-such-run/A"}), "INVALID_STATE");
    client.fails("Retry", json!({"taskId": "r1/A"}), "INVALID_OPERATION");
    client.fails("Tell", json!({"taskId": RUN, "message": "x"}), "USAGE");
    client.fails("Pick", json!({"taskId": "r1/B", "candidate": 2}), "USAGE");
    let told = client.succeeds("Tell", json!({"taskId": "r1/B", "message": "--force"}));
    assert_eq!((&told["message"], &told["live"]), (&"--force".into(), &false.into()));
    let answer = client.succeeds("Retry", json!({"taskId": "r1/B", "message": "now with help"}));
    assert_eq!(answer["begun"], true, "{answer}");
    ended(&env, 2);
    assert_eq!(env.events("run_finished")[1]["outcome"], "done");
    assert!(env.attempt_file("B", "agent", 2, "prompt.md").contains("now with help"));
    client.leave();
}

#[test]
fn doctor_reports_findings_and_repairs_them() {
    let env = failed();
    let client = Client::new(&env);
    assert_eq!(client.succeeds("Doctor", json!({}))["clean"], true);
    client.fails("Doctor", json!({"taskId": "no-such-run"}), "INVALID_STATE");
    client.fails("Doctor", json!({"taskId": "r1/B"}), "USAGE");
    fs::write(env.path(&format!("repo/{STATE}/{RUN}/plan.json")), "no plan").expect("damage");
    let found = client.succeeds("Doctor", json!({"taskId": RUN}));
    assert_eq!((&found["clean"], &found["findings"][0]["kind"]), (&json!(false), &json!("plan-unreadable")), "{found}");
    let repaired = client.succeeds("Doctor", json!({"fix": true}));
    assert_eq!((&repaired["clean"], &repaired["fix"]), (&json!(true), &json!(true)), "{repaired}");
    client.leave();
}

#[test]
fn gate_reports_whether_it_passes() {
    let env = waiting();
    let client = Client::new(&env);
    let passed = client.succeeds("Gate", json!({"taskId": "r1/A", "gate": "tests"}));
    assert_eq!((&passed["passed"], &passed["lane"]), (&json!(true), &json!("A")), "{passed}");
    fs::write(env.path(&format!("repo.lanes/{RUN}/A/code/a.txt")), "b\n").expect("a change");
    let failed = client.succeeds("Gate", json!({"taskId": "r1/A", "gate": "tests"}));
    assert_eq!((&failed["passed"], &failed["exit_code"]), (&json!(false), &json!(1)), "{failed}");
    client.fails("Gate", json!({"taskId": RUN, "gate": "final"}), "USAGE");
    client.fails("Gate", json!({"taskId": RUN, "gate": "atomic", "agent": "agent"}), "USAGE");
    client.leave();
}

#[test]
fn rollback_of_a_run_or_lane_shows_what_it_would_do() {
    let env = waiting();
    let client = Client::new(&env);
    let shown = client.succeeds("Rollback", json!({"taskId": RUN, "dryRun": true}));
    assert_eq!(shown["lanes"][0]["lane"], "A", "{shown}");
    assert_eq!(env.events("lane_rolled_back"), [] as [Value; 0]);
    client.fails("Rollback", json!({"taskId": "r1/A", "to": "no-such-point"}), "USAGE");
    let back = client.succeeds("Rollback", json!({"taskId": "r1/A", "to": "after_lane_start"}));
    assert_eq!((&back["lanes"][0]["lane"], &back["run_id"]), (&json!("A"), &json!(RUN)), "{back}");
    client.leave();
}

#[test]
fn client_with_a_progress_token_is_notified() {
    let env = waiting();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command).arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().expect("the server");
    let mut stdin = server.stdin.take().expect("its input");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "0"}}});
    let call = |id: u32, meta: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
               "params": {"name": "Gate", "arguments": {"taskId": "r1/A", "gate": "tests"}, "_meta": meta}})
    };
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for line in [hello, ready, call(2, json!({})), call(3, json!({"progressToken": "mine"}))] {
        writeln!(stdin, "{line}").expect("it listens");
    }
    let mut answers = std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().expect("its output")));
    let mut next = || -> Value { serde_json::from_str(&answers.next().expect("a line").expect("text")).expect("JSON") };
    let (mut answered, mut notified) = (Vec::new(), Vec::new());
    while answered.len() < 3 {
        let line = next();
        match line["method"].as_str() {
            Some("notifications/progress") => notified.push(line["params"].clone()),
            _ => answered.push(line["id"].clone()),
        }
    }
    assert!(!notified.is_empty(), "nothing was reported");
    for (number, told) in notified.iter().enumerate() {
        assert_eq!(told["progressToken"], "mine", "{told}");
        assert!(told["message"].as_str().is_some_and(|text| text.starts_with("working for ")), "{told}");
        assert!(number == 0 || told["progress"].as_f64() > notified[number - 1]["progress"].as_f64(), "{notified:?}");
    }
    drop(stdin);
    assert!(server.wait().expect("its end").success());
}
