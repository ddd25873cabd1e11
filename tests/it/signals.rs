//! Stopping a run: gracefully the first time, at once the second.

use rustix::process::Signal;

use crate::support::{Running, TestEnv, wait_until};

/// A run whose agent has left something half done and waits; it says goodbye when it is asked to end.
fn at_work(agent: &str) -> (TestEnv, Running) {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         if [ $LANEWRIGHT_ATTEMPT != 1 ]; then cat half.txt > whole.txt; exit 0; fi\n\
         {agent}\necho half > half.txt; touch \"$SCRATCH/began\"\n\
         while [ -d \"$SCRATCH\" ]; do sleep 0.02; done\n'''\n"
    ));
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    (env, run)
}

const POLITE: &str = "trap 'touch \"$SCRATCH/goodbye\"; exit 1' TERM";

fn stops(signal: Signal, code: i32) {
    let (env, run) = at_work(POLITE);
    run.signal(signal);
    run.wait().exits(code).says(&["lanewright resume r1"]);
    assert!(env.path("scratch/goodbye").exists(), "the agent was not asked");
    let kept =
        env.refs().into_iter().find(|name| name.starts_with("refs/lanewright/checkpoint/P1-L/")).expect("a snapshot");
    assert_eq!(env.file_at(&kept, "half.txt"), "half");
    assert_eq!(env.events("run_finished").last().expect("an end")["code"], code);
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "whole.txt"), "half", "the half-done work was lost");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn sigint_stops_gracefully_and_keeps_work() {
    stops(Signal::INT, 130);
}

#[test]
fn a_request_to_terminate_does_the_same() {
    stops(Signal::TERM, 143);
}

#[test]
fn a_second_interrupt_kills_what_does_not_end() {
    let (env, run) = at_work("trap 'touch \"$SCRATCH/asked\"' TERM");
    run.signal(Signal::INT);
    wait_until("the agent to be asked", || env.path("scratch/asked").exists());
    run.signal(Signal::INT);
    run.wait().exits(130);
    assert_eq!(env.events("job_exited")[0]["exit"]["exit_code"], 137);
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "whole.txt"), "half");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn a_stop_of_one_lane_leaves_the_others_alone() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/a\"; wait-for go; echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = 'touch \"$SCRATCH/b\"; wait-for go; echo b > b.txt'\n",
    );
    let run = env.start(&["--max-parallel", "2"]);
    wait_until("both agents", || env.path("scratch/a").exists() && env.path("scratch/b").exists());
    env.lanewright(&["stop", "r1", "A"]).exits(0);
    wait_until("its end", || env.events("job_exited").iter().any(|job| job["lane"] == "A"));
    env.write("scratch/go", "");
    run.wait().exits(3);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "b.txt"]);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a.txt"));
}
