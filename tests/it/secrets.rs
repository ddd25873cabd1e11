//! Secrets of environments: agents have them, and no file of ours ever holds one (decision 0022).

use std::fs;
use std::path::Path;

use crate::support::{RUN, STATE, TestEnv, all_files};

const LANE: &str = "lane-s3cr3t-value";
const AGENT: &str = "agent-s3cr3t-value";
const MATCHED: &str = "https://user:pa55@host";
const OUTER: &str = "outer-s3cr3t-\"value";

/// A lane whose agent checks what it has, says it everywhere, and fails until `$SCRATCH/fixed` exists.
fn plan(env: &TestEnv, lane: &str) {
    let program = format!(
        "#!/bin/sh
echo \"$LANE_TOKEN $AGENT_TOKEN $URL $OUTER_KEY\"
echo \"$LANE_TOKEN $AGENT_TOKEN $URL $OUTER_KEY\" > \"$(dirname \"$LANEWRIGHT_RESULT_FILE\")/report.md\"
python3 - <<'PYTHON'
import json, os
words = ' '.join(os.environ[name] for name in ['LANE_TOKEN', 'AGENT_TOKEN', 'URL', 'OUTER_KEY'])
done = os.path.exists(os.environ['SCRATCH'] + '/fixed')
json.dump({{'status': 'success' if done else 'failed', 'error': words, 'logs': [words]}},
    open(os.environ['LANEWRIGHT_RESULT_FILE'], 'w'))
PYTHON
[ \"$LANE_TOKEN\" = \"{lane}\" ] && [ \"$AGENT_TOKEN\" = {AGENT} ] && [ \"$URL\" = {MATCHED} ] || exit 9
echo had > \"$SCRATCH/had\"
[ -e \"$SCRATCH/kill\" ] && kill -9 $PPID && wait-for never
[ -e \"$SCRATCH/fixed\" ] && echo done > work
"
    );
    env.program("careless", &program);
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nretries = 0\nenv = {{ LANE_TOKEN = \"{lane}\", URL = \"{MATCHED}\", PLAIN = \"seen\" }}\n\
         [[lane.agent]]\nname = \"engineer\"\nenv = {{ AGENT_TOKEN = \"{AGENT}\" }}\ncommand = ['careless']\n"
    ));
    env.write("repo/lanewright.toml", "redact = ['user:\\w+@']\n");
}

fn without_success() -> TestEnv {
    let env = TestEnv::new();
    plan(&env, LANE);
    let flags = ["execute-phase", "../plan.toml", "--run-id", RUN];
    env.lanewright_with(&flags, |command| command.env("OUTER_KEY", OUTER)).exits(1);
    env.scratch("had");
    env
}

#[track_caller]
fn assert_none_at_rest(env: &TestEnv) {
    for below in ["repo/.claude", "repo.lanes", "repo/.git/lanewright"] {
        for file in all_files(&env.path(below)) {
            let text = String::from_utf8_lossy(&fs::read(&file).unwrap_or_default()).into_owned();
            for secret in [LANE, AGENT, "user:pa55@", "outer-s3cr3t-"] {
                assert!(!text.contains(secret), "{} holds {secret}:\n{text}", file.display());
            }
        }
    }
}

fn resume(env: &TestEnv) -> crate::support::Ended {
    env.lanewright_with(&["resume", RUN, "--yes"], |command| command.env("OUTER_KEY", OUTER))
}

#[test]
fn agents_have_the_secrets_and_no_file_holds_one() {
    let env = without_success();
    assert_none_at_rest(&env);
    let plan = env.read(&format!("repo/{STATE}/{RUN}/plan.json"));
    assert!(plan.contains("\"[redacted:LANE_TOKEN]\"") && plan.contains("\"seen\""), "{plan}");
    let result = env.attempt_file("A", "engineer", 1, "exchange/result.json");
    let result: serde_json::Value = serde_json::from_str(&result).expect("still JSON");
    assert_eq!(
        result["error"],
        "[redacted:LANE_TOKEN] [redacted:AGENT_TOKEN] https://[redacted:pattern-1]host [redacted:OUTER_KEY]"
    );
    env.write("scratch/fixed", "");
    resume(&env).exits(0);
    assert_none_at_rest(&env);
    assert!(env.holds("main", "work"));
}

#[test]
fn a_supervisor_that_died_leaves_no_secret_either() {
    let env = TestEnv::new();
    plan(&env, LANE);
    env.write("scratch/kill", "");
    let flags = ["execute-phase", "../plan.toml", "--run-id", RUN];
    env.lanewright_with(&flags, |command| command.env("OUTER_KEY", OUTER)).exits(1);
    env.scratch("had");
    assert_none_at_rest(&env);
}

#[test]
fn resume_takes_replaced_secret_from_plan_file() {
    let env = without_success();
    plan(&env, "another-s3cr3t");
    env.write("scratch/fixed", "");
    resume(&env).exits(0);
    assert!(env.holds("main", "work"), "it is no change of the plan, and the agent has the new value");
}

#[test]
fn resume_without_plan_file_takes_secrets_from_env() {
    let env = without_success();
    fs::rename(env.path("plan.toml"), env.path("moved.toml")).expect("moved");
    env.write("scratch/fixed", "");
    resume(&env)
        .exits(2)
        .says(&["LANE_TOKEN of lane A", "AGENT_TOKEN of A/engineer", "plan.toml"])
        .hints("set LANE_TOKEN, URL, AGENT_TOKEN in the environment");
    let ended = env.lanewright_with(&["resume", RUN, "--yes"], |command| {
        command.env("OUTER_KEY", OUTER).env("LANE_TOKEN", LANE).env("AGENT_TOKEN", AGENT).env("URL", MATCHED)
    });
    ended.exits(0);
    assert_none_at_rest(&env);
    assert!(Path::new(&env.path("repo/work")).exists());
}

#[test]
fn commands_at_a_resting_run_store_no_secret() {
    let env = without_success();
    let said = format!("401 for {LANE} and {AGENT}");
    let data = serde_json::json!({"seen": said}).to_string();
    env.lanewright(&["log-event", "tried", "--lane", "A", "--data", &data]).exits(0);
    env.lanewright(&["checkpoints", "create", "A", "-m", &said]).exits(0);
    let words = ["--phase", "P", "--plan", "p", "--task", "1", "--specialist", "engineer"];
    let words = [&words[..], &["--error-type", "crash", "--details", &said, "--run", RUN]].concat();
    env.lanewright(&[&["log-error"], &words[..]].concat()).exits(0);
    env.lanewright_with(&["recover", "A", "--error", &said], |command| command.env("OUTER_KEY", OUTER)).exits(1);
    assert_none_at_rest(&env);
    let messages = env.git(&["log", "--all", "--format=%B"]);
    assert!(messages.contains("401 for [redacted:LANE_TOKEN]") && !messages.contains(LANE), "{messages}");
    let logged: Vec<_> = env.events("event_logged").iter().map(|event| event["data"].to_string()).collect();
    assert!(logged.iter().all(|data| data.contains("[redacted:LANE_TOKEN]")) && logged.len() == 2, "{logged:?}");
    fs::remove_file(env.path("plan.toml")).expect("removed");
    env.lanewright(&["log-event", "tried", "--lane", "A"]).exits(0);
}

#[test]
fn an_answer_stores_no_secret() {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\napproval = ['changes']\nenv = {{ LANE_TOKEN = \"{LANE}\" }}\ncommand = 'echo a > a.txt'\n"
    ));
    env.execute(&[]).exits(3);
    env.lanewright(&["reject", "A", "-m", &format!("do not print {LANE}")]).exits(0);
    assert_none_at_rest(&env);
    assert_eq!(env.events("gate_answered")[0]["message"], "do not print [redacted:LANE_TOKEN]");
}
