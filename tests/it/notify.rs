//! Notifications of people who do not watch a run.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{RUN, TestEnv, wait_until};

const APPROVAL: &str = "[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ncommand = \"echo a > a.txt\"\n";
const FAILS: &str = "[[lane]]\nid = \"B\"\nretries = 0\ncommand = \"echo secret-of-mine; exit 3\"\n";

fn settings(env: &TestEnv, text: &str) {
    env.write("repo/lanewright.toml", text);
    env.commit("settings");
}

/// The notifications that the program `tell` got, by event and lane.
fn told(env: &TestEnv, count: usize) -> Vec<Value> {
    let place = env.path("scratch/told");
    let read = || std::fs::read_to_string(&place).unwrap_or_default();
    wait_until("the notifications", || read().lines().count() >= count);
    read().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

const TELL: &str = "#!/bin/sh\ntext=$(cat)\nprintf '%s\\n' \"$text\" >> \"$SCRATCH/told\"\n";

#[test]
fn notify_command_gets_questions_failures_and_the_end() {
    let env = TestEnv::new();
    env.program("tell", TELL);
    settings(&env, "notify_command = [\"tell\"]\n");
    env.plan(&format!("{APPROVAL}{FAILS}"));
    env.execute(&[]).exits(1);
    let told = told(&env, 3);
    assert_eq!(told.len(), 3, "{told:?}");
    let about = |event: &str, lane: Value| {
        let found = told.iter().find(|it| it["event"] == event && it["lane"] == lane);
        found.unwrap_or_else(|| panic!("no {event} of {lane}: {told:?}"))
    };
    let question = about("needs_you", "A".into());
    assert_eq!((&question["run_id"], &question["title"]), (&RUN.into(), &"P1 A needs you".into()));
    assert!(question["commands"].to_string().contains(&format!("approve {RUN} A")), "{question}");
    let failed = about("failed", "B".into());
    assert!(failed["message"].as_str().unwrap().contains("exited with code 3"), "{failed}");
    assert_eq!(about("failed", Value::Null)["title"], "P1 failed");
}

#[test]
fn a_question_is_sent_once_also_when_the_run_is_resumed() {
    let env = TestEnv::new();
    env.program("tell", TELL);
    settings(&env, "notify_command = [\"tell\"]\n");
    env.plan(APPROVAL);
    env.execute(&[]).exits(3);
    told(&env, 2);
    env.resume(&[]).exits(3);
    env.resume(&[]).exits(3);
    env.lanewright(&["approve", RUN, "A"]).exits(0);
    env.resume(&[]).exits(0);
    let told = told(&env, 3);
    assert_eq!(told.len(), 3, "nothing is new at the first two resumes: {told:?}");
    let events: Vec<&str> = told.iter().map(|it| it["event"].as_str().unwrap()).collect();
    assert_eq!(events.iter().filter(|event| **event == "done").count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|it| it["lane"] == "A").count(), 1, "{told:?}");
}

#[test]
fn webhook_gets_json_and_its_url_stays_secret() {
    let env = TestEnv::new();
    env.program("curl", "#!/bin/sh\necho \"$*\" >> \"$SCRATCH/arguments\"\n{ cat; } >> \"$SCRATCH/request\"\nexit 7\n");
    settings(&env, "notify_webhook = \"$HOOK\"\n");
    env.plan("[[lane]]\nid = \"A\"\nname = \"the \\\"best\\\"\"\ncommand = \"echo a > a.txt\"\n");
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().unwrap(), "--run-id", RUN];
    let address = "https://hooks.example.org/T0KEN";
    env.lanewright_with(&arguments, |command| command.env("HOOK", address)).exits(0);
    let log = env.path(&format!("repo/.claude/ai-dev-kit/run-logs/{RUN}/notify.log"));
    wait_until("the failure", || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("exit code 7")));
    let request = env.scratch("request");
    assert!(request.starts_with(&format!("url = \"{address}\"\n")), "{request}");
    let data = request.lines().find_map(|line| line.strip_prefix("data-raw = ")).unwrap();
    let sent: Value = serde_json::from_str(&serde_json::from_str::<String>(data).unwrap()).unwrap();
    assert_eq!((&sent["event"], &sent["title"]), (&"done".into(), &"P1 is done".into()));
    assert!(!env.scratch("arguments").contains("T0KEN"));
    for file in crate::support::all_files(&env.path("repo")) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("T0KEN"), "{}", file.display());
    }
}

