//! What the jobs of a run said last, in words, while they run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::model::runner::Runner;
use crate::model::{JobId, Plan};
use crate::process::{lines_since, output_log, tail};
use crate::runner::said_in;
use crate::store::RunDirectory;

/// Reads only what was added since it was asked last.
pub(super) struct LastSaid {
    directory: RunDirectory,
    /// Its runners interpret event streams; without it output is shown as it is.
    plan: Option<Arc<Plan>>,
    jobs: RefCell<HashMap<JobId, Read>>,
}

/// How far the output of a job was read, and its last words.
#[derive(Default)]
struct Read {
    next: u64,
    said: Option<String>,
}

/// How much of the end of the output of a job is read.
const MOST_BYTES: u64 = 64 * 1024;

impl LastSaid {
    pub(super) fn new(directory: RunDirectory, plan: Option<Arc<Plan>>) -> Self {
        Self { directory, plan, jobs: RefCell::default() }
    }

    /// The last tool call or message of a job whose output is an event stream, else its last line.
    pub(super) fn of(&self, job: &JobId) -> Option<String> {
        let output = output_log(&self.directory.job(job));
        let Some(runner) = self.stream_of(job) else { return crate::process::last_line(&output).ok().flatten() };
        let mut jobs = self.jobs.borrow_mut();
        let read = jobs.entry(job.clone()).or_default();
        // What is written faster than it is read would never be caught up with.
        let length = fs::metadata(&output).map_or(0, |file| file.len());
        read.next = read.next.max(length.saturating_sub(MOST_BYTES));
        let new = lines_since(&output, read.next, false).ok()?;
        read.next = new.next;
        read.said = said_in(runner, &new.lines).pop().or(read.said.take());
        read.said.clone()
    }

    /// The output of a job, and the last `count` lines of it in words.
    pub(super) fn end_of(&self, job: &JobId, count: usize) -> (PathBuf, Vec<String>) {
        let output = output_log(&self.directory.job(job));
        // Most events of a stream say nothing.
        let lines = |count| tail(&output, count).unwrap_or_default();
        let mut lines = self.stream_of(job).map_or_else(|| lines(count), |runner| said_in(runner, &lines(20 * count)));
        let end = lines.split_off(lines.len().saturating_sub(count));
        (output, end)
    }

    /// Whether the output of a job is an event stream.
    pub(super) fn is_stream(&self, job: &JobId) -> bool {
        self.stream_of(job).is_some()
    }

    /// The runner that interprets the output of a job.
    fn stream_of(&self, job: &JobId) -> Option<&Runner> {
        self.plan.as_ref()?.runner_of(job).filter(|runner| runner.has_stream())
    }
}
