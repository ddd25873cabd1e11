//! Removes secrets from what a job leaves (SPEC §10).
//!
//! An agent writes its output straight into its file: a supervisor that stood between could die, and take the agent's
//! output, or the agent, with it. So while a job runs its output holds what the job said, for its owner's eyes only;
//! when the job has ended, and before its exit says so, the secrets are taken out of it and of the agent's own files.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use lanewright_files::regular_file::Links;
use lanewright_files::{atomic, regular_file};
use lanewright_model::{JobExit, JobSpec, Redactor};
use serde_json::Value;

use super::files::{JobFiles, output_log};
use super::gap::gap_after;
use super::output::each_line;

/// What takes out the secrets of our environment, which every job inherits, those of the variables in `more`, and what
/// `patterns` match.
pub fn redactor<'a>(more: impl IntoIterator<Item = (&'a String, &'a String)>, patterns: &[String]) -> Redactor {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let ours: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
    let all = ours.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Redactor::new(all.chain(more.into_iter().map(|(name, value)| (name.as_str(), value.as_str()))), patterns)
}

pub(super) fn redactor_for(spec: &JobSpec) -> Redactor {
    redactor(&spec.environment, &spec.redact)
}

pub(super) fn clean_exit(exit: &mut JobExit, redactor: &Redactor) {
    let JobExit { command, notes, tail, .. } = exit;
    [command, notes].into_iter().chain(tail).for_each(|text| redactor.clean(text));
}

/// Takes the secrets out of everything that the job left in its directory, which is no longer written, and out of its
/// status, and closes the gap in its output. A file without any is left as it is, and so is what is not a regular file.
pub(super) fn clean_files(files: &JobFiles, spec: &JobSpec, redactor: &Redactor) -> io::Result<()> {
    if redactor.is_idle() {
        let output = output_log(files.directory());
        return if output.symlink_metadata().is_ok_and(|kind| kind.is_file()) {
            clean_output(&output, redactor)
        } else {
            Ok(())
        };
    }
    let here = std::fs::read_dir(files.directory())?.chain(std::fs::read_dir(files.exchange()).into_iter().flatten());
    let left = here.flatten().map(|entry| entry.path());
    let status = spec.status.iter().map(|status| status.path.clone());
    let left = left.filter(|path| path.file_name().is_none_or(|name| OURS.iter().all(|ours| name != *ours)));
    let all = left.chain(status).filter(|path| path.symlink_metadata().is_ok_and(|kind| kind.is_file()));
    all.map(|path| clean_file(&path, redactor)).fold(Ok(()), Result::and)
}

/// Files of the supervisor's own, which are written without secrets.
const OURS: &[&str] = &["spec.json", "supervisor.json", "exit.json", "lock", "heartbeat", "stop"];

/// The largest file that is looked at as a whole, in bytes; larger ones are looked at line by line.
const WHOLE: u64 = 1 << 20;

fn clean_file(path: &Path, redactor: &Redactor) -> io::Result<()> {
    let name = path.to_string_lossy();
    if name.ends_with(".json")
        && let Ok(bytes) = regular_file::read_with(path, Links::Refuse, WHOLE)
    {
        return clean_bytes(&name, &bytes, redactor).map_or(Ok(()), |clean| Ok(atomic::replace(path, &clean)?));
    }
    clean_output(path, redactor)
}

/// What a file of this name holds, without its secrets; `None`: it holds none. JSON stays JSON whatever a pattern matches.
pub fn clean_bytes(name: &str, bytes: &[u8], redactor: &Redactor) -> Option<Vec<u8>> {
    if name.ends_with(".json")
        && let Ok(mut value) = serde_json::from_slice::<Value>(bytes)
    {
        let before = value.clone();
        redactor.clean_json(&mut value);
        return if value == before { None } else { serde_json::to_vec_pretty(&value).ok() };
    }
    let lines: Vec<(&[u8], Option<Vec<u8>>)> =
        bytes.split_inclusive(|&byte| byte == b'\n').map(|line| (line, without_secrets(line, redactor))).collect();
    let any = lines.iter().any(|(_, clean)| clean.is_some());
    any.then(|| lines.into_iter().flat_map(|(line, clean)| clean.unwrap_or_else(|| line.to_vec())).collect())
}

