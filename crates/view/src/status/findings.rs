//! What a failure found: the first complaint in a gate's output, or the files that it is about.

use lanewright_model::cells::clean;
use lanewright_model::text::listed;
use lanewright_model::{Diagnosis, Failure, FailureKind};

const NAMED: usize = 3;

/// The finding on one line: that of a gate's output, else the files; empty where there is neither.
pub(crate) fn finding(failure: &Failure) -> String {
    complaint(failure.diagnosis.as_deref()).or_else(|| files(failure)).unwrap_or_default()
}

/// The first complaint, and how many others there are.
pub(crate) fn complaint(diagnosis: Option<&Diagnosis>) -> Option<String> {
    let diagnosis = diagnosis?;
    let first = clean(&diagnosis.findings.first()?.to_string());
    Some(if diagnosis.count > 1 { format!("{first} (and {} more)", diagnosis.count - 1) } else { first })
}

/// `conflict in src/a.rs and 2 more`, or the files that were changed and must not be.
fn files(failure: &Failure) -> Option<String> {
    let text = match failure.kind {
        _ if failure.paths.is_empty() => return None,
        FailureKind::Conflict => format!("conflict in {}", listed(&failure.paths, 1)),
        _ => listed(&failure.paths, NAMED),
    };
    Some(clean(&text))
}

/// The failure where room is scarce: its message with the files, or only these if they say it all.
pub(crate) fn in_short(failure: &Failure) -> String {
    match (files(failure), failure.kind) {
        (None, _) => clean(&failure.message),
        (Some(files), FailureKind::Conflict) => files,
        (Some(files), _) => format!("{}: {files}", clean(&failure.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(kind: FailureKind, files: &[&str]) -> Failure {
        let paths = files.iter().map(|file| (*file).to_owned()).collect();
        Failure { paths, ..Failure::new(kind, "it failed") }
    }

    #[test]
    fn a_conflict_is_named_by_its_files() {
        let three = about(FailureKind::Conflict, &["src/a.rs", "src/b.rs", "src/c.rs"]);
        assert_eq!(finding(&three), "conflict in src/a.rs and 2 more");
        assert_eq!(in_short(&three), "conflict in src/a.rs and 2 more");
        let foreign = about(FailureKind::Ownership, &["README.md"]);
        assert_eq!((finding(&foreign).as_str(), in_short(&foreign).as_str()), ("README.md", "it failed: README.md"));
        assert_eq!(in_short(&about(FailureKind::Crash, &[])), "it failed");
    }
}
