//! What a person did in a worktree of a run that was not at work: it is judged and merged, or kept, and never counted by
//! a gate without being merged.

use crate::support::{Ended, TestEnv, wait_until};

/// Where the lane works.
fn worktree(env: &TestEnv, lane: &str) -> String {
    env.lanewright(&["path", lane]).exits(0).stdout.trim().to_owned()
}

/// Runs a shell script in the worktree of `lane`.
fn in_worktree(env: &TestEnv, lane: &str, script: &str) {
    let place = worktree(env, lane);
    let done = std::process::Command::new("sh")
        .args(["-ec", script])
        .current_dir(&place)
        .envs([("GIT_AUTHOR_NAME", "P"), ("GIT_AUTHOR_EMAIL", "p@x"), ("GIT_COMMITTER_NAME", "P")])
        .envs([("GIT_COMMITTER_EMAIL", "p@x"), ("GIT_EDITOR", "true")])
        .output()
        .expect("sh");
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

const COMMIT_FIX: &str = "echo fix > fix.txt; git add fix.txt; git commit --quiet --message fix";

fn overriding(env: &TestEnv) -> Ended {
    env.resume(&[]).exits(5).hints("--on-conflict override");
    env.resume(&["--on-conflict", "override"])
}

fn red() -> TestEnv {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ntests = 'test -e fix.txt'\n\
         command = 'echo run >> \"$SCRATCH/runs\"; echo a > a.txt'\n",
    );
    env.execute(&[]).exits(1);
    env
}

#[test]
fn manual_commit_on_a_failed_lane_is_judged_and_merged() {
    let env = red();
    in_worktree(&env, "A", COMMIT_FIX);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "fix.txt") && env.holds("main", "a.txt"));
    assert_eq!(env.scratch("runs"), "run\n", "no agent was paid for it");
}

#[test]
fn uncommitted_manual_files_are_merged_on_request() {
    let env = red();
    in_worktree(&env, "A", "echo fix > fix.txt; echo b >> a.txt");
    overriding(&env).exits(0);
    assert_eq!((env.file_at("main", "fix.txt"), env.file_at("main", "a.txt")), ("fix".into(), "a\nb".into()));
}

#[test]
fn files_left_by_a_gate_are_no_manual_change() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo a > a.txt'\n\
         tests = 'echo junk > junk.txt; echo more >> a.txt; test -e \"$SCRATCH/green\"'\n",
    );
    env.execute(&[]).exits(1);
    env.write("scratch/green", "");
    env.resume(&[]).exits(0);
    assert_eq!((env.holds("main", "junk.txt"), env.file_at("main", "a.txt")), (false, "a".into()));
}

/// B fails because its work conflicts with what A merged.
fn conflicting(merge: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        "merge = \"{merge}\"\n[[lane]]\nid = \"A\"\ncommand = 'wait-for b; echo a > same.txt'\n\
         [[lane]]\nid = \"B\"\nretries = 0\n\
         command = 'echo run >> \"$SCRATCH/runs\"; echo b > same.txt; touch \"$SCRATCH/b\"; wait-for a'\n"
    ));
    let run = env.start(&["--max-parallel", "2"]);
    wait_until("A", || env.holds("main", "same.txt"));
    env.write("scratch/a", "");
    run.wait().exits(1);
    env
}

const MERGE: &str = "git merge --quiet main >/dev/null || true; echo ab > same.txt; git add same.txt; \
                     git commit --quiet --message merged";
const REBASE: &str = "git rebase --quiet main >/dev/null 2>&1 || true; echo ab > same.txt; git add same.txt; \
                      git rebase --continue >/dev/null 2>&1";

#[test]
fn conflict_resolved_on_lane_branch_needs_no_agent() {
    for style in ["merge", "squash", "rebase"] {
        let env = conflicting(style);
        in_worktree(&env, "B", MERGE);
        env.resume(&[]).exits(0);
        assert_eq!(
            (env.file_at("main", "same.txt").as_str(), env.scratch("runs").as_str()),
            ("ab", "run\n"),
            "{style}"
        );
    }
}

#[test]
fn rewritten_lane_branch_needs_consent_and_is_saved() {
    let env = conflicting("merge");
    let before = env.git(&["rev-parse", "lane/P1/B"]);
    in_worktree(&env, "B", REBASE);
    overriding(&env).exits(0);
    assert_eq!((env.file_at("main", "same.txt").as_str(), env.scratch("runs").as_str()), ("ab", "run\n"));
    let kept = env.git(&["for-each-ref", "--contains", before.trim(), "refs/lanewright/checkpoint"]);
    assert!(!kept.is_empty(), "the commits before the rebase are in no ref");
}

