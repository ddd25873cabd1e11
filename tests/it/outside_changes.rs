//! Agents whose git commands change other checkouts of the repository.

use crate::support::TestEnv;

/// One attempt that runs `command` after its work, in the user's checkout.
fn attempt(env: &TestEnv, command: &str) {
    let checkout = env.path("repo").canonicalize().expect("the checkout");
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = '''echo a > a; cd {} && {command}'''\n",
        checkout.display()
    ));
}

#[test]
fn commit_in_the_users_checkout_fails_the_attempt() {
    for (command, shown) in [
        ("echo b > b && git add b && git commit -qm mine", "`git commit -qm mine` in"),
        ("git switch -qc elsewhere", "`git switch -qc elsewhere` in"),
        ("git stash -qu", "`git stash -qu` in"),
        ("cd / && git --git-dir=\"$OLDPWD/.git\" branch new", "branch new` in"),
        ("cd / && GIT_DIR=\"$OLDPWD/.git\" git update-ref refs/heads/new HEAD~0", "`git update-ref refs/heads/new"),
    ] {
        let env = TestEnv::new();
        env.write("repo/untracked", "of the user\n");
        attempt(&env, command);
        let ended = env.execute(&[]).exits(1);
        ended.says(&["attempt 1 changed another checkout of the repository, outside its worktree", shown]);
        let report = env.lanewright(&["status", "r1", "A"]);
        assert!(report.stdout.contains(shown), "{}", report.stdout);
        let junit = env.lanewright(&["report", "r1", "--format", "junit"]).exits(0).stdout;
        assert!(junit.contains("<failure message=\"attempt 1 changed another checkout"), "{junit}");
    }
}

#[test]
fn moved_head_is_named() {
    let env = TestEnv::new();
    let before = env.git(&["rev-parse", "--short=10", "HEAD"]);
    attempt(&env, "git commit -q --allow-empty -m mine");
    let ended = env.execute(&[]).exits(1);
    ended.says(&[&format!("(its HEAD moved {before} → {})", env.git(&["rev-parse", "--short=10", "HEAD"]))]);
}

#[test]
fn agent_that_reads_the_checkout_or_changes_others_passes() {
    let env = TestEnv::new();
    let other = env.path("other");
    std::fs::create_dir(&other).unwrap();
    env.git_in(&other, &["init", "--quiet"]);
    attempt(
        &env,
        "git status -s && git branch && git log -1 && git fetch -q . && git stash list && ! git branch main && \
         cd \"$LANEWRIGHT_WORKTREE\" && git commit -q --allow-empty -m own && git branch own && \
         git -C \"$SCRATCH/../other\" commit -q --allow-empty -m other && cd \"$SCRATCH/../other\" && \
         GIT_DIR=.git git commit -q --allow-empty -m other",
    );
    // And the user commits meanwhile.
    env.execute(&[]).exits(0);
    assert!(env.holds("main", "a"));
}

#[test]
fn users_commits_are_not_the_agents() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\n\
         command = 'touch \"$SCRATCH/works\"; while ! [ -e \"$SCRATCH/go\" ]; do sleep 0.05; done; echo a > a'\n",
    );
    let running = env.start_until(&["execute-phase", "../plan.toml", "--run-id", "r1"], "scratch/works");
    env.write("repo/users", "");
    env.commit("the user's");
    env.git(&["branch", "users"]);
    env.write("scratch/go", "");
    running.wait().exits(0);
}

#[test]
fn setting_reports_or_looks_at_nothing() {
    for (setting, says) in [("report", true), ("off", false)] {
        let env = TestEnv::new();
        env.write("repo/lanewright.toml", format!("outside_changes = \"{setting}\"\n"));
        env.commit("settings");
        attempt(&env, "git branch new");
        let ended = env.execute(&[]).exits(0);
        assert_eq!(ended.stderr.contains("`git branch new`"), says, "{}", ended.stderr);
    }
}

#[test]
fn failed_attempt_says_what_it_changed() {
    let env = TestEnv::new();
    attempt(&env, "git branch new; exit 1");
    env.execute(&[]).exits(1).says(&["changed another checkout of the repository: `git branch new` in"]);
}

#[test]
fn changes_of_what_agents_share_are_named_once_at_the_end() {
    let env = TestEnv::new();
    let checkout = env.path("repo").canonicalize().unwrap();
    let lane = |id: &str, command: &str| {
        format!(
            "[[lane]]\nid = \"{id}\"\nretries = 0\ncommand = '''cd {} && {command}; cd -; echo x > {id}'''\n",
            checkout.display()
        )
    };
    let (first, second) = ("echo x >> README.md; git config alias.x status", "printf x > .git/hooks/pre-commit");
    env.plan(&[lane("A", first), lane("B", second)].concat());
    let ended = env.execute(&[]).exits(0);
    ended.says(&[
        "1 file changed in your checkout while A, B worked; it may have been you: README.md",
        "1 git setting changed in the repository while A, B worked; it may have been you: alias.x",
        "1 hook changed in the repository while A, B worked; it may have been you: pre-commit",
    ]);
    // What was changed before is the user's.
    let env = TestEnv::new();
    env.write("repo/README.md", "of the user\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a'\n");
    let ended = env.execute(&[]).exits(0);
    assert!(!ended.stderr.contains("it may have been you"), "{}", ended.stderr);
}

#[test]
fn files_that_reach_further_are_named() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nowns = [\".github/**\", \"b\", \"out\", \"in\", \".gitmodules\"]\n\
         command = 'mkdir -p .github/workflows; touch .github/workflows/ci.yml b; ln -s /etc/passwd out; ln -s b in'\n\
         [[lane]]\nid = \"B\"\ncommand = 'mkdir -p .github/workflows; touch .github/workflows/b.yml b2'\n",
    );
    let ended = env.execute(&[]).exits(0);
    let ended = ended.says(&["changes out (a link that leads out):", "changes .github/workflows/b.yml:"]);
    assert!(!ended.stderr.contains("changes .github/workflows/ci.yml"), "{}", ended.stderr);
}
