//! Runners: agents' programs are called as they are described, and what they print is understood. Programs that play
//! what the real ones printed (`fixtures/streams`) stand in for them.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ended, RUN, STATE, TestEnv, wait_until};

/// Two lanes, each of which writes a file.
const TWO_LANES: &str = "
[defaults]
runner = \"claude\"
[[lane]]
id = \"ONE\"
owns = [\"one.txt\"]
[[lane.task]]
id = \"1\"
prompt = \"Write one.txt\"
[[lane]]
id = \"TWO\"
owns = [\"two.txt\"]
[[lane.task]]
id = \"1\"
prompt = \"Write two.txt\"
";

/// One lane that checks what was written.
const ONE_LANE: &str = "
[[lane]]
id = \"ONE\"
runner = \"claude\"
[[lane.task]]
id = \"1\"
prompt = \"Write one.txt\"
verify = [\"grep -q good one.txt\"]
";

/// What a recorded program printed.
fn stream(runner: &str, scenario: &str) -> String {
    let path = format!("{}/fixtures/streams/{runner}/{scenario}.log", env!("CARGO_MANIFEST_DIR"));
    assert!(Path::new(&path).exists(), "{path}");
    path
}

/// Puts a program onto the path that notes its arguments and its prompt, and then does what `script` says.
fn program(env: &TestEnv, name: &str, script: &str) {
    let noted = "#!/bin/sh\necho \"$*\" >> \"$SCRATCH/arguments-$LANEWRIGHT_LANE\"\n\
                 cat > \"$SCRATCH/prompt-$LANEWRIGHT_LANE-$LANEWRIGHT_ATTEMPT\"\n";
    env.program(name, &format!("{noted}{script}"));
}

/// Writes the file that the prompt names.
const WRITE: &str =
    "file=$(sed -n 's/^Write //p' \"$SCRATCH/prompt-$LANEWRIGHT_LANE-$LANEWRIGHT_ATTEMPT\")\necho good > \"$file\"\n";

fn started_with_key(env: &TestEnv, flags: &[&str]) -> Ended {
    let plan = env.path("plan.toml");
    let arguments = [&["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN], flags].concat();
    env.lanewright_with(&arguments, |command| command.env("ANTHROPIC_API_KEY", "k-for-tests"))
}

fn resumed_with_key(env: &TestEnv, flags: &[&str]) -> Ended {
    env.lanewright_with(&[&["resume", RUN], flags].concat(), |command| command.env("ANTHROPIC_API_KEY", "k-for-tests"))
}

fn status(env: &TestEnv) -> Value {
    let ended = env.lanewright(&["status", RUN, "--format", "json"]).exits(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn builtin_runner_gets_prompt_and_reports_usage() {
    let env = TestEnv::new();
    program(&env, "claude", &format!("{WRITE}cat '{}'\n", stream("claude", "write")));
    env.plan(TWO_LANES);
    started_with_key(&env, &[]).exits(0);
    assert!(env.holds("main", "one.txt") && env.holds("main", "two.txt"));
    assert!(env.scratch("arguments-ONE").starts_with("--print --output-format stream-json --verbose "));
    assert!(env.scratch("prompt-ONE-1").starts_with("Write one.txt\n"), "the prompt is standard input");
    let status = status(&env);
    let usage = json!({"tool_calls": 1, "input_tokens": 300, "output_tokens": 60, "cache_read_tokens": 120,
        "cache_write_tokens": 30, "cost_usd": 0.003248});
    assert_eq!(status["lanes"][0]["usage"], usage);
    assert_eq!((&status["usage"]["tool_calls"], &status["usage"]["cost_usd"]), (&json!(2), &json!(0.006496)));
    let told = env.lanewright(&["status", RUN]).exits(0).stdout;
    assert!(told.contains("used by agents: 2 tool calls, 1.0k tokens, $0.0065"), "{told}");
    let logs = env.lanewright(&["logs", RUN, "ONE"]).exits(0).stdout;
    assert!(logs.contains("\n[Write] src/one.txt\nThe file is written.\n"), "{logs}");
    assert!(env.lanewright(&["logs", RUN, "ONE", "--raw"]).exits(0).stdout.contains("{\"type\":\"result\""));
}

#[test]
fn a_retry_continues_the_session_and_gets_what_failed() {
    let env = TestEnv::new();
    let script = format!(
        "if [ $LANEWRIGHT_ATTEMPT = 1 ]; then echo bad > one.txt; else {WRITE} fi\ncat '{}'\n",
        stream("claude", "write")
    );
    program(&env, "claude", &script);
    env.plan(ONE_LANE);
    started_with_key(&env, &[]).exits(0);
    let arguments = env.scratch("arguments-ONE");
    let (first, second) = arguments.split_once('\n').unwrap();
    assert_eq!(second.trim_end(), format!("{first} --resume 4d8b4655-f317-4d29-b663-d678b1613395"));
    assert!(env.scratch("prompt-ONE-2").contains("Earlier attempts failed."));
    assert!(env.scratch("prompt-ONE-2").contains("The file is written."), "last words are told in words");
}

#[test]
fn last_task_continues_its_session_after_failed_tests() {
    let env = TestEnv::new();
    let script = format!(
        "if [ $LANEWRIGHT_TASK$LANEWRIGHT_ATTEMPT = 21 ]; then echo bad > one.txt; else {WRITE} fi\n\
         sed \"s/4d8b4655/0000000$LANEWRIGHT_TASK/\" '{}'\n",
        stream("claude", "write")
    );
    program(&env, "claude", &script);
    let lane = "[[lane]]\nid = \"ONE\"\nrunner = \"claude\"\ntests = [\"grep -q good one.txt\"]\n";
    let task = |id, file| format!("[[lane.task]]\nid = \"{id}\"\nprompt = \"Write {file}\"\n");
    env.plan(&format!("{lane}{}{}", task(1, "other.txt"), task(2, "one.txt")));
    started_with_key(&env, &[]).exits(0);
    let arguments = env.scratch("arguments-ONE");
    let resumed: Vec<Option<&str>> =
        arguments.lines().map(|line| line.split_once("--resume ").map(|(_, session)| session)).collect();
    assert_eq!(resumed, [None, None, Some("00000002-f317-4d29-b663-d678b1613395")]);
    assert!(env.scratch("prompt-ONE-2").contains("grep -q good one.txt"), "the prompt has what failed all the same");
}

#[test]
fn runner_gets_known_options_and_others_are_named() {
    let env = TestEnv::new();
    program(&env, "claude", &format!("{WRITE}cat '{}'\n", stream("claude", "write")));
    program(&env, "codex", &format!("{WRITE}cat '{}'\n", stream("codex", "write")));
    let plan = TWO_LANES.replace("runner = \"claude\"", "runner = \"claude\"\nmodel = \"opus\"");
    let plan = plan.replace("id = \"ONE\"", "id = \"ONE\"\neffort = \"high\"\nmax_turns = 40\nbudget = 2.5");
    env.plan(&plan.replace("id = \"TWO\"", "id = \"TWO\"\nrunner = \"codex\"\nmodel = \"o9\"\nbudget = \"$1\""));
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().unwrap(), "--run-id", RUN];
    let keys = [("ANTHROPIC_API_KEY", "k-for-tests"), ("CODEX_API_KEY", "k-for-tests")];
    let told = env.lanewright_with(&arguments, |command| command.envs(keys)).exits(0).stderr;
    let first = env.scratch("arguments-ONE");
    assert!(first.trim_end().ends_with(" --model opus --effort high --max-turns 40 --max-budget-usd 2.5"), "{first}");
    let plan = env.path("plan.toml");
    let shown = env.lanewright(&["plan", "show", plan.to_str().expect("UTF-8")]).exits(0).stdout;
    assert!(shown.contains("\n    model opus, effort high, max_turns 40, budget $2.50\n"), "{shown}");
    assert!(env.scratch("arguments-TWO").trim_end().ends_with(" --model o9"));
    assert!(told.contains("plan.toml:19: warning: codex of lane TWO does not get `budget`"), "{told}");
}

#[test]
fn lost_session_costs_no_retry_and_starts_a_new_one() {
    let env = TestEnv::new();
    let (gone, written) = (stream("claude", "no-session"), stream("claude", "write"));
    let script = format!(
        "case \"$*\" in *--resume*) cat '{gone}'; exit 1;; esac\n[ $LANEWRIGHT_ATTEMPT = 1 ] && echo bad > one.txt || {{ {WRITE} }}\ncat '{written}'\n"
    );
    program(&env, "claude", &script);
    env.plan(&format!("[defaults]\nretries = 1\n{ONE_LANE}"));
    started_with_key(&env, &[]).exits(0);
    let levels: Vec<Value> = env.events("retry_planned").iter().map(|event| event["level"].clone()).collect();
    assert_eq!(levels, ["retry", "wait"]);
    let arguments = env.scratch("arguments-ONE");
    let resumed: Vec<bool> = arguments.lines().map(|line| line.contains("--resume")).collect();
    assert_eq!(resumed, [false, true, false]);
}

#[test]
fn interrupted_attempt_resumes_its_agent_session() {
    let env = TestEnv::new();
    let init = format!("head -n 1 '{}'\n", stream("claude", "write"));
    let script = format!(
        "{init}touch \"$SCRATCH/begun\"\nif [ $LANEWRIGHT_ATTEMPT = 1 ]; then wait-for never; fi\n{WRITE}tail -n +2 '{}'\n",
        stream("claude", "write")
    );
    program(&env, "claude", &script);
    env.plan(ONE_LANE);
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().unwrap(), "--run-id", RUN];
    let running = env.start_with(&arguments, |command| command.env("ANTHROPIC_API_KEY", "k-for-tests"));
    wait_until("the attempt", || env.path("scratch/begun").exists());
    running.signal(rustix::process::Signal::INT);
    running.wait().exits(130);
    resumed_with_key(&env, &[]).exits(0);
    let arguments = env.scratch("arguments-ONE");
    assert!(
        arguments.lines().nth(1).unwrap().ends_with("--resume 4d8b4655-f317-4d29-b663-d678b1613395"),
        "{arguments}"
    );
}

#[test]
fn a_quota_that_is_out_uses_up_no_retry() {
    let env = TestEnv::new();
    let script = format!(
        "if [ $LANEWRIGHT_ATTEMPT -lt 4 ]; then cat '{}'; exit 1; fi\n{WRITE}cat '{}'\n",
        stream("claude", "quota-stays"),
        stream("claude", "write")
    );
    program(&env, "claude", &script);
    env.plan(&format!("[defaults]\nretries = 0\n{ONE_LANE}"));
    started_with_key(&env, &[]).exits(0);
    let levels: Vec<Value> = env.events("retry_planned").iter().map(|event| event["level"].clone()).collect();
    assert_eq!(levels, ["wait", "wait", "wait"]);
}

#[test]
fn exit_0_with_a_failed_stream_is_a_failure() {
    let broken = format!("{WRITE}head -n 2 '{}'\nexit 0\n", stream("claude", "write"));
    let failed = format!("{WRITE}cat '{}'\nexit 0\n", stream("claude", "refuse"));
    for (script, says) in [(broken, "its output broke off before the end"), (failed, "The scripted model refuses")] {
        let env = TestEnv::new();
        program(&env, "claude", &script);
        env.plan(&format!("[defaults]\nretries = 0\n{ONE_LANE}"));
        started_with_key(&env, &[]).exits(1);
        let failure = env.events("lane_failed")[0]["failure"]["message"].as_str().unwrap().to_owned();
        assert!(failure.contains(says), "{failure}");
    }
}

#[test]
fn a_refused_key_blocks_every_lane_before_another_attempt() {
    let env = TestEnv::new();
    let script = format!(
        "echo >> \"$SCRATCH/starts\"\n[ -e \"$SCRATCH/paid\" ] || {{ cat '{}'; exit 1; }}\n{WRITE}cat '{}'\n",
        stream("claude", "fail"),
        stream("claude", "write")
    );
    program(&env, "claude", &script);
    env.plan(TWO_LANES);
    started_with_key(&env, &["--max-parallel", "1"]).exits(3).says(&["Invalid API key", "then resume"]);
    assert_eq!(env.scratch("starts").lines().count(), 1);
    assert_eq!(env.events("lane_blocked").len(), 2);
    env.write("scratch/paid", "");
    resumed_with_key(&env, &[]).exits(0);
    assert_eq!(env.scratch("starts").lines().count(), 3);
}

#[test]
fn spent_budget_blocks_until_it_is_raised() {
    let env = TestEnv::new();
    program(&env, "claude", &format!("{WRITE}cat '{}'\n", stream("claude", "write")));
    env.plan(&TWO_LANES.replace("id = \"TWO\"", "id = \"TWO\"\ndepends_on = [\"ONE\"]"));
    started_with_key(&env, &["--max-cost", "0.003"]).exits(3).says(&["budget reached"]);
    assert!(env.holds("main", "one.txt"), "what was paid for is merged");
    assert!(!env.path("scratch/arguments-TWO").exists());
    resumed_with_key(&env, &[]).exits(3);
    assert!(!env.path("scratch/arguments-TWO").exists(), "a bare resume keeps the limit");
    resumed_with_key(&env, &["--max-cost", "none", "--max-tokens", "500"]).exits(3).says(&["510 of 500 tokens"]);
    let blocked = resumed_with_key(&env, &[]).exits(3);
    let told = blocked.stdout.lines().chain(blocked.stderr.lines()).map(str::trim);
    let command = told.filter_map(|line| line.strip_prefix("lanewright resume r1 ")).find(|flags| !flags.is_empty());
    let flags: Vec<&str> = command.expect("a command with flags").split(' ').collect();
    assert_eq!(flags, ["--max-tokens", "1010"]);
    resumed_with_key(&env, &flags).exits(0);
    assert!(env.holds("main", "two.txt"));
}

#[test]
fn missing_tool_is_reported_before_the_run_starts() {
    let env = TestEnv::new();
    env.plan(TWO_LANES);
    let empty_path = |env: &TestEnv| {
        let plan = env.path("plan.toml");
        let git = std::process::Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout;
        let git = String::from_utf8(git).unwrap();
        let directory = Path::new(git.trim()).parent().unwrap().to_owned();
        env.lanewright_with(&["execute-phase", plan.to_str().unwrap(), "--run-id", RUN], |command| {
            command.env("PATH", format!("{}:{}", env.path("bin").display(), directory.display()))
        })
    };
    if !Path::new("/usr/bin/claude").exists() && !Path::new("/usr/local/bin/claude").exists() {
        empty_path(&env).exits(3).hints("npm install -g @anthropic-ai/claude-code");
    }
    program(&env, "claude", "exit 1\n");
    let refused = env.execute(&[]).exits(3);
    refused.says(&["no credentials for runner `claude`; set one of: ANTHROPIC_API_KEY"]).hints("claude setup-token");
    assert!(!env.path(&format!("repo/{STATE}/{RUN}.jsonl")).exists() && !env.path("scratch/arguments-ONE").exists());
    // Who is let in by a file needs no variable.
    env.write("home/.claude/.credentials.json", "{}");
    program(&env, "claude", &format!("{WRITE}cat '{}'\n", stream("claude", "write")));
    env.execute(&[]).exits(0);
}

#[test]
fn custom_runner_like_claude_adds_its_arguments() {
    let env = TestEnv::new();
    env.write(
        "repo/lanewright.toml",
        "[runners.small]\nlike = \"claude\"\narguments = [\"--model\", \"small\"]\nkey = {}\n",
    );
    env.commit("settings");
    program(&env, "claude", &format!("{WRITE}cat '{}'\n", stream("claude", "write")));
    env.plan(&TWO_LANES.replace("\"claude\"", "\"small\""));
    env.execute(&[]).exits(0);
    assert!(env.scratch("arguments-ONE").trim_end().ends_with("--model small"));
    assert_eq!(status(&env)["usage"]["tool_calls"], 2);
}

#[test]
fn tool_calls_in_the_stream_keep_what_is_there() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "checkpoint_every = 'none'\ncheckpoint_every_tool_calls = 3\n");
    env.commit("settings");
    let write = stream("claude", "write");
    let script = format!(
        "{WRITE}head -n 1 '{write}'\nfor n in 1 2 3; do sed -n 2p '{write}'; done\nwait-for kept\ntail -n +3 '{write}'\n"
    );
    program(&env, "claude", &script);
    env.plan(ONE_LANE);
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().unwrap(), "--run-id", RUN, "--merge", "none"];
    let running = env.start_with(&arguments, |command| command.env("ANTHROPIC_API_KEY", "k-for-tests"));
    let log = env.path(&format!("repo/{STATE}/{RUN}.jsonl"));
    wait_until("the snapshot", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("\"reason\":\"tool_calls\""))
    });
    env.write("scratch/kept", "");
    running.wait().exits(0);
}

