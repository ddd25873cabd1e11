//! The supervisor: a small process that runs one job, outlives the Lanewright that started it, and leaves the exit.
//!
//! It has one thread and one loop. Whatever may be asked of it twice, it does once: the lock of the job directory lets
//! one supervisor in, and the marker that it leaves there before the first step says to every later one that the job
//! was begun.

mod runner;
mod signals;
mod status;
mod termination;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lanewright_files::awake::AwakeClock;
use lanewright_model::job::TAIL_LINES;
use lanewright_model::{ExitCause, JobExit, JobSpec, ProcessId};

use self::runner::Runner;
use self::signals::Signals;
use self::status::StatusFile;
use super::files::{JobFiles, Marker, now};
use super::launch::launcher;
use super::output::tail;
use super::secrets::{clean_exit, clean_files, redactor_for};
use super::{ProcessError, output_log, platform};
use crate::process::LiveProcess;

/// How long a supervisor waits for the lock while another process holds it without having begun the job.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);

/// How long a supervisor tries to write the exit, on a full disk for example.
const EXIT_PATIENCE: Duration = Duration::from_secs(30);

/// Supervises the job whose directory is `job_directory`: what `lanewright supervise` runs.
///
/// The exit code says whether the supervisor did its work, not how the job ended.
pub fn main(job_directory: &Path) -> ExitCode {
    match supervise(&JobFiles::at(job_directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn supervise(files: &JobFiles) -> Result<(), ProcessError> {
    let signals = Signals::install().map_err(ProcessError::file("listen to signals for", files.directory()))?;
    // Fails only for the leader of a process group, which has no terminal's signals to fear either.
    let _ = rustix::process::setsid();
    platform::adopt_orphans().map_err(ProcessError::file("adopt orphans for", files.directory()))?;
    let Some(_lock) = own(files)? else { return Ok(()) };
    if files.exit()?.is_some() || files.marker()?.is_some() {
        return Ok(());
    }
    match prepare(files) {
        Ok((spec, marker, output)) => run(files, &signals, &spec, marker, output),
        Err(error) => report(files, &not_started(error.to_string())),
    }
}

/// Takes the job's lock; `None` when another supervisor has begun the job.
///
/// A lock that is held without a marker is held by a supervisor that is about to write it, or for a moment by a
/// process that checks whether it is held.
fn own(files: &JobFiles) -> Result<Option<File>, ProcessError> {
    let mut clock = AwakeClock::start();
    loop {
        if let Some(lock) = files.try_own()? {
            return Ok(Some(lock));
        }
        if files.marker()?.is_some() || files.exit()?.is_some() || clock.elapsed() > LOCK_PATIENCE {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn prepare(files: &JobFiles) -> Result<(JobSpec, Marker, File), ProcessError> {
    let missing = || ProcessError::file("read", files.directory())(std::io::ErrorKind::NotFound.into());
    let spec = files.spec()?.ok_or_else(missing)?;
    let output = files.open_output()?;
    let marker = Marker {
        supervisor: ProcessId::current(),
        boot: platform::boot(),
        token: uuid::Uuid::now_v7().to_string(),
        started_at: now(),
        agent: None,
        command: String::new(),
    };
    files.write_marker(&marker)?;
    Ok((spec, marker, output))
}

fn run(files: &JobFiles, signals: &Signals, spec: &JobSpec, marker: Marker, output: File) -> Result<(), ProcessError> {
    // Checked after the marker was written: `stop` writes its file first and then looks for the marker.
    if files.stop_wanted() {
        return report(files, &stopped_before_start());
    }
    let mut status = spec.status.clone().and_then(|spec| StatusFile::begin(spec, now()).map_err(complain).ok());
    let mut exit = Runner::new(files, signals, spec, marker, output, status.as_mut(), launcher()).run();
    let redactor = redactor_for(spec);
    clean_exit(&mut exit, &redactor);
    status.map(|status| status.finish(&exit).map_err(complain));
    clean_files(files, spec, &redactor).unwrap_or_else(complain);
    exit.tail = tail(&output_log(files.directory()), TAIL_LINES).unwrap_or_default();
    report(files, &exit)
}

/// Writes the exit; a disk may be full for a while. A directory that was removed does not come back.
fn report(files: &JobFiles, exit: &JobExit) -> Result<(), ProcessError> {
    let mut clock = AwakeClock::start();
    loop {
        match files.write_exit(exit) {
            Err(error) if clock.elapsed() < EXIT_PATIENCE && files.directory().exists() => complain(error),
            written => return written,
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

pub(super) fn stopped_before_start() -> JobExit {
    JobExit { cause: ExitCause::Stopped, exit_code: 143, ..not_started("stopped before it began".into()) }
}

fn not_started(notes: String) -> JobExit {
    JobExit {
        cause: ExitCause::NotStarted,
        exit_code: 127,
        command: String::new(),
        started_at: now(),
        finished_at: now(),
        tail: Vec::new(),
        notes,
    }
}

/// Prints to standard error, which [`launch`](super::launch) redirects into a file.
fn complain(problem: impl std::fmt::Display) {
    // Nothing can be reported if this fails, too.
    let _ = writeln!(std::io::stderr(), "{} {problem}", now());
}
