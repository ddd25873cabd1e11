//! Code Quality issues for GitLab's merge requests, in the part of Code Climate's format that GitLab reads.

use lanewright_model::digest::sha256;
use serde_json::{Value, json};

use super::ExecutionReport;
use super::annotations::{Annotation, Severity, all};

/// An issue for each complaint with a location, which this format requires.
pub(super) fn issues(report: &ExecutionReport<'_>) -> Vec<Value> {
    all(report).into_iter().filter_map(issue).collect()
}

fn issue(annotation: Annotation) -> Option<Value> {
    let Annotation { severity, title, message, file, line, .. } = annotation;
    let path = file?;
    let severity = match severity {
        Severity::Error => "major",
        Severity::Warning => "minor",
    };
    // The same complaint of the next run is the same issue.
    let fingerprint = sha256(format!("{path}\n{line:?}\n{title}\n{message}"));
    Some(json!({
        "description": message,
        "check_name": title,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": path, "lines": {"begin": line.unwrap_or(1)}},
    }))
}
