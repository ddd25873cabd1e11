//! `logs`: what the agents and gates of a run wrote.

mod elsewhere;
mod lines;
mod tail;
mod working;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::Local;

use crate::cli::args::{self, Since};
use crate::cli::runs::{pinned_plan, read_log, state};
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, now, offset};
use crate::progress::styles_for;
use elsewhere::Elsewhere;
use lanewright_agents::runner::Stream;
use lanewright_files::regular_file::{Links, open_with};
use lanewright_model::event::{Event, Record};
use lanewright_model::{AgentName, JobId, LaneId, Plan, Redactor, Runner, Timestamp};
use lanewright_programs::process::{self, NewLines};
use lanewright_store::lock::is_held;
use lanewright_store::{Follower, RunDirectory};
use lines::{Entry, Job, Lines, planned};

pub(crate) use working::while_working;

/// Writes the output of every attempt and gate, in the order in which they began.
pub(crate) fn run(context: &Context, arguments: &args::Logs) -> Result<ExitStatus> {
    let (state, _) = state(context)?;
    let (run, lanes, agent) = Selector::new(context, &state).lanes(&arguments.names.iter().collect::<Vec<_>>())?;
    let directory = state.run(&run);
    let records = read_log(context, &directory)?.records;
    let plan = pinned_plan(&directory);
    let selection = Selection { lanes, agent, since: arguments.since.map(|since| moment(since, now())) };
    let lanes = selection.named_lanes(plan.as_ref(), &records);
    let lines = Lines::new(context, lanes, styles_for(&std::io::stdout()), offset());
    let runners = plan.as_ref().filter(|_| !arguments.raw);
    let mut printed = Printed::new(selection, &directory, runners, lines);
    // What jobs elsewhere print is in words.
    printed.elsewhere = runners.map(|plan| Elsewhere::new(context, &run, plan));
    printed.tail = arguments.tail;
    if arguments.follow {
        follow(&mut printed)?;
    } else {
        printed.learn(&records);
        printed.print(true)?;
    }
    context.printer.note(match (printed.jobs.as_slice(), printed.left_out) {
        ([], 0) => "Nothing was written yet.".to_owned(),
        ([], left_out) => format!("No attempt or gate ran since then; without --since there are {left_out}."),
        _ if arguments.tail == Some(0) => "--tail 0 shows no lines.".to_owned(),
        _ => String::new(),
    });
    Ok(ExitStatus::Done)
}

/// Whose output is wanted.
struct Selection {
    /// None: all.
    lanes: Vec<LaneId>,
    agent: Option<AgentName>,
    /// Jobs that ended before it are left out.
    since: Option<Timestamp>,
}

impl Selection {
    fn wants(&self, job: &JobId) -> bool {
        let lane = self.lanes.is_empty() || job.lane.as_ref().is_some_and(|lane| self.lanes.contains(lane));
        lane && self.agent.as_ref().is_none_or(|agent| job.agent() == Some(agent))
    }

    /// Those of several lanes, in the order of the plan; `None`: there is one only.
    fn named_lanes(&self, plan: Option<&Plan>, records: &[Record]) -> Option<Vec<String>> {
        let planned = plan.iter().flat_map(|plan| &plan.lanes).map(|lane| &lane.id);
        let mut lanes: Vec<String> = Vec::new();
        for lane in planned.chain(records.iter().filter_map(|record| record.event.lane())) {
            let wanted = self.lanes.is_empty() || self.lanes.contains(lane);
            if wanted && !lanes.iter().any(|known| known == lane.as_str()) {
                lanes.push(lane.to_string());
            }
        }
        (lanes.len() > 1).then_some(lanes)
    }
}

fn moment(since: Since, now: Timestamp) -> Timestamp {
    let local = now.0.with_timezone(&Local);
    match since {
        Since::Ago(duration) => Timestamp::from_unix_millis(
            now.unix_millis().saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        ),
        Since::At(moment) => moment,
        Since::Today(time) => {
            let today = local.date_naive().and_time(time).and_local_timezone(Local).earliest();
            today.map_or(now, |today| Timestamp(today.to_utc()))
        }
    }
}

