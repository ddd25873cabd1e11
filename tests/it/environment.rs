//! What surrounds a run and must not leak into it: variables of git hooks, places, other worktrees.

use rustix::process::Signal;

use crate::support::TestEnv;

#[test]
fn variables_of_a_git_hook_reach_neither_git_nor_agents() {
    let env = TestEnv::with_user_elsewhere();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'env > \"$SCRATCH/env\"; echo x > x.txt; git add --all; git commit --quiet -m x'\n");
    let before = env.users_checkout();
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1", "--base", "main"];
    let git = env.path("repo/.git");
    env.lanewright_with(&arguments, |command| {
        command
            .env("GIT_DIR", &git)
            .env("GIT_INDEX_FILE", git.join("index"))
            .env("GIT_WORK_TREE", env.path("repo"))
            .env("GIT_PREFIX", "")
            .env("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
            .env("GIT_AUTHOR_NAME", "Hooked")
    })
    .exits(0);
    assert_eq!(env.users_checkout(), before);
    let seen = env.scratch("env");
    for name in ["GIT_DIR=", "GIT_INDEX_FILE=", "GIT_WORK_TREE=", "GIT_PREFIX=", "GIT_AUTHOR_DATE="] {
        assert!(!seen.lines().any(|line| line.starts_with(name)), "the agent sees {name}");
    }
    assert!(seen.contains("GIT_AUTHOR_NAME=Hooked"), "the user's own name is gone");
    assert!(env.holds("main", "x.txt"));
    env.assert_nothing_left(&["desk", "main"]);
}

#[test]
fn agent_commits_use_identity_of_user() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt; git add --all; git commit --quiet -m x; echo y > y.txt'\n",
    );
    env.execute(&[]).exits(0);
    assert!(env.git(&["log", "--format=%an", "main"]).lines().all(|name| name == "Tester"));
}

#[test]
fn run_starts_from_a_subdirectory_or_other_worktree() {
    let env = TestEnv::new();
    env.write("repo/deep/down/file.txt", "x\n");
    env.commit("deep");
    env.git(&["worktree", "add", "--quiet", "../linked", "-b", "side"]);
    let plan = "[[lane]]\nid = \"L\"\ncommand = 'echo \"$LANEWRIGHT_RUN_ID\" > $LANEWRIGHT_RUN_ID.txt'\n";
    env.plan(plan);
    for (place, run, base) in [("repo/deep/down", "d1", "main"), ("linked", "d2", "side")] {
        let place = env.path(place);
        let arguments = ["execute-phase", "../plan.toml", "--run-id", run];
        let deep = ["execute-phase", "../../../plan.toml", "--run-id", run];
        let arguments = if run == "d1" { deep } else { arguments };
        env.lanewright_with(&arguments, |command| command.current_dir(&place)).exits(0);
        assert!(env.holds(base, &format!("{run}.txt")), "{run}");
        assert!(
            env.path(&format!("repo/.claude/ai-dev-kit/run-logs/{run}.jsonl")).exists(),
            "the main worktree has the log"
        );
    }
    assert!(env.path("linked/d2.txt").exists(), "the checkout of the base branch was brought along");
}

#[test]
fn run_succeeds_in_repository_path_with_quotes() {
    let env = TestEnv::new();
    std::fs::rename(env.path("repo"), env.path("it's a répo")).expect("a rename");
    env.plan("[[lane]]\nid = \"L\"\nretries = 1\ncommand = 'echo x > x.txt; [ $LANEWRIGHT_ATTEMPT = 2 ]'\n");
    let place = env.path("it's a répo");
    env.lanewright_with(&["execute-phase", "../plan.toml"], |command| command.current_dir(&place)).exits(0);
    assert!(place.join("x.txt").exists());
}

#[test]
fn prompts_and_names_are_never_expanded_by_a_shell() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nname = \"$(touch $SCRATCH/a) `touch $SCRATCH/b`\"\nprompt = \"$(touch $SCRATCH/c); touch $SCRATCH/d\"\n\
         command = [\"sh\", \"-c\", \"echo x > x.txt\", \"$(touch $SCRATCH/e)\"]\n",
    );
    env.execute(&[]).exits(0);
    assert_eq!(std::fs::read_dir(env.path("scratch")).expect("a listing").count(), 0);
}

