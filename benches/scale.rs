//! What a lane costs the engine when there are many: `cargo bench --bench scale`.
//!
//! Phases of lanes in which nothing is done run through the real run_loop and scheduler, 64 agents at once, with a real run
//! log (every step durable before the next) and the real writer of projections (`checkpoints.json`, `task.json`); only git and the
//! agents are simulated. Each phase has a process of its own, because that is what peak memory is told of. One of the
//! largest is killed half-way and taken up again.
//!
//! Then the real program reads what many lanes and many runs left: `-- readers` is that alone, `-- lanes` the other part.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints")]
#![allow(missing_docs, dead_code, reason = "it shares the simulator of the tests")]

#[path = "../tests/simulation/dice.rs"]
mod dice;
#[path = "../tests/simulation/faultless.rs"]
mod faultless;
#[path = "scale/lanes.rs"]
mod lanes;
#[path = "../tests/simulation/plans.rs"]
mod plans;
#[path = "scale/readers.rs"]
mod readers;
#[path = "../tests/simulation/run_started.rs"]
mod run_started;
#[path = "scale/runs.rs"]
mod runs;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

const RUNS: usize = 5;
const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];

/// What a phase said of itself.
type Said = HashMap<String, f64>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["run", lanes, place] => lanes::run(lanes.parse().unwrap(), Path::new(place), false),
        ["cut", lanes, place] => lanes::run(lanes.parse().unwrap(), Path::new(place), true),
        ["resume", lanes, place] => lanes::resume(lanes.parse().unwrap(), Path::new(place)),
        ["runs"] => runs::measure(&[10, 100, 300, 1_000]),
        ["runs", sizes @ ..] => runs::measure(&sizes.iter().map(|lanes| lanes.parse().unwrap()).collect::<Vec<_>>()),
        ["measure", words @ ..] => readers::measure(words),
        ["lanes"] => compare(),
        ["readers"] => readers::compare(),
        _ => {
            compare();
            readers::compare();
        }
    }
}

fn compare() {
    println!(
        "medians of {RUNS}; a lane has three checkpoints; ms a checkpoint: writing checkpoints.json and task.json"
    );
    println!(
        "{:>7}{:>14}{:>14}{:>14}{:>12}{:>12}{:>16}{:>12}",
        "lanes", "ms a lane", "× 1,000", "cpu ms a lane", "× 1,000", "syncs", "ms a checkpoint", "peak MB"
    );
    let all: Vec<Vec<Said>> = SIZES.iter().map(|_| Vec::new()).collect();
    // In turns, so that what else the machine does meets all of them alike.
    let all = (0..RUNS).fold(all, |mut all, _| {
        SIZES.iter().zip(&mut all).for_each(|(lanes, said)| said.push(fresh("run", *lanes)));
        all
    });
    let [_, _, thousand, most] = &all[..] else { return };
    for (lanes, said) in SIZES.iter().zip(&all) {
        let times = |key: &str| median(said, key) / median(thousand, key);
        println!(
            "{lanes:>7}{:>14.3}{:>14.2}{:>14.3}{:>12.2}{:>12}{:>16.3}{:>12.0}",
            median(said, "wall"),
            times("wall"),
            median(said, "cpu"),
            times("cpu"),
            median(said, "syncs"),
            median(said, "mirror"),
            median(said, "memory"),
        );
    }
    let linear = median(most, "wall") / median(thousand, "wall");
    println!("target: 10,000 lanes within 20 % of 1,000 each ({linear:.2}), below 200 MB");
    resumes();
}

fn resumes() {
    let most = SIZES[SIZES.len() - 1];
    let said: Vec<Said> = (0..RUNS)
        .map(|_| {
            let place = tempfile::tempdir().unwrap();
            lanes::prepare(place.path());
            let killed = child("cut", most, place.path());
            assert!(!killed.status.success(), "the run was not cut off");
            told(&child("resume", most, place.path()).stdout)
        })
        .collect();
    println!("resume of {most} lanes, killed when half of them were merged: {} events", median(&said, "events"));
    for part in ["log", "plan", "replay", "files", "first action"] {
        println!("{part:>14} after {:>7.3} s", median(&said, part));
    }
    println!("{:>14} {:>13.0} MB", "peak", median(&said, "memory"));
    println!("target: first action below 1 s");
}

fn fresh(command: &str, lanes: u32) -> Said {
    let place = tempfile::tempdir().unwrap();
    lanes::prepare(place.path());
    let output = child(command, lanes, place.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    told(&output.stdout)
}

fn child(command: &str, lanes: u32, place: &Path) -> std::process::Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.arg(command).arg(lanes.to_string()).arg(place).output().unwrap()
}

fn told(text: &[u8]) -> Said {
    let text = String::from_utf8_lossy(text);
    let pairs = text.lines().filter_map(|line| line.rsplit_once(' '));
    pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

fn median(said: &[Said], key: &str) -> f64 {
    let mut values: Vec<f64> = said.iter().map(|said| said[key]).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
