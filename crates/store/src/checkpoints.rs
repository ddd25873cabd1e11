//! `checkpoints.json`: the contract's view of every run of a repository, shared with other programs that write it
//! (seed 004; SPEC §4 and §5; for users: `docs/checkpoints.md`).

use std::borrow::{Borrow, Cow};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use lanewright_files::lock::exclusively;
use lanewright_files::regular_file::{LARGE, Links, read_with};
use lanewright_files::{FileError, atomic, directory, if_there, open_error};
use lanewright_model::{CheckpointRecord, LaneId, RunId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::Object;

#[derive(Debug, thiserror::Error)]
pub enum CheckpointsError {
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is no JSON array; it was left as it is.
    #[error(
        "{}:{line}:{column}: {reason}; the file was left as it is: fix it, or move it away: a run \
         writes its own records again when it is resumed", .path.display()
    )]
    Unreadable {
        path: PathBuf,
        line: usize,
        /// From 1, in bytes.
        column: usize,
        reason: String,
    },
    /// A record cannot be written, for example because a path in it is not UTF-8.
    #[error("the checkpoint `{stage}` of lane {lane} cannot be written: {source}")]
    Record { stage: &'static str, lane: String, source: serde_json::Error },
}

#[derive(Debug, Clone, PartialEq)]
pub enum CheckpointEntry {
    Record(Box<CheckpointRecord>),
    /// Something else, for example a record with a stage of another program's.
    Foreign {
        index: usize,
        reason: String,
    },
}

impl CheckpointEntry {
    /// `None`: it is not a record of the contract.
    pub fn record(&self) -> Option<&CheckpointRecord> {
        match self {
            Self::Record(record) => Some(record),
            Self::Foreign { .. } => None,
        }
    }
}

/// Puts `records` into the file at `path`, which is made if there is none. Any number of processes may do so at once.
///
/// Each replaces the last record with its run, phase, lane and stage and keeps the fields there that are not of the
/// contract; without such a record it is appended. Everything else keeps its order and its text. Returns how many bytes
/// the file then has.
///
/// # Errors
/// [`CheckpointsError`]; the file is then as it was.
pub fn update<R: Borrow<CheckpointRecord>>(path: &Path, records: &[R]) -> Result<usize, CheckpointsError> {
    if let Some(parent) = path.parent() {
        directory::create_directory(parent)?;
    }
    exclusively(&lock_of(path), |_| {
        let old = read_text(path)?.unwrap_or_default();
        let new = updated(path, &old, records)?;
        if new != old {
            atomic::write(path, new.as_bytes())?;
        }
        Ok(new.len())
    })?
}

/// Makes sure that the file at `path` can be updated.
pub fn check(path: &Path) -> Result<(), CheckpointsError> {
    elements(path, &read_text(path)?.unwrap_or_default()).map(drop)
}

/// Reads the file at `path`; no file, and an empty one, hold nothing.
///
/// # Errors
/// [`CheckpointsError`]; what is no record within an array is no error.
pub fn read(path: &Path) -> Result<Vec<CheckpointEntry>, CheckpointsError> {
    let text = read_text(path)?.unwrap_or_default();
    let entry = |(index, element): (usize, &RawValue)| match serde_json::from_str(element.get()) {
        Ok(record) => CheckpointEntry::Record(record),
        Err(error) => CheckpointEntry::Foreign { index, reason: error.to_string() },
    };
    Ok(elements(path, &text)?.into_iter().enumerate().map(entry).collect())
}

/// The records of the file at `path` that are `wanted`; the others are not kept in memory.
///
/// # Errors
/// [`CheckpointsError`]
pub fn records(
    path: &Path,
    wanted: impl Fn(&CheckpointRecord) -> bool,
) -> Result<Vec<CheckpointRecord>, CheckpointsError> {
    let text = read_text(path)?.unwrap_or_default();
    let records = elements(path, &text)?.into_iter().filter_map(|element| serde_json::from_str(element.get()).ok());
    Ok(records.filter(wanted).collect())
}

/// The places of logs that the records of the file at `path` name, each with its run; the rest of a record is not looked
/// at.
///
/// # Errors
/// [`CheckpointsError`]
pub fn log_paths(path: &Path) -> Result<BTreeSet<(RunId, PathBuf)>, CheckpointsError> {
    let text = read_text(path)?.unwrap_or_default();
    let named = elements(path, &text)?.into_iter().filter_map(|it| serde_json::from_str::<LogPath<'_>>(it.get()).ok());
    let named: HashSet<LogPath<'_>> = named.collect();
    Ok(named
        .into_iter()
        .filter_map(|it| Some((RunId::new(&it.run_id).ok()?, it.log_path.into_owned().into())))
        .collect())
}

#[derive(Deserialize, PartialEq, Eq, Hash)]
struct LogPath<'a> {
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    #[serde(borrow)]
    log_path: Cow<'a, str>,
}