#[test]
fn unsupported_git_version_is_refused_at_start() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'true'\n");
    let path = std::env::var_os("PATH").expect("a PATH");
    let git = std::env::split_paths(&path).map(|place| place.join("git")).find(|git| git.is_file()).expect("a git");
    let script = "#!/bin/sh\nfor word; do [ \"$word\" = version ] && { echo git version 2.38.1; exit; }; done\n";
    env.program("git", &format!("{script}exec '{}' \"$@\"\n", git.display()));
    let plan = env.path("plan.toml");
    let plan = plan.to_str().expect("UTF-8");
    for words in
        [&["execute-phase", plan] as &[&str], &["execute-lane", plan, "L"], &["resume", "r1"], &["rollback", "r1"]]
    {
        env.lanewright(words).exits(2).says(&["git 2.38.1", "2.39"]).hints("install a newer git");
    }
    assert!(!env.path("repo/.claude").exists() && !env.path("repo.lanes").exists());
}

/// Two lanes in a repository with a post-checkout hook.
fn with_hook(script: &str, commit: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/.git/hooks/post-checkout", format!("#!/bin/sh\n{script}\n"));
    let hook = env.path("repo/.git/hooks/post-checkout");
    std::fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permissions");
    let lane = |id: &str| {
        format!(
            "[[lane]]\nid = \"{id}\"\nretries = 0\nowns = [\"{id}.txt\"]\ncommand = 'echo x > {id}.txt; {commit}'\n"
        )
    };
    env.plan(&(lane("A") + &lane("B")));
    env
}

#[test]
fn failing_post_checkout_hook_is_only_noted_once() {
    let env = with_hook("echo no such tool; exit 3", "true");
    env.execute(&[]).exits(0);
    let told: Vec<String> = env.events("noted").iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].contains("code 3") && told[0].contains("no such tool"), "{told:?}");
    assert_eq!(env.files("main"), [".gitignore", "A.txt", "B.txt", "README.md"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn files_written_by_a_hook_are_no_agent_changes() {
    for commit in ["true", "git add --all; git commit --quiet -m mine"] {
        let env =
            with_hook("echo built > stamp.txt; mkdir -p made; echo y > made/y.txt; echo more >> README.md", commit);
        env.execute(&[]).exits(0);
        assert!(env.holds("main", "A.txt") && env.holds("main", "B.txt"));
        assert_eq!(env.holds("main", "stamp.txt"), commit != "true", "it is the agent's to commit, not ours");
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn agent_edit_of_a_hook_file_is_its_change() {
    let env = with_hook("echo built > stamp.txt", "echo edited > stamp.txt");
    env.execute(&[]).exits(1).says(&["stamp.txt"]);
}

#[test]
fn stash_of_an_agent_is_not_in_the_users_list_and_saved() {
    let env = TestEnv::new();
    env.write("repo/README.md", "mine\n");
    env.git(&["stash"]);
    let mine = env.git(&["rev-parse", "stash@{0}"]);
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 1\ncommand = 'echo $(git stash list | wc -l) >> \"$SCRATCH/stashes\"; \
         [ $LANEWRIGHT_ATTEMPT = 2 ] && exec git stash pop; echo half > README.md; git stash --quiet; exit 1'\n",
    );
    env.execute(&[]).exits(0).says(&["put work into `git stash`"]);
    assert_eq!(env.scratch("stashes"), "0\n1\n", "its own stash, also in the next attempt");
    assert_eq!(env.git(&["stash", "list", "--format=%H"]), mine);
    assert_eq!(env.file_at("main", "README.md"), "half");
    assert_eq!(env.refs(), ["refs/heads/main", "refs/stash"]);
}

#[test]
fn stash_of_an_agent_in_a_shared_git_directory_is_saved_and_the_users_kept() {
    for deed in [
        "git stash --quiet",
        "git stash push --quiet -m later",
        "git commit --quiet --allow-empty -m own; git switch --quiet --detach; git stash --quiet",
    ] {
        let env = TestEnv::new();
        env.write("repo/lanewright.toml", "git_directory = 'shared'\n");
        env.write("repo/README.md", "mine\n");
        env.git(&["stash"]);
        let mine = env.git(&["rev-parse", "stash@{0}"]);
        env.plan(&format!(
            "[[lane]]\nid = \"L\"\nretries = 1\ncommand = 'if [ $LANEWRIGHT_ATTEMPT = 1 ]; then echo half > README.md; {deed}; exit 1; fi; echo x > x.txt'\n"
        ));
        env.execute(&[]).exits(0);
        let stashes: Vec<String> = env.git(&["stash", "list", "--format=%H"]).lines().map(str::to_owned).collect();
        assert!(stashes.len() == 2 && stashes[1] == mine, "{deed}: {stashes:?}");
        let kept = |stash: &str| env.events("snapshot_taken").iter().filter(|taken| taken["commit"] == stash).count();
        assert_eq!((kept(&stashes[0]), kept(&mine)), (1, 0), "{deed}");
        let told = env.events("noted").iter().filter(|note| note.to_string().contains("git stash")).count();
        assert_eq!(told, 1, "{deed}");
        assert_eq!(env.refs(), ["refs/heads/main", "refs/stash"], "{deed}");
    }
}

#[test]
fn stash_of_failed_agent_is_no_external_change() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\n\
         command = '[ -e \"$SCRATCH/help\" ] && exec touch x.txt; echo half > half.txt; git add -A; git stash --quiet; exit 1'\n",
    );
    env.execute(&[]).exits(1);
    env.write("scratch/help", "");
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "x.txt"));
}

