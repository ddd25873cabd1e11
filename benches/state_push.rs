//! What a push of a run's state costs when little has changed: `cargo bench --bench state_push`.
//!
//! A run whose directory has 50,000 files, and a bare repository on the same disk as its remote. Each round pushes
//! everything, as the first push of a process does, then changes ten files and pushes again with what the process knows.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints")]
#![allow(missing_docs, dead_code, reason = "it shares the simulator of the tests")]

#[path = "../tests/simulation/dice.rs"]
mod dice;
#[path = "../tests/simulation/plans.rs"]
mod plans;
#[path = "../tests/simulation/run_started.rs"]
mod run_started;
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lanewright_engine::state_sync::{OwnPushes, Source, StatePusher};
use lanewright_git::{Remote, Repository};
use lanewright_model::event::Event;
use lanewright_model::{CommitId, Plan, PlanParts, RunId, Timestamp};
use lanewright_store::{Journal, RunDirectory, StateDirectory};
use support::{median, ratios};

const ROUNDS: usize = 3;
const FILES: usize = 50_000;
const CHANGED: usize = 10;
const RECORDS: usize = 5_000;

fn main() {
    let place = tempfile::tempdir().unwrap();
    let (source, remote) = prepare(place.path());
    let directory = source.directory.clone();
    (0..FILES).for_each(|file| write(&directory, file, "first"));
    // What was written just now is read twice.
    sleep(Duration::from_millis(2_500));
    let (mut everything, mut changes) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut pusher = StatePusher::new(source.clone(), remote.clone());
        everything.push(timed(&mut pusher));
        (0..CHANGED).for_each(|file| write(&directory, file * FILES / CHANGED, &format!("round {round}")));
        changes.push(timed(&mut pusher));
    }
    let shown = |times: &[Duration]| format!("{:.2} s", median(times).as_secs_f64());
    println!("{FILES} files, {RECORDS} records; medians of {ROUNDS} rounds");
    println!("everything: {} (first: {:.2} s)", shown(&everything), everything[0].as_secs_f64());
    println!("after {CHANGED} files changed: {}", shown(&changes));
    let (middle, low, high) = ratios(&changes, &everything);
    println!("ratio: {middle:.3} ({low:.3} to {high:.3})");
}

fn timed(pusher: &mut StatePusher) -> Duration {
    let began = Instant::now();
    pusher.push(false).unwrap();
    began.elapsed()
}

fn write(run: &RunDirectory, file: usize, text: &str) {
    let directory = run.log().with_extension("").join(format!("lanes/L0/tests-{}", file / 8));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("{}.md", file % 8)), format!("{text}: report {file}\n").repeat(40)).unwrap();
}

/// A repository with a run of one lane, and its remote.
fn prepare(place: &Path) -> (Source, Remote) {
    let (main, bare) = (place.join("repo"), place.join("origin.git"));
    git(place, &["init", "--quiet", "--bare", "origin.git"]);
    git(place, &["init", "--quiet", "--initial-branch=main", "repo"]);
    git(&main, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    git(&main, &["remote", "add", "origin", bare.to_str().unwrap()]);
    let state = StateDirectory::new(&main);
    state.create().unwrap();
    let run = RunId::new("r").unwrap();
    let directory = state.run(&run);
    directory.create().unwrap();
    let plan = Plan::new(PlanParts {
        lanes: vec![plans::plain_lane(0, vec![], 1)],
        ..lanewright_model::testing::empty_plan()
    })
    .unwrap();
    fs::write(directory.log().with_extension("").join("plan.json"), serde_json::to_vec(&plan).unwrap()).unwrap();
    let base = CommitId::new(&git(&main, &["rev-parse", "HEAD"])).unwrap();
    let mut journal = Journal::create(&directory.log(), &run, &plan.phase).unwrap();
    let at = Timestamp::from_unix_millis(0);
    journal.append(at, &Event::RunStarted(Box::new(run_started::run_started(&plan, &base, 1)))).unwrap();
    let noted = Event::Noted { lane: None, message: "a record as long as many others are".repeat(4) };
    (1..RECORDS).for_each(|_| drop(journal.append(at, &noted).unwrap()));
    journal.sync().unwrap();
    let repository = Repository::locate(&main).unwrap();
    let remote = Remote::named(&repository, "origin").unwrap();
    (Source { repository, directory, run, host: "h".into(), claim: None, pushes: OwnPushes::default() }, remote)
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(["-c", "user.name=n", "-c", "user.email=e"]).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
