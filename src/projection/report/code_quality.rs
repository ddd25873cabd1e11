//! Code Quality issues for GitLab's merge requests, in the part of Code Climate's format that GitLab reads.

use serde::Serialize;

use super::ExecutionReport;
use super::annotations::{Annotation, Severity, all};
use crate::model::digest::sha256;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Lines {
    begin: u32,
}

/// An issue for each complaint with a location, which this format requires.
pub(super) fn issues(report: &ExecutionReport<'_>) -> Vec<Issue> {
    all(report).into_iter().filter_map(issue).collect()
}

fn issue(annotation: Annotation) -> Option<Issue> {
    let Annotation { severity, title, message, file, line, .. } = annotation;
    let path = file?;
    let severity = match severity {
        Severity::Error => "major",
        Severity::Warning => "minor",
    };
    // The same complaint of the next run is the same issue.
    let words = format!("{path}\n{line:?}\n{title}\n{message}");
    let fingerprint = sha256(words);
    let location = Location { path, lines: Lines { begin: line.unwrap_or(1) } };
    Some(Issue { description: message, check_name: title, fingerprint, severity, location })
}