/// What pushes, what lets packages in, a model's key, and what Claude Code sets for its children.
const SET: [(&str, &str); 8] = [
    ("GITHUB_TOKEN", "canary-push"),
    ("LANEWRIGHT_TOKEN", "canary-own"),
    ("CI_JOB_TOKEN", "canary-job"),
    ("NPM_TOKEN", "canary-npm"),
    ("ANTHROPIC_AUTH_TOKEN", "canary-model"),
    ("CLAUDECODE", "1"),
    ("CLAUDE_CODE_SESSION_ID", "canary-session"),
    ("CLAUDE_CODE_MAX_RETRIES", "2"),
];

/// Runs a lane whose set-up, agent and tests each write their environment, and a hook of the agent's program.
fn environments(config: &str, lane: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", config);
    env.commit("settings");
    env.plan(&format!(
        "[gates]\nedit = 'env > \"$SCRATCH/hook\"'\n[[lane]]\nid = \"A\"\nsetup = ['env > \"$SCRATCH/setup\"']\n\
         tests = ['env > \"$SCRATCH/tests\"']\ncommand = 'env > \"$SCRATCH/agent\"; echo a > a.txt; \
         echo {{\\\"tool_name\\\":\\\"Write\\\"}} | \"$LANEWRIGHT\" hook post-tool-use'\n{lane}"
    ));
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1"];
    env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT", env!("CARGO_BIN_EXE_lanewright")).envs(SET))
        .exits(0);
    env
}

/// The values of [`SET`] that a job saw.
fn seen(env: &TestEnv, job: &str) -> Vec<&'static str> {
    let seen = env.scratch(job);
    let all = SET.iter().filter(|(name, value)| seen.lines().any(|line| line == format!("{name}={value}")));
    all.map(|(name, _)| *name).collect()
}

