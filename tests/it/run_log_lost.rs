//! Agents and other programs that delete or change the run log, or the files that it is kept with, while a run is active.

use std::fs;

use crate::support::{Ended, RUN, STATE, TestEnv};

/// Runs a lane `A` whose agent works and does `attack` to the run log `$log` below `$state`, and a lane `B` that
/// depends on it. The run must stop and restore the log; a resume must end it with each agent's work done once.
fn attacked(attack: &str, what: &str) -> (TestEnv, Ended) {
    let env = TestEnv::new();
    let (state, scratch) = (env.path(&format!("repo/{STATE}")), env.path("scratch"));
    let command = format!(
        "echo a > a.txt; echo A >> {scratch}/ran; state={state}; log=$state/{RUN}.jsonl\n\
         [ -e {scratch}/attacked ] || {{ : > {scratch}/attacked; {attack}; }}",
        state = state.display(),
        scratch = scratch.display(),
    );
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\ncommand = '''\n{command}\n'''\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = \"echo b > b.txt; echo B >> {}/ran\"\n",
        scratch.display()
    ));
    let stopped = env.execute(&[]).exits(6).says(&[&format!("another program {what} the run log"), "it was restored"]);
    let stopped = stopped.hints("lanewright resume");
    assert!(!env.holds("main", "b.txt"), "the run went on");
    // Every line is whole, and numbered without a gap.
    let numbers: Vec<u64> = env.log().iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    (env, stopped)
}

fn resumed(env: &TestEnv, ran: &str) {
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
    assert_eq!(env.scratch("ran"), ran);
    assert_eq!(env.events("lane_merged").len(), 2);
    env.lanewright(&["doctor"]).exits(0);
    env.assert_nothing_left(&["main"]);
}

/// The files that what was found in place of the log is saved as.
fn saved(env: &TestEnv) -> Vec<String> {
    let entries = fs::read_dir(env.path(&format!("repo/{STATE}"))).expect("the state directory").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("{RUN}.jsonl.damaged"))).collect()
}

#[test]
fn a_deleted_log_is_restored_and_the_run_stopped() {
    let (env, _) = attacked("rm -f $log", "deleted");
    assert!(saved(&env).is_empty());
    resumed(&env, "A\nB\n");
}

#[test]
fn a_truncated_log_is_restored_and_the_run_stopped() {
    let (env, stopped) = attacked(": > $log", "truncated");
    assert_eq!(saved(&env).len(), 1);
    stopped.says(&[&saved(&env)[0]]);
    resumed(&env, "A\nB\n");
}

#[test]
fn log_replaced_by_a_link_is_restored() {
    let (env, _) = attacked("rm -f $log; echo mine > $state/../target; ln -s $state/../target $log", "replaced");
    assert_eq!(env.read(&format!("repo/{STATE}/../target")), "mine\n");
    fs::remove_file(env.path(&format!("repo/{STATE}/../target"))).unwrap();
    resumed(&env, "A\nB\n");
}

#[test]
fn log_replaced_by_a_pipe_is_restored() {
    let (env, _) = attacked("rm -f $log; mkfifo $log", "replaced");
    resumed(&env, "A\nB\n");
}

#[test]
fn foreign_bytes_after_the_log_are_saved_and_cut_off() {
    let (env, _) = attacked("echo garbage >> $log", "appended to");
    assert!(env.read(&format!("repo/{STATE}/{}", saved(&env)[0])).contains("garbage"));
    resumed(&env, "A\nB\n");
}

#[test]
fn removed_run_directory_costs_one_attempt() {
    let (env, _) = attacked("rm -rf $log $state/r1", "deleted");
    // The exit of the attempt could not be recorded, so it is repeated.
    resumed(&env, "A\nA\nB\n");
}

#[test]
fn removed_state_directory_costs_one_attempt() {
    let (env, _) = attacked("rm -rf ${state%/*/*}", "deleted");
    resumed(&env, "A\nA\nB\n");
}

#[test]
fn job_without_directory_is_stopped_before_a_rerun() {
    let env = TestEnv::new();
    let (repo, scratch) = (env.path("repo"), env.path("scratch"));
    // `A` removes the state once `B` is at work, and `B` ends when it may, or when it is stopped.
    env.plan(&format!(
        "max_parallel = 2\n\
         [[lane]]\nid = \"A\"\ncommand = \"wait-for b; [ -e {scratch}/attacked ] || {{ : > {scratch}/attacked; rm -rf {repo}/.claude; }}; echo a > a.txt\"\n\
         [[lane]]\nid = \"B\"\ncommand = \"echo $$ >> {scratch}/b; echo b > b.txt; [ $(wc -l < {scratch}/b) = 2 ] || wait-for never; echo end >> {scratch}/ended\"\n",
        repo = repo.display(),
        scratch = scratch.display(),
    ));
    env.execute(&[]).exits(6).says(&["another program deleted the run log"]);
    let pid = env.scratch("b").trim().to_owned();
    assert!(fs::exists(format!("/proc/{pid}")).unwrap(), "it is not disturbed before the resume");
    env.resume(&[]).exits(0).says(&["the files of B/agent/1", "were removed while it ran"]);
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
    assert_eq!(env.scratch("ended"), "end\n", "it ran to its end once");
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
}
