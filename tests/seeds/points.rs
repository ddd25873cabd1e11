//! Rollbacks to a point of a lane: a stage, a task, a snapshot (rows of several seeds).

use crate::support::{RUN, TestEnv};

/// Two tasks, each of which writes its own file and says that it was started; the tests pass if the user lets them.
const TWO_TASKS: &str = "[[lane]]\nid = \"A\"\nretries = 0\ntests = ['[ -e \"$SCRATCH/may-pass\" ]']\n\
    command = 'echo $LANEWRIGHT_TASK >> \"$SCRATCH/starts\"; echo $LANEWRIGHT_TASK > t$LANEWRIGHT_TASK'\n\
    [[lane.task]]\n[[lane.task]]\n";

/// One more lane, which is merged.
const OTHER: &str = "[[lane]]\nid = \"B\"\ncommand = 'echo b > b.txt'\n";

/// A run of these lanes.
fn executed(lanes: &[&str], code: i32) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&lanes.concat());
    env.execute(&[]).exits(code);
    env
}

fn let_pass(env: &TestEnv) {
    env.write("scratch/may-pass", "");
}

/// The tasks that were started, in order.
fn starts(env: &TestEnv) -> String {
    env.scratch("starts").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn back_to(env: &TestEnv, point: &str) -> crate::support::Ended {
    env.lanewright(&["rollback", RUN, "--lane", "A", "--yes", "--to", point])
}

/// The newest snapshot that a rollback took.
fn taken_by_rollback(env: &TestEnv) -> String {
    let taken = env.events("snapshot_taken").into_iter().rfind(|event| event["reason"] == "rollback");
    taken.expect("a snapshot")["reference"].as_str().expect("a ref").to_owned()
}

fn status_of(env: &TestEnv, stage: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(env.path(&format!("repo/{}", crate::support::CHECKPOINTS))).expect("the file");
    let records: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    let of_stage = records.iter().find(|record| record["lane"] == "A" && record["stage"] == stage);
    of_stage.expect("the record")["status"].clone()
}

#[test]
fn l08_a_task_is_redone_without_the_others() {
    let env = executed(&[TWO_TASKS], 1);
    back_to(&env, "1").exits(0);
    env.lanewright(&["doctor", RUN]).exits(0);
    assert!(env.holds("lane-agent/P1/A/agent", "t1"));
    assert!(!env.holds("lane-agent/P1/A/agent", "t2"));
    let_pass(&env);
    env.resume(&[]).exits(0);
    assert_eq!(starts(&env), "1 2 2");
    assert!(env.holds("main", "t1") && env.holds("main", "t2"));
}

#[test]
fn r29_lane_whose_tests_failed_is_only_tested_again() {
    let env = executed(&[TWO_TASKS], 1);
    back_to(&env, "after_lane_tests").exits(0);
    assert_eq!(status_of(&env, "after_lane_tests"), "rolled_back");
    let_pass(&env);
    env.resume(&[]).exits(0);
    assert_eq!(starts(&env), "1 2");
    assert!(env.holds("main", "t2"));
    assert_eq!(status_of(&env, "after_lane_tests"), "complete");
}

#[test]
fn r29_lane_goes_back_to_its_start_with_its_base() {
    let env = executed(&[TWO_TASKS], 1);
    let base = env.main();
    env.git(&["commit", "--allow-empty", "-m", "later"]);
    back_to(&env, "after_lane_start").exits(0);
    assert_eq!(env.git(&["rev-parse", "lane/P1/A"]), base);
    env.git_in(&env.path("repo.lanes/slots/01"), &["commit", "--allow-empty", "-m", "by hand"]);
    back_to(&env, "after_lane_start").exits(0);
    assert_eq!(env.git(&["rev-parse", "lane/P1/A"]), base, "it is done again, not only said");
    let_pass(&env);
    env.resume(&[]).exits(0);
    assert_eq!(starts(&env), "1 2 1 2");
}

#[test]
fn r29_merged_lane_is_merged_again_with_all_it_has() {
    let points = [("pre_pr", "1 2"), ("1", "1 2 2"), ("after_lane_start", "1 2 1 2")];
    let styles = ["merge", "squash", "rebase", "ff"];
    for (style, (point, started)) in styles.iter().flat_map(|style| points.map(|point| (style, point))) {
        let env = TestEnv::new();
        let_pass(&env);
        env.plan(&[&format!("merge = \"{style}\"\n"), TWO_TASKS, OTHER].concat());
        env.execute(&[]).exits(0);
        let files = env.tree("main");
        back_to(&env, point).exits(0);
        assert!(!env.holds("main", "t1") && env.holds("main", "b.txt"), "{style} {point}");
        env.resume(&[]).exits(0);
        assert_eq!(env.tree("main"), files, "{style} {point}");
        assert_eq!(starts(&env), started, "{style} {point}");
        assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1, "{point}");
    }
}

#[test]
fn r29_a_rollback_is_undone_by_its_snapshot() {
    for point in ["before_lane_start", "1"] {
        let env = TestEnv::new();
        let_pass(&env);
        env.plan(TWO_TASKS);
        env.execute(&[]).exits(0);
        let files = env.tree("main");
        let told = back_to(&env, point).exits(0).stdout;
        let snapshot = taken_by_rollback(&env);
        assert!(told.contains(&format!("--lane A --to {snapshot}")), "{told}");
        back_to(&env, &snapshot).exits(0);
        env.lanewright(&["doctor", RUN]).exits(0);
        env.resume(&[]).exits(0);
        assert_eq!(env.tree("main"), files, "{point}");
        assert_eq!(starts(&env), "1 2", "{point}: nothing is paid twice");
    }
}

