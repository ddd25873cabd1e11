//! `diff`: what a lane or an agent changed, at every point of its life.

use std::fs;

use crate::support::{RUN, TestEnv};

/// A lane that waits for an approval of its changes, one that was merged meanwhile, and one that waits for the first.
fn waiting() -> TestEnv {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\napproval = [\"changes\"]\ncommand = 'echo l > l.txt; mkdir -p src; echo one > src/one.rs'\n\
         [[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n\
         [[lane]]\nid = \"N\"\ndepends_on = [\"L\"]\ncommand = 'echo n > n.txt'\n",
    );
    env.execute(&[]).exits(3);
    env
}

fn names(env: &TestEnv, words: &[&str]) -> Vec<String> {
    let ended = env.lanewright(&[&["diff", "--name-only"], words].concat()).exits(0);
    ended.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn diff_compares_a_lane_with_its_starting_point() {
    let env = waiting();
    assert_eq!(names(&env, &["L"]), ["l.txt", "src/one.rs"]);
    assert_eq!(names(&env, &[RUN, "L", "agent"]), ["l.txt", "src/one.rs"]);
    let stat = env.lanewright(&["diff", "L", "--stat"]).exits(0).stdout;
    assert!(stat.contains("2 files changed, 2 insertions(+)"), "{stat}");
    assert_eq!(env.lanewright(&["diff", "L", "--stat"]).exits(0).stderr, "");
    let limited = env.lanewright(&["diff", "L", "--", "-U0", "--", "src"]).exits(0).stdout;
    assert!(limited.contains("+one") && !limited.contains("l.txt"), "{limited}");
}

#[test]
fn diff_leaves_out_work_merged_into_the_lane() {
    let env = waiting();
    let worktree = fs::canonicalize(env.path(&format!("repo.lanes/{RUN}/L/code"))).expect("a worktree");
    env.git_in(&worktree, &["merge", "--quiet", "--no-edit", "main"]);
    assert!(worktree.join("m.txt").exists());
    assert_eq!(names(&env, &["L"]), ["l.txt", "src/one.rs"]);
}

#[test]
fn a_merged_lane_shows_what_its_merge_brought() {
    let env = waiting();
    assert_eq!(names(&env, &["M"]), ["m.txt"]);
    env.lanewright(&["approve", "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(names(&env, &["L"]), ["l.txt", "src/one.rs"]);
    assert_eq!(names(&env, &["N"]), ["n.txt"]);
}

#[test]
fn diff_shows_uncommitted_files_without_touching_them() {
    let env = waiting();
    let worktree = fs::canonicalize(env.path(&format!("repo.lanes/{RUN}/L/code"))).expect("a worktree");
    fs::write(worktree.join("new.txt"), "new\n").expect("a file");
    fs::write(worktree.join("l.txt"), "l\nmore\n").expect("a file");
    env.git_in(&worktree, &["add", "l.txt"]);
    let before = env.git_in(&worktree, &["status", "--porcelain"]);
    let index = || fs::read(env.git_in(&worktree, &["rev-parse", "--git-path", "index"])).ok();
    let bytes = index();
    assert_eq!(names(&env, &["L"]), ["l.txt", "new.txt", "src/one.rs"]);
    let left_out = "not committed, so not merged when the changes are approved: l.txt, new.txt\n";
    assert_eq!(env.lanewright(&["diff", "L", "--stat"]).exits(0).stderr, left_out);
    assert_eq!(index(), bytes);
    assert_eq!(env.git_in(&worktree, &["status", "--porcelain"]), before);
}

#[test]
fn diff_of_agent_shows_only_its_own_worktree() {
    let env = TestEnv::new();
    let agent = |name: &str| {
        format!("[[lane.agent]]\nname = \"{name}\"\nround = \"implementation\"\ncommand = 'echo {name} > {name}.txt'\n")
    };
    env.plan(&format!("[[lane]]\nid = \"L\"\napproval = [\"changes\"]\n{}{}", agent("one"), agent("two")));
    env.execute(&[]).exits(3);
    assert_eq!(names(&env, &["L", "one"]), ["one.txt"]);
    assert_eq!(names(&env, &["L", "two"]), ["two.txt"]);
    assert_eq!(names(&env, &["L"]), ["one.txt", "two.txt"]);
}

#[test]
fn git_shows_it_as_the_user_wants_it() {
    let env = waiting();
    env.git(&["config", "alias.unused", "x"]);
    let coloured = env.lanewright(&["--color", "always", "diff", "L"]).exits(0).stdout;
    assert!(coloured.contains("\u{1b}[") && coloured.contains("one.rs"), "{coloured}");
    env.git(&["config", "diff.noprefix", "true"]);
    assert!(env.lanewright(&["diff", "L"]).exits(0).stdout.contains("diff --git l.txt l.txt"));
    env.program("mine", "#!/bin/sh\necho \"mine $1\"\n");
    env.git(&["config", "diff.external", "mine"]);
    assert!(env.lanewright(&["diff", "L"]).exits(0).stdout.contains("mine l.txt"));
    env.git(&["config", "difftool.mine.cmd", "echo tool $MERGED"]);
    env.git(&["config", "diff.tool", "mine"]);
    env.git(&["config", "difftool.prompt", "false"]);
    assert!(env.lanewright(&["diff", "L", "--tool"]).exits(0).stdout.contains("tool l.txt"));
}

#[test]
fn programs_get_the_commits_and_the_size_of_each_change() {
    let env = waiting();
    let change = env.lanewright(&["diff", "L", "--format", "json"]).exits(0).json();
    assert_eq!((&change["run_id"], &change["lane"]), (&RUN.into(), &"L".into()));
    assert_eq!(change["files"][0], serde_json::json!({"path": "l.txt", "added": 1, "removed": 0}));
    assert_eq!(change["from"], env.git(&["rev-parse", "main~1"]));
}

#[test]
fn a_lane_that_has_not_started_says_so() {
    let env = waiting();
    env.lanewright(&["diff", "N"]).exits(8).says(&["N has no work in run r1: it has not started"]).hints("status r1");
    env.lanewright(&["diff"]).exits(2).says(&["no lane is named"]).hints("lanewright diff r1 LANE");
}
