//! What the jobs of a run said last, in words, while they run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use crate::model::{JobId, Plan};
use crate::process::{lines_since, output_log};
use crate::runner::last_said;
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

/// How much of the output of a job that was not looked at before is read.
const FIRST_BYTES: u64 = 64 * 1024;

impl LastSaid {
    pub(super) fn new(directory: RunDirectory, plan: Option<Arc<Plan>>) -> Self {
        Self { directory, plan, jobs: RefCell::default() }
    }

    /// The last tool call or message of a job whose output is an event stream, else its last line.
    pub(super) fn of(&self, job: &JobId) -> Option<String> {
        let output = output_log(&self.directory.job(job));
        let runner = self.plan.as_ref().and_then(|plan| plan.runner_of(job)).filter(|runner| runner.has_stream());
        let Some(runner) = runner else { return crate::process::last_line(&output).ok().flatten() };
        let mut jobs = self.jobs.borrow_mut();
        let read = jobs.entry(job.clone()).or_insert_with(|| {
            let length = fs::metadata(&output).map_or(0, |file| file.len());
            Read { next: length.saturating_sub(FIRST_BYTES), said: None }
        });
        let new = lines_since(&output, read.next, false).ok()?;
        read.next = new.next;
        read.said = last_said(runner, &new.lines).or(read.said.take());
        read.said.clone()
    }
}
