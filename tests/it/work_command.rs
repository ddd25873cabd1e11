//! `work`: jobs of a queue that claim a run, work on it, and stop when it is given to another.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::state::{PUSHED, branches, clone_into, cloned, count, has, lanewright_in, lost_in_the_middle, pushed_log};
use crate::support::{Ended, RUN, Running, TestEnv, all_files, wait_until};

/// Where the run's ref is on the remote; empty: nowhere.
fn offer(env: &TestEnv) -> String {
    env.git_at("origin.git", &["for-each-ref", "--format=%(objectname)", PUSHED])
}

fn manifest(env: &TestEnv) -> Value {
    serde_json::from_str(&env.git_at("origin.git", &["show", &format!("{PUSHED}:state.json")])).expect("JSON")
}

fn arguments(env: &TestEnv, offer: &str, cache: &str) -> Vec<String> {
    let origin = env.path("origin.git").display().to_string();
    let words = ["work", &origin, PUSHED, offer, "--cache", cache, "--push-every", "0s"];
    words.map(str::to_owned).to_vec()
}

fn work(env: &TestEnv, offer: &str, cache: &str) -> Ended {
    let arguments = arguments(env, offer, cache);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    env.lanewright_with(&words, |command| command.current_dir(env.path("")))
}

fn start_work(env: &TestEnv, offer: &str, cache: &str) -> Running {
    let arguments = arguments(env, offer, cache);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    env.start_with(&words, |command| command.current_dir(env.path("")))
}

/// Waits until the second task of B and the one of C wait for help, and the remote has what was done before.
fn wait_for_both(env: &TestEnv, times: usize) {
    wait_until("B and C to begin again", || ["B2", "C"].iter().all(|name| count(env, name) == times));
    wait_until("the claim to be pushed", || has(&pushed_log(env), "job_started", "C"));
}

#[test]
fn job_completes_offered_run_and_pushes_result() {
    let env = lost_in_the_middle();
    let before = branches(&env);
    env.write("scratch/help", "");
    work(&env, &offer(&env), "node").exits(0);
    assert_eq!(["A", "B1", "B2", "C", "D"].map(|lane| count(&env, lane)), [1, 1, 2, 2, 1]);
    assert_eq!((manifest(&env)["outcome"].as_str(), branches(&env)), (Some("done"), before));
    assert!(manifest(&env)["claim"]["host"].is_string());
    let left = all_files(&env.path("node")).into_iter().filter(|path| path.to_string_lossy().contains("run-logs/r1"));
    assert_eq!(left.count(), 0, "the remote has all of it");
    clone_into(&env, "repo");
    env.lanewright(&["state", "pull"]).exits(0);
    assert!(env.holds("main", "d.txt"));
}

/// Begins run `run` of one lane in the clone `below`, and pushes it before its agent has begun.
fn begun(env: &TestEnv, below: &str, run: &str, lane: &str) {
    let text = format!("phase = \"P1\"\n[[lane]]\nid = \"A\"\n{lane}\n");
    env.write(&format!("{below}/plan.toml"), text);
    let crash = ("LANEWRIGHT_CRASH_POINT", "before_run_job:1");
    let arguments = ["execute-phase", "plan.toml", "--run-id", run];
    let place = env.path(below);
    env.lanewright_with(&arguments, |command| command.env(crash.0, crash.1).current_dir(&place)).exits(137);
    lanewright_in(env, below, &["state", "push", run]).exits(0);
}

#[test]
fn runs_of_one_phase_on_one_node_are_independent() {
    let env = cloned();
    clone_into(&env, "other");
    begun(&env, "repo", RUN, "command = 'echo a > a.txt'");
    begun(&env, "other", "r2", "command = 'echo b > b.txt'");
    work(&env, &offer(&env), "node").exits(0);
    let reference = "refs/lanewright/state/r2";
    let offer = env.git_at("origin.git", &["rev-parse", reference]);
    let mut words = arguments(&env, &offer, "node");
    words[2] = reference.to_owned();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    env.lanewright_with(&words, |command| command.current_dir(env.path(""))).exits(0);
    let text = env.git_at("origin.git", &["show", &format!("{reference}:state.json")]);
    let integration = serde_json::from_str::<Value>(&text).expect("JSON")["integration"].clone();
    let files = env.git_at("origin.git", &["ls-tree", "--name-only", integration.as_str().expect("a commit")]);
    assert_eq!(files, "b.txt\nplan.toml");
}

/// Works on another run than [`RUN`] in the cache `node`.
fn work_on(env: &TestEnv, run: &str) -> Ended {
    let reference = format!("refs/lanewright/state/{run}");
    let mut words = arguments(env, &env.git_at("origin.git", &["rev-parse", &reference]), "node");
    words[2] = reference;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    env.lanewright_with(&words, |command| command.current_dir(env.path("")))
}

