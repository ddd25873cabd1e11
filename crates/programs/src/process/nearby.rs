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
    let supervised = |pid: i32| {
        let arguments = platform::arguments(pid);
        let at = arguments.iter().position(|argument| argument == "supervise")?;
        arguments.get(at + 1).map(PathBuf::from).filter(|job| job.starts_with(directory))
    };
    let rows = platform::processes().into_iter().filter(|row| !row.ended);
    rows.filter_map(|row| Some((row.id, supervised(row.id.pid)?))).collect()
}
