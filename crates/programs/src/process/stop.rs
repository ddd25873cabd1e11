//! Asks a job to stop.

use std::path::Path;

use rustix::process::Signal;

use super::files::{JobFiles, Marker};
use super::supervisor::stopped_before_start;
use super::{Observation, ProcessError, observe, platform};

/// What became of the wish that a job stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopOutcome {
    /// It had ended before.
    Ended,
    /// It had not begun and never will; its exit says so.
    NeverBegun,
    /// Its supervisor was asked; the exit follows.
    Asked,
    /// Its supervisor is dead; [`wait`](super::wait) ends what it left behind.
    Lost,
}

/// Asks the job in `job_directory` to stop: SIGTERM to all its processes, and SIGKILL after the spec's `kill_after`.
/// With `force`, or when asked a second time: SIGKILL now.
///
/// Works before the job has begun as well: then it never begins.
///
/// # Errors
/// A file of the directory cannot be read or written, or the supervisor may not be signalled.
pub fn stop(job_directory: &Path, force: bool) -> Result<StopOutcome, ProcessError> {
    let files = JobFiles::at(job_directory);
    match observe(job_directory)? {
        Observation::Exited(_) => return Ok(StopOutcome::Ended),
        Observation::Absent => files.create()?,
        _ => {}
    }
    // Written before the marker is looked for: a supervisor writes its marker first and then looks for this.
    let written = files.write_stop();
    if files.marker()?.is_none() {
        // Without it a supervisor that begins would not know; one that has begun gets a signal.
        written?;
        match files.try_own()? {
            None => return Ok(StopOutcome::Asked),
            Some(_lock) if files.marker()?.is_none() && files.exit()?.is_none() => {
                return files.write_exit(&stopped_before_start()).map(|()| StopOutcome::NeverBegun);
            }
            Some(_lock) => {}
        }
    }
    tell_supervisor(&files, force)
}

fn tell_supervisor(files: &JobFiles, force: bool) -> Result<StopOutcome, ProcessError> {
    let signal = if force { Signal::INT } else { Signal::TERM };
    if let Some(Marker { supervisor, boot, .. }) = files.marker()?
        && boot == platform::boot()
    {
        let sent = platform::signal(supervisor, signal);
        if sent.map_err(|source| ProcessError::Signal { pid: supervisor.pid, source })? {
            return Ok(StopOutcome::Asked);
        }
    }
    match observe(files.directory())? {
        Observation::Lost(_) => Ok(StopOutcome::Lost),
        Observation::Running(_) | Observation::Starting => Ok(StopOutcome::Asked),
        Observation::Exited(_) | Observation::Absent | Observation::Planned => Ok(StopOutcome::Ended),
    }
}