#[test]
fn a_target_that_never_answers_delays_no_run() {
    let env = TestEnv::new();
    env.program("stuck", "#!/bin/sh\ntouch \"$SCRATCH/stuck\"\nexec wait-for never\n");
    settings(&env, "notify_command = [\"stuck\"]\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = \"echo a > a.txt\"\n");
    env.execute(&[]).exits(0);
    wait_until("the target", || env.path("scratch/stuck").exists());
}

#[test]
fn targets_can_be_tried_and_a_wrong_one_is_an_error() {
    let env = TestEnv::new();
    env.lanewright(&["notify"]).exits(2).says(&["no target for notifications"]);
    settings(&env, "notify_command = [\"no-such-program\"]\n");
    env.lanewright(&["notify"]).exits(1).says(&["cannot run `no-such-program`"]);
    env.program("tell", TELL);
    settings(&env, "notify_command = [\"tell\"]\n");
    env.lanewright(&["notify"]).exits(0);
    assert_eq!(told(&env, 1)[0]["title"], "Lanewright");
    settings(&env, "notify_webhook = \"two words\"\n");
    env.lanewright(&["notify"]).exits(2).says(&["lanewright.toml:1:18", "an address"]);
}

#[test]
fn only_2xx_is_an_answer_to_a_webhook() {
    let env = TestEnv::new();
    env.program("curl", "#!/bin/sh\nprintf 302\n");
    settings(&env, "notify_webhook = \"https://hooks.example.org/T0KEN\"\n");
    env.lanewright(&["notify"]).exits(1).says(&["answered with status 302"]);
    env.program("curl", "#!/bin/sh\nprintf 204\n");
    env.lanewright(&["notify"]).exits(0);
    for format in ["text", "json"] {
        let shown = env.lanewright(&["status", "--settings", "--format", format]).exits(0).stdout;
        assert!(shown.contains("https://hooks.example.org/…") && !shown.contains("T0KEN"), "{shown}");
    }
}

#[test]
fn relative_notify_command_starts_at_the_root() {
    let env = TestEnv::new();
    env.write("repo/deep/x", "");
    env.write("repo/tools/tell", "#!/bin/sh\npwd >&2\nkill -9 $$\n");
    env.write("repo/lanewright.toml", "notify_command = [\"./tools/tell\"]\n");
    std::fs::set_permissions(env.path("repo/tools/tell"), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let root = env.path("repo");
    let ended = env.lanewright_with(&["notify"], |command| command.current_dir(root.join("deep")));
    ended.exits(1).says(&["killed by signal 9", root.to_str().unwrap()]);
}

#[test]
fn long_command_output_is_cut_in_the_log() {
    let env = TestEnv::new();
    env.program("loud", "#!/bin/sh\nhead -c 100000 /dev/zero | tr '\\0' x >&2\necho the end >&2\nexit 1\n");
    settings(&env, "notify_command = [\"loud\"]\n");
    let log = env.path(&format!("repo/.claude/ai-dev-kit/run-logs/{RUN}/notify.log"));
    let fill = format!("yes an old line | head -n 10000 > {}; echo a > a.txt", log.display());
    env.plan(&format!("[[lane]]\nid = \"A\"\ncommand = \"{fill}\"\n"));
    env.execute(&[]).exits(0);
    let text = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_until("the entry", || text().trim_end().ends_with("the end"));
    assert!(text().starts_with("an old line\n") && text().len() < 48 << 10, "{} bytes", text().len());
    let entry = text();
    assert!(entry.contains(" P1 is done: notify_command: `loud` ended with exit code 1: …xxx"), "{entry}");
}
