//! What the user reads about a failed lane when the run has ended.

use std::path::PathBuf;

use super::cells::{clean, cut};
use super::history::{Ending, FailureView, JobHistory, LaneHistory, Retry, RunHistory};
use super::styles::{Styles, Tone};
use crate::model::{Diagnosis, JobId};

pub type LogOf<'a> = dyn Fn(&JobId) -> PathBuf + 'a;

/// A block for each failed lane: what failed, its last lines, cut to `width` cells, and where its whole output is.
pub fn failures(history: &RunHistory, log_of: &LogOf<'_>, width: usize, styles: Styles) -> String {
    let failed = history.lanes().iter().filter(|lane| matches!(lane.ending, Some(Ending::Failed(_))));
    let blocks = failed.filter_map(|lane| Some(block(lane, lane.last_failure.as_ref()?, log_of, width, styles)));
    blocks.collect::<Vec<_>>().join("\n")
}

fn block(lane: &LaneHistory, failure: &FailureView, log_of: &LogOf<'_>, width: usize, styles: Styles) -> String {
    let job = failure.job.as_ref();
    let mut text = styles.paint(Tone::Bad, &format!("{} failed: {}", lane.id, clean(&failure.failure.message)));
    text.push('\n');
    for (name, value) in facts(lane, failure, log_of) {
        text.push_str(&format!("  {name:<8} {}\n", clean(&value)));
    }
    for finding in failure.failure.diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings).take(FINDINGS) {
        text.push_str(&format!("  - {}\n", clean(&finding.to_string())));
    }
    for line in last_lines(lane, failure, job) {
        let line = cut(&clean(line), width.saturating_sub(4));
        text.push_str(&format!("  {} {line}\n", styles.paint(Tone::Faint, "|")));
    }
    text
}

const FINDINGS: usize = 5;

/// `compilation (rustc), 3 in all`.
fn class(diagnosis: &Diagnosis) -> String {
    let tool = diagnosis.tool.as_ref().map(|tool| format!(" ({tool})")).unwrap_or_default();
    let count = if diagnosis.count > 1 { format!(", {} in all", diagnosis.count) } else { String::new() };
    format!("{}{tool}{count}", diagnosis.class)
}

fn facts(lane: &LaneHistory, failure: &FailureView, log_of: &LogOf<'_>) -> Vec<(&'static str, String)> {
    let job = failure.job.as_ref();
    let exit = job.and_then(|job| ended(lane, job)).and_then(|job| job.exit.as_ref());
    let attempt = job.filter(|job| job.is_attempt()).map(|job| job.number.to_string());
    let command = failure.failure.command.clone().or_else(|| exit.map(|exit| exit.command.clone()));
    let code = failure.failure.exit_code.or_else(|| exit.map(|exit| exit.exit_code));
    let paths = Some(failure.failure.paths.join(", ")).filter(|paths| !paths.is_empty());
    let all = [
        ("lane", lane.name.clone()),
        ("agent", failure.agent.as_ref().map(ToString::to_string)),
        ("task", failure.task.as_ref().map(ToString::to_string)),
        ("attempt", attempt),
        ("retries", lane.counted_retries().next_back().map(Retry::used)),
        ("command", command),
        ("exit", code.map(|code| code.to_string())),
        ("files", paths),
        ("class", failure.failure.diagnosis.as_deref().map(class)),
        ("log", job.map(|job| log_of(job).to_string_lossy().into_owned())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn last_lines<'a>(lane: &'a LaneHistory, failure: &'a FailureView, job: Option<&JobId>) -> &'a [String] {
    if !failure.failure.log.is_empty() {
        return &failure.failure.log;
    }
    let exit = job.and_then(|job| ended(lane, job)).and_then(|job| job.exit.as_ref());
    exit.map(|exit| exit.tail.as_slice()).unwrap_or_default()
}

fn ended<'a>(lane: &'a LaneHistory, job: &JobId) -> Option<&'a JobHistory> {
    lane.jobs.last_ended(|ended| ended.job == *job)
}

#[cfg(test)]
mod tests;