#[test]
fn manual_commit_outlives_a_lane_rebuild() {
    let env = conflicting("merge");
    in_worktree(&env, "B", COMMIT_FIX);
    // It does not settle the conflict, so the lane is built again by its agent.
    env.resume(&[]).exits(1);
    env.resume(&[]).exits(0);
    assert!(!env.holds("main", "fix.txt"));
    let kept = env.git(&["for-each-ref", "--format=%(refname)", "refs/lanewright/checkpoint"]);
    assert!(kept.lines().any(|name| env.holds(name, "fix.txt")), "{kept}");
}

#[test]
fn manual_work_is_kept_where_the_run_died_before_it_was_seen() {
    for (script, file) in [(MERGE, "ab"), ("echo by hand > same.txt", "by hand")] {
        let env = TestEnv::new();
        env.plan(
            "[[lane]]\nid = \"A\"\ncommand = 'wait-for b; echo a > same.txt'\n\
             [[lane]]\nid = \"B\"\nretries = 0\n\
             command = 'echo b > same.txt; touch \"$SCRATCH/b\"; wait-for a'\n\
             [[lane]]\nid = \"C\"\ncommand = 'wait-for c; echo c > c.txt'\n",
        );
        let mut run = env.start(&["--max-parallel", "3"]);
        wait_until("A", || env.holds("main", "same.txt"));
        env.write("scratch/a", "");
        wait_until("B conflicts", || !env.events("lane_failed").is_empty());
        in_worktree(&env, "B", script);
        run.kill();
        run.wait();
        env.write("scratch/c", "");
        env.resume(&[]).exits(0).says(&["changed by hand or by another program: "]);
        let kept = env.events("snapshot_taken").into_iter().find(|event| event["reason"] == "external");
        let name = kept.expect("a snapshot")["reference"].as_str().expect("a name").to_owned();
        assert_eq!(env.file_at(&name, "same.txt"), file);
    }
}

#[test]
fn manual_commit_outlives_a_rejection() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ncommand = 'echo $LANEWRIGHT_ATTEMPT > a.txt'\n");
    let run = env.start(&["--wait"]);
    wait_until("the question", || env.log_file().exists() && env.events("changes_measured").len() == 1);
    in_worktree(&env, "A", COMMIT_FIX);
    env.lanewright(&["reject", "A", "--message", "no"]).exits(0);
    wait_until("the next question", || env.events("changes_measured").len() == 2);
    env.lanewright(&["approve", "A"]).exits(0);
    run.wait().exits(0).says(&["changed by hand or by another program: "]);
    let kept = env.events("snapshot_taken").into_iter().find(|event| event["reason"] == "external");
    let name = kept.expect("a snapshot")["reference"].as_str().expect("a name").to_owned();
    assert!(env.holds(&name, "fix.txt") && !env.holds("main", "fix.txt"));
}

/// B fails because its tests fail with what A merged: its worktree is at the merge, and on no branch.
fn red_merge() -> TestEnv {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'wait-for b; echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\nretries = 0\ntests = 'test ! -e a.txt || test -e fix.txt'\n\
         command = 'echo b > b.txt; touch \"$SCRATCH/b\"; wait-for a'\n",
    );
    let run = env.start(&["--max-parallel", "2"]);
    wait_until("A", || env.holds("main", "a.txt"));
    env.write("scratch/a", "");
    run.wait().exits(1);
    env
}

#[test]
fn a_merge_that_failed_its_tests_is_no_manual_change() {
    let env = red_merge();
    env.resume(&[]).exits(1);
    assert!(env.events("branch_moved").is_empty());
    assert!(env.events("snapshot_taken").iter().all(|event| event["reason"] != "external"));
}

#[test]
fn manual_fix_on_a_detached_merge_head_is_taken() {
    let env = red_merge();
    in_worktree(&env, "B", COMMIT_FIX);
    env.resume(&[]).exits(0);
    assert!(["a.txt", "b.txt", "fix.txt"].iter().all(|file| env.holds("main", file)));
}

#[test]
fn only_what_was_judged_is_approved() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\napproval = [\"changes\"]\ncommand = 'echo a > a.txt'\n\
         tests = 'ls >> \"$SCRATCH/judged\"; touch junk'\n",
    );
    env.execute(&[]).exits(3);
    in_worktree(&env, "A", COMMIT_FIX);
    env.lanewright(&["approve", "A"]).exits(5).says(&["changed by hand after it was judged"]).hints("--lane A");
    env.lanewright(&["resume", "--lane", "A"]).exits(3);
    assert!(env.scratch("judged").contains("fix.txt"), "{}", env.scratch("judged"));
    env.lanewright(&["approve", "A", "--resume"]).exits(0);
    assert!(env.holds("main", "fix.txt"));
}

