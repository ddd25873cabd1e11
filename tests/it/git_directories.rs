//! What agents do with git in the git directory that they have of their own, and what becomes of it.

use std::fs;
use std::path::PathBuf;

use crate::support::{Running, TestEnv, wait_until};

/// What an agent does with git that would change the repository if it worked in its git directory.
const DEEDS: &str = "git config alias.x \"!touch $SCRATCH/ran\"; git config core.bare true; git config core.bare false; \
    git config core.hooksPath \"$SCRATCH/hooks\"; mkdir -p \"$SCRATCH/hooks\"; \
    for hook in pre-commit post-checkout reference-transaction post-index-change; do \
    printf \"#!/bin/sh\\ntouch $SCRATCH/ran\\n\" > \"$SCRATCH/hooks/$hook\"; chmod +x \"$SCRATCH/hooks/$hook\"; done; \
    git config filter.evil.clean \"touch $SCRATCH/ran; cat\"; echo \"* filter=evil\" > .git-attributes-of-agent; \
    git config core.attributesFile \"$PWD/.git-attributes-of-agent\"; git config core.fsmonitor \"touch $SCRATCH/ran; true\"; \
    git update-ref refs/heads/main HEAD~0; git branch -D other; git tag -d v1; git tag mine; git worktree prune; \
    git gc --quiet --prune=now; git remote remove origin; git stash list; rm -f .git-attributes-of-agent \"$SCRATCH/ran\"; ";

/// One lane whose agent runs `command`, in a repository with a branch, a tag and a remote.
fn with(retries: u32, command: &str) -> TestEnv {
    let env = TestEnv::new();
    env.git(&["branch", "other"]);
    env.git(&["tag", "v1"]);
    env.git(&["remote", "add", "origin", "https://example.invalid/x.git"]);
    env.program("agent", &format!("#!/bin/sh\n{command}\n"));
    env.plan(&format!("[[lane]]\nid = \"L\"\nretries = {retries}\ncommand = ['agent']\n"));
    env
}

/// Where the agents' git directories are.
fn private(env: &TestEnv) -> PathBuf {
    env.path("repo/.git/lanewright/private")
}

/// Settings, hooks, branches of others and tags.
fn users_own(env: &TestEnv) -> Vec<String> {
    let all = env.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/other", "refs/tags"]);
    let hooks = fs::read_dir(env.path("repo/.git/hooks")).expect("hooks").count().to_string();
    vec![env.read("repo/.git/config"), hooks, all, env.git(&["stash", "list"])]
}

#[test]
fn deeds_of_an_agent_reach_the_repository_only_as_its_branch() {
    let env =
        with(0, &format!("echo one > one.txt; git add -A; git commit --quiet -m own; {DEEDS} echo two > two.txt"));
    let before = users_own(&env);
    env.execute(&[]).exits(0);
    assert_eq!(users_own(&env), before);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "one.txt", "two.txt"]);
    assert!(!env.path("scratch/ran").exists(), "a program of the agent's ran");
    assert!(!private(&env).exists());
    env.git(&["fsck", "--no-dangling"]);
}

#[test]
fn what_an_agent_left_besides_its_branch_is_named_and_cleaned() {
    let env = with(
        0,
        "echo x > x.txt; git stash --quiet --include-untracked; git switch --quiet --create idea; \
         git commit --quiet --allow-empty -m idea; git tag -a -m t marked; git switch --quiet lane/P1/L; exit 1",
    );
    env.execute(&[]).exits(1).says(&["put work into `git stash`", "left the branch `idea`"]);
    let commits: Vec<String> = env.events("snapshot_taken").iter().map(|it| it["commit"].to_string()).collect();
    assert!(commits.len() >= 2, "{commits:?}");
    assert!(!env.refs().iter().any(|name| name.contains("idea") || name.contains("marked")), "{:?}", env.refs());
    assert_eq!(env.git(&["stash", "list"]), "");
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    env.lanewright(&["clean", "--yes"]);
    env.git(&["fsck", "--no-dangling"]);
}

#[test]
fn an_attempt_without_its_git_directory_fails_and_its_files_stay() {
    for deed in [
        "rm -rf \"$(git rev-parse --git-dir)\"",
        "d=$(git rev-parse --git-dir); rm -rf \"$d\"; echo > \"$d\"",
        "d=$(git rev-parse --git-dir); rm -rf \"$d\"; ln -s \"$SCRATCH/../repo/.git\" \"$d\"",
        "d=$(git rev-parse --git-dir); rm -f \"$d/HEAD\"; mkfifo \"$d/HEAD\"",
        "rm -rf \"$(git rev-parse --git-dir)/objects\"",
    ] {
        let env = with(
            1,
            &format!(
                "[ $LANEWRIGHT_ATTEMPT = 2 ] && exec touch two.txt; echo x > x.txt; git add -A; \
                 git commit --quiet -m x; {deed}"
            ),
        );
        let before = users_own(&env);
        env.execute(&[]).exits(0);
        let failures = env.events("failure_noted");
        let exits = env.events("job_exited");
        let said = format!("{failures:?} {exits:?}");
        assert!(said.contains("what the agent committed cannot be taken over"), "{deed}: {said}");
        assert!(env.attempt_file("L", "agent", 2, "prompt.md").contains("git directory"), "{deed}");
        assert_eq!(env.files("main"), [".gitignore", "README.md", "two.txt", "x.txt"], "{deed}");
        assert_eq!(users_own(&env), before, "{deed}");
        assert!(!private(&env).exists(), "{deed}");
        assert_eq!(env.refs(), ["refs/heads/main", "refs/heads/other", "refs/tags/v1"], "{deed}");
    }
}

