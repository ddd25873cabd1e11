//! Clocks that jump: what waits for a moment does not wait for the machine's clock to come there.

use std::time::Duration;

use lanewright_model::event::Event;
use lanewright_model::{PhaseId, RunId};
use lanewright_store::{Journal, run_log};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::{RUN, STATE, TestEnv, wait_until};

/// Moves everything that the run log holds into the future, as if the machine's clock had been set back since then. Retries
/// are due at once by that clock.
fn set_clock_back(env: &TestEnv, by: Duration) {
    let path = env.path(&format!("repo/{STATE}/{RUN}.jsonl"));
    let records = run_log::read(&path).expect("a log").records;
    std::fs::remove_file(&path).expect("the log");
    let (run, phase) = (RunId::new(RUN).expect("an id"), PhaseId::new("P1").expect("an id"));
    let mut journal = Journal::create(&path, &run, &phase).expect("a log");
    for record in records {
        let mut event = record.event;
        if let Event::RetryPlanned { not_before, .. } = &mut event {
            *not_before = record.at.plus(by);
        }
        journal.append(record.at.plus(by), &event).expect("a record");
    }
    journal.sync().expect("a log");
}

#[test]
fn a_retry_waits_no_longer_after_the_clock_was_set_back() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 1\ncommand = 'echo x > x.txt; [ $LANEWRIGHT_ATTEMPT = 2 ]'\n");
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN];
    let running = env.start_with(&start, |command| command.env("LANEWRIGHT_BACKOFF", "1h"));
    let log = format!("repo/{STATE}/{RUN}.jsonl");
    wait_until("the retry", || env.path(&log).exists() && env.read(&log).contains("\"retry_planned\""));
    running.signal(Signal::KILL);
    running.wait().exits(137);
    set_clock_back(&env, Duration::from_secs(3 * 3600));
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "x.txt"));
}

/// Shorter than the time for which the processes are stopped, and much longer than they need awake.
const LIMIT: &str = "10s";
const ASLEEP: Duration = Duration::from_secs(11);

#[test]
fn time_asleep_counts_for_no_limit_of_a_lane_or_run() {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nretries = 0\ntimeout = \"{LIMIT}\"\n\
         command = 'echo $PPID > \"$SCRATCH/supervisor\"; echo $$ > \"$SCRATCH/agent\"; wait-for go; echo x > x.txt'\n"
    ));
    let run = env.start(&["--timeout", LIMIT]);
    wait_until("the agent", || env.path("scratch/agent").exists() && !env.scratch("agent").is_empty());
    let pid = |file: &str| Pid::from_raw(env.scratch(file).trim().parse().expect("a pid")).expect("a pid");
    let (supervisor, agent) = (pid("supervisor"), pid("agent"));
    let signal_all = |signal| {
        run.signal(signal);
        kill_process(supervisor, signal).expect("a supervisor");
        kill_process_group(agent, signal).expect("an agent");
    };
    signal_all(Signal::STOP);
    std::thread::sleep(ASLEEP);
    env.write("scratch/go", "");
    signal_all(Signal::CONT);
    run.wait().exits(0).says(&["Lanewright did not run for"]);
    assert!(env.holds("main", "x.txt"));
    assert_eq!(env.events("slept").len(), 1);
}
