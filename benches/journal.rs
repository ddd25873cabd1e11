//! What sharing a sync is worth: `cargo bench --bench journal`.
//!
//! 64 lanes record checkpoints at once, each waiting until its last one is durable. *Together*: one owner takes in
//! whatever has come, through the real run_loop and scheduler and the real run log, and one `fdatasync` makes all of it
//! durable. *In turn*: the same lines in one log of the same file system, each with an `fdatasync` of its own. The ratio is
//! that of these two. *A file each* is no log, since nobody could say what came first: it tells how much of the gain a
//! file system has that makes many files durable at once.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints")]
#![allow(missing_docs, dead_code, reason = "it shares the simulator of the tests")]

#[path = "../tests/simulation/dice.rs"]
mod dice;
#[path = "../tests/simulation/faultless.rs"]
mod faultless;
#[path = "../tests/simulation/plans.rs"]
mod plans;
#[path = "../tests/simulation/run_started.rs"]
mod run_started;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Instant;

use faultless::{Faultless, commit_name};
use lanewright_model::event::{Event, LaneStage};
use lanewright_model::testing::empty_plan;
use lanewright_model::{Checkpoint, CheckpointStatus, LaneId, Plan, PlanParts, Stage, Timestamp};
use lanewright_schedule::RunLoop;
use lanewright_schedule::RunState;
use lanewright_store::Journal;
use plans::plain_lane;
use run_started::run_started;

const RUNS: usize = 5;
const LANES: usize = 64;
const TOGETHER: usize = 400;
const ALONE: usize = 40;

fn main() {
    let mut all: Vec<[f64; 3]> = (0..RUNS)
        .map(|_| {
            let place = tempfile::tempdir().unwrap();
            [together(place.path()), in_turn(place.path()), side_by_side(place.path())]
        })
        .collect();
    all.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    println!("{:>20}{:>20}{:>24}{:>10}", "together, per s", "in turn, per s", "a file each, per s", "ratio");
    for one in &all {
        println!("{:>20.0}{:>20.0}{:>24.0}{:>10.1}", one[0], one[1], one[2], ratio(one));
    }
    println!("target: median ≥ 10 ({:.1})", ratio(&all[RUNS / 2]));
}

fn ratio([together, in_turn, _]: &[f64; 3]) -> f64 {
    together / in_turn
}

/// A run whose lanes all have an agent at work, which goes on for as long as this takes.
fn at_work(place: &Path) -> Faultless<Journal> {
    let lanes = (0..LANES as u32).map(|index| plain_lane(index, vec![], 1)).collect();
    let plan = Arc::new(Plan::new(PlanParts { lanes, ..empty_plan() }).unwrap());
    let started = run_started(&plan, &commit_name(0), LANES as u32);
    let journal = Journal::create(&place.join("run.jsonl"), &started.run_id, &started.phase).unwrap();
    let run_loop = RunLoop::new(journal, RunState::new(plan.clone()));
    let mut world = Faultless::new(run_loop, Box::new(|_| i64::MAX / 2));
    world.absorb(vec![Event::RunStarted(Box::new(started))], vec![]).unwrap();
    while world.run_loop.state().running_attempts() < LANES {
        world.step().unwrap();
    }
    assert!(plan.indices().all(|lane| world.run_loop.state().lane(lane).stage() == LaneStage::Implementation));
    world
}

fn checkpoint(lane: usize) -> Event {
    let reached = Checkpoint::new(Stage::AfterLaneStart, CheckpointStatus::InProgress);
    let checkpoint = Checkpoint { head_sha: Some(commit_name(lane as u64)), ..reached };
    Event::CheckpointReached { lane: Some(LaneId::new(&format!("L{lane}")).unwrap()), checkpoint }
}

/// Durable checkpoints a second with one owner of the log.
fn together(place: &Path) -> f64 {
    let mut world = at_work(place);
    let (sender, inbox) = channel();
    let began = Instant::now();
    let lanes: Vec<_> = (0..LANES).map(|lane| spawn_lane(lane, sender.clone())).collect();
    drop(sender);
    keep(&mut world, &inbox);
    lanes.into_iter().for_each(|lane| lane.join().unwrap());
    (LANES * TOGETHER) as f64 / began.elapsed().as_secs_f64()
}

type Wish = (Event, Sender<()>);

fn spawn_lane(lane: usize, owner: Sender<Wish>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let (done, durable) = channel();
        for _ in 0..TOGETHER {
            owner.send((checkpoint(lane), done.clone())).unwrap();
            durable.recv().unwrap();
        }
    })
}

/// As the driver does: waits for one, takes all that are there, makes them durable, tells.
fn keep(world: &mut Faultless<Journal>, inbox: &Receiver<Wish>) {
    let mut moment = 0;
    while let Ok(first) = inbox.recv() {
        let (events, waiting): (Vec<Event>, Vec<Sender<()>>) = std::iter::once(first).chain(inbox.try_iter()).unzip();
        moment += 1;
        world.run_loop.absorb(events, [], Timestamp::from_unix_millis(moment)).unwrap();
        waiting.into_iter().for_each(|lane| lane.send(()).unwrap());
    }
}

/// The line that the run log holds for a checkpoint.
fn line(place: &Path, lane: usize) -> Vec<u8> {
    let text = std::fs::read_to_string(place.join("run.jsonl")).unwrap();
    let lane = format!("\"lane\":\"L{lane}\"");
    let is_it = |line: &&str| line.contains("\"checkpoint_reached\"") && line.contains(&lane);
    format!("{}\n", text.lines().rfind(is_it).unwrap()).into_bytes()
}

fn in_turn(place: &Path) -> f64 {
    let file = Mutex::new(open(&place.join("in_turn.jsonl")));
    each(place, |_, line| durably(&mut file.lock().unwrap(), line))
}

fn side_by_side(place: &Path) -> f64 {
    let files: Vec<Mutex<File>> =
        (0..LANES).map(|lane| Mutex::new(open(&place.join(format!("{lane}.jsonl"))))).collect();
    each(place, |lane, line| durably(&mut files[lane].lock().unwrap(), line))
}

fn each(place: &Path, write: impl Fn(usize, &[u8]) + Sync) -> f64 {
    let lines: Vec<Vec<u8>> = (0..LANES).map(|lane| line(place, lane)).collect();
    let ready = Barrier::new(LANES + 1);
    let began = thread::scope(|scope| {
        for (lane, line) in lines.iter().enumerate() {
            let (write, ready) = (&write, &ready);
            scope.spawn(move || {
                ready.wait();
                (0..ALONE).for_each(|_| write(lane, line));
            });
        }
        ready.wait();
        Instant::now()
    });
    (LANES * ALONE) as f64 / began.elapsed().as_secs_f64()
}

fn open(path: &Path) -> File {
    OpenOptions::new().append(true).create_new(true).open(path).unwrap()
}

fn durably(file: &mut File, line: &[u8]) {
    file.write_all(line).unwrap();
    file.sync_data().unwrap();
}