const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Prints output until the run or its process ends.
fn follow(printed: &mut Printed<'_>) -> Result<()> {
    let mut log = Follower::new(&printed.directory.log());
    let mut ended = false;
    loop {
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let held = is_held(&printed.directory.lock());
        let news = log.poll()?.records;
        let last = news.iter().rev().find_map(|record| record.event.facts().run_outcome);
        ended = last.map_or(ended, |outcome| outcome.is_some());
        printed.learn(&news);
        printed.print(ended || !held)?;
        if ended || !held {
            return Ok(());
        }
        printed.is_news = true;
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// A job's output, as far as it was printed.
struct Output<'p> {
    pub job: Rc<Job>,
    /// Interprets output that is an event stream.
    stream: Option<Stream<'p>>,
    pub path: PathBuf,
    /// The file that was read last, until all of it was: it is replaced by one without secrets, or by a newer copy of what
    /// is elsewhere.
    file: Option<File>,
    offset: u64,
    /// How many lines of it were read from the file, and how many were printed, which may come from elsewhere.
    read: usize,
    printed: usize,
    begun: bool,
    done: bool,
}

impl Output<'_> {
    /// Where to read on, also when the file was replaced.
    fn find_place(&mut self) -> std::io::Result<u64> {
        let inode = std::fs::metadata(&self.path).ok().map(|file| file.ino());
        let known = self.file.as_ref().map(|file| file.metadata().map(|file| file.ino())).transpose()?;
        if inode.is_none() || inode == known {
            return Ok(self.offset);
        }
        let file = open_with(&self.path, Links::Refuse)?;
        match self.file.replace(file) {
            Some(before) => process::same_line(&before, self.offset, &self.path),
            None => Ok(self.offset),
        }
    }
}

struct Printed<'a> {
    selection: Selection,
    directory: &'a RunDirectory,
    /// Its runners interpret the output; `None`: it is printed raw.
    plan: Option<&'a Plan>,
    jobs: Vec<Output<'a>>,
    /// Where lanes are that work elsewhere; `None`: only what came back of them is printed.
    elsewhere: Option<Elsewhere<'a>>,
    /// Takes secrets out of output that was not cleaned yet.
    redactor: Option<Redactor>,
    /// How many of the lines that each lane has at first are wanted; `None`: all.
    tail: Option<usize>,
    lines: Lines<'a>,
    /// Whether lines are read soon after they are written.
    is_news: bool,
    /// The jobs that ended too early to be wanted.
    left_out: usize,
}

impl<'a> Printed<'a> {
    fn new(selection: Selection, directory: &'a RunDirectory, plan: Option<&'a Plan>, lines: Lines<'a>) -> Self {
        let (jobs, elsewhere, redactor, tail, is_news, left_out) = (Vec::new(), None, None, None, false, 0);
        Self { selection, directory, plan, jobs, elsewhere, redactor, tail, lines, is_news, left_out }
    }

    fn learn(&mut self, records: &[Record]) {
        for record in records {
            if let Some(job) = planned(record).filter(|job| self.selection.wants(&job.id)) {
                let at = self.place_of(&job);
                Rc::make_mut(&mut self.jobs[at].job).began = job.began;
            }
            if let Event::JobExited { job, exit, .. } = &record.event
                && let Some(output) = self.jobs.iter_mut().rev().find(|output| output.job.id == *job)
            {
                Rc::make_mut(&mut output.job).exit = Some(exit.clone());
            }
            if let Some(elsewhere) = &mut self.elsewhere {
                elsewhere.learn(record);
            }
        }
        let since = self.selection.since;
        let is_old = |job: &Job| job.exit.as_ref().zip(since).is_some_and(|(exit, since)| exit.finished_at < since);
        let all = self.jobs.len();
        self.jobs.retain(|output| output.begun || !is_old(&output.job));
        self.left_out += all - self.jobs.len();
    }

