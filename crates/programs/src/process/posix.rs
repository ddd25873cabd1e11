//! The twin of `linux.rs` for other systems, which have neither `/proc` nor subreapers. Written with care and untested.
//!
//! The process table comes from `ps`, whose start times count whole seconds. An orphan that left its process group is
//! not found, and after a supervisor was killed only the agent itself and what still descends from it is.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use chrono::NaiveDateTime;
use lanewright_model::ProcessId;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal};

use super::identity::Row;
use crate::process::LiveProcess;

/// Whether [`adopt_orphans`] makes every descendant findable through its parents.
pub(super) const ADOPTS_ORPHANS: bool = false;

pub(super) fn process(pid: i32) -> Option<Row> {
    table(&["-p", &pid.to_string()]).pop()
}

pub(super) fn processes() -> Vec<Row> {
    table(&["-A"])
}

fn table(selection: &[&str]) -> Vec<Row> {
    let fields = ["-o", "pid=,ppid=,pgid=,stat=,lstart="];
    ps(&[selection, &fields].concat()).lines().filter_map(row_of).collect()
}

/// What `ps` prints; nothing where it cannot be run.
fn ps(arguments: &[&str]) -> String {
    let listed = Command::new("ps").args(arguments).env("LC_ALL", "C").env("TZ", "UTC").output();
    listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Reads `7 1 7 S+ Mon Jan  5 10:00:00 2026`.
fn row_of(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [pid, parent, group, state, start @ ..] = fields.as_slice() else { return None };
    let start = NaiveDateTime::parse_from_str(&start.join(" "), "%a %b %d %H:%M:%S %Y").ok()?;
    Some(Row {
        id: ProcessId { pid: pid.parse().ok()?, started: start.and_utc().timestamp_micros().try_into().ok()? },
        parent: parent.parse().ok()?,
        group: group.parse().ok()?,
        ended: state.starts_with('Z'),
    })
}

pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

pub(super) fn children() -> Vec<i32> {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    // `ps` itself is one of them, and has ended before its list is read.
    processes().iter().filter(|row| row.parent == me && !row.ended).map(|row| row.id.pid).collect()
}

/// Sends `signal` to this very process; `false` when it is gone.
pub(super) fn signal(process: ProcessId, signal: Signal) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(process.pid).filter(|_| process.is_alive()) else { return Ok(false) };
    match rustix::process::kill_process(pid, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn sleep_until_end(_process: ProcessId, at_most: Duration) {
    std::thread::sleep(at_most.min(super::wait::PAUSE));
}

pub(super) fn end_of(_process: ProcessId) -> Option<OwnedFd> {
    None
}

pub(super) fn uptime() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

/// The boot ID; empty: unknown.
pub(super) fn boot() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    let ask = || Command::new("sysctl").args(["-n", "kern.bootsessionuuid"]).output();
    let said = |output: std::process::Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
    BOOT.get_or_init(|| ask().map(said).unwrap_or_default()).clone()
}

pub(super) fn was_given(_pid: i32, _variable: &str, _value: &str) -> bool {
    false
}

/// Current directories of other processes cannot be read.
pub(super) const TELLS_DIRECTORIES: bool = false;

pub(super) fn directory(_pid: i32) -> Option<PathBuf> {
    None
}

/// The words with which a process was started, as far as blanks tell them apart.
pub(super) fn arguments(pid: i32) -> Vec<String> {
    let line = ps(&["-ww", "-p", &pid.to_string(), "-o", "args="]);
    line.split_ascii_whitespace().map(str::to_owned).collect()
}

/// The signals that this process ignores: a bit for each, the first for signal 1.
pub(super) fn ignored_signals() -> u64 {
    let me = rustix::process::getpid().as_raw_nonzero().get().to_string();
    u64::from_str_radix(ps(&["-p", &me, "-o", "sigignore="]).trim(), 16).unwrap_or_default()
}

pub(super) fn current_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}