fn clean_output(path: &Path, redactor: &Redactor) -> io::Result<()> {
    let has_gap = gap_after(&regular_file::open_with(path, Links::Refuse)?, 0)?.is_some();
    if !has_gap && (redactor.is_idle() || !holds_secrets(path, redactor)?) {
        return Ok(());
    }
    let write = |clean: &File| {
        let mut clean = BufWriter::new(clean);
        each_line(path, |line| {
            clean.write_all(&without_secrets(line, redactor).unwrap_or_else(|| line.to_vec())).map(|()| true)
        })?;
        clean.flush()
    };
    Ok(atomic::write_with(path, write)?)
}

fn holds_secrets(path: &Path, redactor: &Redactor) -> io::Result<bool> {
    let mut found = false;
    each_line(path, |line| {
        found = without_secrets(line, redactor).is_some();
        Ok(!found)
    })?;
    Ok(found)
}

fn without_secrets(line: &[u8], redactor: &Redactor) -> Option<Vec<u8>> {
    match redactor.redact(&String::from_utf8_lossy(line)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(clean) => Some(clean.into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lanewright_files::handle;

    use super::*;
    use crate::process::gap::Limiter;

    fn cleaned(bytes: &[u8]) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("output.log");
        fs::write(&path, bytes).unwrap();
        clean_output(&path, &Redactor::new([("A_TOKEN", "abcdef")], &[])).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "a temporary file was left behind");
        fs::read(&path).unwrap()
    }

    #[test]
    fn secrets_go_and_every_other_byte_stays() {
        assert_eq!(cleaned(b"\xff\x00 1\r\nx abcdef\n\xfe last"), b"\xff\x00 1\r\nx [redacted:A_TOKEN]\n\xfe last");
        assert_eq!(cleaned(b"\xffabcdef"), "\u{fffd}[redacted:A_TOKEN]".as_bytes());
    }

    #[test]
    fn output_without_a_secret_is_not_touched() {
        use std::os::unix::fs::MetadataExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("output.log");
        fs::write(&path, "nothing\n").unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        clean_output(&path, &Redactor::new([("A_TOKEN", "abcdef")], &[])).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    }

    #[test]
    fn gap_is_closed_also_without_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("output.log");
        let lines: String = (0..200_000).map(|number| format!("{number:015}\n")).collect();
        fs::write(&path, lines).unwrap();
        let output = handle::append_and_read(&path, Links::Refuse).unwrap();
        Limiter::new(1 << 20).enforce(&output).unwrap();
        clean_output(&path, &Redactor::default()).unwrap();
        let left = fs::read_to_string(&path).unwrap();
        assert!(left.len() < 1 << 20 && left.starts_with("000000000000000\n"), "{}", left.len());
        assert!(left.ends_with("\n000000000199999\n") && left.contains("were left out here"));
        assert!(!left.contains('\0'));
        assert_eq!(gap_after(&fs::File::open(&path).unwrap(), 0).unwrap(), None);
    }

    #[test]
    fn json_stays_json_whatever_a_pattern_matches() {
        let redactor = Redactor::new([("A_TOKEN", "s3cr3t-\"t0ken")], &["\"k.*".to_owned()]);
        let clean = |name, bytes: &[u8]| clean_bytes(name, bytes, &redactor);
        let value = clean("result.json", br#"{"k":"s3cr3t-\"t0ken","b":1}"#).unwrap();
        let value: Value = serde_json::from_slice(&value).unwrap();
        assert_eq!(value, serde_json::json!({"k": "[redacted:A_TOKEN]", "b": 1}));
        assert_eq!(clean("exit.json", b"{ \"a\":1}"), None);
        assert_eq!(clean("torn.json", br#"{"k":"#), Some(b"{[redacted:pattern-1]".to_vec()));
        assert_eq!(clean("x.md", b"\xff\n"), None);
    }
}
