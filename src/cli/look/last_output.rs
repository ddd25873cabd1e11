//! What the jobs of a run said last, in words, while they run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanewright_agents::runner::{Counted, readable_lines};
use lanewright_model::runner::Runner;
use lanewright_model::{JobId, Plan, Usage};
use lanewright_programs::process::{lines_since, output_log, runner_of, tail, worked_in};
use lanewright_store::RunDirectory;

/// Reads only what was added since it was asked last.
pub(crate) struct LastOutput {
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
    /// Where the job works, once it is known.
    worktree: Option<PathBuf>,
    used: Used,
}

/// What an attempt that runs has used so far: everything that it wrote is read, so that nothing is missed.
#[derive(Default)]
struct Used {
    next: u64,
    counted: Counted,
}

/// How many pieces of an output are read for that at one look; an output that is further behind is caught up with later.
const PIECES: usize = 8;

/// How much of the end of the output of a job is read.
const MOST_BYTES: u64 = 64 * 1024;

impl LastOutput {
    pub(crate) fn new(directory: RunDirectory, plan: Option<Arc<Plan>>) -> Self {
        Self { directory, plan, jobs: RefCell::default() }
    }

    /// The last tool call or message of a job whose output is an event stream, else its last line.
    pub(crate) fn of(&self, job: &JobId) -> Option<String> {
        let output = output_log(&self.directory.job(job));
        let Some(runner) = self.stream_of(job) else {
            return lanewright_programs::process::last_line(&output).ok().flatten();
        };
        let mut jobs = self.jobs.borrow_mut();
        let read = jobs.entry(job.clone()).or_default();
        // What is written faster than it is read would never be caught up with.
        let length = fs::metadata(&output).map_or(0, |file| file.len());
        read.next = read.next.max(length.saturating_sub(MOST_BYTES));
        let new = lines_since(&output, read.next, false).ok()?;
        read.next = new.next;
        read.worktree = read.worktree.take().or_else(|| self.worktree(job));
        read.said = readable_lines(runner, read.worktree.as_deref(), &new.lines).pop().or(read.said.take());
        let spent = read.used.so_far(runner, &output, length).spent();
        Some(spent.into_iter().chain(read.said.clone()).collect::<Vec<_>>().join(" · ")).filter(|said| !said.is_empty())
    }

    /// The output of a job, and the last `count` lines of it in words.
    pub(crate) fn end_of(&self, job: &JobId, count: usize) -> (PathBuf, Vec<String>) {
        let output = output_log(&self.directory.job(job));
        // Most events of a stream say nothing.
        let lines = |count| tail(&output, count).unwrap_or_default();
        let mut lines = self.stream_of(job).map_or_else(
            || lines(count),
            |runner| readable_lines(runner, self.worktree(job).as_deref(), &lines(20 * count)),
        );
        let end = lines.split_off(lines.len().saturating_sub(count));
        (output, end)
    }

    fn worktree(&self, job: &JobId) -> Option<PathBuf> {
        worked_in(&self.directory.job(job)).ok().flatten()
    }

    /// Whether the output of a job is an event stream.
    pub(super) fn is_stream(&self, job: &JobId) -> bool {
        self.stream_of(job).is_some()
    }

    /// The runner that interprets the output of a job.
    fn stream_of(&self, job: &JobId) -> Option<&Runner> {
        let fallback = || runner_of(&self.directory.job(job)).ok().flatten();
        self.plan.as_ref()?.runner_of(job, fallback).filter(|runner| runner.has_stream())
    }
}

impl Used {
    fn so_far(&mut self, runner: &Runner, output: &Path, length: u64) -> Usage {
        for _ in 0..PIECES {
            let Ok(new) = lines_since(output, self.next, false) else { break };
            if new.next == self.next {
                break;
            }
            self.next = new.next;
            new.lines.iter().for_each(|line| self.counted.read(runner, line));
            if self.next >= length {
                break;
            }
        }
        self.counted.usage()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;
    use lanewright_agents::runner::Catalogue;
    use lanewright_model::RunId;
    use lanewright_model::testing::{attempt, plan};
    use lanewright_store::StateDirectory;

    /// An attempt of Claude Code, where its output is, and what it said last.
    fn of_claude(root: &Path) -> (JobId, PathBuf, LastOutput) {
        let directory = StateDirectory::new(root).run(&RunId::new("r1").unwrap());
        let mut plan = to_value(plan(&[("A", &[], &[])])).unwrap();
        plan["lanes"][0]["agents"][0]["runner"] = json!("claude");
        plan["runners"]["claude"] = to_value(Catalogue::default().get("claude").unwrap()).unwrap();
        let job = attempt("A", "engineer", 1);
        let output = output_log(&directory.job(&job));
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        let said = LastOutput::new(directory, Some(Arc::new(serde_json::from_value(plan).unwrap())));
        (job, output, said)
    }

    #[test]
    fn tokens_are_counted_while_an_attempt_runs() {
        let root = tempfile::tempdir().unwrap();
        let (job, output, said) = of_claude(root.path());
        // Two blocks of each message have the usage of the message.
        let block = |message: u32, text: &str| {
            let usage = json!({"input_tokens": 700, "output_tokens": 50});
            let content = json!([{"type": "text", "text": text}]);
            json!({"type": "assistant", "message": {"id": format!("m{message}"), "usage": usage, "content": content}})
                .to_string()
                + "\n"
        };
        fs::write(&output, block(1, "a") + &block(1, "b")).unwrap();
        assert_eq!(said.of(&job), Some("750 tokens · b".to_owned()));
        fs::write(&output, block(1, "a") + &block(1, "b") + &block(2, "c")).unwrap();
        assert_eq!(said.of(&job), Some("1.5k tokens · c".to_owned()));
    }

    #[test]
    fn fast_output_is_read_from_its_end() {
        let root = tempfile::tempdir().unwrap();
        let (job, output, said) = of_claude(root.path());
        let step = |number: u32| {
            let content = json!([{"type": "text", "text": format!("step {number}")}]);
            json!({"type": "assistant", "message": {"content": content}}).to_string() + "\n"
        };
        for last in [1, 10_000] {
            fs::write(&output, (0..=last).map(step).collect::<String>()).unwrap();
            assert_eq!(said.of(&job), Some(format!("step {last}")));
        }
    }
}
