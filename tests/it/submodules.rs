//! Submodules in the worktrees of lanes: filled without a network, and what agents commit in them.

use crate::support::TestEnv;

const FILE_URLS: &str = "protocol.file.allow=always";

const KEPT: &str = "refs/lanewright/commits";

/// A repository with the submodule `sub`, which has one of its own. Their remotes are gone.
fn environment(settings: &str) -> TestEnv {
    let env = TestEnv::new();
    for (name, inner) in [("deep", None), ("other", Some("deep"))] {
        let own = env.path(name);
        std::fs::create_dir(&own).expect("a directory");
        env.git_in(&own, &["init", "--quiet"]);
        env.write(&format!("{name}/inner"), format!("{name}\n"));
        if let Some(inner) = inner {
            let url = env.path(inner).display().to_string();
            env.git_in(&own, &["-c", FILE_URLS, "submodule", "--quiet", "add", &url, "deep"]);
        }
        env.git_in(&own, &["add", "--all"]);
        env.git_in(&own, &["commit", "--quiet", "--message=first"]);
    }
    let url = env.path("other").display().to_string();
    env.git(&["-c", FILE_URLS, "submodule", "--quiet", "add", &url, "sub"]);
    env.git(&["-c", FILE_URLS, "submodule", "--quiet", "update", "--init", "--recursive"]);
    env.write("repo/lanewright.toml", settings);
    env.commit("with a submodule");
    for name in ["deep", "other"] {
        std::fs::rename(env.path(name), env.path(&format!("{name}.away"))).expect("its place");
    }
    env
}

fn filled() -> TestEnv {
    environment("submodules = \"init\"\n")
}

#[test]
fn submodules_are_filled_from_the_copies_of_the_checkout() {
    let env = filled();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'cat sub/inner sub/deep/inner > a'\ntests = ['test -e sub/inner']\n");
    let ended = env.execute(&[]).exits(0);
    assert!(!ended.stderr.contains("empty submodules"), "{}", ended.stderr);
    assert_eq!(env.file_at("main", "a"), "other\ndeep");

    let env = environment("");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'ls sub > a'\nallow_empty = true\n");
    env.execute(&[]).exits(0).says(&["A have empty submodules", "`submodules = \"init\"`"]);
    assert_eq!(env.file_at("main", "a"), "");
}

#[test]
fn commit_in_a_submodule_outlives_its_worktree() {
    let env = filled();
    let commit = "cd sub && echo new > inner && git commit -qam new";
    env.plan(&format!("[[lane]]\nid = \"A\"\ncommand = '{commit}'\n"));
    env.execute(&[]).exits(0);
    env.git(&["submodule", "--quiet", "update", "--no-fetch"]);
    assert_eq!(std::fs::read_to_string(env.path("repo/sub/inner")).unwrap(), "new\n");
}

#[test]
fn uncommitted_changes_in_a_submodule_fail_the_attempt() {
    let env = filled();
    let first = "echo new > sub/inner; echo b > sub/b; echo a > a";
    let then = "cd sub; git commit -qam new";
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 1\ncommand = 'if test -e a; then {then}; else {first}; fi'\n"));
    let ended = env.execute(&[]).exits(0);
    ended.says(&["the submodule sub has changes that are not committed in it", "new files", "sub/b", KEPT]);
    let sub = env.path("repo/sub");
    let kept = env.git_in(&sub, &["for-each-ref", "--format=%(objectname)", KEPT]);
    let holds = |commit: &str| env.git_in(&sub, &["ls-tree", "--name-only", commit]).lines().any(|name| name == "b");
    assert!(kept.lines().any(holds), "new files are saved");
    env.git(&["submodule", "--quiet", "update", "--no-fetch"]);
    assert_eq!(std::fs::read_to_string(env.path("repo/sub/inner")).unwrap(), "new\n");
}

#[test]
fn commit_that_nothing_else_has_fails_the_attempt() {
    for (push, code) in [("true", 1), ("git push -q origin HEAD:refs/heads/new && git fetch -q", 0)] {
        let env = environment("");
        env.git(&["submodule", "--quiet", "deinit", "--force", "sub"]);
        std::fs::remove_dir_all(env.path("repo/.git/modules")).unwrap();
        let away = env.path("other.away").display().to_string();
        let fill = format!("git -c submodule.sub.url={away} -c {FILE_URLS} submodule update --init");
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\nretries = 0\nsetup = ['{fill}']\n\
             command = 'cd sub && echo new > inner && git commit -qam new && {push}'\n"
        ));
        let ended = env.execute(&[]).exits(code);
        let said = "the commit of the submodule sub is in this worktree only; push it";
        assert_eq!(ended.stderr.contains(said), code == 1, "{}", ended.stderr);
    }
}

#[test]
fn reset_attempt_does_not_leave_its_commit_in_a_submodule() {
    let env = filled();
    // Three attempts commit in the submodule and fail; the last one begins anew.
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 3\n[[lane.task]]\nverify = 'test -e a'\n\
         command = 'echo x >> \"$SCRATCH/ran\"; if test $(wc -l < \"$SCRATCH/ran\") = 4; then echo a > a; else cd sub; \
         echo x >> inner; git commit -qam new; fi'\n",
    );
    env.execute(&[]).exits(0);
    assert!(env.holds("main", "a"));
    let link = |at: &str| env.git(&["rev-parse", &format!("{at}:sub")]);
    assert_eq!(link("main"), link("main~1"), "the submodule is where it was");
}

#[test]
fn worktrees_beside_a_submodule_are_ignored_by_the_repository_around_it() {
    let env = TestEnv::new();
    // Its name has what a pattern of git reads as something else.
    let submodule = "vendor/[lib]";
    env.git_at("", &["init", "--quiet", "outer"]);
    let url = env.path("repo").display().to_string();
    env.git_at("outer", &["-c", FILE_URLS, "submodule", "--quiet", "add", &url, submodule]);
    env.git_at("outer", &["commit", "--quiet", "--message=first"]);
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo a > a; false'\n");
    let plan = env.path("plan.toml").display().to_string();
    let inside = env.path("outer").join(submodule);
    let run = |id| {
        let words = ["execute-phase", &plan, "--new-run", "--run-id", id];
        env.lanewright_with(&words, |command| command.current_dir(&inside)).exits(1)
    };
    run("r1").says(&["outer/.git/info/exclude"]);
    assert!(env.path("outer/vendor/[lib].lanes/slots/01/a").exists());
    assert_eq!(env.git_at("outer", &["status", "--porcelain", "--untracked-files=all"]), "");
    let again = run("r2");
    assert!(!again.stderr.contains("info/exclude"), "{}", again.stderr);
}
