//! `checkpoints.json`: the contract's view of every run of a repository, shared with whoever else writes it
//! (seed 004; SPEC §4 and §5; for users: `docs/checkpoints.md`).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::atomic::{self, FileError, no_follow_options, open_error};
use super::json::{Item, Items, to_object};
use super::lock::exclusively;
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

/// Puts `records` into the file at `path`, which is made if there is none.
///
/// Each takes the place of the last record with its run, phase, lane and stage, and keeps the fields there that are
/// not of the contract; without one it goes to the end. Everything else stays as it is, byte for byte. Any number of
/// processes may do this at once.
///
/// # Errors
/// [`CheckpointsError`]; the file is then as it was.
pub fn update(path: &Path, records: &[CheckpointRecord]) -> Result<(), CheckpointsError> {
    if let Some(directory) = path.parent() {
        atomic::create_directory(directory)?;
    }
    exclusively(&lock_of(path), || {
        let old = read_text(path)?.unwrap_or_default();
        let new = updated(&old, records).map_err(|error| error.at(path, &old))?;
        if new != old {
            atomic::write(path, new.as_bytes())?;
        }
        Ok(())
    })?
}

/// Reads the file at `path`; no file, and an empty one, hold nothing.
///
/// # Errors
/// [`CheckpointsError`]; what is no record within an array is no error.
pub fn read(path: &Path) -> Result<Vec<CheckpointEntry>, CheckpointsError> {
    let text = read_text(path)?.unwrap_or_default();
    let items = array(&text).map_err(|error| EditError::Unreadable(error).at(path, &text))?;
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

fn read_text(path: &Path) -> Result<Option<String>, CheckpointsError> {
    let mut bytes = Vec::new();
    match no_follow_options().read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|mut file: File| file.read_to_end(&mut bytes)),
    }
    .map_err(|source| open_error("read", path, source))?;
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = valid.matches('\n').count() + 1;
        let column = valid.len() - valid.rfind('\n').map_or(0, |newline| newline + 1) + 1;
        CheckpointsError::Unreadable { path: path.to_owned(), line, column, reason: "it is not UTF-8".to_owned() }
    })
}

/// Why records cannot be put into a text.
pub(super) enum EditError<'a> {
    Unreadable(serde_json::Error),
    Record(&'a CheckpointRecord, serde_json::Error),
}

impl EditError<'_> {
    pub(super) fn at(self, path: &Path, text: &str) -> CheckpointsError {
        match self {
            Self::Unreadable(error) => unreadable(path, text, &error),
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

/// What tells records apart.
#[derive(PartialEq, Eq, Hash, Deserialize)]
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
            lane: record.lane.as_ref().map_or("-", |lane| lane.as_str()).into(),
            stage: record.stage.word().into(),
        }
    }
}

/// Where a record goes.
struct Target<'a> {
    record: &'a CheckpointRecord,
    place: Option<usize>,
}

/// `old` with `records` in it.
pub(super) fn updated<'a>(old: &str, records: &'a [CheckpointRecord]) -> Result<String, EditError<'a>> {
    let mut array = array(old).map_err(EditError::Unreadable)?;
    for Target { record, place } in targets(&array, records) {
        let fields = to_object(record).map_err(|error| EditError::Record(record, error))?;
        match place {
            Some(place) => array.items[place].value = merged(&array.items[place].value, &fields).into(),
            None => append(&mut array, Value::Object(fields).to_string()),
        }
    }
    Ok(array.text())
}

/// Finds every record's place in one pass; of records with one key the last counts.
fn targets<'a>(array: &Items<'_>, records: &'a [CheckpointRecord]) -> Vec<Target<'a>> {
    let mut targets: Vec<Target<'a>> = Vec::new();
    let mut by_key: HashMap<Key<'_>, usize> = HashMap::new();
    for record in records {
        let index = *by_key.entry(Key::of(record)).or_insert(targets.len());
        match targets.get_mut(index) {
            Some(target) => target.record = record,
            None => targets.push(Target { record, place: None }),
        }
    }
    for (place, item) in array.items.iter().enumerate() {
        let found = serde_json::from_str::<Key<'_>>(&item.value).ok();
        if let Some(index) = found.and_then(|key| by_key.get(&key)) {
            targets[*index].place = Some(place);
        }
    }
    targets
}

fn array(text: &str) -> serde_json::Result<Items<'_>> {
    let (mark, json) = text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 });
    if json.trim().is_empty() {
        return Items::of_array("[]\n");
    }
    let items = Items::of_array(json)?;
    Ok(Items { open: &text[..mark.len() + items.open.len()], ..items })
}

/// One record a line, unless whoever began the file does it otherwise.
fn append(array: &mut Items<'_>, value: String) {
    let before = match array.items.last() {
        Some(last) => last.before.clone(),
        None => {
            array.close = format!("\n{}", array.close.trim_start()).into();
            "\n  ".into()
        }
    };
    array.items.push(Item::new("", before.into_owned(), value));
}

/// The object `old` with `fields` in it: fields of the contract are replaced, added in their place or removed, all
/// others stay.
fn merged(old: &str, fields: &Map<String, Value>) -> String {
    let Ok(mut object) = Items::of_object(old) else { return Value::Object(fields.clone()).to_string() };
    let mut seen = HashSet::new();
    object.items.retain(|item| {
        let ours = CheckpointRecord::FIELDS.contains(&&*item.name);
        !ours || (fields.contains_key(&*item.name) && seen.insert(item.name.clone()))
    });
    let mut place = 0;
    for (name, value) in fields {
        match object.items.iter().position(|item| item.name == **name) {
            Some(found) => {
                place = found;
                object.items[found].value = value.to_string().into();
            }
            None => {
                place += 1;
                let added = Item::new(name, spelled(name, &object.items[0].before), value.to_string());
                object.items.insert(place, added);
            }
        }
    }
    object.text()
}

/// What stands before a new member's value, spaced as before the first one of its object.
fn spelled(name: &str, first: &str) -> String {
    let (space, rest) = first.split_at(first.find('"').unwrap_or(0));
    let colon = rest.rfind('"').map_or(":", |quote| &rest[quote + 1..]);
    format!("{space}\"{name}\"{colon}")
}

#[cfg(test)]
#[path = "checkpoints_tests.rs"]
mod tests;
