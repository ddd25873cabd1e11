//! Hooks of the user's repository: where they run, what they refuse, and how that is shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::TestEnv;

const LANE: &str = "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo a > a; echo run >> \"$SCRATCH/paid\"'\n";

fn hook(env: &TestEnv, name: &str, script: &str) {
    let below = format!("repo/.git/hooks/{name}");
    env.write(&below, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(env.path(&below), fs::Permissions::from_mode(0o755)).expect("permissions");
}

/// A repository with a remote, and a program that opens pull requests.
fn with_remote() -> TestEnv {
    let env = TestEnv::new();
    env.git_at("", &["init", "--quiet", "--bare", "origin.git"]);
    env.git(&["remote", "add", "origin", "../origin.git"]);
    env.program("open", "#!/bin/sh\necho https://forge.example/1\n");
    env.write("repo/lanewright.toml", "pull_request_command = [\"open\"]\n");
    env.commit("settings");
    env.git(&["push", "--quiet", "origin", "main"]);
    env.plan(LANE);
    env
}

#[test]
fn pre_push_hook_judges_the_files_of_the_lane() {
    let env = with_remote();
    // A hook gets the variables of a lane where those of this process lead to the checkout.
    env.write("repo/.venv/bin/x", "");
    fs::create_dir_all(env.path("repo/.git/a=b c")).expect("a directory");
    env.git(&["config", "core.hooksPath", env.path("repo/.git/a=b c").to_str().expect("UTF-8")]);
    hook(
        &env,
        "pre-push",
        "echo \"$1 ${LANEWRIGHT_HOOK-none}\" >> \"$SCRATCH/ran\"; [ -e a ] || { echo \"no file a in $PWD\" >&2; exit 1; }",
    );
    fs::rename(env.path("repo/.git/hooks/pre-push"), env.path("repo/.git/a=b c/pre-push")).expect("renamed");
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1", "--merge", "pr"];
    env.lanewright_with(&start, |command| command.env("VIRTUAL_ENV", env.path("repo/.venv"))).exits(0);
    assert_eq!(env.scratch("ran"), "origin none\n");
}

/// As an active `.venv` has it.
#[test]
fn hooks_run_the_programs_of_the_lane() {
    let env = with_remote();
    env.write("repo/.venv/bin/judge", "#!/bin/sh\nexit 0\n");
    env.write("repo/bin/judge", "#!/bin/sh\ngrep -q good state\n");
    env.write("repo/state", "good\n");
    env.write("repo/.git/info/exclude", "/.venv\n");
    // Git itself reaches the remote by a program of the checkout.
    let helper = "while read -r word service; do case $word in capabilities) printf 'connect\\n\\n' ;; \
                  connect) echo; exec \"$service\" \"$2\" ;; esac; done";
    env.write("repo/.venv/bin/git-remote-mine", format!("#!/bin/sh\n{helper}\n"));
    env.git(&["remote", "set-url", "origin", &format!("mine::{}", env.path("origin.git").display())]);
    for program in ["repo/.venv/bin/judge", "repo/bin/judge", "repo/.venv/bin/git-remote-mine"] {
        fs::set_permissions(env.path(program), fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    env.commit("a judge");
    for name in ["post-checkout", "pre-push", "reference-transaction"] {
        hook(&env, name, &format!("echo \"$VIRTUAL_ENV:$PATH\" >> \"$SCRATCH/{name}\""));
    }
    hook(
        &env,
        "pre-push",
        "echo \"$VIRTUAL_ENV:$PATH\" >> \"$SCRATCH/pre-push\"; judge || { echo bad state; exit 1; }",
    );
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo bad > state'\n");
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1", "--merge", "pr"];
    let own = |below: &str| env.path(below).display().to_string();
    let path = std::env::var("PATH").expect("a PATH");
    let path = format!("{}:{}:{}:{path}", own("repo/.venv/bin"), own("repo/bin"), own("bin"));
    let ended = env
        .lanewright_with(&arguments, |command| command.env("PATH", &path).env("VIRTUAL_ENV", env.path("repo/.venv")))
        .exits(3);
    ended.says(&["A blocked", "refuses the push: bad state"]);
    assert_eq!(env.git_at("origin.git", &["branch", "--list", "lane/*"]), "");
    for name in ["post-checkout", "pre-push", "reference-transaction"] {
        let seen = env.scratch(name);
        assert!(seen.starts_with(':') && !seen.contains(&own("repo/")), "{name}: {seen}");
    }
}

#[test]
fn refusal_by_pre_push_hook_is_named() {
    let env = with_remote();
    // What a hook prints may look like an outage of the remote.
    hook(&env, "pre-push", "echo 'lint: 2 faults'; echo 'Connection timed out' >&2; exit 1");
    let ended = env.execute(&["--merge", "pr"]).exits(3);
    let ended = ended.says(&["A blocked", "pre-push hook", "refuses the push: lint: 2 faults, Connection timed out"]);
    assert!(!ended.stderr.contains("can be reached"), "{}", ended.stderr);
    hook(&env, "pre-push", "exit 0");
    env.resume(&[]).exits(0);
    assert_eq!(env.scratch("paid"), "run\n");
}

#[test]
fn directory_in_place_of_pre_push_hook_is_named() {
    let env = with_remote();
    fs::create_dir_all(env.path("repo/.git/hooks/pre-push")).expect("a directory");
    env.execute(&["--merge", "pr"]).exits(3).says(&["A blocked", "hooks/pre-push", "is a directory"]);
}

#[test]
fn publish_names_the_hook_that_refuses() {
    let env = with_remote();
    env.execute(&[]).exits(0);
    hook(&env, "pre-push", "echo 'lint: 2 faults' >&2; exit 1");
    let ended = env.lanewright(&["publish", "r1"]);
    assert_ne!(ended.code, 0, "{ended:?}");
    let ended = ended.says(&["pre-push hook", "lint: 2 faults"]);
    assert!(!ended.stderr.contains("can be reached"), "{}", ended.stderr);
}

#[test]
fn hooks_of_commits_are_named_at_the_start() {
    let env = TestEnv::new();
    hook(&env, "pre-commit", "exit 0");
    hook(&env, "commit-msg", "exit 1");
    fs::create_dir_all(env.path("repo/.git/hooks/prepare-commit-msg")).expect("a directory");
    env.plan(LANE);
    let ended = env.execute(&[]).exits(0).says(&["pre-commit, commit-msg: not run for commits that Lanewright makes"]);
    let (named, begun) = (ended.stderr.find("commit-msg: not run"), ended.stderr.find("attempt 1 started"));
    assert!(named < begun, "{}", ended.stderr);
}

#[test]
fn reference_transaction_hook_may_refuse_a_branch() {
    let env = TestEnv::new();
    let script = "[ \"$1\" = prepared ] || exit 0\nif grep -q refs/heads/lane/; then echo 'no branches called lane' >&2; exit 1; fi";
    hook(&env, "reference-transaction", script);
    env.plan(LANE);
    let said = "refuses the branch lane/P1/A: no branches called lane";
    env.execute(&[]).exits(3).says(&["A blocked", "reference-transaction hook", said]);
    assert!(!env.path("scratch/paid").exists(), "an agent was started");
    hook(&env, "reference-transaction", "exit 0");
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a"));
}

#[test]
fn hook_that_hangs_is_named_and_ended() {
    let env = TestEnv::new();
    hook(&env, "post-checkout", "exec sleep 1000");
    env.plan(&format!("{LANE}timeout = \"4s\"\n"));
    let ended = env.execute(&[]).exits(1);
    ended.says(&["A: waits for post-checkout, ", "hooks/post-checkout took longer than 4s"]);
}

#[test]
fn push_hook_that_hangs_is_named_and_ended() {
    let env = with_remote();
    hook(&env, "pre-push", "sleep 1000; exit 0");
    env.plan(&format!("{LANE}timeout = \"4s\"\n"));
    let ended = env.execute(&["--merge", "pr"]).exits(3);
    ended.says(&[
        "A: waits for pre-push, ",
        "A blocked",
        "the pre-push hook",
        "took longer than 4s, as long as a gate may; the push was ended",
    ]);
    assert_eq!(env.git_at("origin.git", &["branch", "--list", "lane/*"]), "");
}
