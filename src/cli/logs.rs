//! `logs`: what the agents and gates of a run wrote.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::args::{self, Format};
use super::runs::{pinned_plan, read_log, state};
use super::select::{Selector, Target};
use super::{Context, ExitStatus};
use crate::event::{Event, Record};
use crate::model::{ExitCause, JobExit, JobId, Plan};
use crate::process::{self, NewLines};
use crate::runner::Stream;
use crate::store::lock::is_held;
use crate::store::{Follower, RunDirectory};

/// Writes the output of every attempt and gate, in the order in which they began.
pub(super) fn run(context: &Context, arguments: &args::Logs) -> Result<ExitStatus> {
    let (state, _) = state(context)?;
    let target = Selector::new(context, &state).target(&arguments.target.names())?;
    let directory = state.run(&target.run);
    let records = read_log(context, &directory)?.records;
    let plan = pinned_plan(&directory);
    let runners = plan.as_ref().filter(|_| !arguments.raw);
    let mut printed =
        Printed { context, target: &target, directory: &directory, plan: runners, jobs: Vec::new(), last: None };
    if arguments.follow {
        follow(&mut printed)?;
    } else {
        printed.learn(&records);
        printed.print(true)?;
    }
    if printed.jobs.is_empty() {
        context.printer.note("Nothing was written yet.");
    }
    Ok(ExitStatus::Done)
}

const LOOK: Duration = Duration::from_millis(200);

/// Prints output until the run or its process ends.
fn follow(printed: &mut Printed<'_>) -> Result<()> {
    let mut log = Follower::new(&printed.directory.log());
    let mut ended = false;
    loop {
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let held = is_held(&printed.directory.lock());
        let news = log.poll()?.records;
        let last = news.iter().rev().find_map(|record| record.event.run_outcome());
        ended = last.map_or(ended, |outcome| outcome.is_some());
        printed.learn(&news);
        if ended || !held {
            return printed.print(true);
        }
        printed.print(false)?;
        std::thread::sleep(LOOK);
    }
}

/// A job's output, as far as it was printed.
struct Output<'p> {
    job: JobId,
    /// Interprets output that is an event stream.
    stream: Option<Stream<'p>>,
    path: PathBuf,
    offset: u64,
    exit: Option<JobExit>,
    /// Whether a header named it already.
    named: bool,
    done: bool,
}

struct Printed<'a> {
    context: &'a Context,
    target: &'a Target,
    directory: &'a RunDirectory,
    /// Its runners interpret the output; `None`: it is printed raw.
    plan: Option<&'a Plan>,
    jobs: Vec<Output<'a>>,
    /// The job of the last line: others begin with a header.
    last: Option<JobId>,
}

impl Printed<'_> {
    fn learn(&mut self, records: &[Record]) {
        for record in records {
            match &record.event {
                Event::JobPlanned { job } if self.is_wanted(job) => {
                    let path = process::output_log(&self.directory.job(job));
                    let runner = self.plan.and_then(|plan| plan.runner_of(job));
                    let stream = runner.filter(|runner| runner.has_stream()).map(Stream::new);
                    let job = job.clone();
                    self.jobs.push(Output { job, stream, path, offset: 0, exit: None, named: false, done: false });
                }
                Event::JobExited { job, exit, .. } => {
                    if let Some(output) = self.jobs.iter_mut().rev().find(|output| output.job == *job) {
                        output.exit = Some(exit.clone());
                    }
                }
                _ => {}
            }
        }
    }

    fn is_wanted(&self, job: &JobId) -> bool {
        let lane = self.target.lane.as_ref().is_none_or(|lane| job.lane.as_ref() == Some(lane));
        lane && self.target.agent.as_ref().is_none_or(|agent| job.agent() == Some(agent))
    }

    /// Prints whole lines that were added; with `all` also lines without an end, and a header for jobs that wrote nothing.
    fn print(&mut self, all: bool) -> Result<()> {
        for at in 0..self.jobs.len() {
            if !self.jobs[at].done {
                let ended = all || self.jobs[at].exit.is_some();
                self.write_new(at, ended)?;
                self.jobs[at].done = ended;
            }
        }
        Ok(())
    }

    fn write_new(&mut self, at: usize, ended: bool) -> Result<()> {
        loop {
            let output = &mut self.jobs[at];
            let NewLines { lines, next } = process::lines_since(&output.path, output.offset, ended)
                .with_context(|| format!("cannot read {}", output.path.display()))?;
            let progress = next != output.offset;
            output.offset = next;
            let lines = match &mut output.stream {
                Some(stream) => lines.iter().flat_map(|line| stream.read(line)).flat_map(|said| said.lines()).collect(),
                None => lines,
            };
            self.write(at, &lines, ended)?;
            if !progress {
                return Ok(());
            }
        }
    }

    fn write(&mut self, at: usize, lines: &[String], ended: bool) -> Result<()> {
        let Output { job, exit, named, .. } = &mut self.jobs[at];
        let mut text = String::new();
        if self.context.printer.format() == Format::Json {
            for line in lines {
                text.push_str(&format!("{}\n", json!({"job": job, "line": line})));
            }
        } else {
            // A job that wrote nothing is named all the same, once it has ended.
            let due = !lines.is_empty() || (ended && !*named);
            if due && self.last.as_ref() != Some(job) {
                let gap = if self.last.is_some() { "\n" } else { "" };
                text.push_str(&format!("{gap}==> {job}{} <==\n", ending(exit.as_ref())));
                self.last = Some(job.clone());
                *named = true;
            }
            lines.iter().for_each(|line| text.extend([line.as_str(), "\n"]));
        }
        self.context.printer.out(text)
    }
}

fn ending(exit: Option<&JobExit>) -> String {
    match exit {
        None => String::new(),
        Some(exit) if exit.cause == ExitCause::Exited => format!(" · exit {}", exit.exit_code),
        Some(exit) => format!(" · {} · exit {}", exit.cause.word().replace('_', " "), exit.exit_code),
    }
}
