//! `logs`: what the agents and gates of a run wrote.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::args::{self, Format};
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::runs::{existing, pinned_plan, read_log, state, unknown, unknown_lane};
use crate::event::{Event, Record};
use crate::model::{AgentName, ExitCause, JobExit, JobId, LaneId, Plan};
use crate::process::{self, NewLines};
use crate::runner::Stream;
use crate::store::lock::is_held;
use crate::store::{Follower, RunDirectory};

/// Writes the output of every attempt and gate, in the order in which they began.
pub(super) fn run(context: &Context, arguments: &args::Logs) -> Result<ExitStatus, CliError> {
    let (state, _) = state(context)?;
    let directory = existing(&state, &arguments.run)?;
    let records = read_log(context, &directory)?.records;
    check_names(arguments, &directory, &records)?;
    let plan = pinned_plan(&directory);
    let runners = plan.as_ref().filter(|_| !arguments.raw);
    let mut told = Told { context, arguments, directory: &directory, plan: runners, jobs: Vec::new(), last: None };
    if arguments.follow {
        follow(&mut told)?;
    } else {
        told.learn(&records);
        told.tell_all()?;
    }
    if told.jobs.is_empty() {
        context.printer.note("Nothing was written yet.");
    }
    Ok(ExitStatus::Done)
}

/// Refuses lanes and agents that neither the plan nor the log knows.
fn check_names(arguments: &args::Logs, directory: &RunDirectory, records: &[Record]) -> Result<(), CliError> {
    let Some(lane) = &arguments.lane else { return Ok(()) };
    let plan = pinned_plan(directory);
    let planned = || plan.iter().flat_map(|plan| &plan.lanes);
    let lanes: Vec<&LaneId> =
        planned().map(|lane| &lane.id).chain(records.iter().filter_map(|record| record.event.lane())).collect();
    if !lanes.contains(&lane) {
        return Err(unknown_lane(lane, lanes.into_iter()));
    }
    let Some(agent) = &arguments.agent else { return Ok(()) };
    let of_plan = planned().filter(|known| known.id == *lane).flat_map(|lane| &lane.agents).map(|agent| &agent.name);
    let of_log = records.iter().filter_map(|record| match &record.event {
        Event::JobPlanned { job } if job.lane.as_ref() == Some(lane) => job.agent(),
        _ => None,
    });
    let agents: Vec<&str> = of_plan.chain(of_log).map(AgentName::as_str).collect();
    if agents.contains(&agent.as_str()) {
        return Ok(());
    }
    Err(unknown(&format!("lane {lane}"), "agent", agent.as_str(), &agents))
}

/// How often a followed run is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Goes on until the run ends or nobody works on it any more, and everything that was written is told.
fn follow(told: &mut Told<'_>) -> Result<(), CliError> {
    let mut log = Follower::new(&told.directory.log());
    let mut ended = false;
    loop {
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let held = is_held(&told.directory.lock());
        let news = log.poll()?.records;
        for record in &news {
            match record.event {
                Event::RunFinished { .. } => ended = true,
                Event::RunResumed { .. } => ended = false,
                _ => {}
            }
        }
        told.learn(&news);
        if ended || !held {
            return told.tell_all();
        }
        told.tell_new()?;
        std::thread::sleep(LOOK);
    }
}

/// A job's output, as far as it was told.
struct Output<'p> {
    job: JobId,
    /// What is written for programs is told as what it means.
    stream: Option<Stream<'p>>,
    path: PathBuf,
    offset: u64,
    exit: Option<JobExit>,
    /// Whether a header named it already.
    named: bool,
    done: bool,
}

/// What was told so far.
struct Told<'a> {
    context: &'a Context,
    arguments: &'a args::Logs,
    directory: &'a RunDirectory,
    /// Whose runners tell what their programs' output means; `None`: it is told as it is.
    plan: Option<&'a Plan>,
    jobs: Vec<Output<'a>>,
    /// Whose lines were told last: others begin with a header.
    last: Option<JobId>,
}

impl Told<'_> {
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
        let lane = self.arguments.lane.as_ref().is_none_or(|lane| job.lane.as_ref() == Some(lane));
        lane && self.arguments.agent.as_ref().is_none_or(|agent| job.agent() == Some(agent))
    }

    /// Tells whole lines that were added.
    fn tell_new(&mut self) -> Result<(), CliError> {
        for at in 0..self.jobs.len() {
            if !self.jobs[at].done {
                let ended = self.jobs[at].exit.is_some();
                self.tell(at, ended)?;
                self.jobs[at].done = ended;
            }
        }
        Ok(())
    }

    /// Tells everything that is there, lines without an end too, and a header for jobs that wrote nothing.
    fn tell_all(&mut self) -> Result<(), CliError> {
        for at in 0..self.jobs.len() {
            if !self.jobs[at].done {
                self.tell(at, true)?;
                self.jobs[at].done = true;
            }
        }
        Ok(())
    }

    fn tell(&mut self, at: usize, ended: bool) -> Result<(), CliError> {
        loop {
            let output = &mut self.jobs[at];
            let NewLines { lines, next } = process::lines_since(&output.path, output.offset, ended)
                .map_err(|error| unreadable(&output.path, &error))?;
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

    fn write(&mut self, at: usize, lines: &[String], ended: bool) -> Result<(), CliError> {
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
        Ok(self.context.printer.out(text)?)
    }
}

fn ending(exit: Option<&JobExit>) -> String {
    match exit {
        None => String::new(),
        Some(exit) if exit.cause == ExitCause::Exited => format!(" · exit {}", exit.exit_code),
        Some(exit) => format!(" · {} · exit {}", exit.cause.word().replace('_', " "), exit.exit_code),
    }
}

fn unreadable(path: &std::path::Path, error: &std::io::Error) -> CliError {
    CliError::new(ExitStatus::Failed, format!("cannot read {}: {error}", path.display()))
}
