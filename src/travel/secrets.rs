//! Keeping secrets out of what is pushed (SPEC §10). Outputs and records are clean on disk; what agents write into files of
//! their own is theirs there, and is cleaned on its way out.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::{JobSpec, Plan, Redactor};
use crate::process;
use crate::store::run_files::RunFile;

/// The pinned plan: a run is pushed with the plan that it follows, to the letter.
const KEPT: &str = "plan.json";

/// What takes out the secrets of our environment, of the plan's variables, and of what the run's jobs were given.
pub(super) fn redactor(plan: &Plan, jobs: &[JobSpec]) -> Redactor {
    let agents = plan.lanes.iter().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.env);
    let variables = plan.lanes.iter().flat_map(|lane| &lane.env).chain(agents);
    let mut patterns: Vec<String> = jobs.iter().flat_map(|job| &job.redact).cloned().collect();
    patterns.sort();
    patterns.dedup();
    process::redactor(variables.chain(jobs.iter().flat_map(|job| &job.environment)), &patterns)
}

/// Takes the secrets out of every file but the plan.
pub(super) fn clean(files: &mut [RunFile], redactor: &Redactor) {
    if redactor.is_idle() {
        return;
    }
    for (path, contents) in files.iter_mut().filter(|(path, _)| path != KEPT) {
        // What holds a NUL is no text, and would not survive being taken for one.
        if contents.contains(&0) {
            continue;
        }
        match serde_json::from_slice::<Value>(contents) {
            Ok(value) if path.ends_with(".json") => clean_json(contents, value, redactor),
            _ => clean_lines(contents, redactor),
        }
    }
}

/// A file that is JSON stays JSON, whatever a pattern matches.
fn clean_json(contents: &mut Vec<u8>, mut value: Value, redactor: &Redactor) {
    let before = value.clone();
    redactor.clean_json(&mut value);
    if value != before
        && let Ok(text) = serde_json::to_vec_pretty(&value)
    {
        *contents = text;
    }
}

/// Line by line, as outputs are, so that a pattern means the same in both.
fn clean_lines(contents: &mut Vec<u8>, redactor: &Redactor) {
    let mut clean = Vec::with_capacity(contents.len());
    for line in contents.split_inclusive(|&byte| byte == b'\n') {
        match redactor.redact(&String::from_utf8_lossy(line)) {
            Cow::Borrowed(_) => clean.extend_from_slice(line),
            Cow::Owned(text) => clean.extend_from_slice(text.as_bytes()),
        }
    }
    *contents = clean;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(path: &str, contents: &[u8]) -> Vec<u8> {
        let redactor = Redactor::new([("A_TOKEN", "s3cr3t-t0ken")], &["\"k.*".to_owned()]);
        let mut files = vec![(path.to_owned(), contents.to_vec())];
        clean(&mut files, &redactor);
        files.remove(0).1
    }

    #[test]
    fn secrets_are_taken_out_of_text_and_nothing_else_is_touched() {
        assert_eq!(cleaned("report.md", b"with s3cr3t-t0ken\nb"), b"with [redacted:A_TOKEN]\nb");
        assert_eq!(cleaned("plan.json", b"\"s3cr3t-t0ken\""), b"\"s3cr3t-t0ken\"");
        assert_eq!(cleaned("x.bin", b"\0s3cr3t-t0ken"), b"\0s3cr3t-t0ken");
        assert_eq!(cleaned("env.txt", b"\xff\n"), b"\xff\n");
        assert_eq!(cleaned("exit.json", b"{ \"a\":1}"), b"{ \"a\":1}");
    }

    #[test]
    fn json_stays_json_whatever_a_pattern_matches() {
        let value: Value = serde_json::from_slice(&cleaned("result.json", br#"{"k":"s3cr3t-t0ken","b":1}"#)).unwrap();
        assert_eq!(value, serde_json::json!({"k": "[redacted:A_TOKEN]", "b": 1}));
        assert_eq!(cleaned("torn.json", br#"{"a":"s3cr3t-t0ken"#), br#"{"a":"[redacted:A_TOKEN]"#);
    }
}