#[test]
fn job_leftovers_are_removed_once_run_left_exchange() {
    let env = cloned();
    let endless = "echo $PPID >$SCRATCH/supervisor; echo $$ >$SCRATCH/agent.new; mv $SCRATCH/agent.new $SCRATCH/agent; \
                   while [ -d $SCRATCH ]; do sleep 0.05; done";
    begun(&env, "repo", RUN, &format!("command = '{endless}'"));
    for run in ["r2", "r3"] {
        clone_into(&env, run);
        begun(&env, run, run, "command = 'echo b > b.txt'");
    }
    let job = start_work(&env, &offer(&env), "node");
    wait_until("the agent", || env.path("scratch/agent").exists());
    let signal =
        |file: &str, signal| kill_process(Pid::from_raw(env.scratch(file).trim().parse().unwrap()).unwrap(), signal);
    job.signal(Signal::KILL);
    job.wait();
    signal("supervisor", Signal::KILL).expect("a signal");
    let is_kept = |run: &str| {
        let place = std::fs::read_dir(env.path("node"))
            .expect("a directory")
            .next()
            .expect("an exchange")
            .expect("a name")
            .path();
        let kept = env.git_in(&place.join("mirror"), &["for-each-ref", &format!("refs/lanewright/kept/{run}")]);
        (place.join("clones").join(run).exists(), !kept.is_empty())
    };
    work_on(&env, "r2").exits(0);
    assert_eq!(is_kept(RUN), (true, true), "another job may continue it");
    env.git_at("origin.git", &["update-ref", "-d", PUSHED]);
    work_on(&env, "r3").exits(0);
    assert_eq!((is_kept(RUN), is_kept("r2")), ((false, false), (true, true)));
    wait_until("the agent's end", || signal("agent", Signal::CONT).is_err());
}

#[test]
fn stale_locks_on_own_refs_do_not_block() {
    let env = cloned();
    begun(&env, "repo", RUN, "command = 'echo a > a.txt'");
    env.write("repo/.git/refs/lanewright/remotes/origin/r1.lock", "");
    env.lanewright(&["state", "push", RUN]).exits(0);
    let another = "a".repeat(40);
    work(&env, &another, "node").exits(75);
    let exchange = std::fs::read_dir(env.path("node")).expect("a directory").next().expect("an exchange");
    let kept = exchange.expect("a name").path().join("mirror/.git/refs/lanewright/kept");
    std::fs::create_dir_all(&kept).expect("a directory");
    std::fs::write(kept.join("r1.lock"), "").expect("a file");
    std::fs::write(kept.ancestors().nth(3).expect("a directory").join("config.lock"), "").expect("a file");
    work(&env, &offer(&env), "node").exits(0);
}

#[test]
fn run_that_cannot_start_is_offered_again_unchanged() {
    let env = cloned();
    let secret = "s3cr3t-t0ken-of-the-lane";
    begun(&env, "repo", RUN, &format!("command = 'echo a > a.txt'\nenv = {{ A_TOKEN = \"{secret}\" }}"));
    let offer = offer(&env);
    work(&env, &offer, "node").exits(2).says(&["A_TOKEN", "is offered again as it was"]);
    assert_eq!(crate::work_command::offer(&env), offer);
    let words = arguments(&env, &offer, "node");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    env.lanewright_with(&words, |command| command.current_dir(env.path("")).env("A_TOKEN", secret)).exits(0);
    work(&env, &crate::work_command::offer(&env), "node").exits(7).says(&["run r1 is complete"]);
}

#[test]
fn path_without_repository_is_refused_at_once() {
    let env = cloned();
    for exchange in ["", "nowhere.git", "scratch"] {
        let words = ["work", exchange, PUSHED, &"a".repeat(40), "--cache", "node"];
        env.lanewright_with(&words, |command| command.current_dir(env.path("")))
            .exits(2)
            .says(&["not a git repository"]);
    }
}

#[test]
fn of_sixteen_jobs_for_one_offer_one_works() {
    let env = cloned();
    begun(&env, "repo", RUN, "command = 'echo began >> \"$SCRATCH/A\"; echo a > a'");
    let (offer, all) = (offer(&env), Barrier::new(16));
    let codes: Vec<i32> = thread::scope(|scope| {
        let job = |number: usize| {
            let (env, offer, all) = (&env, &offer, &all);
            scope.spawn(move || {
                all.wait();
                work(env, offer, &format!("node{}", number % 4)).code
            })
        };
        let jobs: Vec<_> = (0..16).map(job).collect();
        jobs.into_iter().map(|job| job.join().expect("no panic")).collect()
    });
    let of = |code: i32| codes.iter().filter(|it| **it == code).count();
    assert_eq!((of(0), of(75), count(&env, "A")), (1, 15, 1), "{codes:?}");
}

#[test]
fn another_offer_than_the_one_given_is_left_alone() {
    let env = lost_in_the_middle();
    let (there, other) = (offer(&env), env.git_at("origin.git", &["rev-parse", "main"]));
    let refused = work(&env, &other, "node").exits(75);
    assert!(refused.stderr.contains("another process claimed it, or it was withdrawn"), "{}", refused.stderr);
    assert_eq!((offer(&env), count(&env, "B2")), (there, 1));
    env.git_at("origin.git", &["update-ref", "-d", PUSHED]);
    work(&env, &other, "node").exits(75);
}

