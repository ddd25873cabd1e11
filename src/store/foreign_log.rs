//! Run logs of other writers on disk: told apart from ours, read, and never written.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::layout::{ERRORS, StateDirectory, changed, paths_in};
use crate::fs::{FileError, regular_file};

/// Where the commands of other tools keep theirs, below the main worktree's root.
const DIRECTORY: &str = ".claude/run-logs";

/// How much of a log is read.
const MOST: u64 = 64 << 20;

/// How our own lines begin.
const OURS: &str = "{\"seq\":";

/// How much of it tells whose it is.
const HEAD: u64 = 1 << 16;

impl StateDirectory {
    /// Run logs that other writers keep for this repository, the one that changed last first: those in
    /// `.claude/run-logs`, and files among our own logs that are not ours.
    ///
    /// # Errors
    /// [`FileError`] when a directory is there and cannot be read.
    pub fn foreign_logs(&self) -> Result<Vec<PathBuf>, FileError> {
        Ok(self.logs_at_a_glance()?.foreign)
    }

    /// The same, given those among our own logs.
    pub(super) fn foreign_logs_and(&self, among_ours: Vec<PathBuf>) -> Result<Vec<PathBuf>, FileError> {
        let beside = paths_in(&self.repository.join(DIRECTORY))?.into_iter();
        let mut logs = among_ours;
        logs.extend(beside.filter(|path| may_be_a_log(path) && may_be_one(path)));
        logs.sort_by_cached_key(|path| (std::cmp::Reverse(changed(path)), path.clone()));
        Ok(logs)
    }
}

/// Whether a file is called as logs of runs are.
pub(super) fn may_be_a_log(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "jsonl") && path.file_name().is_some_and(|name| name != ERRORS)
}

/// Whether another writer than Lanekeeper keeps the log at `path`: it tells of events as nobody does who numbers and
/// checks its lines. A log of ours that is damaged stays ours.
pub fn is_foreign(path: &Path) -> bool {
    !begins_as_ours(path) && tells_of_events(path)
}

/// Whether the first line is numbered as ours are, which the first bytes tell.
fn begins_as_ours(path: &Path) -> bool {
    let mut first = [0; OURS.len()];
    regular_file::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *OURS.as_bytes()
}

fn tells_of_events(path: &Path) -> bool {
    head(path).is_some_and(|head| {
        let first_fields: Vec<&str> = head.lines().next().unwrap_or_default().split('|').collect();
        let between_bars =
            first_fields.len() > 5 && first_fields[0].trim().starts_with(|first: char| first.is_ascii_digit());
        !is_marked(&head) && (between_bars || head.contains("\"event\""))
    })
}

/// The same for a file where other writers keep their logs: whatever is in it, if it is not one of ours.
fn may_be_one(path: &Path) -> bool {
    head(path).is_some_and(|head| !head.trim().is_empty() && !is_marked(&head))
}

/// The text of a log, with U+FFFD for what is no UTF-8; what is beyond 64 MiB is left out.
///
/// # Errors
/// What the system says, or that it is no file.
pub fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    regular_file::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a line is numbered or checked as ours are.
fn is_marked(head: &str) -> bool {
    head.contains(",\"crc\":\"") || head.starts_with(OURS)
}

fn head(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    regular_file::open(path).ok()?.take(HEAD).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::journal::Journal;
    use crate::store::samples::{at, noted, phase, run};

    #[test]
    fn logs_of_others_are_found_in_both_places_and_are_no_runs_of_ours() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        state.create().unwrap();
        let mut journal = Journal::create(&state.run(&run()).log(), &run(), &phase()).unwrap();
        journal.append(at(1), &noted(None, "\"event\"")).unwrap();
        journal.sync().unwrap();
        let ours = fs::read(state.run(&run()).log()).unwrap();
        let beside = root.path().join(DIRECTORY);
        fs::create_dir_all(&beside).unwrap();
        let other = "{\"ts\":\"2026-01-01T00:00:00Z\",\"run_id\":\"x\",\"event\":\"lane_start\",\"status\":\"ok\"}\n";
        let bars = "2026-01-01T00:00:00Z|P1|P1|-|-|phase_start|running|go\n";
        for (path, text) in [
            (beside.join("a.jsonl"), other.as_bytes()),
            (beside.join("damaged.jsonl"), b"nonsense"),
            (beside.join("ours.jsonl"), &ours),
            (beside.join("notes.txt"), other.as_bytes()),
            (beside.join("errors.jsonl"), other.as_bytes()),
            (state.path().join("among.jsonl"), bars.as_bytes()),
            (state.path().join("torn.jsonl"), &ours[..40]),
            (state.path().join("empty.jsonl"), b""),
        ] {
            fs::write(path, text).unwrap();
        }
        let mut first_byte_gone = ours.clone();
        first_byte_gone[0] = b'X';
        fs::write(state.path().join("hurt.jsonl"), &first_byte_gone).unwrap();
        let mut names: Vec<String> = state
            .foreign_logs()
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["a.jsonl", "among.jsonl", "damaged.jsonl"]);
        let mut runs: Vec<String> = state.runs().unwrap().into_iter().map(String::from).collect();
        runs.sort();
        assert_eq!(runs, ["empty", "hurt", "r1", "torn"]);
        assert!(state.has(&run()) && !state.has(&crate::model::RunId::new("among").unwrap()));
    }
}
