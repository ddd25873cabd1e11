//! Several Lanewrights at once: who may work on what, and what becomes of the work of one that died.

use std::process::Command;

use lanewright_model::event::Owner;
use lanewright_model::{LaneId, PhaseId, ProcessId, RunId, Timestamp};
use lanewright_store::{Holder, LockScope, RunLock, StateDirectory};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ended, Running, STATE, TestEnv, wait_until};

/// Two lanes that need nothing and wait for a word each, and one that needs both.
const TWO_AND_ONE: &str = "[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/A-began\"; wait-for A-go; echo a > a.txt'\n\
     [[lane]]\nid = \"B\"\ncommand = 'touch \"$SCRATCH/B-began\"; wait-for B-go; echo b > b.txt'\n\
     [[lane]]\nid = \"C\"\ndepends_on = [\"A\", \"B\"]\ncommand = 'cat a.txt b.txt > c.txt'\n";

fn with(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(plan);
    env
}

/// `execute-lane` of the plan, not waited for.
fn lane(env: &TestEnv, arguments: &[&str]) -> Running {
    lane_with(env, arguments, |command| command)
}

fn lane_with(env: &TestEnv, arguments: &[&str], more: impl Fn(&mut Command) -> &mut Command) -> Running {
    let plan = env.path("plan.toml");
    env.start_with(&[&["execute-lane", plan.to_str().expect("UTF-8")], arguments].concat(), more)
}

/// A lane at work, in a run of the same name in lower case, by a session of that name.
fn at_work(env: &TestEnv, id: &str) -> Running {
    let run = id.to_lowercase();
    let running = lane(env, &[id, "--run-id", &run, "--session-id", &format!("session-{run}")]);
    wait_until("the agent", || env.path(&format!("scratch/{id}-began")).exists());
    running
}

fn go(env: &TestEnv, lanes: &[&str]) {
    lanes.iter().for_each(|lane| env.write(&format!("scratch/{lane}-go"), ""));
}

fn killed(running: Running) -> Ended {
    running.signal(Signal::KILL);
    running.wait().exits(137)
}

fn runs(env: &TestEnv) -> Vec<String> {
    let entries = std::fs::read_dir(env.path(&format!("repo/{STATE}"))).expect("the state");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut runs: Vec<String> = names.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect();
    runs.sort();
    runs
}

/// The events of a run that may be alive: a line that is being written does not count yet.
pub(crate) fn events(env: &TestEnv, run: &str, kind: &str) -> Vec<Value> {
    let text = env.read(&format!("repo/{STATE}/{run}.jsonl"));
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["event"] == kind).collect()
}

