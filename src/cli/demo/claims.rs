//! What the demo claims, looked up in the run log, on disk and in git.

use std::collections::BTreeMap;

use super::amiss;
use super::scratch::Scratch;
use super::telling::subject;
use crate::cli::error::CliError;
use crate::event::{Event, Record, RunOutcome};
use crate::fs::regular_file;
use crate::model::{Failure, FailureKind, JobId, ProcessId};

/// Attempts in the whole run: one each, one more after the failed test, one more after the conflict.
const ATTEMPTS: &[(&str, usize)] = &[("API", 2), ("DOCS", 3), ("SCHEMA", 1), ("SEARCH", 1), ("SITE", 1)];

/// What is on main in the end, in the words that each file holds.
const RESULTS: &[(&str, &[&str])] = &[
    ("schema/orders.sql", &["CREATE TABLE orders"]),
    ("api/health.txt", &["200 OK"]),
    ("docs/guide.md", &["The chapter of the writer.", "The chapter of the editor."]),
    ("search/index.txt", &["orders"]),
    ("site/index.txt", &["200 OK", "The chapter of the writer.", "The chapter of the editor.", "orders"]),
];

/// Attempts that the log says were started, with their supervisors.
pub(super) fn started(records: &[Record]) -> Vec<(JobId, ProcessId)> {
    let started = |record: &Record| match &record.event {
        Event::JobStarted { job, supervisor } if job.is_attempt() => Some((job.clone(), *supervisor)),
        _ => None,
    };
    records.iter().filter_map(started).collect()
}

fn exited(records: &[Record]) -> Vec<(JobId, i32)> {
    let exited = |record: &Record| match &record.event {
        Event::JobExited { job, exit, .. } if job.is_attempt() => Some((job.clone(), exit.exit_code)),
        _ => None,
    };
    records.iter().filter_map(exited).collect()
}

/// The job of `jobs` that works for `lane`.
pub(super) fn of_lane<'a>(jobs: &'a [(JobId, ProcessId)], lane: &str) -> Option<&'a (JobId, ProcessId)> {
    jobs.iter().find(|(job, _)| job.lane.as_ref().is_some_and(|id| id.as_str() == lane))
}

/// The attempts that wait to be released: the log says that they run, and they have written down that they began.
pub(super) fn waiting(scratch: &Scratch, records: &[Record]) -> Result<Vec<(JobId, ProcessId)>, CliError> {
    let (begun, over) = (starts(scratch)?, exited(records));
    let waits = |job: &JobId| {
        let lane = job.lane.as_ref().map_or("", |lane| lane.as_str());
        // Of those who were told nothing yet, only the indexer waits.
        lane == "SEARCH" || (matches!(lane, "API" | "DOCS") && job.number > 1)
    };
    let runs = |job: &JobId| begun.contains(&start(job)) && !over.iter().any(|(other, _)| other == job);
    Ok(started(records).into_iter().filter(|(job, _)| waits(job) && runs(job)).collect())
}

/// The line that an attempt's agent writes down when it starts.
fn start(job: &JobId) -> String {
    format!("{} {}", subject(job), job.number)
}

/// What the agents have written down, outside of the repository.
fn starts(scratch: &Scratch) -> Result<Vec<String>, CliError> {
    match regular_file::read_text(scratch.starts()) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(amiss(format!("cannot read {}: {error}", scratch.starts().display()))),
    }
}

