//! Ends the processes that a killed supervisor left behind.
//!
//! Without its supervisor a job's tree has no root any more: init adopts it. Its processes are known by a token in the
//! environment that each inherited, by the agent's pid with its start time, and by coming from one of these.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use lanewright_model::ProcessId;
use rustix::process::Signal;

use super::files::{JobFiles, Marker, TOKEN_VARIABLE};
use super::identity::Row;
use super::{ProcessError, platform, tree};
use crate::process::LiveProcess;

/// How long survivors are killed again and again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kills the processes that the dead supervisor of the job in `job_directory` left behind; how many there were.
///
/// # Errors
/// [`ProcessError::Supervised`] while the supervisor lives, [`ProcessError::Survivors`] when the kernel does not let
/// them die, or the directory cannot be read.
pub fn sweep(job_directory: &Path) -> Result<usize, ProcessError> {
    let files = JobFiles::at(job_directory);
    let Some(marker) = files.marker()? else { return Ok(0) };
    match files.try_own()? {
        Some(_lock) => sweep_owned(&files, &marker),
        None => Err(ProcessError::Supervised { directory: job_directory.to_owned() }),
    }
}

/// The same for the holder of the job's lock.
pub(super) fn sweep_owned(files: &JobFiles, marker: &Marker) -> Result<usize, ProcessError> {
    let patience = Instant::now() + PATIENCE;
    let mut killed = BTreeSet::new();
    loop {
        let left = left_by(marker);
        if left.is_empty() {
            return Ok(killed.len());
        }
        if Instant::now() > patience {
            let pids = left.iter().map(|row| row.id.pid).collect();
            return Err(ProcessError::Survivors { directory: files.directory().to_owned(), pids });
        }
        for row in left {
            // It may be gone by now; one that may not be killed is named in the end.
            let _ = platform::signal(row.id, Signal::KILL);
            killed.insert((row.id.pid, row.id.started));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn left_by(marker: &Marker) -> Vec<Row> {
    if marker.boot != platform::boot() {
        return Vec::new();
    }
    let me = ProcessId::current();
    let rows = platform::processes();
    let known =
        |row: &&Row| Some(row.id) == marker.agent || platform::was_given(row.id.pid, TOKEN_VARIABLE, &marker.token);
    let roots: Vec<i32> = rows.iter().filter(known).map(|row| row.id.pid).collect();
    tree::grown_from(roots, &rows).into_iter().filter(|row| row.id != me).collect()
}