#[test]
fn two_work_on_two_lanes_at_once() {
    let env = with(TWO_AND_ONE);
    let (a, b) = (at_work(&env, "A"), at_work(&env, "B"));
    let port = |run: &str, lane: &str| {
        let based = events(&env, run, "lane_based");
        based.iter().find(|event| event["lane"] == lane).expect("its beginning")["port"].as_u64().expect("a port")
    };
    assert!(port("a", "A").abs_diff(port("b", "B")) >= 10, "two lanes share ports");
    go(&env, &["A"]);
    a.wait().exits(0);
    assert!(env.holds("main", "a.txt") && !env.holds("main", "b.txt"));
    env.lanewright(&["clean", "--yes", "--logs"]).exits(0);
    go(&env, &["B"]);
    b.wait().exits(0);
    lane(&env, &["C", "--run-id", "c"]).wait().exits(0);
    assert_eq!(env.file_at("main", "c.txt"), "a\nb");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn held_lane_is_refused_with_holder_and_hints() {
    let env = with(TWO_AND_ONE);
    let a = at_work(&env, "A");
    let text = lane(&env, &["A", "--run-id", "second"]).wait().exits(4);
    let text = text.says(&["pid", "session session-a", "run a", "since 20"]).hints("lanewright status a --watch");
    text.hints("lanewright stop a").hints("--on-lock-conflict wait");
    env.execute(&["--run-id", "whole"]).exits(4).says(&["session session-a"]);
    env.execute(&["--run-id", "whole", "--on-lock-conflict", "next"]).exits(4);
    env.execute(&["--run-id", "whole", "--lane", "C"]).exits(4);
    assert_eq!(runs(&env), ["a"]);
    go(&env, &["A"]);
    a.wait().exits(0);
}

#[test]
fn no_lane_is_begun_beside_a_run_of_the_whole_phase() {
    let env = with(TWO_AND_ONE);
    let whole = env.start(&["--session-id", "whole-session", "--max-parallel", "1"]);
    wait_until("an agent", || env.path("scratch/A-began").exists());
    lane(&env, &["B", "--run-id", "b"]).wait().exits(4).says(&["whole-session", "r1"]);
    lane(&env, &["--next"]).wait().exits(4).says(&["whole-session"]);
    assert_eq!(runs(&env), ["r1"]);
    go(&env, &["A", "B"]);
    whole.wait().exits(0);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn lane_with_unmerged_dependencies_is_refused() {
    let env = with(TWO_AND_ONE);
    let a = at_work(&env, "A");
    let refused = lane(&env, &["C"]).wait().exits(3).says(&["C", "A and B", "not merged into main"]);
    refused.hints("--next");
    go(&env, &["A"]);
    a.wait().exits(0);
    lane(&env, &["C"]).wait().exits(3).says(&["depends on B, which is not merged"]);
    assert_eq!(runs(&env), ["a"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn remote_lane_holder_is_named_with_its_host() {
    let env = with(TWO_AND_ONE);
    let phase = PhaseId::new("P1").expect("an id");
    let state = StateDirectory::new(&env.path("repo"));
    let lock = state.lock(LockScope::Lane(&phase, &LaneId::new("A").expect("an id"))).expect("its place");
    let process = ProcessId { pid: 4711, started: 1 };
    let holder = Holder {
        owner: Owner { session_id: "theirs".to_owned(), process, host: "another-box".to_owned(), boot: String::new() },
        run: RunId::new("r9").expect("an id"),
        since: Timestamp::from_unix_millis(0),
        program: vec!["lanewright".to_owned()],
    };
    let held = RunLock::acquire(&lock, &holder).expect("the lock");
    let refused = lane(&env, &["A"]).wait().exits(4).says(&["pid 4711 on another-box", "session theirs"]);
    refused.hints("another machine, another-box").hints("lanewright stop r9");
    drop(held);
    go(&env, &["A"]);
    // What the file says counts for nothing without the kernel's word.
    lane(&env, &["A"]).wait().exits(0);
}

#[test]
fn older_rollback_does_not_hide_a_newer_merge() {
    let env = with(TWO_AND_ONE);
    go(&env, &["A", "B"]);
    lane(&env, &["A", "--run-id", "first"]).wait().exits(0);
    lane(&env, &["B", "--run-id", "b"]).wait().exits(0);
    env.lanewright(&["rollback", "first", "--yes"]).exits(0);
    lane(&env, &["C"]).wait().exits(3).says(&["depends on A, which is not merged"]);
    lane(&env, &["A", "--run-id", "second", "--new-run"]).wait().exits(0);
    lane(&env, &["C", "--run-id", "c"]).wait().exits(0);
    assert_eq!(env.file_at("main", "c.txt"), "a\nb");
}

#[test]
fn a_run_whose_log_is_elsewhere_counts_all_the_same() {
    let env = with(TWO_AND_ONE);
    go(&env, &["A", "B"]);
    for id in ["A", "B"] {
        lane(&env, &["--next", "--log-path", &format!("../logs/{id}.jsonl")]).wait().exits(0).says(&[id]);
    }
    lane(&env, &["--next", "--log-path", "../logs/C.jsonl"]).wait().exits(0).says(&["Lane C is next"]);
    assert!(lane(&env, &["--next"]).wait().exits(0).stdout.contains("nothing to do"));
}

#[test]
fn resume_without_run_id_selects_run_of_named_lane() {
    let env = with(TWO_AND_ONE);
    killed(at_work(&env, "A"));
    killed(at_work(&env, "B"));
    go(&env, &["A", "B"]);
    lane(&env, &["A", "--resume"]).wait().exits(0);
    assert!(env.holds("main", "a.txt") && !env.holds("main", "b.txt"));
    lane(&env, &["C", "--resume"]).wait().exits(8);
    env.lanewright(&["resume"]).exits(0);
    assert!(env.holds("main", "b.txt"));
}

#[test]
fn rollback_is_refused_while_another_session_works() {
    let env = with(TWO_AND_ONE);
    go(&env, &["A"]);
    lane(&env, &["A", "--run-id", "a"]).wait().exits(0);
    let b = at_work(&env, "B");
    env.lanewright(&["rollback", "a"]).exits(4).says(&["session session-b"]);
    assert!(env.holds("main", "a.txt"));
    go(&env, &["B"]);
    b.wait().exits(0);
    env.lanewright(&["rollback", "a", "--yes"]).exits(0);
}

#[test]
fn lanes_that_exclude_each_other_do_so_across_processes() {
    let env = with(&format!(
        "[pools]\nheavy = 1\n{}",
        TWO_AND_ONE.replace("command = 't", "uses = [\"heavy\"]\ncommand = 't")
    ));
    let a = at_work(&env, "A");
    lane(&env, &["B", "--run-id", "b"]).wait().exits(4).says(&["pool `heavy`"]);
    lane(&env, &["--next"]).wait().exits(4).says(&["pool `heavy`"]);
    go(&env, &["A", "B"]);
    a.wait().exits(0);
    lane(&env, &["--next"]).wait().exits(0).says(&["Lane B is next"]);
}

#[test]
fn next_picks_longest_path_among_lanes_not_held() {
    let env = with(&format!(
        "{TWO_AND_ONE}[[lane]]\nid = \"D\"\ndepends_on = [\"C\"]\nallow_empty = true\ncommand = 'true'\n\
         [[lane]]\nid = \"E\"\ncommand = 'echo e > e.txt'\n"
    ));
    let a = at_work(&env, "A");
    go(&env, &["A", "B"]);
    a.wait().exits(0);
    let a = {
        std::fs::remove_file(env.path("scratch/B-go")).expect("the word");
        at_work(&env, "B")
    };
    // `B` was named and is held: `E` is all that is ready.
    let ended = lane(&env, &["B", "--on-lock-conflict", "next", "--format", "json"]).wait().exits(0);
    let summary: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(summary["lane"], "E");
    let refused = lane(&env, &["--next", "--format", "json"]).wait().exits(4);
    assert!(refused.stderr.contains("held") && refused.stderr.contains("session-b"), "{}", refused.stderr);
    go(&env, &["B"]);
    a.wait().exits(0);
    for expected in ["C", "D"] {
        lane(&env, &["--next"]).wait().exits(0).says(&[&format!("Lane {expected} is next")]);
    }
    let done = lane(&env, &["--next"]).wait().exits(0);
    assert!(done.stdout.contains("nothing to do: 5 of 5 lanes were merged by runs "), "{}", done.stdout);
    let done: Value =
        serde_json::from_str(&lane(&env, &["--next", "--format", "json"]).wait().exits(0).stdout).unwrap();
    assert_eq!((&done["lane"], &done["outcome"]), (&Value::Null, &Value::from("done")));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn a_dead_sessions_lane_is_taken_over_by_a_resume_only() {
    let env = with(TWO_AND_ONE);
    killed(at_work(&env, "A"));
    let refused = lane(&env, &["A", "--run-id", "mine"]).wait().exits(7);
    refused.says(&["run a", "session session-a", "is gone"]).hints("lanewright resume a");
    let other = at_work(&env, "B");
    go(&env, &["B"]);
    other.wait().exits(0);
    let stuck = lane(&env, &["--next"]).wait().exits(3).says(&["A: belongs to run a", "C: it depends on A"]);
    stuck.hints("lanewright resume a");
    assert_eq!(runs(&env), ["a", "b"]);
    let resumed = env.start_with(&["resume", "a", "--session-id", "heir"], |command| command);
    wait_until("the heir", || !events(&env, "a", "run_resumed").is_empty());
    assert_eq!(events(&env, "a", "run_resumed")[0]["owner"]["session_id"], "heir");
    // The one who died may not have come to write it.
    let task = || std::fs::read_to_string(env.path("repo.lanes/a/A/task.json")).ok();
    let whose = |text: String| serde_json::from_str::<Value>(&text).expect("JSON")["session_id"].clone();
    wait_until("the lane's file", || task().is_some_and(|text| whose(text) == "heir"));
    lane(&env, &["A", "--run-id", "mine"]).wait().exits(4).says(&["session heir"]);
    go(&env, &["A"]);
    resumed.wait().exits(0);
    assert_eq!(events(&env, "a", "job_planned").len(), 1, "the work was done again");
    lane(&env, &["--next"]).wait().exits(0).says(&["Lane C is next"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn waiting_session_names_the_holder_and_continues() {
    let env = with(TWO_AND_ONE);
    let a = at_work(&env, "A");
    let plan = env.path("plan.toml");
    let wait = ["--run-id", "w", "--on-lock-conflict", "wait"];
    let waiting = env.path("waiting");
    let log = || std::fs::File::create(&waiting).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command).args(["execute-phase", plan.to_str().expect("UTF-8"), "--lane", "B"]).args(wait);
    let mut waiter = command.stderr(log()).spawn().expect("the binary");
    go(&env, &["B"]);
    assert_eq!(waiter.wait().expect("its end").code(), Some(0), "B is nobody's, so nobody is waited for");
    let again = ["A", "--run-id", "w2", "--on-lock-conflict", "wait", "--timeout", "1s"];
    lane(&env, &again).wait().exits(124).says(&["Waiting: lane A", "session-a", "in vain"]);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
        let wish = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "w3", "--on-lock-conflict", "wait"];
        env.pin(&mut command).args(wish);
        let mut waiter = command.stderr(log()).spawn().expect("the binary");
        wait_until("the wait", || env.read("waiting").contains("Waiting: lane A"));
        let pid = rustix::process::Pid::from_child(&waiter);
        rustix::process::kill_process(pid, signal).expect("it waits");
        assert_eq!(waiter.wait().expect("its end").code(), Some(code), "{}", env.read("waiting"));
    }
    assert_eq!(runs(&env), ["a", "w"]);
    let next = lane(&env, &["--next", "--run-id", "n", "--on-lock-conflict", "wait"]);
    go(&env, &["A"]);
    a.wait().exits(0);
    next.wait().exits(0).says(&["Lane C is next"]);
    env.assert_nothing_left(&["main"]);
}

/// Eight lanes in four layers; everybody writes down that they worked.
fn eight() -> String {
    let needs: [(&str, &[&str]); 8] = [
        ("A", &[]),
        ("B", &[]),
        ("C", &["A"]),
        ("D", &["A", "B"]),
        ("E", &["B"]),
        ("F", &["C", "D"]),
        ("G", &["E"]),
        ("H", &["F", "G"]),
    ];
    let lane = |(id, needs): &(&str, &[&str])| {
        let checks: String = needs.iter().map(|need| format!("[ -e {need}.txt ] && ")).collect();
        format!(
            "[[lane]]\nid = \"{id}\"\ndepends_on = {needs:?}\nretries = 0\n\
             command = '{checks}echo {id} >> \"$SCRATCH/worked\"; echo {id} > {id}.txt'\n"
        )
    };
    needs.iter().map(lane).collect()
}

#[test]
fn four_who_ask_for_the_next_lane_do_each_lane_once() {
    for round in 0..10 {
        let env = with(&eight());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let ended = lane(&env, &["--next", "--on-lock-conflict", "wait"]).wait().exits(0);
                        if ended.stdout.contains("nothing to do") {
                            break;
                        }
                    }
                });
            }
        });
        let mut worked: Vec<String> = env.scratch("worked").lines().map(str::to_owned).collect();
        worked.sort();
        assert_eq!(worked, ["A", "B", "C", "D", "E", "F", "G", "H"], "round {round}");
        assert!(worked.iter().all(|lane| env.holds("main", &format!("{lane}.txt"))), "round {round}");
        assert_eq!(runs(&env).len(), 8, "round {round}");
        env.assert_nothing_left(&["main"]);
    }
}