#[test]
fn agents_and_their_hooks_get_no_token_that_pushes() {
    let env = environments("", "");
    for job in ["agent", "hook"] {
        assert_eq!(seen(&env, job), ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES"], "{job}");
    }
    assert_eq!(seen(&env, "tests"), ["NPM_TOKEN", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES"]);
    let setup = ["GITHUB_TOKEN", "LANEWRIGHT_TOKEN", "CI_JOB_TOKEN", "NPM_TOKEN", "ANTHROPIC_AUTH_TOKEN"];
    assert_eq!(seen(&env, "setup"), [&setup[..], &["CLAUDE_CODE_MAX_RETRIES"]].concat());
    let spec = env.attempt_file("A", "agent", 1, "spec.json");
    assert!(spec.contains("GITHUB_TOKEN") && !spec.contains("canary"), "{spec}");
}

#[test]
fn pass_env_and_the_plan_let_tokens_through() {
    let env = environments("pass_env = ['GITHUB_*']\n", "env = { LANEWRIGHT_TOKEN = 'canary-own' }\n");
    let agent = ["GITHUB_TOKEN", "LANEWRIGHT_TOKEN", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES"];
    assert_eq!(seen(&env, "agent"), agent);
    assert!(seen(&env, "tests").starts_with(&agent[..2]), "{:?}", seen(&env, "tests"));
}

#[test]
fn names_in_pass_env_are_checked() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "pass_env = ['GH_TOKEN=x']\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(2).says(&["lanewright.toml", "`GH_TOKEN=x` is not the name of a variable"]);
}

#[test]
fn withheld_values_are_still_redacted() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo \"it found canary-push in a file\"; echo a > a.txt'\n");
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1"];
    env.lanewright_with(&arguments, |command| command.env("GITHUB_TOKEN", "canary-push")).exits(0);
    let output = env.attempt_file("A", "agent", 1, "output.log");
    assert!(output.contains("[redacted:GITHUB_TOKEN]") && !output.contains("canary"), "{output}");
}

#[test]
fn doctor_lists_what_agents_could_push_with() {
    let env = TestEnv::new();
    assert_eq!(env.lanewright(&["doctor"]).exits(0).stdout, "Nothing is wrong.\n");
    env.git(&["config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic canary-header"]);
    env.git(&["config", "remote.origin.url", "https://me:canary-password@example.invalid/r.git"]);
    env.git(&["config", "--global", "credential.helper", "store"]);
    env.write("home/.netrc", "machine example.invalid login me password canary-netrc\n");
    env.write("repo/lanewright.toml", "pass_env = ['GH_TOKEN']\n");
    let doctor = |arguments: &[&str]| {
        env.lanewright_with(arguments, |command| {
            command.env("GITHUB_TOKEN", "canary-push").env("GH_TOKEN", "canary-gh")
        })
        .exits(0)
    };
    let said = doctor(&["doctor"]).stdout;
    assert!(said.starts_with("Nothing is wrong.\nAgents run as you, and could push with:\n  GH_TOKEN: "), "{said}");
    for part in [
        "repo/.git/config: a header with a credential, http.https://github.com/.extraheader; ",
        "`persist-credentials: false`",
        "an address with a password, remote.origin.url; ",
        "gitconfig: the credential helper `store` answers every program of this user; ",
        "home/.netrc: passwords for hosts",
        "Variables that agents do not get (`pass_env` passes them): GITHUB_TOKEN\n",
    ] {
        assert!(said.contains(part), "it does not say {part}: {said}");
    }
    let json = doctor(&["doctor", "--format", "json"]).json();
    assert_eq!(
        (&json["clean"], &json["credentials"]["withheld"]),
        (&true.into(), &serde_json::json!(["GITHUB_TOKEN"]))
    );
    assert_eq!(json["credentials"]["readable"].as_array().map(Vec::len), Some(5), "{json}");
    assert!(!said.contains("canary") && !json.to_string().contains("canary"), "{said}{json}");
}

/// As direnv, `npm exec` or an active `.venv` have it.
#[test]
fn programs_of_the_checkout_do_not_judge_a_lane() {
    let env = TestEnv::new();
    env.write("repo/bin/judge", "#!/bin/sh\nexit 0\n");
    env.write("repo/tools/only-here", "#!/bin/sh\nexit 0\n");
    env.git(&["add", "bin"]);
    env.git(&["update-index", "--chmod=+x", "bin/judge"]);
    env.write("repo/.git/info/exclude", "/tools\n");
    env.commit("a judge");
    for program in ["repo/bin/judge", "repo/tools/only-here"] {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(env.path(program), all).expect("a program");
    }
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'printf \"#!/bin/sh\\nexit 1\\n\" > bin/judge'\ntests = ['judge']\n\
         [[lane]]\nid = \"B\"\ncommand = 'echo b > b.txt'\ntests = ['! command -v only-here', 'env > \"$SCRATCH/env\"']\n",
    );
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    let path = std::env::var("PATH").expect("a PATH");
    let own = |below: &str| env.path(below).display().to_string();
    let path = format!("{}:{}:{}:{path}", own("repo/tools"), own("repo/bin"), own("bin"));
    let ended = env
        .lanewright_with(&arguments, |command| command.env("PATH", &path).env("VIRTUAL_ENV", env.path("repo/.venv")))
        .exits(3);
    assert!(ended.stderr.contains("PATH, VIRTUAL_ENV lead into "), "{}", ended.stderr);
    assert_eq!(env.file_at("main", "bin/judge"), "#!/bin/sh\nexit 0", "what its own judge refuses was merged");
    assert!(env.holds("main", "b.txt"));
    let seen = env.scratch("env");
    assert!(!seen.contains("VIRTUAL_ENV="), "{seen}");
    let compose = seen.lines().find_map(|line| line.strip_prefix("COMPOSE_PROJECT_NAME=")).expect("a name");
    assert!(compose.starts_with("repo-") && compose.ends_with("-b"), "{compose}");
}

