//! `errors.jsonl`: what went wrong, one line a failure, for programs (SPEC §10; seed 002).

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use lanewright_files::regular_file::{Links, open_with};
use lanewright_files::{FileError, handle, if_there, open_error};
use lanewright_model::{AgentName, FailureKind, LaneId, PhaseId, TaskId, Timestamp, word_enum};
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorEntry {
    pub timestamp: Timestamp,
    pub phase: PhaseId,
    /// The plan of that phase: a lane, or the file that holds the whole plan.
    pub plan: String,
    pub lane: Option<LaneId>,
    pub task: Option<TaskId>,
    pub specialist: Option<AgentName>,
    pub error_type: ErrorType,
    pub details: String,
}

word_enum! {
    ErrorType {
        Timeout = "timeout",
        Crash = "crash",
        /// Work was refused: by a gate, a reviewer, the owners of a file, or because its report makes no sense.
        Validation = "validation",
        Merge = "merge",
        /// Another machine did not answer, or said to come back later.
        Network = "network",
        State = "state",
    }
}

impl From<FailureKind> for ErrorType {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Timeout => Self::Timeout,
            FailureKind::Crash | FailureKind::Lost => Self::Crash,
            FailureKind::Report
            | FailureKind::Ownership
            | FailureKind::Idle
            | FailureKind::Gate
            | FailureKind::Rejected => Self::Validation,
            FailureKind::Conflict => Self::Merge,
            FailureKind::Network | FailureKind::Quota => Self::Network,
            FailureKind::State | FailureKind::Environment | FailureKind::Refused => Self::State,
        }
    }
}

/// Adds `entries` to the file at `path`, whose directory exists, in one write; mode 0600. What a process was killed
/// over in the middle of a line stays a line of its own.
pub fn append(path: &Path, entries: &[ErrorEntry]) -> Result<(), FileError> {
    let cannot = |source| open_error("write", path, source);
    let file = handle::append(path, Links::Refuse).map_err(cannot)?;
    let mut lines = if ends_with_line(path).map_err(cannot)? { Vec::new() } else { vec![b'\n'] };
    for entry in entries {
        serde_json::to_writer(&mut lines, entry).map_err(|error| cannot(error.into()))?;
        lines.push(b'\n');
    }
    handle::write_all(&file, &lines).map_err(cannot)
}

fn ends_with_line(path: &Path) -> io::Result<bool> {
    let mut file = open_with(path, Links::Refuse)?;
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The same for those of `entries` that the file does not hold.
pub fn complete(path: &Path, entries: &[ErrorEntry]) -> Result<(), FileError> {
    let known = known(path)?;
    let missing: Vec<ErrorEntry> = entries.iter().filter(|entry| !known.contains(&identity(entry))).cloned().collect();
    if missing.is_empty() { Ok(()) } else { append(path, &missing) }
}

/// What distinguishes entries: their known fields as text. Later versions may add more.
fn identity(entry: &ErrorEntry) -> Vec<Option<String>> {
    let text = |text: &str| Some(text.to_owned());
    vec![
        Some(entry.timestamp.to_string()),
        entry.lane.as_ref().and_then(|lane| text(lane.as_str())),
        entry.task.as_ref().and_then(|task| text(task.as_str())),
        entry.specialist.as_ref().and_then(|agent| text(agent.as_str())),
        text(entry.error_type.word()),
        text(&entry.details),
    ]
}

fn known(path: &Path) -> Result<HashSet<Vec<Option<String>>>, FileError> {
    let opened = if_there(open_with(path, Links::Refuse)).map_err(|source| open_error("read", path, source))?;
    let Some(file) = opened else { return Ok(HashSet::new()) };
    let mut known = HashSet::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(|source| open_error("read", path, source))?;
        let Ok(entry) = serde_json::from_slice::<Value>(&line) else { continue };
        let field = |name: &str| entry[name].as_str().map(str::to_owned);
        known.insert(["timestamp", "lane", "task", "specialist", "error_type", "details"].map(field).to_vec());
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{agent, at, lane, phase, task};

    fn entry() -> ErrorEntry {
        ErrorEntry {
            timestamp: at(0),
            phase: phase(),
            plan: "/repo/plan.toml".into(),
            lane: Some(lane()),
            task: Some(task()),
            specialist: Some(agent()),
            error_type: FailureKind::Conflict.into(),
            details: "two\nlines".into(),
        }
    }

    #[test]
    fn error_log_appends_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("errors.jsonl");
        append(&path, &[entry()]).unwrap();
        append(&path, &[entry(), ErrorEntry { task: None, ..entry() }]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        insta::assert_snapshot!(text.lines().next().unwrap(), @r#"{"timestamp":"2026-01-01T00:00:00.000Z","phase":"P1","plan":"/repo/plan.toml","lane":"SL-1","task":"1.2","specialist":"engineer","error_type":"merge","details":"two\nlines"}"#);
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    }

    #[test]
    fn error_log_completion_adds_missing_entries_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("errors.jsonl");
        let [first, second] = [entry(), ErrorEntry { task: None, ..entry() }];
        append(&path, std::slice::from_ref(&first)).unwrap();
        let theirs = "{\"details\": 7}\nno json\n{\"timestamp\":\"2026-";
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + theirs).unwrap();
        complete(&path, &[first.clone(), second.clone()]).unwrap();
        complete(&path, &[first, second]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(theirs), "{text}");
        assert_eq!(text.matches("two\\nlines").count(), 2, "{text}");
        assert_eq!(text.lines().count(), 5, "a torn line was continued: {text}");
        complete(&directory.path().join("none"), &[]).unwrap();
        assert!(!directory.path().join("none").exists());
    }

    #[test]
    fn error_log_refuses_link() {
        let directory = tempfile::tempdir().unwrap();
        let (target, path) = (directory.path().join("target"), directory.path().join("errors.jsonl"));
        std::fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(matches!(append(&path, &[entry()]), Err(FileError::SymbolicLink { .. })));
    }
}
