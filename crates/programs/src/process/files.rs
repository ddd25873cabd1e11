//! The files of a job directory, through which a supervisor and Lanewright communicate.
//!
//! A file is written beside its place and renamed there: a reader sees all of it or nothing, whichever process is killed.
//! After a power cut none of them counts: a job whose end is not in the run log is lost then (decision 50), so nothing here
//! waits for the disk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::Utc;
use lanewright_files::lock::{is_locked, try_lock};
use lanewright_files::regular_file::{Links, require_regular};
use lanewright_files::{atomic, directory, handle, regular_file};
use lanewright_model::{JobExit, JobSpec, ProcessId, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ProcessError;

/// The job's output: standard output and standard error of all steps, in the order in which they were written.
pub fn output_log(job_directory: &Path) -> PathBuf {
    job_directory.join("output.log")
}

#[derive(Serialize)]
struct StopRequested {
    updated_at: Timestamp,
}

/// What a supervisor writes while its job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub updated_at: Timestamp,
    /// How much of the time since the job began was time asleep, or no time but a clock that was set forward.
    #[serde(default, rename = "asleep_ms", with = "lanewright_model::time::millis")]
    pub asleep: Duration,
}

/// The last heartbeat of the job in `job_directory`, if there is one.
pub fn heartbeat(job_directory: &Path) -> Option<Heartbeat> {
    JobFiles::at(job_directory).read("heartbeat").ok().flatten()
}

/// When the supervisor of the job in `job_directory` began it, if it did.
pub fn started_at(job_directory: &Path) -> Option<Timestamp> {
    JobFiles::at(job_directory).marker().ok().flatten().map(|marker| marker.started_at)
}

/// Where the job in `job_directory` was to run; `None`: nothing was planned there.
///
/// # Errors
/// Its `spec.json` cannot be read.
pub fn worked_in(job_directory: &Path) -> Result<Option<PathBuf>, ProcessError> {
    Ok(JobFiles::at(job_directory).spec()?.map(|spec| spec.directory))
}

/// The runner of the agent's `fallback` that made the attempt in `job_directory`; `None`: its own did.
///
/// # Errors
/// Its `spec.json` cannot be read.
pub fn runner_of(job_directory: &Path) -> Result<Option<String>, ProcessError> {
    Ok(JobFiles::at(job_directory).spec()?.and_then(|spec| spec.runner))
}

/// What `supervisor.json` holds. That the file exists means: the job was begun and is never begun again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Marker {
    pub(super) supervisor: ProcessId,
    /// The boot in which the pids of this file mean something.
    pub(super) boot: String,
    /// The value of [`TOKEN_VARIABLE`] in the environment of every process of the job.
    pub(super) token: String,
    pub(super) started_at: Timestamp,
    /// The main process of the step that runs; absent before the first.
    #[serde(default)]
    pub(super) agent: Option<ProcessId>,
    /// That step, as a person would type it.
    #[serde(default)]
    pub(super) command: String,
}

/// The environment variable by which a job's processes are known when their supervisor is gone.
pub(super) const TOKEN_VARIABLE: &str = "LANEWRIGHT_JOB_TOKEN";

#[derive(Debug, Clone)]
pub(super) struct JobFiles {
    directory: PathBuf,
}

impl JobFiles {
    pub(super) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where an agent writes its own files, if the job is an agent's.
    pub(super) fn exchange(&self) -> PathBuf {
        self.path("exchange")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(super) fn create(&self) -> Result<(), ProcessError> {
        Ok(directory::create_directory_unsynced(&self.directory)?)
    }

    pub(super) fn spec(&self) -> Result<Option<JobSpec>, ProcessError> {
        self.read("spec.json")
    }

    pub(super) fn write_spec(&self, spec: &JobSpec) -> Result<(), ProcessError> {
        self.write("spec.json", spec)
    }

    pub(super) fn marker(&self) -> Result<Option<Marker>, ProcessError> {
        self.read("supervisor.json")
    }

    pub(super) fn write_marker(&self, marker: &Marker) -> Result<(), ProcessError> {
        self.write("supervisor.json", marker)
    }

    pub(super) fn exit(&self) -> Result<Option<JobExit>, ProcessError> {
        self.read("exit.json")
    }

    pub(super) fn write_exit(&self, exit: &JobExit) -> Result<(), ProcessError> {
        self.write("exit.json", exit)
    }

    /// Whether a stop was requested, also before the job began.
    pub(super) fn stop_wanted(&self) -> bool {
        self.path("stop").exists()
    }

    pub(super) fn write_stop(&self) -> Result<(), ProcessError> {
        self.write("stop", &StopRequested { updated_at: now() })
    }

    pub(super) fn write_heartbeat(&self, heartbeat: &Heartbeat) -> io::Result<()> {
        Ok(atomic::replace(&self.path("heartbeat"), &text_of(heartbeat)?)?)
    }

    /// Opened to be read as well, for [`Limiter`](super::gap::Limiter).
    pub(super) fn open_output(&self) -> Result<File, ProcessError> {
        let path = output_log(&self.directory);
        let file = handle::append_and_read(&path, Links::Refuse).and_then(require_regular);
        file.map_err(ProcessError::file("open", &path))
    }

    pub(super) fn open_log(&self) -> Result<File, ProcessError> {
        append_to(&self.log())
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path("supervisor.log")
    }

    /// Takes the job's lock for as long as the file is kept; `None` when another process holds it.
    pub(super) fn try_own(&self) -> Result<Option<File>, ProcessError> {
        let path = self.path("lock");
        let file = handle::append(&path, Links::Refuse).map_err(ProcessError::file("open", &path))?;
        let locked = try_lock(&file).map_err(ProcessError::file("lock", &path))?;
        Ok(locked.then_some(file))
    }

    /// Whether a supervisor holds the lock. Looks without making the file and without hindering another look.
    pub(super) fn is_owned(&self) -> Result<bool, ProcessError> {
        let path = self.path("lock");
        let file = match regular_file::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(ProcessError::file("open", &path)(error)),
        };
        is_locked(&file).map_err(ProcessError::file("lock", &path))
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ProcessError> {
        let path = self.path(name);
        match regular_file::read(&path) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(value) => Ok(Some(value)),
                Err(source) => Err(ProcessError::Damaged { path, source }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ProcessError::file("read", &path)(error)),
        }
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), ProcessError> {
        let path = self.path(name);
        let text = text_of(value).map_err(ProcessError::file("write", &path))?;
        Ok(atomic::replace(&path, &text)?)
    }
}

/// The present moment, at the resolution of state files, so that what was written equals what is read.
pub(super) fn now() -> Timestamp {
    Timestamp::from_unix_millis(Utc::now().timestamp_millis())
}

pub(super) fn text_of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

fn append_to(path: &Path) -> Result<File, ProcessError> {
    let file = handle::append(path, Links::Refuse).and_then(require_regular);
    file.map_err(ProcessError::file("open", path))
}
