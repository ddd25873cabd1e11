//! `checkpoints.json`: the contract's view of every run of a repository, shared with whoever else writes it
//! (seed 004; SPEC §4 and §5; for users: `docs/checkpoints.md`).

use std::io;
use std::path::{Path, PathBuf};

use super::checkpoints_layout::{EditError, Layout, array};
pub use super::checkpoints_writer::CheckpointsWriter;
use super::json::Item;
use crate::fs::regular_file::{LARGE, Links, read_with};
use crate::fs::{FileError, open_error};
use crate::model::CheckpointRecord;

/// Why `checkpoints.json` cannot be read or updated.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointsError {
    /// The file or its lock cannot be opened, read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is no JSON array; it was left as it is.
    #[error(
        "{}:{line}:{column}: {reason}; the file was left as it is: mend it, or move it away: a run \
         writes its own records again when it is resumed", .path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
        /// What the reader expected.
        reason: String,
    },
    /// A record cannot be written, for example because a path in it is not UTF-8.
    #[error("the checkpoint `{stage}` of lane {lane} cannot be written: {source}")]
    Record {
        /// The record's stage.
        stage: &'static str,
        /// The record's lane, `-` for the phase.
        lane: String,
        /// Why.
        source: serde_json::Error,
    },
}

/// One element of `checkpoints.json`.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckpointEntry {
    /// A record of the contract.
    Record(Box<CheckpointRecord>),
    /// Something else, for example a record with a stage of another program's.
    Foreign {
        /// Its place in the array, from 0.
        index: usize,
        /// Why it is no record.
        reason: String,
    },
}

/// Puts `records` into the file at `path`, which is made if there is none: [`CheckpointsWriter::update`], once.
///
/// # Errors
/// [`CheckpointsError`]; the file is then as it was.
pub fn update(path: &Path, records: &[CheckpointRecord]) -> Result<(), CheckpointsError> {
    CheckpointsWriter::new(path).update(records)
}

/// Makes sure that the file at `path` can be updated.
///
/// # Errors
/// [`CheckpointsError`].
pub fn check(path: &Path) -> Result<(), CheckpointsError> {
    let text = read_text(path)?.unwrap_or_default();
    array(or_empty(&text)).map(drop).map_err(|error| EditError::Unreadable(error).at(path, &text))
}

/// Reads the file at `path`; no file, and an empty one, hold nothing.
///
/// # Errors
/// [`CheckpointsError`]; what is no record within an array is no error.
pub fn read(path: &Path) -> Result<Vec<CheckpointEntry>, CheckpointsError> {
    let text = read_text(path)?.unwrap_or_default();
    let items = array(or_empty(&text)).map_err(|error| EditError::Unreadable(error).at(path, &text))?;
    let entry = |(index, item): (usize, &Item<'_>)| match serde_json::from_str(&item.value) {
        Ok(record) => CheckpointEntry::Record(record),
        Err(error) => CheckpointEntry::Foreign { index, reason: error.to_string() },
    };
    Ok(items.items.iter().enumerate().map(entry).collect())
}

pub(super) fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

pub(super) fn read_text(path: &Path) -> Result<Option<String>, CheckpointsError> {
    let bytes = match read_with(path, Links::Refuse, LARGE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|source| open_error("read", path, source))?,
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = valid.matches('\n').count() + 1;
        let column = valid.len() - valid.rfind('\n').map_or(0, |newline| newline + 1) + 1;
        CheckpointsError::Unreadable { path: path.to_owned(), line, column, reason: "it is not UTF-8".to_owned() }
    })
}

impl EditError<'_> {
    pub(super) fn at(self, path: &Path, text: &str) -> CheckpointsError {
        match self {
            Self::Unreadable(error) => unreadable(path, text, &error),
            Self::Io(source) => FileError::Io { action: "read", path: path.to_owned(), source }.into(),
            Self::Record(record, source) => CheckpointsError::Record {
                stage: record.stage.word(),
                lane: record.lane.as_ref().map_or("-".to_owned(), ToString::to_string),
                source,
            },
        }
    }
}

fn unreadable(path: &Path, text: &str, error: &serde_json::Error) -> CheckpointsError {
    let starts_as_array = text.trim_start_matches('\u{feff}').trim_start().starts_with('[');
    let reason = if starts_as_array { error.to_string() } else { "it holds no JSON array".to_owned() };
    CheckpointsError::Unreadable { path: path.to_owned(), line: error.line(), column: error.column().max(1), reason }
}

/// `old` with `records` in it.
pub(super) fn updated<'a>(old: &str, records: &'a [CheckpointRecord]) -> Result<String, EditError<'a>> {
    let old = or_empty(old);
    let layout = Layout::of(old, records).map_err(EditError::Unreadable)?;
    let edits = layout.edits(records, |part| Ok(old[part].to_owned()))?;
    Ok(edits.parts(old.len()).fold(String::with_capacity(old.len()), |new, (part, text)| new + &old[part] + text))
}

/// What a file holds that holds nothing.
pub(super) fn or_empty(text: &str) -> &str {
    if text.trim_start_matches('\u{feff}').trim().is_empty() { "[]\n" } else { text }
}

#[cfg(test)]
#[path = "checkpoints_tests.rs"]
mod tests;