/// As `npm link`, `uv tool install --editable` and a `PYTHONPATH` of the directory above leave it.
#[test]
fn programs_and_packages_that_are_links_to_the_checkout_are_those_of_the_lane() {
    let env = TestEnv::new();
    let program = |place: &str, text: &str| {
        env.write(place, format!("#!/bin/sh\n{text}\n"));
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(env.path(place), all).expect("a program");
    };
    let link = |target: &str, place: &str| {
        std::fs::create_dir_all(env.path(place).parent().expect("a directory")).expect("a directory");
        std::os::unix::fs::symlink(env.path(target), env.path(place)).expect("a link");
    };
    program("repo/bin/judge", "exit 0");
    program("repo/tools/agent", "echo made > made.txt");
    program("tool/bin/edited", "exit 0");
    env.write("tool/pyvenv.cfg", "home = /usr/bin\n");
    env.write(&format!("tool/{SITE}/x.pth"), format!("{}\n", env.path("repo").display()));
    env.write("repo/check", "exit 0\n");
    env.write("repo/.git/info/exclude", "/tools\n/.venv\n");
    env.commit("a judge");
    link("repo/bin/judge", "packages/judge/bin/judge");
    link("packages/judge/bin/judge", "linked/judge");
    link("repo/tools/agent", "linked/agent");
    link("tool/bin/edited", "linked/edited");
    std::fs::create_dir_all(env.path("repo/.venv/bin")).expect("a directory");
    std::os::unix::fs::symlink("/bin/sh", env.path("repo/.venv/bin/python9")).expect("a link");
    env.write("repo/.venv/pyvenv.cfg", "home = /usr/bin\n");
    link("repo/.venv/bin/python9", "linked/python9");
    std::os::unix::fs::symlink("/bin/true", env.path("repo/tools/true")).expect("a link");
    link("repo/tools/true", "linked/of-system");
    program("repo/.git/hooks/post-checkout", "command -v judge >> \"$SCRATCH/hook\"");
    let lane = |id: &str, command: &str, gate: &str| {
        format!("[[lane]]\nid = \"{id}\"\nretries = 0\ncommand = {command}\ntests = ['{gate}']\n")
    };
    env.plan(
        &[
            lane("A", "'printf \"#!/bin/sh\\nexit 1\\n\" > bin/judge'", "judge"),
            lane("B", "'echo exit 1 > check'", "sh \"$PYTHONPATH/repo/check\""),
            lane("C", "'git rm --quiet bin/judge'", "judge"),
            lane("D", "'echo d > d.txt'", "edited"),
            lane("F", "'echo f > f.txt'", "python9 -c true"),
            lane(
                "E",
                "['agent']",
                "judge && of-system && sh \"$PYTHONPATH/repo/check\" && test -e \"$PYTHONPATH/plan.toml\"",
            ),
        ]
        .concat(),
    );
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    let path = format!("{}:{}", env.path("linked").display(), std::env::var("PATH").expect("a PATH"));
    let above = env.path("repo").parent().expect("a directory").to_owned();
    let ended =
        env.lanewright_with(&arguments, |command| command.env("PATH", &path).env("PYTHONPATH", &above)).exits(1);
    let ended =
        ended.says(&["PATH, PYTHONPATH lead into ", "A failed", "B failed", "C blocked", "D blocked", "F blocked"]);
    let runs = |program: &str| format!("linked/{program} runs code of another checkout");
    ended.says(&[&runs("judge"), &runs("edited"), &runs("python9")]);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "bin/judge", "check", "made.txt"]);
    let by_hook = env.scratch("hook");
    assert!(!by_hook.is_empty() && by_hook.lines().all(|program| program.contains("/lanewright.paths/")), "{by_hook}");
    assert_eq!(env.file_at("main", "check"), "exit 0");
}

/// In a worktree the gate would judge the code of the checkout.
#[test]
fn committed_absolute_link_into_the_checkout_blocks() {
    let env = TestEnv::new();
    env.write("repo/src/check", "exit 0\n");
    std::os::unix::fs::symlink(env.path("repo/src"), env.path("repo/lib")).expect("a link");
    env.commit("a link");
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'touch \"$SCRATCH/ran\"; echo exit 1 > src/check'\ntests = ['sh lib/check']\n");
    env.execute(&[]).exits(3).says(&["A blocked", "/lib leads to ", "`ln -sfn src lib`", "roll the lane back"]);
    assert!(!env.path("scratch/ran").exists(), "an agent was started");
    std::fs::remove_file(env.path("repo/lib")).expect("a link");
    std::os::unix::fs::symlink("src", env.path("repo/lib")).expect("a link");
    env.commit("a relative link");
    env.lanewright(&["rollback", "r1", "--lane", "A", "--yes"]).exits(0);
    env.lanewright(&["resume", "r1"]).exits(1).says(&["A failed"]);
    assert_eq!(env.file_at("main", "src/check"), "exit 0");
}

