//! The error log, and the secrets that neither it nor any other file of ours holds (SPEC §10).

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Ended, RUN, STATE, TestEnv, all_files};

/// What nobody may find: a value of a variable that looks secret, and one that only a pattern knows.
const CANARIES: [&str; 2] = ["c4nary/S3cret+Value", "ACME-0042-XYZ"];

fn with_secrets(env: &TestEnv, arguments: &[&str]) -> Ended {
    env.lanewright_with(arguments, |command| {
        command
            .env("DEPLOY_TOKEN", CANARIES[0])
            .env("LANEWRIGHT_PASS_ENV", "DEPLOY_TOKEN")
            .env("LANEWRIGHT_REDACT", "ACME-[0-9]+-[A-Z]+")
    })
}

/// Every file that Lanewright keeps, below the state directory and the worktree root.
fn own_files(env: &TestEnv) -> Vec<PathBuf> {
    let state = all_files(&env.path(&format!("repo/{STATE}")));
    state
        .into_iter()
        .chain(all_files(&env.path("repo.lanes")))
        .filter(|path| !path.ends_with("snapshot.index"))
        .collect()
}

fn assert_no_canary(env: &TestEnv) {
    for path in own_files(env).into_iter().filter(|path| path.is_file()) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
        for canary in CANARIES {
            assert!(!text.contains(canary), "{canary} is in {}:\n{text}", path.display());
        }
    }
}

fn errors(env: &TestEnv, below: &str) -> Vec<Value> {
    let text = env.read(&format!("repo/{STATE}/{below}"));
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// An agent that says what it should not, in every way that it has, and fails.
const TELLTALE: &str = "[gates]\natomic = ['echo gate $DEPLOY_TOKEN; false']\n\
     [[lane]]\nid = \"A\"\nretries = 1\n\
     command = '''\necho \"using $DEPLOY_TOKEN and ACME-0042-$(echo XYZ)\"\n\
     if [ \"$LANEWRIGHT_ATTEMPT\" = 1 ]; then exit 3; fi; echo a > a.txt\n'''\n\
     [[lane]]\nid = \"B\"\nretries = 0\ncommand = '''\n\
     echo \"{\\\"status\\\": \\\"ERROR\\\", \\\"error_message\\\": \\\"$DEPLOY_TOKEN is no good\\\"}\" > \"$SCRATCH/said\"\n\
     echo \"{\\\"status\\\": \\\"failed\\\", \\\"error\\\": \\\"$DEPLOY_TOKEN is no good\\\"}\" > \"$LANEWRIGHT_RESULT_FILE\"\n\
     exit 1\n'''\n";

#[test]
fn no_file_of_ours_holds_a_secret_that_an_agent_said() {
    let env = TestEnv::new();
    env.plan(TELLTALE);
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN, "--progress", "json"];
    let ended = with_secrets(&env, &arguments).exits(1);
    let said = env.scratch("said");
    assert!(said.contains(CANARIES[0]), "the agent knew no secret: {said}");
    // What an agent itself writes is its own.
    std::fs::remove_file(
        env.path(&format!("repo/{STATE}/{RUN}/lanes/B/agents/agent/tasks/1/attempt-1/exchange/result.json")),
    )
    .expect("its file");
    for canary in CANARIES {
        assert!(!ended.stdout.contains(canary) && !ended.stderr.contains(canary), "{canary} was shown");
    }
    assert_no_canary(&env);
    let log = env.read(&format!("repo/{STATE}/{RUN}.jsonl"));
    assert!(log.contains("using [redacted:DEPLOY_TOKEN] and [redacted:pattern-1]"), "{log}");
    assert!(log.contains("[redacted:DEPLOY_TOKEN] is no good"), "{log}");
    let prompt = env.attempt_file("A", "agent", 2, "prompt.md");
    assert!(prompt.contains("[redacted:DEPLOY_TOKEN]"), "the retry was not told what happened: {prompt}");
    let output = env.attempt_file("A", "agent", 1, "output.log");
    assert_eq!(output, "using [redacted:DEPLOY_TOKEN] and [redacted:pattern-1]\n");
    assert!(errors(&env, &format!("{RUN}/errors.jsonl")).len() > 3);
}