    /// Where the output of a job is among those that are printed.
    fn place_of(&mut self, job: &Job) -> usize {
        if let Some(at) = self.jobs.iter().rposition(|output| output.job.id == job.id) {
            return at;
        }
        let path = process::output_log(&self.directory.job(&job.id));
        let (job, stream) = (Rc::new(job.clone()), self.stream(&job.id));
        let (file, offset, read, printed, begun, done) = (None, 0, 0, 0, false, false);
        self.jobs.push(Output { job, stream, path, file, offset, read, printed, begun, done });
        self.jobs.len() - 1
    }

    fn stream(&self, job: &JobId) -> Option<Stream<'a>> {
        self.runner_of(job).filter(|runner| runner.has_stream()).map(Stream::new)
    }

    fn runner_of(&self, job: &JobId) -> Option<&'a Runner> {
        self.plan?.runner_of(job, || process::runner_of(&self.directory.job(job)).ok().flatten())
    }

    /// Prints whole lines that were added; with `all` also lines without an end, and headers of jobs without output.
    fn print(&mut self, all: bool) -> Result<()> {
        if let Some(tail) = self.tail.take() {
            self.lines.hold(tail);
            self.skip_to_last(tail)?;
        }
        self.print_files(false)?;
        self.print_elsewhere()?;
        if all {
            self.print_files(true)?;
        }
        self.lines.release()
    }

    fn print_files(&mut self, all: bool) -> Result<()> {
        for at in 0..self.jobs.len() {
            if !self.jobs[at].done {
                let ended = all || self.jobs[at].job.exit.is_some();
                self.write_new(at, ended)?;
                if ended {
                    (self.jobs[at].done, self.jobs[at].file) = (true, None);
                }
            }
        }
        Ok(())
    }

    /// Prints what jobs of engines printed beyond what came back.
    fn print_elsewhere(&mut self) -> Result<()> {
        let news = self.elsewhere.as_mut().map(Elsewhere::news).unwrap_or_default();
        for line in news {
            if !self.selection.wants(&line.job) {
                continue;
            }
            let at = self.place_of(&Job { id: line.job, began: now(), exit: None });
            let output = &mut self.jobs[at];
            if output.done || line.number < output.printed {
                continue;
            }
            if !std::mem::replace(&mut output.begun, true) {
                self.lines.add(&output.job, Entry::Began);
            }
            output.printed = line.number + 1;
            self.lines.add(&output.job, Entry::Line(line.text, self.is_news.then(now)));
        }
        self.lines.print()
    }

    fn write_new(&mut self, at: usize, ended: bool) -> Result<()> {
        let output = &mut self.jobs[at];
        if !std::mem::replace(&mut output.begun, true) {
            self.lines.add(&output.job, Entry::Began);
        }
        let path = output.path.clone();
        let unreadable = || format!("cannot read {}", path.display());
        output.offset = output.find_place().with_context(unreadable)?;
        // A job that was only planned when it was learned of has none.
        if let Some(stream) = output.stream.as_mut().filter(|stream| !stream.knows_worktree()) {
            stream.set_worktree(process::worked_in(&self.directory.job(&output.job.id)).ok().flatten().as_deref());
        }
        loop {
            let NewLines { lines, next } =
                process::lines_since(&path, output.offset, ended).with_context(unreadable)?;
            let progress = next != output.offset;
            output.offset = next;
            let lines: Vec<String> = match &mut output.stream {
                Some(stream) => lines.iter().flat_map(|line| stream.read(line)).flat_map(|said| said.lines()).collect(),
                None => lines,
            };
            let time = self.is_news.then(now);
            for mut line in lines {
                output.read += 1;
                if output.read <= output.printed {
                    continue;
                }
                output.printed = output.read;
                if let Some(redactor) = &self.redactor {
                    redactor.clean(&mut line);
                }
                self.lines.add(&output.job, Entry::Line(line, time));
            }
            self.lines.print()?;
            if !progress {
                break;
            }
        }
        if ended {
            self.lines.add(&output.job, Entry::Ended);
        }
        self.lines.print()
    }
}
