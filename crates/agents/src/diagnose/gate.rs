//! What the output of a failed gate means (SPEC §8; seed 003, Recovery Procedure 3).
//!
//! What tools print is described by data, `templates/diagnosis/*.toml`; `docs/diagnosis.md` documents the keys of rules.

use std::collections::HashSet;
use std::path::Path;

use lanewright_model::{Diagnosis, FailureClass, Finding};

use super::rules::Rules;
use super::scan::Hit;
use super::{excerpt, scan};

/// How many findings a diagnosis keeps at most; the others are only counted.
const MAX_FINDINGS: usize = 50;

/// What a gate's `output` says, read with the rules that are built in. Files below one of `roots`, the absolute names
/// that the worktree has, are relative to it.
///
/// Work is bounded: of long output the first 256 KiB and the last 768 KiB are read, of a long line the first 2 KiB.
pub fn diagnose(output: &str, roots: &[&Path]) -> Diagnosis {
    let rules = Rules::built_in();
    let hits = scan::scan(rules, &excerpt::sections(output));
    let Some(class) = hits.iter().map(|hit| hit.rule.class).min_by_key(|&class| precedence(class)) else {
        return Diagnosis { class: FailureClass::Unknown, tool: None, findings: Vec::new(), count: 0, in_base: None };
    };
    let hits: Vec<Hit> = hits.into_iter().filter(|hit| hit.rule.class == class).collect();
    let tool = hits.first().map(|hit| rules.tool_name(hit.rule).to_owned());
    let mut findings = distinct(&hits, roots);
    let count = findings.len().max(hits.iter().filter_map(|hit| hit.count).sum());
    findings.truncate(MAX_FINDINGS);
    Diagnosis { class, tool, findings, count, in_base: None }
}

/// What is not compiled was not tested, and what is not tested need not be pretty yet.
fn precedence(class: FailureClass) -> u8 {
    match class {
        FailureClass::Compilation => 0,
        FailureClass::Test => 1,
        FailureClass::Style => 2,
        FailureClass::Unknown => 3,
    }
}

/// The findings of `hits`, each once.
fn distinct(hits: &[Hit], roots: &[&Path]) -> Vec<Finding> {
    let is_better = |hit: &&Hit| hit.finding.is_some() && !hit.rule.fallback;
    let better: HashSet<usize> = hits.iter().filter(is_better).map(|hit| hit.rule.tool).collect();
    let counts = |hit: &&Hit| !(hit.rule.fallback && better.contains(&hit.rule.tool));
    let findings = hits.iter().filter(counts).filter_map(|hit| hit.finding.clone());
    let relative = |finding: Finding| Finding { file: finding.file.map(|file| relative_name(&file, roots)), ..finding };
    let mut seen = HashSet::new();
    findings.map(relative).filter(|finding| seen.insert(finding.clone())).collect()
}

/// `file` relative to the first of `roots` that it lies in.
fn relative_name(file: &str, roots: &[&Path]) -> String {
    let plain = file.strip_prefix("file://").unwrap_or(file);
    let below = |root: &&Path| Path::new(plain).strip_prefix(root).ok().and_then(Path::to_str);
    let mut name = roots.iter().find_map(below).unwrap_or(plain);
    while let Some(rest) = name.strip_prefix("./") {
        name = rest.trim_start_matches('/');
    }
    name.to_owned()
}

#[cfg(test)]
mod tests;
