//! What only Linux has: `/proc`, pidfds and subreapers. `posix.rs` is its twin for other systems.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lanewright_files::regular_file;
use lanewright_model::ProcessId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::identity::Row;
use crate::process::LiveProcess;

/// Whether [`adopt_orphans`] makes every descendant findable through its parents.
pub(super) const ADOPTS_ORPHANS: bool = true;

pub(super) fn process(pid: i32) -> Option<Row> {
    row_of(&regular_file::read_text(format!("/proc/{pid}/stat")).ok()?)
}

pub(super) fn processes() -> Vec<Row> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Reads `/proc/<pid>/stat`. The name in parentheses may itself hold parentheses, blanks and line ends.
fn row_of(stat: &str) -> Option<Row> {
    let pid = stat.split(' ').next()?.parse().ok()?;
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    Some(Row {
        id: ProcessId { pid, started: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        ended: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// Makes this process the parent of all its descendants that lose theirs.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// The pids of this process's own children. May miss one that is being born; so ask again until there is none.
pub(super) fn children() -> Vec<i32> {
    match regular_file::read_text("/proc/thread-self/children") {
        Ok(list) => list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        Err(_) => {
            let me = rustix::process::getpid().as_raw_nonzero().get();
            processes().iter().filter(|row| row.parent == me).map(|row| row.id.pid).collect()
        }
    }
}

/// Sends `signal` to this very process; `false` when it is gone.
pub(super) fn signal(process: ProcessId, signal: Signal) -> io::Result<bool> {
    let sent = match open(process) {
        Ok(Some(descriptor)) => rustix::process::pidfd_send_signal(descriptor, signal),
        Ok(None) => return Ok(false),
        // A kernel or a sandbox without pidfds: the start time was checked a moment ago, more cannot be done.
        Err(_) if process.is_alive() => rustix::process::kill_process(pid_of(process)?, signal),
        Err(_) => return Ok(false),
    };
    match sent {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Sleeps until this very process has ended, but not longer than `at_most`.
pub(super) fn sleep_until_end(process: ProcessId, at_most: Duration) {
    let Ok(descriptor) = open(process) else { return std::thread::sleep(at_most.min(super::wait::PAUSE)) };
    let Some(descriptor) = descriptor else { return };
    let limit = Timespec::try_from(at_most).ok();
    // An interrupted or failed poll only means that the caller looks again earlier.
    let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], limit.as_ref());
}

/// A descriptor that is readable once this very process has ended; `None`: there is none, and whether it lives is to be
/// looked at.
pub(super) fn end_of(process: ProcessId) -> Option<OwnedFd> {
    open(process).ok().flatten()
}

/// A descriptor of this very process; `None` when it has ended.
fn open(process: ProcessId) -> io::Result<Option<OwnedFd>> {
    match rustix::process::pidfd_open(pid_of(process)?, PidfdFlags::empty()) {
        // The descriptor is of the process that has the pid now, so the check comes after.
        Ok(descriptor) => Ok(process.is_alive().then_some(descriptor)),
        Err(rustix::io::Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn pid_of(process: ProcessId) -> io::Result<Pid> {
    Pid::from_raw(process.pid).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

/// How long the machine has been up, the time that it slept included. No setting of its clock changes that.
pub(super) fn uptime() -> Duration {
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(uptime).unwrap_or_default()
}

/// Names the time since the machine was started; pids and start times of another boot mean nothing.
pub(super) fn boot() -> String {
    regular_file::read_text("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Whether the process was started with `variable=value` in its environment.
pub(super) fn was_given(pid: i32, variable: &str, value: &str) -> bool {
    let entry = format!("{variable}={value}");
    let environment = regular_file::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|found| found == entry.as_bytes())
}

/// Whether [`directory`] can answer.
pub(super) const TELLS_DIRECTORIES: bool = true;

/// The current directory of a process that is ours to look at.
pub(super) fn directory(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The words with which a process was started; none for one that is not ours to look at.
pub(super) fn arguments(pid: i32) -> Vec<String> {
    let line = regular_file::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The signals that this process ignores: a bit for each, the first for signal 1.
pub(super) fn ignored_signals() -> u64 {
    let status = regular_file::read_text("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

pub(super) fn current_program() -> io::Result<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Ok(link) } else { std::env::current_exe() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_forge_a_row() {
        let name = "a) R 1 1 1\n(b c";
        let stat = format!("77 ({name}) Z 5 6 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 4711 0 0\n");
        let row = Row { id: ProcessId { pid: 77, started: 4711 }, parent: 5, group: 6, ended: true };
        assert_eq!(row_of(&stat), Some(row));
    }

    #[test]
    fn reused_pid_gets_no_signal() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = ProcessId::of(i32::try_from(child.id()).unwrap()).unwrap();
        let stranger = ProcessId { started: id.started + 1, ..id };
        assert!(!signal(stranger, Signal::KILL).unwrap());
        assert!(id.is_alive());
        assert!(signal(id, Signal::KILL).unwrap());
        child.wait().unwrap();
    }
}