#[test]
fn agent_text_about_quotas_is_not_an_outage() {
    let env = TestEnv::new();
    let words = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"It now retries on HTTP 429 Too Many Requests."},{"type":"tool_use","name":"Bash","input":{"command":"grep -rn 'connection refused' src"}}]}}"#;
    let script = format!("head -n 1 '{}'\ncat <<'END'\n{words}\nEND\nexit 139\n", stream("claude", "write"));
    program(&env, "claude", &script);
    env.plan(&format!("[defaults]\nretries = 1\n{ONE_LANE}"));
    started_with_key(&env, &[]).exits(1);
    let levels: Vec<Value> = env.events("retry_planned").iter().map(|event| event["level"].clone()).collect();
    assert!(!levels.is_empty() && !levels.contains(&json!("wait")), "{levels:?}");
}

#[test]
fn program_of_another_version_blocks_its_lane_at_once() {
    let env = TestEnv::new();
    program(&env, "claude", "echo \"error: unknown option '--permission-mode'\" >&2\nseq 40 >&2\nexit 1\n");
    env.plan(ONE_LANE);
    started_with_key(&env, &[]).exits(3).says(&[
        "exited with code 1: error: unknown option '--permission-mode'; correct the arguments of `command`, or install a version that takes them",
    ]);
    assert_eq!(env.scratch("arguments-ONE").lines().count(), 1);
}

#[test]
fn refused_key_is_reported_once_with_the_remedy() {
    let env = TestEnv::new();
    let result = r#"{"type":"result","is_error":true,"result":"Invalid API key · Fix external API key"}"#;
    program(&env, "claude", &format!("echo '{result}'\nexit 1\n"));
    env.plan(ONE_LANE);
    started_with_key(&env, &[]).exits(3).says(&[
        "ONE: blocked: exited with code 1: Invalid API key · Fix external API key; to get a key: claude setup-token;",
    ]);
}

#[test]
fn usage_of_a_timed_out_attempt_counts() {
    let env = TestEnv::new();
    program(&env, "claude", &format!("head -n 2 '{}'\nwait-for never\n", stream("claude", "write")));
    env.plan(&ONE_LANE.replace("id = \"1\"", "id = \"1\"\nmax_time = \"1s\""));
    started_with_key(&env, &["--max-tokens", "100"]).exits(3).says(&["170 of 100 tokens"]);
    assert_eq!(env.scratch("arguments-ONE").lines().count(), 1);
}