/// What a prompt says of earlier attempts, line by line.
pub(super) fn lessons(prompt: &str) -> Vec<&str> {
    let after = prompt.split_once("Earlier attempts failed.").map_or("", |(_, after)| after);
    after.lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

/// Whether a resume has something to say of each of the `live` attempts: that it runs, or how it ended.
pub(super) fn is_taken_up(since: &[Record], live: usize) -> bool {
    started(since).len() + exited(since).len() >= live
}

/// After the resume: who worked on is watched again, and the exit of who had finished is collected. Nothing is started.
pub(super) fn taken_up(since: &[Record], live: &[(JobId, ProcessId)]) -> Result<Vec<(&'static str, String)>, CliError> {
    let mut claims = Vec::new();
    for (job, code) in exited(since) {
        claims.push(("collected", format!("{}: exit code {code}, as its supervisor left it", subject(&job))));
    }
    let now = started(since);
    for (job, supervisor) in live {
        match now.iter().find(|(other, _)| other == job) {
            Some((_, after)) if after == supervisor => {
                let pid = supervisor.pid;
                claims.push(("attached", format!("{}: supervisor {pid}, the same as before", subject(job))));
            }
            Some((_, after)) => {
                return Err(amiss(format!("{job} ran under {} and now runs under {}", supervisor.pid, after.pid)));
            }
            None if exited(since).iter().any(|(other, _)| other == job) => {}
            None => return Err(amiss(format!("the resume has forgotten {job}"))),
        }
    }
    match now.iter().find(|(job, _)| live.iter().all(|(other, _)| other != job)) {
        Some((job, _)) => Err(amiss(format!("{job} was started, though everything that was due was at work"))),
        None => Ok(claims),
    }
}

/// Whether the run has ended.
pub(super) fn is_finished(records: &[Record]) -> bool {
    records.iter().any(|record| matches!(record.event, Event::RunFinished { .. }))
}

/// Every claim about the run as a whole; the first that does not hold is an error.
pub(super) fn check(scratch: &Scratch, records: &[Record]) -> Result<Vec<String>, CliError> {
    match records.last().map(|record| &record.event) {
        Some(Event::RunFinished { outcome: RunOutcome::Done, .. }) => {}
        other => return Err(amiss(format!("the run's last word is {other:?}"))),
    }
    Ok(vec![retries(scratch, records)?, nothing_ran_twice(scratch, records)?, results(scratch)?])
}

fn retries(scratch: &Scratch, records: &[Record]) -> Result<String, CliError> {
    let failures = records.iter().filter_map(|record| match &record.event {
        Event::FailureNoted { lane, failure, .. } => Some((lane.as_str(), failure)),
        _ => None,
    });
    let failures: Vec<(&str, &Failure)> = failures.collect();
    let kinds: BTreeMap<&str, FailureKind> = failures.iter().map(|(lane, failure)| (*lane, failure.kind)).collect();
    if failures.len() != 2 || kinds != BTreeMap::from([("API", FailureKind::Gate), ("DOCS", FailureKind::Conflict)]) {
        return Err(amiss(format!("a failed test in API and a conflict in DOCS were due, and there is {failures:?}")));
    }
    for (lane, words) in [("API", "expected: 200 OK"), ("DOCS", "docs/guide.md")] {
        let retries: Vec<_> = started(records).into_iter().filter(|(job, _)| job.number == 2).collect();
        let retry = of_lane(&retries, lane);
        let prompt = retry.map(|(job, _)| regular_file::read_text(scratch.prompt(job)).unwrap_or_default());
        if !prompt.is_some_and(|prompt| lessons(&prompt).iter().any(|lesson| lesson.contains(words))) {
            return Err(amiss(format!("the retry in {lane} was not told of `{words}`")));
        }
    }
    Ok("both retries were told in their prompts what went wrong, and fixed it".to_owned())
}

fn nothing_ran_twice(scratch: &Scratch, records: &[Record]) -> Result<String, CliError> {
    let exits: Vec<JobId> = exited(records).into_iter().map(|(job, _)| job).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for job in &exits {
        *counts.entry(job.lane.as_ref().map_or("", |lane| lane.as_str())).or_default() += 1;
    }
    if counts != ATTEMPTS.iter().copied().collect() {
        return Err(amiss(format!("the run log counts other attempts than were due: {counts:?}")));
    }
    let mut expected: Vec<String> = exits.iter().map(start).collect();
    let mut found = starts(scratch)?;
    expected.sort();
    found.sort();
    if found != expected {
        return Err(amiss(format!("the agents say they were started as {found:?}, the run log as {expected:?}")));
    }
    let (name, count) = (scratch.starts().file_name().map(|name| name.to_string_lossy().into_owned()), found.len());
    let name = name.unwrap_or_default();
    Ok(format!("nothing ran twice: {count} attempts in the run log, {count} starts that agents wrote to {name}"))
}

fn results(scratch: &Scratch) -> Result<String, CliError> {
    for (path, words) in RESULTS {
        let text = scratch.git(&["show", &format!("main:{path}")])?;
        if let Some(missing) = words.iter().find(|words| !text.contains(**words)) {
            return Err(amiss(format!("{path} on main lacks `{missing}`")));
        }
    }
    let dirty = scratch.git(&["status", "--porcelain"])?;
    if !dirty.is_empty() {
        return Err(amiss(format!("the worktree of main is not clean:\n{dirty}")));
    }
    let worktrees = scratch.git(&["worktree", "list"])?;
    match worktrees.lines().count() {
        1 => Ok(format!("main holds all {} files with the work of all agents, and no worktree is left", RESULTS.len())),
        _ => Err(amiss(format!("worktrees are left:\n{worktrees}"))),
    }
}