/// As `replace` in a `go.mod`, and in one that git ignores, is copied and named by `GOFLAGS=-modfile`.
#[test]
fn manifests_that_name_the_checkout_block() {
    let env = TestEnv::new();
    let module = |place: &str| format!("module x\n\nreplace priv => {place}\n");
    let absolute = module(&env.path("repo/priv").display().to_string());
    env.write("repo/priv/check", "exit 0\n");
    env.write("repo/go.mod", &absolute);
    env.write("repo/.gitignore", "go.local.mod\n");
    env.write("repo/lanewright.toml", "copy = ['go.local.mod']\n");
    env.commit("a module");
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'touch \"$SCRATCH/ran\"; echo exit 1 > priv/check'\n\
         tests = ['sh $(sed -n \"s/.*=> //p\" go.mod)/check']\n",
    );
    env.execute(&[]).exits(3).says(&["A blocked", "/go.mod leads to ", "a relative path in line 3 of it"]);
    let again = |name: &str| {
        env.lanewright(&["rollback", "r1", "--lane", "A", "--yes"]).exits(0);
        let ended = env.lanewright(&["resume", "r1"]);
        assert_eq!(env.path("scratch/ran").exists(), name.is_empty(), "an agent was started");
        ended
    };
    env.write("repo/go.mod", module("./priv"));
    env.commit("a relative path");
    env.write("repo/go.local.mod", &absolute);
    again("go.local.mod").exits(3).says(&["A blocked", "/go.local.mod leads to "]);
    env.write("repo/go.local.mod", module("./priv"));
    again("").exits(1).says(&["A failed"]);
    assert_eq!(env.file_at("main", "priv/check"), "exit 0");
}

/// A module that expects another one in `priv`, with a check in it that passes.
fn with_module() -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/priv/check", "exit 0\n");
    env.write("repo/go.mod", "module x\n\nreplace priv => ./priv\n");
    env.commit("a module");
    env
}

#[test]
fn manifest_that_an_agent_leads_to_the_checkout_fails_its_attempt() {
    let env = with_module();
    let absolute = env.path("repo/priv").display().to_string();
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nretries = 1\ncommand = '''echo a > a; \
         if [ $LANEWRIGHT_ATTEMPT = 1 ]; then sed -i \"s#[.]/priv#{absolute}#\" go.mod; \
         else grep \"go.mod:3 names {absolute} in another checkout\" $LANEWRIGHT_PROMPT_FILE && \
         sed -i \"s#{absolute}#./priv#\" go.mod; fi'''\ntests = ['touch \"$SCRATCH/judged\"; grep ./priv go.mod']\n"
    ));
    env.execute(&[]).exits(0);
    assert_eq!(env.events("failure_noted").len(), 1);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a", "go.mod", "priv/check"]);
}

/// `npm install DIR` and `cargo add --path` write relative paths; a link leads as far.
#[test]
fn manifests_that_lead_to_the_checkout_in_other_ways_fail_attempts() {
    for change in [
        "sed -i \"s#[.]/priv#$(realpath --relative-to=. $SCRATCH/../repo/priv)#\" go.mod",
        "mv go.mod other.txt; sed -i \"s#[.]/priv#$SCRATCH/../repo/priv#\" other.txt; ln -s other.txt go.mod",
        "ln -s $SCRATCH/../repo/priv p; sed -i \"s#[.]/priv#./p#\" go.mod",
    ] {
        let env = with_module();
        env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 0\ncommand = '''{change}; echo exit 1 > priv/check'''\n"));
        env.execute(&[]).exits(1).says(&["go.mod:3 names ", "write a relative path that stays in the worktree"]);
    }
}

/// The next attempt of an agent that was stopped corrects what it wrote; its worktree is no checkout of the user's.
#[test]
fn manifest_of_a_stopped_agent_does_not_block() {
    let env = with_module();
    let absolute = env.path("repo/priv").display().to_string();
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nretries = 1\ncommand = '''echo a > a; if [ -e $SCRATCH/wrote ]; then \
         sed -i \"s#{absolute}#./priv#\" go.mod; else sed -i \"s#[.]/priv#{absolute}#\" go.mod; touch $SCRATCH/wrote; \
         wait-for never; fi'''\n"
    ));
    let running = env.execute_until("scratch/wrote");
    running.signal(Signal::INT);
    running.wait();
    env.resume(&[]).exits(0);
    assert_eq!(env.git(&["diff", "--name-only", "main^", "main"]), "a");
}

/// What the user has in it is no work of the agent's.
#[test]
fn manifest_of_the_user_that_an_agent_touches_does_not_fail_its_attempt() {
    let env = TestEnv::new();
    let place = env.path("repo/priv").display().to_string();
    let manifest = |version: u32| {
        format!("{{\n\"version\": \"{version}.0.0\",\n\"dependencies\": {{ \"priv\": \"file:{place}\" }}\n}}\n")
    };
    env.write("repo/priv/package.json", "{}\n");
    env.write("repo/web/package.json", manifest(1));
    env.commit("packages");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'sed -i s/1.0.0/2.0.0/ web/package.json'\n");
    env.execute(&[]).exits(0);
    assert_eq!(format!("{}\n", env.file_at("main", "web/package.json")), manifest(2));
}

