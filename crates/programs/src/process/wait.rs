//! Waits for the end of a job.

use std::path::Path;
use std::time::Duration;

use lanewright_files::regular_file;
use lanewright_model::job::TAIL_LINES;
use lanewright_model::text::{counted, last_lines};
use lanewright_model::{ExitCause, JobExit, Redactor};
use rustix::process::Signal;

use super::files::{JobFiles, Marker, now};
use super::output::tail;
use super::secrets::{clean_exit, clean_files, redactor_for};
use super::supervisor::stopped_before_start;
use super::sweep::sweep_owned;
use super::{Launched, Observation, ProcessError, observe, output_log, platform, supervisors_below};
use crate::process::LiveProcess;

/// Between two checks if there is nothing to wait for.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// Between two checks of a supervisor whose end ends the wait anyway.
const GLANCE: Duration = Duration::from_secs(30);

/// Sleeps until the job in `job_directory` has ended, and returns its exit. For the owner of the run only: a job that lost its
/// supervisor, or never got one, is closed, which ends what is left of it and keeps it from ever being begun.
///
/// `launched` is what [`launch`](super::launch) returned; `None` for a job that an earlier Lanewright launched.
///
/// # Errors
/// A file of the directory cannot be read, or processes of a lost job do not die, or its exit cannot be written.
pub fn wait(job_directory: &Path, launched: Option<Launched>) -> Result<JobExit, ProcessError> {
    wait_without_secrets(job_directory, launched, &Redactor::default())
}

/// The same, which takes what `redactor` knows out of what a lost job left: no file says which secrets it was given.
pub fn wait_without_secrets(
    job_directory: &Path,
    launched: Option<Launched>,
    redactor: &Redactor,
) -> Result<JobExit, ProcessError> {
    if let Some(launched) = launched {
        launched.collect();
    }
    loop {
        match observe(job_directory)? {
            Observation::Exited(exit) => return Ok(exit),
            Observation::Running(supervisor) if supervisor.is_alive() => platform::sleep_until_end(supervisor, GLANCE),
            Observation::Running(_) | Observation::Starting => std::thread::sleep(PAUSE),
            Observation::Absent | Observation::Planned | Observation::Lost(_) => {
                if let Some(exit) = close(&JobFiles::at(job_directory), redactor)? {
                    return Ok(exit);
                }
            }
        }
    }
}

/// Closes a job that was begun and whose directory was removed since: ends its supervisor with everything that it runs,
/// and records that the job was stopped, so that it is not begun a second time. For the owner of the run only.
///
/// # Errors
/// The supervisor may not be signalled, or the exit cannot be written.
pub fn close_removed(job_directory: &Path) -> Result<(), ProcessError> {
    for (supervisor, _) in supervisors_below(job_directory) {
        let sent = platform::signal(supervisor, Signal::INT);
        sent.map_err(|source| ProcessError::Signal { pid: supervisor.pid, source })?;
        while supervisor.is_alive() {
            platform::sleep_until_end(supervisor, GLANCE);
        }
    }
    let files = JobFiles::at(job_directory);
    files.create()?;
    match files.try_own()? {
        Some(_lock) if files.exit()?.is_none() => {
            let notes = "its directory was removed while it ran".to_owned();
            files.write_exit(&JobExit { notes, ..stopped_before_start() })
        }
        _ => Ok(()),
    }
}

/// Closes a job that may have run when the machine was started again, unless its supervisor lives: records that it was
/// stopped, whatever its files say. For the owner of the run only.
///
/// # Errors
/// The exit cannot be written.
pub fn close_unsynced(job_directory: &Path) -> Result<(), ProcessError> {
    let files = JobFiles::at(job_directory);
    files.create()?;
    match files.try_own()? {
        Some(_lock) => {
            let notes = "the machine was started again before its exit was recorded".to_owned();
            files.write_exit(&JobExit { notes, ..stopped_before_start() })
        }
        None => Ok(()),
    }
}

fn close(files: &JobFiles, more: &Redactor) -> Result<Option<JobExit>, ProcessError> {
    let Some(_lock) = files.try_own()? else { return Ok(None) };
    if let Some(exit) = files.exit()? {
        return Ok(Some(exit));
    }
    let marker = files.marker()?;
    let swept = marker.as_ref().map_or(Ok(0), |marker| sweep_owned(files, marker))?;
    // A job without a specification never ran, and so said nothing.
    let spec = files.spec()?;
    let mut unclean = String::new();
    let redactors = [spec.as_ref().map(redactor_for).unwrap_or_default(), more.clone()];
    for (spec, redactor) in spec.iter().flat_map(|spec| redactors.iter().map(move |redactor| (spec, redactor))) {
        // The run continues only with the exit.
        if let Err(error) = clean_files(files, spec, redactor) {
            unclean = format!("; secrets were not removed from its files: {error}");
        }
    }
    let mut exit = match marker {
        None if files.stop_wanted() => stopped_before_start(),
        marker => lost(files, marker, swept),
    };
    exit.notes.push_str(&unclean);
    redactors.iter().for_each(|redactor| clean_exit(&mut exit, redactor));
    files.write_exit(&exit)?;
    Ok(Some(exit))
}

fn lost(files: &JobFiles, marker: Option<Marker>, swept: usize) -> JobExit {
    let finished_at = now();
    let notes = match &marker {
        Some(_) if swept == 0 => "the supervisor died without recording an exit".to_owned(),
        Some(_) => format!("the supervisor died without recording an exit; killed {}", counted(swept, "survivor")),
        None => {
            let log = regular_file::read_text(files.log()).unwrap_or_default();
            format!("the supervisor died before it began the job {}", last_lines(&log, 1).concat())
                .trim_end()
                .to_owned()
        }
    };
    JobExit {
        cause: ExitCause::Lost,
        exit_code: -1,
        command: marker.as_ref().map(|marker| marker.command.clone()).unwrap_or_default(),
        started_at: marker.map_or(finished_at, |marker| marker.started_at),
        finished_at,
        tail: tail(&output_log(files.directory()), TAIL_LINES).unwrap_or_default(),
        notes,
    }
}