#[test]
fn secrets_are_masked_in_user_messages_too() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\napproval = [\"plan\"]\ncommand = 'true'\n");
    env.execute(&[]).exits(3);
    with_secrets(&env, &["reject", RUN, "A", "-m", &format!("not with {}", CANARIES[0])]).exits(0);
    assert_no_canary(&env);
    assert_eq!(env.events("gate_answered")[0]["message"], "not with [redacted:DEPLOY_TOKEN]");
}

#[test]
fn errors_lost_in_a_crash_are_logged_at_resume() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo no such table; exit 5'\n");
    env.execute(&[]).exits(1);
    let below = format!("{RUN}/errors.jsonl");
    let all = errors(&env, &below);
    let lines = env.read(&format!("repo/{STATE}/{below}"));
    let first = lines.lines().next().expect("an error");
    env.write(&format!("repo/{STATE}/{below}"), format!("{first}\n{{\"timestamp\":\"20"));
    env.resume(&[]).exits(1);
    let text = env.read(&format!("repo/{STATE}/{below}"));
    let now: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for error in &all {
        assert_eq!(now.iter().filter(|other| *other == error).count(), 1, "{error}\n{text}");
    }
    assert_eq!(now.len(), all.len() * 2, "the second life failed like the first: {text}");
}

const CALL: [&str; 13] = [
    "log-error",
    "--phase",
    "P1",
    "--plan",
    "10-01",
    "--task",
    "1.3",
    "--specialist",
    "engineer",
    "--error-type",
    "timeout",
    "--details",
    "no answer\nin 5 minutes",
];

#[test]
fn an_error_of_no_run_is_recorded_beside_the_run_logs() {
    let env = TestEnv::new();
    env.lanewright(&CALL).exits(0);
    let shown = env.lanewright(&[&CALL[..], &["--lane", "SL-1", "--format", "json"]].concat()).exits(0);
    let told: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let found = errors(&env, "errors.jsonl");
    assert_eq!((found.len(), &found[1]), (2, &told["entry"]));
    assert_eq!(found[0]["lane"], Value::Null);
    for (field, value) in [
        ("phase", "P1"),
        ("plan", "10-01"),
        ("task", "1.3"),
        ("specialist", "engineer"),
        ("error_type", "timeout"),
        ("details", "no answer\nin 5 minutes"),
    ] {
        assert_eq!(found[1][field], value);
    }
    assert_eq!(env.git(&["status", "--porcelain"]), "", "the file shows in git status");
    env.plan("[[lane]]\nid = \"A\"\nallow_empty = true\ncommand = 'true'\n");
    env.execute(&[]).exits(0);
    env.execute(&["--run-id", "errors"]).exits(2).says(&["errors"]);
    env.lanewright(&["status", "errors"]).exits(8).says(&["there is no run `errors` here"]);
    env.lanewright(&["report", "errors"]).exits(2).says(&["a run cannot be called `errors`"]);
}

#[test]
fn an_error_of_a_run_is_recorded_with_the_runs_own() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nallow_empty = true\ncommand = 'true'\n");
    env.execute(&[]).exits(0);
    let details = format!("curl -H {}", CANARIES[0]);
    let call = [&CALL[..12], &[&details, "--run", RUN]].concat();
    with_secrets(&env, &call).exits(0);
    let found = errors(&env, &format!("{RUN}/errors.jsonl"));
    assert_eq!((found.len(), &found[0]["details"]), (1, &Value::from("curl -H [redacted:DEPLOY_TOKEN]")));
}

#[test]
fn invalid_error_entry_is_refused_and_not_written() {
    let env = TestEnv::new();
    env.lanewright(&[&CALL[..], &["--run", "never-was"]].concat()).exits(8).says(&["never-was"]);
    let mut unknown = CALL;
    unknown[10] = "boredom";
    env.lanewright(&unknown).exits(2).says(&["timeout", "crash", "validation", "merge", "network", "state"]);
    env.lanewright(&CALL[..11]).exits(2).says(&["--details"]);
    assert!(!env.path(&format!("repo/{STATE}/errors.jsonl")).exists());
}
