//! What real tools print when they fail, and when they do not: `fixtures/diagnosis`.
//!
//! What stands beside each output as `NAME.expected` was counted by hand: class, tool (`-` for none) and count; then a
//! line for each finding, `FILE:LINE:COLUMN` as far as the tool tells (`-` for no file), and words of its message.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lanewright_agents::diagnose::diagnose;
use lanewright_model::{Diagnosis, Finding};

/// Where the outputs' worktree was.
const ROOT: &str = "/repo";

fn outputs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/diagnosis");
    let tools = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = tools.flat_map(|tool| fs::read_dir(tool).unwrap().map(|entry| entry.unwrap().path()));
    let mut outputs: Vec<PathBuf> = files.filter(|path| path.extension().unwrap() == "txt").collect();
    outputs.sort();
    assert!(outputs.len() >= 45, "only {} outputs", outputs.len());
    outputs
}

fn place(finding: &Finding) -> String {
    let mut place = finding.file.clone().unwrap_or_else(|| "-".to_owned());
    for number in [finding.line, finding.column].into_iter().flatten() {
        write!(place, ":{number}").unwrap();
    }
    place
}

fn heading(diagnosis: &Diagnosis) -> String {
    let Diagnosis { class, tool, count, .. } = diagnosis;
    format!("{class} {} {count}", tool.as_deref().unwrap_or("-"))
}

fn agrees(diagnosis: &Diagnosis, expected: &str) -> bool {
    let mut lines = expected.lines().filter(|line| !line.is_empty());
    let finding_agrees = |(line, finding): (&str, &Finding)| {
        let (wanted, words) = line.split_once(' ').unwrap_or((line, ""));
        wanted == place(finding) && finding.message.contains(words)
    };
    let heading_agrees = lines.next() == Some(&heading(diagnosis));
    let wanted: Vec<&str> = lines.collect();
    heading_agrees
        && wanted.len() == diagnosis.findings.len()
        && wanted.into_iter().zip(&diagnosis.findings).all(finding_agrees)
}

#[test]
fn recorded_outputs_give_expected_diagnosis() {
    let mut wrong = String::new();
    for path in outputs() {
        let diagnosis = diagnose(&fs::read_to_string(&path).unwrap(), &[Path::new(ROOT)]);
        let expected = fs::read_to_string(path.with_extension("expected")).unwrap_or_default();
        if !agrees(&diagnosis, &expected) {
            let name = path.display();
            writeln!(wrong, "== {name}\nexpected:\n{expected}found:\n{}", heading(&diagnosis)).unwrap();
            diagnosis.findings.iter().for_each(|it| writeln!(wrong, "{} {}", place(it), it.message).unwrap());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
