//! This same program in a process of its own, which outlives the one that starts it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus as Exit};
use std::time::{Duration, Instant};

use lanewright_files::{handle, regular_file};
use lanewright_model::event::Event;
use lanewright_programs::process::{Output, start_detached};
use lanewright_store::{Follower, RunDirectory};

use super::{Caller, failed, refusal};
use crate::cli::Result;

/// How long the work may take to appear in the run log, before the answer is that it is about to.
const START_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Starts a command that prints into `output`, and waits until `begun` finds its first event in `log`, given the process's
/// id, or it was refused.
pub(crate) fn start<T>(
    caller: &Caller,
    words: &[String],
    (output, log): (&Path, &Path),
    begun: impl Fn(&Event, i64) -> Option<T>,
) -> Result<Start<T, String>> {
    let (program, arguments) = caller.call(words)?;
    let mut log = Follower::new(log);
    log.poll()?;
    let child = spawn(&program, &arguments, &caller.directory, output)?;
    let pid = i64::from(child.id());
    let begun = || Ok(log.poll()?.records.into_iter().find_map(|record| begun(&record.event, pid)));
    Ok(match wait(child, Some(START_TIMEOUT), begun)? {
        Start::Begun(found) => Start::Begun(found),
        Start::NotYet => Start::NotYet,
        Start::Ended(exit) => Start::Ended(ending(&words[0], output, exit)?),
    })
}

/// Starts `program` in a session of its own. What it prints goes into the new file `output`.
pub(crate) fn spawn(program: &Path, arguments: &[impl AsRef<OsStr>], directory: &Path, output: &Path) -> Result<Child> {
    let file =
        handle::append_new(output).map_err(|error| failed(format!("{} cannot be made: {error}", output.display())))?;
    let child = start_detached(program, arguments, directory, Output::File(file), &[]);
    child.map_err(|error| failed(format!("{} cannot be started: {error}", program.display())))
}

/// Starts a command that resumes the run of `directory`. The file that it prints to, and which resume it is, counted by
/// the run.
pub(crate) fn start_resume(
    caller: &Caller,
    directory: &RunDirectory,
    words: &[String],
) -> Result<(PathBuf, Start<u32, String>)> {
    directory.create()?;
    let output = directory.directory().join(format!("resume-{}.log", uuid::Uuid::now_v7()));
    let started = start(caller, words, (&output, &directory.log()), number_of_resume)?;
    Ok((output, started))
}

/// Which resume the process with this id began.
fn number_of_resume(event: &Event, pid: i64) -> Option<u32> {
    match event {
        Event::RunResumed { number, owner, .. } if i64::from(owner.process.pid) == pid => Some(*number),
        _ => None,
    }
}

/// What became of a process while it was waited for.
pub(crate) enum Start<T, E = Exit> {
    /// The run log has its first event.
    Begun(T),
    NotYet,
    /// It ended before; [`start`] returns what it printed where it had nothing to do.
    Ended(E),
}

/// Waits until `begun` finds something, the child has ended, or `timeout` is over.
pub(crate) fn wait<T>(
    mut child: Child,
    timeout: Option<Duration>,
    mut begun: impl FnMut() -> Result<Option<T>>,
) -> Result<Start<T>> {
    let since = Instant::now();
    loop {
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let ended = child.try_wait().ok().flatten();
        match (begun()?, ended) {
            (None, Some(exit)) => return Ok(Start::Ended(exit)),
            (None, None) if timeout.is_none_or(|timeout| since.elapsed() < timeout) => {
                std::thread::sleep(POLL_INTERVAL)
            }
            (found, _) => {
                // Collected when it ends, if we are still here then.
                std::thread::spawn(move || child.wait());
                return Ok(found.map_or(Start::NotYet, Start::Begun));
            }
        }
    }
}

/// What a process printed into `output` that has ended; the file is removed.
pub(super) fn take_output(output: &Path) -> String {
    let said = regular_file::read_text(output).unwrap_or_default();
    let _ = fs::remove_file(output);
    said
}

/// What a process printed that ended without having begun; its error if it failed.
fn ending(command: &str, output: &Path, exit: Exit) -> Result<String> {
    let said = take_output(output);
    if exit.success() {
        return Ok(said);
    }
    Err(refusal(&said).unwrap_or_else(|| failed(format!("{command} ended with {exit}: {}", said.trim()))))
}
