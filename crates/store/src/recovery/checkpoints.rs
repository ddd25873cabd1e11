//! Repairs a `checkpoints.json` that is not a JSON array: the damaged file is set aside, and written again from the
//! run logs and from the elements that can still be read.

use std::path::{Path, PathBuf};

use lanewright_files::lock::exclusively;
use lanewright_files::{FileError, atomic, regular_file};
use lanewright_model::CheckpointRecord;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::checkpoints::{CheckpointsError, lock_of, read, updated};
use crate::recovery::run_log::keep_aside;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    pub aside: PathBuf,
    /// The number of its elements that could be read.
    pub recovered: usize,
}

/// Writes the file at `path` again if it cannot be read: the elements that can still be read, in their order, and
/// `records` in their places or at the end. `None`: it can be read, and nothing was done.
///
/// # Errors
/// [`CheckpointsError`]; the file is then unchanged.
pub fn repair(path: &Path, records: &[CheckpointRecord]) -> Result<Option<Repaired>, CheckpointsError> {
    exclusively(&lock_of(path), |_| {
        if !matches!(read(path), Err(CheckpointsError::Unreadable { .. })) {
            return Ok(None);
        }
        let bytes = regular_file::read(path).map_err(|source| FileError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        let elements = readable(&String::from_utf8_lossy(&bytes));
        let new = updated(path, &format!("[{}]", elements.join(",")), records)?;
        let aside = keep_aside(path)?;
        atomic::write(path, new.as_bytes())?;
        Ok(Some(Repaired { aside, recovered: elements.len() }))
    })?
}

/// The objects in `text` that are whole and lie in no other whole one, as they are written.
fn readable(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = &rest[start..];
        let mut reader = serde_json::Deserializer::from_str(rest);
        match <&RawValue>::deserialize(&mut reader) {
            Ok(value) => {
                // A damaged byte that was no UTF-8 would come back as another one.
                found.extend((!value.get().contains('\u{fffd}')).then(|| value.get().to_owned()));
                rest = &rest[value.get().len()..];
            }
            Err(_) => rest = &rest[1..],
        }
    }
    // What is within a record that is damaged itself (`git`) is no record.
    found.retain(|value| is_record(value));
    found
}

/// Whether `value` names its run, lane and stage, whichever program wrote it.
fn is_record(value: &str) -> bool {
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "run_id")]
        _run: String,
        #[serde(rename = "lane")]
        _lane: String,
        #[serde(rename = "stage")]
        _stage: String,
    }
    serde_json::from_str::<Named>(value).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const FOREIGN: &str =
        r#"{"run_id":"x","phase":"P9","lane":"A","stage":"theirs",  "git":{"branch":"b"}, "own": 1.50}"#;

    fn written(text: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checkpoints.json");
        fs::write(&path, text).unwrap();
        (directory, path)
    }

    #[test]
    fn repair_keeps_text_of_whole_checkpoints() {
        let half = FOREIGN.split_at(70).0;
        let (_directory, path) = written(format!("[\n {FOREIGN},\n {half}, {FOREIGN}\n"));
        let repaired = repair(&path, &[]).unwrap().unwrap();
        assert_eq!(repaired.recovered, 2);
        assert_eq!(fs::read_to_string(&path).unwrap().matches(FOREIGN).count(), 2);
        assert_eq!(read(&path).unwrap().len(), 2);
        assert!(fs::read_to_string(&repaired.aside).unwrap().contains(half));
        assert_eq!(repair(&path, &[]).unwrap(), None, "nothing is left to repair");
    }

    #[test]
    fn invalid_utf8_loses_one_checkpoint_only() {
        let bad = [b"[".as_slice(), &FOREIGN.as_bytes()[..20], &[0xff], &FOREIGN.as_bytes()[20..], b","].concat();
        let (_directory, path) = written([&bad, FOREIGN.as_bytes(), b"]"].concat());
        assert_eq!(repair(&path, &[]).unwrap().unwrap().recovered, 1);
    }

    #[test]
    fn readable_checkpoints_are_not_repaired() {
        let (directory, path) = written("[ 1 ]");
        assert_eq!(repair(&path, &[]).unwrap(), None);
        assert_eq!(fs::read_to_string(&path).unwrap(), "[ 1 ]");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "the file and its lock");
    }
}