#[test]
fn withdrawn_job_stops_its_agents_and_pushes_nothing() {
    let env = lost_in_the_middle();
    let withdrawn = offer(&env);
    let job = start_work(&env, &withdrawn, "node");
    wait_for_both(&env, 2);
    env.git_at("origin.git", &["update-ref", PUSHED, &withdrawn]);
    // Its agents are silent, and it notices all the same.
    let ended = job.wait().exits(75);
    assert!(ended.stderr.contains("withdrawn"), "{}", ended.stderr);
    assert_eq!((offer(&env), env.path("scratch/D").exists()), (withdrawn, false));
}

#[test]
fn foreign_push_with_same_claim_is_not_overwritten() {
    let env = lost_in_the_middle();
    let job = start_work(&env, &offer(&env), "node");
    wait_for_both(&env, 2);
    // While it is stopped, it pushes nothing; a git that it had started may.
    job.signal(Signal::STOP);
    let author = ["-c", "user.name=F", "-c", "user.email=f@example.invalid"];
    let tree = format!("{}^{{tree}}", offer(&env));
    let foreign = env.git_at("origin.git", &[&author[..], &["commit-tree", &tree, "-m", "foreign"]].concat());
    env.git_at("origin.git", &["update-ref", PUSHED, &foreign]);
    job.signal(Signal::CONT);
    env.write("scratch/help", "");
    job.wait().exits(75);
    assert_eq!(offer(&env), foreign);
}

#[test]
fn job_continues_after_its_push_lost_the_answer() {
    let env = lost_in_the_middle();
    let hook =
        "#!/bin/sh\n[ -e \"$SCRATCH/lose\" ] || exit 0\nrm \"$SCRATCH/lose\"; touch \"$SCRATCH/lost\"; kill -9 $PPID\n";
    env.write("origin.git/hooks/post-receive", hook);
    std::fs::set_permissions(env.path("origin.git/hooks/post-receive"), PermissionsExt::from_mode(0o755)).unwrap();
    let job = start_work(&env, &offer(&env), "node");
    wait_for_both(&env, 2);
    env.write("scratch/lose", "");
    env.write("scratch/help", "");
    job.wait().exits(0);
    assert!(env.path("scratch/lost").exists(), "no answer was lost");
    assert_eq!((manifest(&env)["outcome"].as_str(), count(&env, "D")), (Some("done"), 1));
}

#[test]
fn a_claim_that_was_pulled_is_pushed_over_by_force_only() {
    let env = lost_in_the_middle();
    let job = start_work(&env, &offer(&env), "node");
    wait_for_both(&env, 2);
    clone_into(&env, "repo");
    env.lanewright(&["state", "pull"]).exits(0);
    // What was pulled is what the remote has.
    job.signal(Signal::STOP);
    env.git(&["fetch", "--quiet", "origin", &format!("+{PUSHED}:refs/lanewright/remotes/origin/{RUN}")]);
    env.lanewright(&["state", "push", RUN]).exits(4).says(&["is worked on by"]).hints("--force");
    assert!(manifest(&env)["claim"]["host"].is_string());
    job.signal(Signal::CONT);
    env.lanewright(&["state", "push", RUN, "--force"]).exits(0);
    job.wait().exits(75);
    env.lanewright(&["state", "push", RUN]).exits(0);
}

#[test]
fn next_job_on_the_same_node_continues_a_dead_one() {
    let env = lost_in_the_middle();
    let job = start_work(&env, &offer(&env), "node");
    wait_for_both(&env, 2);
    job.signal(Signal::KILL);
    job.wait();
    env.write("scratch/help", "");
    // A git that the dead job had started may still push.
    wait_until("the next job to claim the run", || work(&env, &offer(&env), "node").code == 0);
    assert_eq!((manifest(&env)["outcome"].as_str(), count(&env, "A"), count(&env, "D")), (Some("done"), 1, 1));
}

#[test]
fn a_job_that_is_asked_to_end_pushes_what_it_did() {
    let env = lost_in_the_middle();
    let job = start_work(&env, &offer(&env), "node");
    wait_for_both(&env, 2);
    job.signal(Signal::TERM);
    job.wait().exits(143);
    assert_eq!(manifest(&env)["outcome"], "stopped");
    env.write("scratch/help", "");
    work(&env, &offer(&env), "other-node").exits(0);
    assert_eq!((manifest(&env)["outcome"].as_str(), count(&env, "D")), (Some("done"), 1));
}

#[test]
fn unreachable_exchange_loses_no_work_of_job() {
    let env = lost_in_the_middle();
    let job = start_work(&env, &offer(&env), "node");
    wait_for_both(&env, 2);
    std::fs::rename(env.path("origin.git"), env.path("away.git")).expect("renamed");
    env.write("scratch/help", "");
    let has_ended = |path: &PathBuf| path.ends_with("r1.jsonl") && read(path).contains("run_finished");
    wait_until("the run to end", || all_files(&env.path("node")).iter().any(has_ended));
    std::fs::rename(env.path("away.git"), env.path("origin.git")).expect("renamed");
    job.wait().exits(0);
    assert_eq!((manifest(&env)["outcome"].as_str(), count(&env, "D")), (Some("done"), 1));
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