/// A run whose agent has committed and waits.
fn at_work(env: &TestEnv) -> Running {
    let running = env.start(&[]);
    wait_until("the agent's commit", || env.path("scratch/committed").exists());
    running
}

const WAITS: &str = "[ -e \"$SCRATCH/again\" ] && exec touch again.txt; echo x > x.txt; git add -A; git commit --quiet -m own; \
    echo y > y.txt; git add y.txt; git config filter.evil.clean \"touch $SCRATCH/ran; cat\"; \
    git config core.fsmonitor \"touch $SCRATCH/ran; true\"; touch \"$SCRATCH/committed\"; wait-for go; git commit --quiet -m later";

#[test]
fn lanewrights_own_git_beside_an_agent_reads_none_of_its_settings() {
    let env = with(0, WAITS);
    let running = at_work(&env);
    let slot = env.path("repo.lanes/slots/01");
    // The index in which the agent staged is its own.
    assert!(env.git_in(&slot, &["-c", "core.fsmonitor=false", "log", "--format=%s"]).starts_with("own"));
    let _ = fs::remove_file(env.path("scratch/ran"));
    for words in [
        &["status", "r1", "L"][..],
        &["diff", "r1", "L"],
        &["doctor"],
        &["checkpoints", "create", "r1", "L"],
        &["status"],
        &["list"],
    ] {
        let ended = env.lanewright(words);
        assert!(ended.code != 8 || words[0] == "doctor", "{words:?}: {}", ended.stderr);
        assert!(!env.path("scratch/ran").exists(), "{words:?} ran a program of the agent's");
    }
    assert!(env.git(&["log", "--format=%s", "lane/P1/L"]).starts_with("own"), "brought over for the snapshot");
    let in_slot = env.lanewright_with(&["status"], |command| command.current_dir(&slot));
    assert_eq!(in_slot.code, env.lanewright(&["status"]).code, "{}", in_slot.stderr);
    env.write("scratch/go", "");
    running.wait().exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "x.txt", "y.txt"]);
    assert!(!private(&env).exists());
}

#[test]
fn commits_of_an_agent_outlive_a_killed_run() {
    for end in ["resume", "rollback", "clean", "doctor"] {
        let env = with(0, WAITS);
        let mut running = at_work(&env);
        running.kill();
        let _ = running.wait();
        env.write("scratch/go", "");
        let own = env.path("repo/.git/lanewright/private/01/git/refs/heads/lane/P1/L");
        wait_until("the end of the agent", || {
            let tip = fs::read_to_string(&own).unwrap_or_default();
            !tip.is_empty()
                && env.git_in(own.ancestors().nth(5).expect("it"), &["log", "-1", "--format=%s", tip.trim()]) == "later"
        });
        match end {
            "resume" => drop(env.resume(&[]).exits(0)),
            "rollback" => {
                wait_until("the rollback", || env.lanewright(&["rollback", "r1", "--yes"]).code == 0);
                let kept = env.git(&["for-each-ref", "--format=%(refname)", "refs/lanewright"]);
                let has_it = |name: &str| env.git(&["log", "--format=%s", name]).contains("later");
                assert!(kept.lines().any(has_it), "{kept}");
            }
            "clean" => {
                env.lanewright(&["clean", "--yes"]);
                env.resume(&[]).exits(0);
            }
            _ => {
                wait_until("nothing to fix", || env.lanewright(&["doctor", "--fix"]).code == 0);
                env.resume(&[]).exits(0);
            }
        }
        if end != "rollback" {
            assert_eq!(env.files("main"), [".gitignore", "README.md", "x.txt", "y.txt"], "{end}");
        }
        assert!(!private(&env).join("01/git").exists(), "{end}");
        env.git(&["fsck", "--no-dangling"]);
    }
}

#[test]
fn a_shared_git_directory_is_one_where_that_is_set() {
    let env = with(0, "git config alias.x y; touch x.txt; [ ! -e \"$SCRATCH/../repo/.git/lanewright/private\" ]");
    env.write("repo/lanewright.toml", "git_directory = \"shared\"\n");
    env.execute(&[]).exits(0);
    assert!(env.read("repo/.git/config").contains("[alias]"));
}

#[test]
fn hooks_and_remotes_of_the_repository_are_the_agents_too() {
    let env =
        with(0, "git remote get-url origin > \"$SCRATCH/remote\"; touch x.txt; git add -A; git commit --quiet -m own");
    env.write("repo/.git/hooks/commit-msg", "#!/bin/sh\necho hooked >> \"$1\"\n");
    let hook = env.path("repo/.git/hooks/commit-msg");
    fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permissions");
    env.execute(&[]).exits(0);
    assert_eq!(env.scratch("remote"), "https://example.invalid/x.git\n");
    assert!(env.git(&["log", "--format=%B", "main"]).contains("hooked"));
}
