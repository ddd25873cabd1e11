//! Keeping secrets out of what a job leaves (SPEC §10).
//!
//! An agent writes its output straight into its file: a supervisor that stood between could die, and take the agent's
//! output, or the agent, with it. So while a job runs its output holds what the job said, for its owner's eyes only;
//! when the job has ended, and before its exit says so, the secrets are taken out.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::output::each_line;
use crate::model::{JobExit, JobSpec, Redactor};

/// What takes out the secrets of our environment, which every job inherits, those of the variables in `more`, and what
/// `patterns` match.
pub fn redactor<'a>(more: impl IntoIterator<Item = (&'a String, &'a String)>, patterns: &[String]) -> Redactor {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let ours: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
    let all = ours.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Redactor::new(all.chain(more.into_iter().map(|(name, value)| (name.as_str(), value.as_str()))), patterns)
}

/// What takes out the secrets that a job could know.
pub(super) fn redactor_for(spec: &JobSpec) -> Redactor {
    redactor(&spec.environment, &spec.redact)
}

/// Takes the secrets out of an exit.
pub(super) fn clean_exit(exit: &mut JobExit, redactor: &Redactor) {
    let JobExit { command, notes, tail, .. } = exit;
    [command, notes].into_iter().chain(tail).for_each(|text| redactor.clean(text));
}

/// Takes the secrets out of the output at `path`, which nobody writes any more. Output without one is left as it is.
pub(super) fn clean_output(path: &Path, redactor: &Redactor) -> io::Result<()> {
    if redactor.is_idle() || !path.exists() || !holds_secrets(path, redactor)? {
        return Ok(());
    }
    let mut clean = BufWriter::new(tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?);
    each_line(path, |line| {
        clean.write_all(&without_secrets(line, redactor).unwrap_or_else(|| line.to_vec())).map(|()| true)
    })?;
    let clean = clean.into_inner().map_err(io::IntoInnerError::into_error)?;
    clean.as_file().sync_all()?;
    clean.persist(path)?;
    Ok(())
}

fn holds_secrets(path: &Path, redactor: &Redactor) -> io::Result<bool> {
    let mut found = false;
    each_line(path, |line| {
        found = without_secrets(line, redactor).is_some();
        Ok(!found)
    })?;
    Ok(found)
}

/// The line without its secrets; `None`: it holds none.
fn without_secrets(line: &[u8], redactor: &Redactor) -> Option<Vec<u8>> {
    match redactor.redact(&String::from_utf8_lossy(line)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(clean) => Some(clean.into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
        clean_output(&directory.path().join("none"), &Redactor::new([("A_TOKEN", "abcdef")], &[])).unwrap();
    }
}
