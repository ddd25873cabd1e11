//! What a phase takes beside what its agents take: `cargo bench --bench overhead [-- LANES SECONDS ROUNDS FILES]`.
//!
//! The real binary runs lanes whose agents sleep, four at a time. Printed are the makespan beside what the agents alone
//! would take, the overhead as the report tells it, and the processor time of Lanewright, of git and of the supervisors.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(missing_docs, reason = "a program")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const LANEWRIGHT: &str = env!("CARGO_BIN_EXE_lanewright");

/// How many agents work at once.
const PARALLEL: u64 = 4;

/// How many of the kernel's ticks are a second: `USER_HZ`, which programs see as 100 on every machine.
const TICKS: f64 = 100.0;

/// Between two looks at the supervisors.
const LOOK: Duration = Duration::from_millis(200);

fn main() -> Result<()> {
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let number = |at: usize, or: u64| numbers.get(at).copied().unwrap_or(or);
    let (lanes, seconds, rounds, files) = (number(0, 20), number(1, 30), number(2, 1), number(3, 200));
    let ideal_time = ideal(lanes, seconds);
    println!("{lanes} lanes of {seconds} s, {PARALLEL} at a time, {files} files; ideal: {ideal_time:.1} s");
    (0..rounds).try_for_each(|_| round(lanes, seconds, files))
}

/// How long the agents alone would take, in seconds.
fn ideal(lanes: u64, seconds: u64) -> f64 {
    (lanes * seconds) as f64 / PARALLEL as f64
}

fn round(lanes: u64, seconds: u64, files: u64) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let repository = scratch.path().join("repo");
    prepare(&repository, lanes, seconds, files)?;
    let start = Instant::now();
    let (lanewright, git, supervisors) = run(&repository)?;
    let makespan = start.elapsed().as_secs_f64();
    let report = lanewright_in(&repository).args(["report", "r1", "--format", "json"]).output()?;
    let times = &serde_json::from_slice::<Value>(&report.stdout)?["times"];
    let ms = |name: &str| times[name].as_u64().unwrap_or_default() as f64;
    println!(
        "makespan {makespan:.1} s ({:.3} of the ideal); overhead {:.2} % of the lanes' time ({:.0} of {:.0} ms), \
         git alone {:.0} ms, nothing at work {:.0} ms; processor: lanewright {lanewright:.2} s, git {git:.2} s, \
         supervisors {supervisors:.2} s",
        makespan / ideal(lanes, seconds),
        100.0 * ms("lanes_overhead_ms") / ms("lanes_ms"),
        ms("lanes_overhead_ms"),
        ms("lanes_ms"),
        ms("git_ms"),
        ms("overhead_ms"),
    );
    Ok(())
}

fn prepare(repository: &Path, lanes: u64, seconds: u64, files: u64) -> Result<()> {
    fs::create_dir_all(repository.join("src"))?;
    (0..files).try_for_each(|number| fs::write(repository.join(format!("src/{number}.txt")), format!("{number}\n")))?;
    let lane = |number: u64| {
        format!("[[lane]]\nid = \"L{number}\"\ncommand = \"sleep {seconds}; echo {number} > l{number}.txt\"\n")
    };
    let plan = (0..lanes).fold("phase = \"P1\"\n".to_owned(), |plan, number| plan + &lane(number));
    fs::write(repository.join("plan.toml"), plan)?;
    let words: [&[&str]; 5] = [
        &["init", "--quiet"],
        &["config", "user.name", "x"],
        &["config", "user.email", "x@example.invalid"],
        &["add", "--all"],
        &["commit", "--quiet", "-m", "first"],
    ];
    for words in words {
        Command::new("git").current_dir(repository).args(words).status()?;
    }
    Ok(())
}

fn lanewright_in(repository: &Path) -> Command {
    let mut command = Command::new(LANEWRIGHT);
    command.current_dir(repository).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Runs the plan; the processor time of Lanewright, of git and of the supervisors, in seconds.
fn run(repository: &Path) -> Result<(f64, f64, f64)> {
    let parallel = PARALLEL.to_string();
    let words = ["execute-phase", "plan.toml", "--run-id", "r1", "--max-parallel", &parallel, "--progress", "none"];
    let mut child = lanewright_in(repository).args(words).stdout(Stdio::null()).spawn()?;
    let pid = Pid::from_child(&child);
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let mut supervisors = HashMap::new();
    while waitid(WaitId::Pid(pid), ended)?.is_none() {
        look_at_supervisors(repository, &mut supervisors);
        std::thread::sleep(LOOK);
    }
    // It has ended and is not forgotten yet.
    let [own_user, own_system, user, system] = ticks(child.id()).ok_or("the run has no times")?;
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("the run ended with {status}").into());
    }
    let seconds = |ticks: u64| ticks as f64 / TICKS;
    Ok((seconds(own_user + own_system), seconds(user + system), seconds(supervisors.values().sum())))
}

/// Notes how much each supervisor has used so far; what it uses between the last look and its end is missed.
fn look_at_supervisors(repository: &Path, used: &mut HashMap<u32, u64>) {
    let Ok(entries) = fs::read_dir("/proc") else { return };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_ours = format!("supervise\0{}", repository.display());
    for pid in pids {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command).contains(&of_ours)
            && let Some([user, system, ..]) = ticks(pid)
        {
            used.insert(pid, user + system);
        }
    }
}

/// The processor time of a process, and of its children that have ended: each first in programs, then in the kernel.
fn ticks(pid: u32) -> Option<[u64; 4]> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let fields: Vec<u64> =
        text.rsplit(')').next()?.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    fields.get(11..15)?.try_into().ok()
}
