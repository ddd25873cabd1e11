//! Runs in a sandbox, whichever this machine builds: what comes out is as without, and nothing outside is changed.

use lanewright_programs::wall::{self, landlock_version};

use crate::support::{Ended, TestEnv};

/// An agent and a gate that use all that they may, and try what they may not. `MAIN` stands for the checkout.
const PLAN: &str = r#"
[[lane]]
id = "A"
tests = ["test -e b.txt && echo x >$TMPDIR/x && ! touch MAIN/by-gate"]
command = '''
set -e
echo a > a.txt && git add a.txt && git commit --quiet -m "of the agent"
echo b > b.txt
echo report > "$LANEWRIGHT_REPORT_FILE"
echo '{"tool": "Edit"}' >> "$LANEWRIGHT_TOOL_CALLS_FILE"
echo '{"status": "success"}' > "$LANEWRIGHT_RESULT_FILE.new" && mv "$LANEWRIGHT_RESULT_FILE.new" "$LANEWRIGHT_RESULT_FILE"
echo '{"status": "COMPLETE"}' > "$LANEWRIGHT_STATUS_FILE.new" && mv "$LANEWRIGHT_STATUS_FILE.new" "$LANEWRIGHT_STATUS_FILE"
attempt=$(dirname "$LANEWRIGHT_PROMPT_FILE")
for place in MAIN/by-agent MAIN/.git/hooks/pre-commit "$attempt/exit.json" "$attempt/spec.json" "$HOME/.profile"; do
  if (echo x >> "$place") 2>/dev/null; then echo "$place" >> escaped.txt; fi
done
git config alias.x y
true
'''
"#;

fn has_wall() -> bool {
    wall::available().builder.is_some()
}

fn prepared(settings: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", settings);
    env.commit("settings");
    env.plan(&PLAN.replace("MAIN", env.path("repo").to_str().expect("UTF-8")));
    env
}

fn assert_contained(env: &TestEnv, ended: Ended) {
    ended.exits(0);
    assert!(!env.holds("main", "escaped.txt"), "{}", env.file_at("main", "escaped.txt"));
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
    assert!(env.git(&["log", "--format=%s", "main"]).contains("of the agent"));
    assert!(!env.try_git(&["config", "--get", "alias.x"]), "a setting of the agent's is the repository's");
    for name in ["by-agent", "by-gate", ".git/hooks/pre-commit"] {
        assert!(!env.path("repo").join(name).exists(), "{name}");
    }
    assert_eq!(env.attempt_file("A", "agent", 1, "exchange/report.md"), "report\n");
    assert_eq!(env.events("job_exited").iter().filter(|event| event["report"]["status"] == "COMPLETE").count(), 1);
}

#[test]
fn agents_and_gates_in_a_sandbox_change_nothing_outside() {
    if has_wall() {
        let env = prepared("sandbox = 'on'\n");
        let ended = env.execute(&[]);
        assert_contained(&env, ended);
    }
}

#[test]
fn without_bubblewrap_landlock_is_used_and_named() {
    if landlock_version().is_none_or(|version| version < 3) {
        return;
    }
    let env = prepared("sandbox = 'on'\n");
    env.program("bwrap", "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n");
    let ended = env.execute(&[]);
    let ended =
        ended.says(&["jobs run behind Landlock, which hides nothing that they read: bubblewrap builds no wall"]);
    assert_contained(&env, ended);
}

#[test]
fn places_that_jobs_may_write_are_absolute() {
    let env = prepared("sandbox_write = ['cache']\n");
    env.execute(&[]).exits(2).says(&["`cache` is relative; write an absolute path, or `~/…`", "sandbox_write"]);
}

#[test]
fn keys_are_hidden_and_given_back_by_a_setting() {
    let Some(lanewright_model::WallBuilder::Bubblewrap(_)) = wall::available().builder else { return };
    let env = TestEnv::new();
    let home = env.path("walled-home");
    env.write("walled-home/.ssh/id_rsa", "secret\n");
    env.plan("[[lane]]\nid = 'A'\ncommand = 'cat ~/.ssh/id_rsa > key.txt; echo x > x.txt'\n");
    let plan = env.path("plan.toml");
    for (run, settings, seen) in [("r1", "", ""), ("r2", "sandbox_deny_read = []\n", "secret")] {
        env.write("repo/lanewright.toml", format!("sandbox = 'on'\n{settings}"));
        let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", run, "--redo"];
        let arguments = &arguments[..if run == "r1" { 4 } else { 5 }];
        env.lanewright_with(arguments, |command| command.env("HOME", &home)).exits(0);
        assert_eq!(env.file_at("main", "key.txt"), seen, "{run}");
    }
}

#[test]
fn the_doctor_tries_the_sandbox() {
    let env = TestEnv::new();
    let said = env.lanewright_in(&["doctor"], &[("LANEWRIGHT_SANDBOX", "auto")]).exits(0).stdout;
    let expected = if has_wall() { "builds one here" } else { "none can be built here" };
    assert!(said.contains("Sandbox (`sandbox = \"auto\"`): ") && said.contains(expected), "{said}");
    let said = env.lanewright_in(&["doctor", "--format", "json"], &[("LANEWRIGHT_SANDBOX", "auto")]).exits(0).json();
    assert_eq!(said["sandbox"]["setting"], "auto");
    assert_eq!(said["sandbox"]["builder"].is_null(), !has_wall());
}