/// As a workspace of npm has it whose packages are repositories.
#[test]
fn packages_above_the_worktrees_that_lead_to_the_checkout_block() {
    let env = TestEnv::new();
    env.write("repo/.gitignore", "node_modules\n");
    env.write("repo/package.json", "{}\n");
    env.commit("no packages");
    env.write("node_modules/@x/other/package.json", "{}");
    std::os::unix::fs::symlink("../../repo", env.path("node_modules/@x/lib")).expect("a link");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[])
        .exits(3)
        .says(&["node_modules/@x/lib leads to", "mkdir -p node_modules/@x && ln -sfn \"$PWD\" node_modules/@x/lib"]);
    env.write("repo/lanewright.toml", "setup = ['mkdir -p node_modules/@x && ln -sfn \"$PWD\" node_modules/@x/lib']\n");
    env.commit("a link of each worktree");
    env.lanewright(&["resume"]).exits(0);
    assert!(env.holds("main", "a.txt"));
}

const SITE: &str = "lib/python3.12/site-packages";

/// A repository and a Python environment beside it, whose programs run the code in `target`.
fn with_python(target: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/check", "exit 0\n");
    env.write("repo/.gitignore", ".venv\n");
    env.commit("a check");
    env.write("python/pyvenv.cfg", "home = /usr/bin\n");
    let python = format!(
        "#!/bin/sh\nhere=$(dirname \"$0\")/..\nexec sh \"${{PYTHONPATH:-$(cat \"$here/{SITE}/x.pth\")}}/check\"\n"
    );
    env.write("python/bin/python3", python);
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(env.path("python/bin/python3"), all).expect("a program");
    env.write(&format!("python/{SITE}/x.pth"), format!("{}\n", env.path(target).display()));
    env
}

/// Runs or resumes with that environment first in `PATH`, and active or not.
fn run_with_python(env: &TestEnv, arguments: &[&str], active: bool) -> crate::support::Ended {
    let path = std::env::var("PATH").expect("a PATH");
    let path = format!("{}:{path}", env.path("python/bin").display());
    env.lanewright_with(arguments, |command| match active {
        true => command.env("PATH", &path).env("VIRTUAL_ENV", env.path("python")),
        false => command.env("PATH", &path),
    })
}

/// As `pip install -e .` leaves it.
#[test]
fn editable_package_in_an_environment_elsewhere_blocks() {
    for active in [true, false] {
        let env = with_python("repo");
        let lane = "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'touch \"$SCRATCH/ran\"; echo exit 1 > check'\ntests = ['python3']\n";
        env.plan(lane);
        let plan = env.path("plan.toml");
        let plan = plan.to_str().expect("UTF-8");
        let ended = run_with_python(&env, &["execute-phase", plan, "--run-id=r1"], active).exits(3);
        ended.says(&[
            "A blocked",
            "python/lib/python3.12/site-packages/x.pth leads to",
            "python3 -m venv .venv",
            "`deactivate`",
        ]);
        assert!(!env.path("scratch/ran").exists(), "an agent was started");
        let set_up = format!(
            "command -v python3 >> \"$SCRATCH/set-up\"; mkdir -p .venv/bin .venv/{SITE}; cp {0}/bin/python3 .venv/bin; \
             echo home > .venv/pyvenv.cfg; pwd > .venv/{SITE}/x.pth",
            env.path("python").display()
        );
        env.write("repo/lanewright.toml", format!("setup = ['{set_up}']\n"));
        env.commit("an environment of each worktree");
        run_with_python(&env, &["resume", "r1"], active).exits(1).says(&["A failed", "python3"]);
        assert!(env.path("scratch/ran").exists());
        assert_eq!(env.file_at("main", "check"), "exit 0", "the checkout's code was judged");
        let seen = env.scratch("set-up");
        assert!(!seen.contains("python/bin"), "set-up would change the user's environment: {seen}");
        env.plan(&lane.replace("retries", "env = { PYTHONPATH = \".\" }\nretries"));
        env.write("repo/lanewright.toml", "");
        env.commit("no set-up");
        run_with_python(&env, &["execute-phase", plan, "--run-id=r2", "--new-run"], active)
            .exits(1)
            .says(&["A failed"]);
    }
}