pub(super) fn lock_of(path: &Path) -> PathBuf {
    directory::with_suffix(path, ".lock")
}

pub(super) fn read_text(path: &Path) -> Result<Option<String>, CheckpointsError> {
    let read = if_there(read_with(path, Links::Refuse, LARGE)).map_err(|source| open_error("read", path, source))?;
    read.map(String::from_utf8).transpose().map_err(|error| {
        let valid = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = valid.matches('\n').count() + 1;
        let column = valid.len() - valid.rfind('\n').map_or(0, |newline| newline + 1) + 1;
        CheckpointsError::Unreadable { path: path.to_owned(), line, column, reason: "it is not UTF-8".to_owned() }
    })
}

/// The elements of the array `text`, the content of the file at `path`. Blank text is an empty array.
fn elements<'a>(path: &Path, text: &'a str) -> Result<Vec<&'a RawValue>, CheckpointsError> {
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json = if json.trim().is_empty() { "[]" } else { json };
    serde_json::from_str(json).map_err(|error| {
        let is_array = json.trim_start().starts_with('[');
        let reason = if is_array { error.to_string() } else { "it holds no JSON array".to_owned() };
        let (line, column) = (error.line(), error.column().max(1));
        CheckpointsError::Unreadable { path: path.to_owned(), line, column, reason }
    })
}

#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Key<'a> {
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    #[serde(borrow)]
    phase: Cow<'a, str>,
    #[serde(borrow)]
    lane: Cow<'a, str>,
    #[serde(borrow)]
    stage: Cow<'a, str>,
}

impl<'a> Key<'a> {
    fn of(record: &'a CheckpointRecord) -> Self {
        Self {
            run_id: record.run_id.as_str().into(),
            phase: record.phase.as_str().into(),
            lane: record.lane.as_ref().map_or("-", LaneId::as_str).into(),
            stage: record.stage.word().into(),
        }
    }
}

/// `old` with `records` in it, one element a line. `path` is named in errors.
pub(super) fn updated<R: Borrow<CheckpointRecord>>(
    path: &Path,
    old: &str,
    records: &[R],
) -> Result<String, CheckpointsError> {
    let mut elements: Vec<Cow<'_, str>> = Vec::new();
    let mut places: HashMap<Key<'_>, usize> = HashMap::new();
    for element in self::elements(path, old)? {
        // An array of four texts would be read as a key, too.
        let is_object = element.get().starts_with('{');
        let key = is_object.then(|| serde_json::from_str(element.get()).ok()).flatten();
        places.extend(key.map(|key| (key, elements.len())));
        elements.push(element.get().into());
    }
    for record in records.iter().map(R::borrow) {
        match places.entry(Key::of(record)) {
            Entry::Occupied(place) => {
                let element = &mut elements[*place.get()];
                *element = merged(element, record).map_err(|source| unwritable(record, source))?.into();
            }
            Entry::Vacant(place) => {
                place.insert(elements.len());
                elements.push(serde_json::to_string(record).map_err(|source| unwritable(record, source))?.into());
            }
        }
    }
    Ok(if elements.is_empty() { "[]\n".to_owned() } else { format!("[\n  {}\n]\n", elements.join(",\n  ")) })
}

fn unwritable(record: &CheckpointRecord, source: serde_json::Error) -> CheckpointsError {
    let lane = record.lane.as_ref().map_or("-".to_owned(), ToString::to_string);
    CheckpointsError::Record { stage: record.stage.word(), lane, source }
}

/// The record `old` with the fields of `new`; fields that are not of the contract stay.
fn merged(old: &str, new: &CheckpointRecord) -> serde_json::Result<String> {
    let fields: Object = serde_json::from_str(&serde_json::to_string(new)?)?;
    let mut object: Object = serde_json::from_str(old)?;
    let mut seen = HashSet::new();
    object.members.retain(|(name, _)| {
        let ours = CheckpointRecord::FIELDS.contains(&name.as_str());
        !ours || (fields.get(name).is_some() && seen.insert(name.clone()))
    });
    for (name, value) in &fields.members {
        object.set(name, value.get().to_owned())?;
    }
    serde_json::to_string(&object)
}

#[cfg(test)]
#[path = "checkpoints_tests.rs"]
mod tests;