#[test]
fn r29_what_was_not_committed_comes_back() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'cat half >> \"$SCRATCH/starts\"; echo half > half; \
         [ -e \"$SCRATCH/may-pass\" ]'\n",
    );
    env.execute(&[]).exits(1);
    back_to(&env, "before_lane_start").exits(0);
    back_to(&env, &taken_by_rollback(&env)).exits(0);
    let_pass(&env);
    env.resume(&[]).exits(0);
    assert_eq!(starts(&env), "half");
    assert_eq!(env.git(&["show", "main:half"]), "half");
}

#[test]
fn r29_a_stage_that_was_never_reached_is_refused() {
    let env = executed(&[TWO_TASKS, OTHER], 1);
    let before = env.refs();
    back_to(&env, "pre_pr").exits(2).says(&["A has no point `pre_pr`", "after_lane_start, 1, 2, after_lane_tests"]);
    back_to(&env, "after_lane_test").exits(2).says(&["did you mean `after_lane_tests`?"]);
    env.lanewright(&["rollback", RUN, "--to", "nothing"])
        .exits(2)
        .says(&["the lanes that have begun have no point `nothing`"]);
    assert_eq!(env.refs(), before);
}

#[test]
fn r29_a_lane_waits_for_those_it_depends_on() {
    let env = TestEnv::new();
    env.lanes(&[("A", &[], "mkdir -p A; echo a > A/a"), ("B", &["A"], "mkdir -p B; echo b > B/b")]);
    env.execute(&[]).exits(0);
    env.lanewright(&["rollback", RUN, "--yes"]).exits(0);
    let of_b = env.events("snapshot_taken").into_iter().rfind(|event| event["lane"] == "B").expect("a snapshot");
    let to = of_b["reference"].as_str().expect("a ref");
    let refused = env.lanewright(&["rollback", RUN, "--lane", "B", "--to", to]).exits(3);
    refused.says(&["B depends on lanes that are not merged: A"]);
}

#[test]
fn r29_what_was_merged_in_between_is_not_lost() {
    let env = executed(&[TWO_TASKS], 1);
    back_to(&env, "1").exits(0);
    let before = taken_by_rollback(&env);
    let_pass(&env);
    env.resume(&[]).exits(0);
    let files = env.tree("main");
    back_to(&env, &before).exits(0);
    assert!(!env.holds("main", "t1"));
    env.resume(&[]).exits(0);
    assert_eq!(env.tree("main"), files);
}

#[test]
fn r29_lanes_after_one_that_goes_back_go_to_their_start() {
    for to in ["after_lane_start", "1"] {
        let env = TestEnv::new();
        let task = "[[lane.task]]\nid = ";
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\ncommand = 'echo a >> a'\n{task}\"1\"\n{task}\"2\"\n\
             [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'cp a b'\n"
        ));
        env.execute(&[]).exits(0);
        let files = env.tree("main");
        let refused = back_to(&env, to).exits(2);
        let together = format!("lanewright rollback r1 --lane A --lane B --to {to}");
        refused.hints(&together);
        let words: Vec<&str> = together.split(' ').skip(1).chain(["--yes"]).collect();
        env.lanewright(&words).exits(0);
        let shown = env.lanewright(&["status", RUN, "B"]).stdout;
        assert!(shown.contains("rolled back"), "{shown}");
        env.resume(&[]).exits(0);
        assert_eq!(env.tree("main"), files, "{to}");
    }
}

#[test]
fn r29_a_rollback_that_died_is_finished_to_its_point() {
    for step in ["release:1", "delete_branches:1", "open_again:1"] {
        let env = executed(&[TWO_TASKS], 1);
        let step = format!("rollback_{step}");
        let arguments = ["rollback", RUN, "--lane", "A", "--to", "1"];
        let died = env.lanewright_with(&arguments, |it| it.env("LANEWRIGHT_CRASH_POINT", &step));
        assert_ne!(died.code, 0, "{step}");
        env.resume(&[]).exits(3).hints("lanewright rollback r1 --lane A --to 1");
        env.lanewright(&arguments).exits(0);
        let_pass(&env);
        env.resume(&[]).exits(0);
        assert_eq!(starts(&env), "1 2 2", "{step}");
        assert!(env.holds("main", "t1"), "{step}");
    }
}

#[test]
fn t19_a_lane_continues_from_an_older_snapshot() {
    let env = executed(&[TWO_TASKS], 1);
    let tasks = env.events("snapshot_taken").into_iter().filter(|event| event["reason"] == "task");
    let first = tasks.map(|event| event["reference"].as_str().expect("a ref").to_owned()).next().expect("a snapshot");
    back_to(&env, &first).exits(0);
    let_pass(&env);
    env.resume(&[]).exits(0);
    assert_eq!(starts(&env), "1 2 2");
}

#[test]
fn g25_a_rollback_takes_a_tag() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "checkpoint_tags = true\n");
    env.plan(TWO_TASKS);
    env.execute(&[]).exits(1);
    let tags = env.git(&["tag", "--list", "checkpoint/*", "--sort=creatordate"]);
    let first = tags.lines().next().expect("a tag");
    back_to(&env, "checkpoint/P1-A/2020").exits(2).says(&["has no point"]);
    back_to(&env, first).exits(0);
    assert!(!env.holds("lane-agent/P1/A/agent", "t2"));
    assert!(env.holds("lane-agent/P1/A/agent", "t1"));
    let_pass(&env);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "t2"));
}