/// As pyenv has it: which of its versions runs depends on files and variables.
#[test]
fn editable_package_behind_a_shim_blocks_where_the_shim_runs_it() {
    let env = with_python("repo");
    std::fs::create_dir_all(env.path("pyenv/versions")).expect("a directory");
    std::fs::rename(env.path("python"), env.path("pyenv/versions/3.12.1")).expect("a rename");
    let version = env.path("pyenv/versions/3.12.1").display().to_string();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'touch \"$SCRATCH/ran\"; echo exit 1 > check'\ntests = ['python3']\n");
    let plan = env.path("plan.toml");
    let path = format!("{}:{}", env.path("pyenv/shims").display(), std::env::var("PATH").expect("a PATH"));
    for (prefix, run, code) in [(version.as_str(), "r1", 3), ("/usr", "r2", 1)] {
        let answer = format!("[ \"$1\" = -c ] && {{ echo {prefix}; exit; }}; [ {code} = 1 ] && exit 1");
        env.write("pyenv/shims/python3", format!("#!/bin/sh\n{answer}\nexec {version}/bin/python3 \"$@\"\n"));
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(env.path("pyenv/shims/python3"), all).expect("a program");
        let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", run, "--new-run"];
        env.lanewright_with(&arguments, |command| command.env("PATH", &path)).exits(code);
        assert_eq!(env.path("scratch/ran").exists(), code == 1, "{prefix}");
    }
}

#[test]
fn environment_elsewhere_without_the_checkout_is_used() {
    let env = with_python("scratch");
    env.write("scratch/check", "command -v python3 > \"$SCRATCH/used\"\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a'\ntests = ['python3']\n");
    let plan = env.path("plan.toml");
    run_with_python(&env, &["execute-phase", plan.to_str().expect("UTF-8")], true).exits(0);
    assert!(env.holds("main", "a"));
    assert_eq!(env.scratch("used").trim_end(), env.path("python/bin/python3").display().to_string());
}

#[test]
fn gates_reach_other_machines_as_the_user_does() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nsetup = ['env > \"$SCRATCH/setup\"']\ncommand = 'env > \"$SCRATCH/agent\"; echo a > a.txt'\ntests = ['env > \"$SCRATCH/gate\"']\n");
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    let given = [
        ("GIT_SSL_CAINFO", "/etc/company.pem"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.proxyAuthMethod"),
        ("GIT_CONFIG_VALUE_0", "basic"),
    ];
    env.lanewright_with(&arguments, |command| command.envs(given)).exits(0);
    for (name, value) in given {
        let line = format!("{name}={value}\n");
        assert!(env.scratch("setup").contains(&line) && env.scratch("gate").contains(&line), "{line}");
        assert!(!env.scratch("agent").contains(&line), "{line}");
    }
}

#[test]
fn no_editor_is_started_for_an_agent() {
    let env = TestEnv::new();
    env.program("editor", "#!/bin/sh\necho \"$*\" >> \"$SCRATCH/edited\"; exit 1\n");
    env.git(&["config", "core.editor", "editor"]);
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt; git add a.txt; git commit -qm a && git commit -q --amend'\n",
    );
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    env.lanewright_with(&arguments, |command| command.env("EDITOR", "editor").env("VISUAL", "editor")).exits(0);
    assert!(!env.path("scratch/edited").exists(), "{}", env.scratch("edited"));
}

/// As husky has it.
#[test]
fn hooks_that_worktrees_do_not_have_are_named() {
    let env = TestEnv::new();
    env.write("repo/.husky/_/.gitignore", "*\n");
    env.write("repo/.husky/_/pre-commit", "#!/bin/sh\ntouch \"$SCRATCH/hooked\"\n");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(env.path("repo/.husky/_/pre-commit"), all).expect("a hook");
    env.git(&["config", "core.hooksPath", ".husky/_"]);
    let lane = "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt; git add a.txt; git commit -qm a'\n";
    env.plan(lane);
    env.execute(&[]).exits(0).hints("`copy = [\".husky/_/**\"]`");
    assert!(!env.path("scratch/hooked").exists());
    env.plan(&lane.replace("command", "copy = [\".husky/_/**\"]\ncommand").replace("a.txt", "b.txt"));
    let ended = env.execute(&["--run-id=r2"]).exits(0);
    assert!(!ended.stderr.contains("hooksPath"), "{}", ended.stderr);
    assert!(env.path("scratch/hooked").exists(), "what the hint says does not help");
}

#[test]
fn runner_gets_the_token_that_it_names() {
    let env = TestEnv::new();
    let command = r#"command = ["sh", "-c", "env > \"$SCRATCH/env\"; echo a > a.txt"]"#;
    env.write("repo/lanewright.toml", format!("[runners.mine]\n{command}\npass_env = [\"MODEL_TOKEN\"]\n"));
    env.plan("[[lane]]\nid = \"A\"\nrunner = \"mine\"\nprompt = \"do it\"\n");
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    env.lanewright_with(&arguments, |command| command.env("MODEL_TOKEN", "m0del").env("OTHER_TOKEN", "0ther")).exits(0);
    let seen = env.scratch("env");
    assert!(seen.contains("MODEL_TOKEN=m0del\n") && !seen.contains("OTHER_TOKEN"), "{seen}");
}
