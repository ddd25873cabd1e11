//! Files of tool calls: one JSON object a line where the agent's Lanewright reads them, one byte a call if no Lanewright
//! works on the run and only their number counts.

use std::fs::File;
use std::io;
use std::path::Path;

use lanewright_files::directory::create_directories;
use lanewright_files::regular_file::{Links, require_regular};
use lanewright_files::{FileError, handle, open_error};
use lanewright_model::{AgentName, LaneId};
use serde_json::Value;

use super::layout::RunDirectory;

/// Adds a tool call to the file at `path`, whose directory exists, as one write at its end.
///
/// # Errors
/// [`FileError`], also when something else than a file is there: a link would be followed, a pipe waited for.
pub fn append(path: &Path, call: &Value) -> Result<(), FileError> {
    add(path, format!("{call}\n").as_bytes()).map(drop)
}

impl RunDirectory {
    /// Counts a tool call that the user made by hand in the worktree of `lane`, or of its `agent`. Returns the count,
    /// from 1.
    pub fn count_tool_call(&self, lane: &LaneId, agent: Option<&AgentName>) -> Result<u64, FileError> {
        let directory = self.directory();
        create_directories(&directory, Path::new(BY_HAND))?;
        // No id holds a plus.
        let agent = agent.map_or_else(String::new, |agent| format!("+{agent}"));
        add(&directory.join(BY_HAND).join(format!("{lane}{agent}")), b".")
    }
}

/// Where calls are counted, in the run's directory.
const BY_HAND: &str = "by-hand";

/// Adds `bytes`, and returns how many there are now.
fn add(path: &Path, bytes: &[u8]) -> Result<u64, FileError> {
    let opened = handle::append(path, Links::Refuse).and_then(require_regular);
    opened.and_then(|file| write(&file, bytes)).map_err(|source| open_error("write", path, source))
}

fn write(file: &File, bytes: &[u8]) -> io::Result<u64> {
    handle::write_all(file, bytes)?;
    Ok(file.metadata()?.len())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    #[test]
    fn tool_calls_are_appended_as_lines() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("calls.jsonl");
        append(&path, &json!({"tool": "Read\n"})).unwrap();
        append(&path, &json!({"tool": "Bash"})).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"tool\":\"Read\\n\"}\n{\"tool\":\"Bash\"}\n");
    }

    #[test]
    fn tool_calls_refuse_special_files() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        fs::write(place("target"), "").unwrap();
        symlink("target", place("link")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(place("pipe")).status().unwrap().success());
        fs::create_dir(place("directory")).unwrap();
        for name in ["link", "pipe", "directory", "missing/x"] {
            append(&place(name), &json!({})).unwrap_err();
        }
        assert_eq!(fs::read_to_string(place("target")).unwrap(), "");
    }
}