#[test]
fn next_attempt_sees_user_commit_in_agent_worktree() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\nretries = 0\n\
         command = 'test -e fix.txt && echo a > a.txt'\n",
    );
    env.execute(&[]).exits(1);
    let place = env.events("worktree_opened").into_iter().find(|event| event["agent"] == "agent").expect("one");
    let place = place["worktree"]["path"].as_str().expect("a path").to_owned();
    std::fs::write(std::path::Path::new(&place).join("fix.txt"), "fix\n").expect("a file");
    env.git(&["-C", &place, "add", "fix.txt"]);
    env.git(&["-C", &place, "commit", "--quiet", "--message", "fix"]);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "fix.txt") && env.holds("main", "a.txt"));
    assert!(env.events("branch_moved").is_empty(), "the agent took it in");
}

#[test]
fn a_fix_in_a_worktree_that_a_reviewer_shares_is_merged() {
    for script in [COMMIT_FIX, "echo fix > fix.txt"] {
        let env = TestEnv::new();
        env.plan(
            "[[lane]]\nid = \"A\"\nretries = 0\nagent_worktrees = \"off\"\ntests = 'test -e fix.txt'\n\
             [[lane.agent]]\nname = \"one\"\ncommand = 'echo a > a.txt'\n\
             [[lane.agent]]\nname = \"two\"\nround = \"review\"\n\
             command = '''echo '{\"status\":\"COMPLETE\",\"decision\":\"APPROVED\"}' > \"$LANEWRIGHT_STATUS_FILE\"'''\n",
        );
        env.execute(&[]).exits(1);
        in_worktree(&env, "A", script);
        env.resume(&["--on-conflict", "override"]).exits(0);
        assert!(env.holds("main", "fix.txt"), "{script}");
    }
}

#[test]
fn manual_fix_on_descendant_branch_is_merged() {
    let env = red();
    in_worktree(&env, "A", &format!("git switch --quiet --create mine; {COMMIT_FIX}"));
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "fix.txt") && env.holds("mine", "fix.txt"));
}

#[test]
fn unrelated_head_is_refused_once_with_advice() {
    let env = red();
    in_worktree(&env, "A", &format!("git switch --quiet --detach main; {COMMIT_FIX}"));
    for arguments in [[].as_slice(), &["--on-conflict", "override"]] {
        let refused = env
            .resume(arguments)
            .exits(5)
            .says(&["A: ", "repo.lanes/r1/A/code is on"])
            .hints("switch lane/P1/A && git -C");
        assert!(!refused.stderr.contains("to save the changes and continue"), "{}", refused.stderr);
    }
    in_worktree(&env, "A", "git switch --quiet lane/P1/A && git merge --quiet 'HEAD@{1}'");
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "fix.txt") && env.holds("main", "a.txt"));
}

#[test]
fn nested_repository_is_refused_before_the_commit() {
    let env = red();
    in_worktree(
        &env,
        "A",
        &format!(
            "git init --quiet sub; cd sub; echo s > s; git add s; git commit --quiet -m s; cd ..; {COMMIT_FIX}; git add sub; git commit --quiet -m sub"
        ),
    );
    env.resume(&[]).exits(3).says(&["sub"]);
    assert!(!env.holds("main", "fix.txt"));
}

#[test]
fn override_commits_every_kind_of_manual_change() {
    let env = TestEnv::new();
    env.write("repo/.gitignore", "ignored/\n");
    env.commit("ignore");
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ntests = 'test -e fix.txt'\n\
         command = 'echo a > a.txt; echo b > b.txt; echo c > c'\n",
    );
    env.execute(&[]).exits(1);
    in_worktree(
        &env,
        "A",
        "mkdir ignored; echo i > ignored/i; git add -f ignored/i; echo s > staged; git add staged; rm staged; \
         rm a.txt; git mv b.txt 'n\"é w'; rm c; mkdir c; echo d > c/d; ln -s x link; echo fix > fix.txt",
    );
    overriding(&env).exits(0);
    let files = env.files("main");
    for file in ["ignored/i", "c/d", "link", "fix.txt"] {
        assert!(files.iter().any(|name| name == file), "{file}: {files:?}");
    }
    assert!(["a.txt", "b.txt", "staged", "c"].iter().all(|gone| !files.iter().any(|name| name == gone)), "{files:?}");
    assert!(files.iter().any(|name| name.contains("w")), "{files:?}");
}
