//! What whole runs of the real program cost as they get more lanes: `cargo bench --bench scale -- runs [LANES…]`.
//!
//! Each lane changes one file of a repository whose size stays the same, so every figure for each lane should, too. Bytes
//! are those that the processes of the run passed to the kernel, those of git and of the report at the end included.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// How many files the repository has; lanes beyond that change those of other lanes, one after the other.
const FILES: u32 = 300;

const PARALLEL: u32 = 16;

/// How many of the kernel's ticks are a second: `USER_HZ`, which programs see as 100 on every machine.
const TICKS: f64 = 100.0;

/// Between two looks at the memory of the run.
const LOOK: Duration = Duration::from_millis(20);

/// What costs are compared, each with its unit.
const COSTS: [&str; 4] = ["MB written", "cpu s", "cpu s of git …", "peak MB"];

/// Runs of so many lanes each, and by which power of the lanes their costs grow.
pub fn measure(sizes: &[u32]) {
    let mut all: Vec<(u32, [f64; 4])> = Vec::new();
    println!("{:>7}{:>9}{:>14}{:>14}{:>18}{:>14}", "lanes", "s", COSTS[0], COSTS[1], COSTS[2], COSTS[3]);
    for &lanes in sizes {
        let (seconds, costs) = run(lanes);
        let [bytes, own, others, memory] = costs;
        println!("{lanes:>7}{seconds:>9.1}{bytes:>14.2}{own:>14.2}{others:>18.2}{memory:>14.0}");
        all.push((lanes, costs));
    }
    for pair in all.windows(2) {
        growth(&pair[0], &pair[1]);
    }
    if let ([first, _, .., last], true) = (&all[..], all.len() > 2) {
        growth(first, last);
    }
    println!("target: the exponent of no cost above 1.1");
}

fn growth((few, less): &(u32, [f64; 4]), (many, more): &(u32, [f64; 4])) {
    let exponents =
        less.iter().zip(more).map(|(less, more)| (more / less).ln() / (f64::from(*many) / f64::from(*few)).ln());
    let named: Vec<String> = exponents.zip(COSTS).map(|(exponent, cost)| format!("{cost} {exponent:.2}")).collect();
    println!("exponents from {few} to {many} lanes: {}", named.join(", "));
}

/// The time that a run takes, in seconds, and its costs.
fn run(lanes: u32) -> (f64, [f64; 4]) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    prepare(place.path(), lanes);
    let words = ["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none", "--max-parallel"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    command.args(words).arg(PARALLEL.to_string()).current_dir(place.path().join("repo"));
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let memory = peak_until_end(&child);
    let seconds = began.elapsed().as_secs_f64();
    // It has ended and is not forgotten yet.
    let proc = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    let (stat, io) = (proc("stat"), proc("io"));
    assert!(child.wait().unwrap().success(), "the run failed");
    let ticks: Vec<f64> =
        stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(4).map(|field| field.parse().unwrap()).collect();
    let bytes: f64 = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap();
    (seconds, [bytes / 1e6, (ticks[0] + ticks[1]) / TICKS, (ticks[2] + ticks[3]) / TICKS, memory])
}

/// The most memory that the process had until it ended, in MB.
fn peak_until_end(child: &Child) -> f64 {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let mut peak = 0.0;
    while waitid(WaitId::Pid(Pid::from_child(child)), ended).unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.map_or(peak, |line| line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1e3);
        std::thread::sleep(LOOK);
    }
    peak
}

fn prepare(place: &Path, lanes: u32) {
    let repository = place.join("repo");
    for file in 0..FILES {
        let path = repository.join(file_name(file));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("line of file {file}\n").repeat(20)).unwrap();
    }
    let mut plan = "phase = \"P1\"\n".to_owned();
    for lane in 0..lanes {
        let file = file_name(lane % FILES);
        write!(plan, "[[lane]]\nid = \"L{lane}\"\ncommand = 'echo {lane} >> {file}'\n").unwrap();
    }
    fs::write(place.join("plan.toml"), plan).unwrap();
    let commands: [&[&str]; 5] = [
        &["init", "--quiet", "--initial-branch=main"],
        &["config", "user.name", "x"],
        &["config", "user.email", "x@example.invalid"],
        &["add", "--all"],
        &["commit", "--quiet", "--message=first"],
    ];
    for words in commands {
        assert!(Command::new("git").current_dir(&repository).args(words).status().unwrap().success());
    }
}

fn file_name(number: u32) -> String {
    format!("part-{:02}/file-{number:04}.txt", number / 100)
}
