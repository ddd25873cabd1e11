//! Finds processes: programs at work in a directory, and supervisors.

use std::path::{Path, PathBuf};

use lanewright_model::ProcessId;

use super::platform;

/// The programs called `name` that have `directory` or something below it for their current directory. `None`: the
/// system does not provide that.
pub fn at_work_in(directory: &Path, name: &str) -> Option<Vec<ProcessId>> {
    let here = |pid: i32| {
        let program = platform::arguments(pid).into_iter().next().unwrap_or_default();
        let called = Path::new(&program).file_name().is_some_and(|found| found == name);
        called && platform::directory(pid).is_some_and(|found| found.starts_with(directory))
    };
    let rows = platform::processes().into_iter().filter(|row| !row.ended);
    platform::TELLS_DIRECTORIES.then(|| rows.filter(|row| here(row.id.pid)).map(|row| row.id).collect())
}

/// The supervisors that look after jobs below `directory`, each with its job's directory.
pub fn supervisors_below(directory: &Path) -> Vec<(ProcessId, PathBuf)> {
    let rows = platform::processes().into_iter().filter(|row| !row.ended);
    let job = |pid: i32| supervised(pid).filter(|job| job.starts_with(directory));
    rows.filter_map(|row| Some((row.id, job(row.id.pid)?))).collect()
}

/// Whether this process belongs to a job below `directory`, whatever its environment says. Some that do are not recognized:
/// those whose parents have ended or are not seen from here.
pub fn is_in_job_below(directory: &Path) -> bool {
    let parent = |pid: &i32| platform::process(*pid).map(|row| row.parent);
    std::iter::successors(Some(rustix::process::getpid().as_raw_nonzero().get()), parent)
        .take(DEEPEST)
        .any(|pid| supervised(pid).is_some_and(|job| job.starts_with(directory)))
}

/// More parents are not asked for: the system tells one after another.
const DEEPEST: usize = 100;

/// The job's directory, if the process is a supervisor.
fn supervised(pid: i32) -> Option<PathBuf> {
    let arguments = platform::arguments(pid);
    let at = arguments.iter().position(|argument| argument == "supervise")?;
    arguments.get(at + 1).map(PathBuf::from)
}
