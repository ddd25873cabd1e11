//! Worktrees that are made before they are needed, in a repository in which making one takes long.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Signal;

use crate::support::{RUN, Running, STATE, TestEnv, wait_until};

/// Git writes a file slowly, the fourth time only once the test says so.
fn slow_to_check_out() -> TestEnv {
    let env = TestEnv::new();
    env.program(
        "slowly",
        "#!/bin/sh\necho x >> \"$SCRATCH/written\"; sleep 0.4\n\
         if [ \"$(wc -l < \"$SCRATCH/written\")\" -eq 4 ]; then touch \"$SCRATCH/fourth\"; wait-for fourth-may; fi\ncat\n",
    );
    env.git(&["config", "filter.slow.smudge", "slowly"]);
    env.git(&["config", "filter.slow.clean", "cat"]);
    env.write("repo/.gitattributes", "*.slow filter=slow\n");
    env.write("repo/x.slow", "x\n");
    env.commit("slow");
    fs::remove_file(env.path("repo/x.slow")).expect("the file");
    env.write("scratch/written", "");
    env.git(&["checkout", "--", "x.slow"]);
    env
}

/// A first lane whose agent waits, and lanes that depend on those named, with what else is said of them.
fn plan(env: &TestEnv, after: &[(&str, &str, &str)]) {
    let first =
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'wait-for go; test ! -e \"$SCRATCH/fails\" && echo a > a.txt'\n";
    let lane = |(id, on, more): &(&str, &str, &str)| {
        format!("[[lane]]\nid = \"{id}\"\ndepends_on = [\"{on}\"]\n{more}command = 'echo {id} > {id}.txt'\n")
    };
    env.plan(&format!("[pools]\ndb = 1\n{first}{}", after.iter().map(lane).collect::<String>()));
}

const FAN: &[(&str, &str)] = &[("B", "A"), ("C", "A"), ("D", "A")];

fn fan() -> Vec<(&'static str, &'static str, &'static str)> {
    FAN.iter().map(|&(id, on)| (id, on, "")).collect()
}

fn log_says(env: &TestEnv, what: &str) -> bool {
    fs::read_to_string(env.path(&format!("repo/{STATE}/{RUN}.jsonl"))).is_ok_and(|log| log.contains(what))
}

fn written(env: &TestEnv) -> usize {
    env.scratch("written").lines().count()
}

#[test]
fn what_comes_after_the_first_lane_finds_its_worktrees_made() {
    let env = slow_to_check_out();
    env.write("scratch/fourth-may", "");
    plan(&env, &fan());
    let running = env.start(&["--max-parallel", "3"]);
    wait_until("the worktrees", || log_says(&env, "\"at_hand\":6"));
    let before = written(&env);
    env.write("scratch/go", "");
    running.wait().exits(0);
    let at_hand: Vec<u64> =
        env.events("worktree_made_ahead").iter().map(|event| event["at_hand"].as_u64().expect("a number")).collect();
    assert_eq!(at_hand, [3, 4, 5, 6]);
    let slots: BTreeSet<u64> =
        env.events("worktree_opened").iter().filter_map(|event| event["worktree"]["slot"].as_u64()).collect();
    assert_eq!((slots.len(), written(&env)), (6, before), "one was made all the same");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn no_worktree_is_made_that_nobody_will_need() {
    let one_by_one = FAN.iter().map(|&(id, on)| (id, on, "uses = [\"db\"]\n"));
    let chain = [("B", "A", ""), ("C", "B", ""), ("D", "C", "")];
    for after in [one_by_one.collect::<Vec<_>>(), chain.to_vec()] {
        let env = slow_to_check_out();
        env.write("scratch/fourth-may", "");
        plan(&env, &after);
        env.write("scratch/go", "");
        env.execute(&["--max-parallel", "3"]).exits(0);
        assert!(env.events("worktree_made_ahead").is_empty());
        assert_eq!(written(&env), 3, "the user's, and those of one lane and its agent");
    }
}

/// A run in which a worktree is being made ahead, which never ends by itself.
fn making_one() -> (TestEnv, Running) {
    let env = slow_to_check_out();
    plan(&env, &fan());
    let running = env.start(&["--max-parallel", "3"]);
    wait_until("the fourth time", || env.path("scratch/fourth").exists());
    (env, running)
}

#[test]
fn nobody_who_stops_a_run_waits_for_a_worktree_that_is_made_ahead() {
    let (env, running) = making_one();
    running.signal(Signal::INT);
    running.wait().exits(130);
    env.write("scratch/fourth-may", "");
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn a_run_that_fails_ends_although_a_worktree_is_being_made() {
    let (env, running) = making_one();
    env.write("scratch/fails", "");
    env.write("scratch/go", "");
    running.wait().exits(1);
    let kept = env.events("pool_emptied")[0]["kept"].to_string();
    assert!(kept.contains("still being made"), "{kept}");
    env.write("scratch/fourth-may", "");
    env.lanekeeper(&["clean", RUN, "--force", "--yes"]).exits(0);
    assert!(!env.path("repo.lanes").exists());
}

/// A run that is killed while a worktree is made ahead.
fn killed_while_making_one() -> TestEnv {
    let (env, running) = making_one();
    running.signal(Signal::KILL);
    running.wait();
    env
}

#[test]
fn a_worktree_that_was_half_made_ahead_is_gone_on_with_or_dropped() {
    for first_ends in [false, true] {
        let env = killed_while_making_one();
        env.write("scratch/fourth-may", "");
        if first_ends {
            env.write("scratch/go", "");
            let exit = format!("repo/{STATE}/{RUN}/lanes/A/agents/agent/tasks/1/attempt-1/exit.json");
            wait_until("the first agent's end", || env.path(&exit).exists());
            env.resume(&[]).exits(0);
        } else {
            let resumed = env.start_with(&["resume", RUN], |command| command);
            wait_until("the worktrees", || log_says(&env, "\"at_hand\":6"));
            env.write("scratch/go", "");
            resumed.wait().exits(0);
        }
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn a_rollback_takes_a_half_made_worktree_with_it() {
    let env = killed_while_making_one();
    env.write("scratch/fourth-may", "");
    env.write("scratch/go", "");
    env.lanekeeper(&["rollback", RUN]).exits(0);
    let worktrees = env.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
}

#[test]
fn clean_takes_a_half_made_worktree_with_it() {
    let env = killed_while_making_one();
    env.write("scratch/fourth-may", "");
    // The agent ends, and nothing of the run continues.
    env.write("scratch/go", "");
    let exit = format!("repo/{STATE}/{RUN}/lanes/A/agents/agent/tasks/1/attempt-1/exit.json");
    wait_until("the first agent's end", || env.path(&exit).exists());
    let half_made = env.path("repo.lanes/slots/03.claim");
    assert!(half_made.exists());
    env.lanekeeper(&["clean", RUN, "--force", "--yes"]).exits(0);
    assert!(!half_made.exists() && !env.path("repo.lanes/slots/03").exists());
}

#[test]
fn a_death_before_or_after_one_is_made_loses_nothing() {
    for point in ["before_make_ahead:1", "after_make_ahead:1"] {
        let env = slow_to_check_out();
        env.write("scratch/fourth-may", "");
        plan(&env, &fan());
        let plan = env.path("plan.toml");
        let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN, "--max-parallel", "3"];
        env.lanekeeper_with(&start, |command| command.env("LANEKEEPER_CRASH_POINT", point));
        env.write("scratch/go", "");
        env.resume(&[]).exits(0);
        env.assert_nothing_left(&["main"]);
    }
}
