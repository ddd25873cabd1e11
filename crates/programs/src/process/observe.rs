//! Determines the state of a job without changing it.

use std::path::Path;
use std::time::{Duration, Instant};

use lanewright_files::{FileError, atomic};
use lanewright_model::{JobExit, ProcessId};

use super::ProcessError;
use super::files::{JobFiles, Marker};
use crate::process::LiveProcess;

/// How long a lock without a known holder is checked again: a process that only checks it holds it for less.
const DOUBT: Duration = Duration::from_millis(300);

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// Nothing of it is on disk.
    Absent,
    /// It is described and was not begun; it may be launched, also again.
    Planned,
    /// A supervisor is about to begin it.
    Starting,
    /// This supervisor runs it.
    Running(ProcessId),
    /// It ended, and this is how.
    Exited(JobExit),
    /// This supervisor started it and died without recording an exit; [`wait`](super::wait) or `sweep` ends what it
    /// left behind.
    Lost(ProcessId),
}

/// The state of the job in `job_directory`. Changes nothing.
///
/// The kernel's lock on the directory shows whether a supervisor lives, not a recorded pid.
///
/// # Errors
/// A file of the directory cannot be read or is damaged.
pub fn observe(job_directory: &Path) -> Result<Observation, ProcessError> {
    let files = JobFiles::at(job_directory);
    if let Some(exit) = files.exit()? {
        return Ok(Observation::Exited(exit));
    }
    if is_supervised(&files)? {
        return Ok(files.marker()?.map_or(Observation::Starting, |marker| Observation::Running(marker.supervisor)));
    }
    // The supervisor may have written its exit and ended since the first look.
    Ok(match (files.exit()?, files.marker()?) {
        (Some(exit), _) => Observation::Exited(exit),
        (None, Some(Marker { supervisor, .. })) => Observation::Lost(supervisor),
        (None, None) if files.spec()?.is_some() => Observation::Planned,
        (None, None) => Observation::Absent,
    })
}

/// Removes what lies in the directory of a job that is about to be planned, which would be taken for its output and its
/// exit. The directory of a running supervisor is kept.
///
/// # Errors
/// The directory cannot be removed.
pub fn make_room(job_directory: &Path) -> Result<(), FileError> {
    let is_there = job_directory.symlink_metadata().is_ok();
    if is_there && !matches!(observe(job_directory), Ok(Observation::Starting | Observation::Running(_))) {
        atomic::remove_all(job_directory).map_err(FileError::io("remove", job_directory))?;
    }
    Ok(())
}

/// Whether a supervisor holds the lock: one that lives, or one that keeps it though its pid means nothing here, such as
/// in another container.
fn is_supervised(files: &JobFiles) -> Result<bool, ProcessError> {
    let doubt = Instant::now() + DOUBT;
    while files.is_owned()? {
        let known = files.marker()?.is_some_and(|marker| marker.supervisor.is_alive());
        if known || Instant::now() > doubt {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DEAD: ProcessId = ProcessId { pid: 1, started: u64::MAX };

    fn marker() -> String {
        let dead = serde_json::to_string(&DEAD).unwrap();
        format!(r#"{{"supervisor":{dead},"boot":"","token":"t","started_at":"2026-01-31T12:00:00Z"}}"#)
    }

    #[test]
    fn observation_follows_files_and_lock() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        assert_eq!(observe(&place.join("missing")).unwrap(), Observation::Absent);
        let spec = r#"{"job":{"lane":null,"role":"final","number":1},"steps":[],"directory":"/","environment":{},
            "kill_after":1,"heartbeat":1,"on_orphan":"stop"}"#;
        fs::write(place.join("spec.json"), spec).unwrap();
        assert_eq!(observe(place).unwrap(), Observation::Planned);

        let lock = JobFiles::at(place).try_own().unwrap();
        assert_eq!(observe(place).unwrap(), Observation::Starting);
        fs::write(place.join("supervisor.json"), marker()).unwrap();
        assert_eq!(observe(place).unwrap(), Observation::Running(DEAD), "the lock counts, not the pid");
        drop(lock);
        assert_eq!(observe(place).unwrap(), Observation::Lost(DEAD));
    }

    #[test]
    fn observe_writes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        observe(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("exit.json"), "{\"cause\":").unwrap();
        let message = observe(directory.path()).unwrap_err().to_string();
        assert!(message.contains("exit.json is damaged"), "{message}");
    }
}
