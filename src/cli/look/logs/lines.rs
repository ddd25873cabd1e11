//! How lines of output are shown: below headers of their jobs, or, of several lanes, each with its lane.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use anyhow::Result;
use chrono::FixedOffset;
use lanewright_model::cells::{pad, width};
use lanewright_model::event::Record;
use lanewright_model::time::short;
use lanewright_model::{ExitCause, JobExit, JobId, LaneId, Timestamp};
use lanewright_view::messages::line::clock;
use lanewright_view::status::styles::{Styles, Tone};
use serde_json::json;

use crate::cli::Context;
use crate::cli::args::Format;

/// What is known of a job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(crate) id: JobId,
    pub(crate) began: Timestamp,
    pub(crate) exit: Option<JobExit>,
}

impl Job {
    /// The lane, or the run for its own gates.
    pub(super) fn label(&self) -> &str {
        self.id.lane.as_ref().map_or("run", LaneId::as_str)
    }
}

pub(crate) enum Entry {
    Began,
    /// A line; the moment is when it was read, where that is soon after it was written.
    Line(String, Option<Timestamp>),
    Ended,
}

impl Entry {
    fn is_line(&self) -> bool {
        matches!(self, Self::Line(..))
    }
}

pub(crate) struct Lines<'a> {
    context: &'a Context,
    /// The lanes whose names begin the lines, each in its colour; `None`: jobs have headers.
    lanes: Option<Vec<String>>,
    styles: Styles,
    offset: FixedOffset,
    /// The job that the last line was of, in each lane.
    last: HashMap<String, JobId>,
    /// Entries that are not printed yet because only the last ones of each lane are wanted.
    held: Option<Held>,
    /// What is to be printed next.
    text: String,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(context: &'a Context, lanes: Option<Vec<String>>, styles: Styles, offset: FixedOffset) -> Self {
        Self { context, lanes, styles, offset, last: HashMap::new(), held: None, text: String::new() }
    }

    /// Holds everything back until [`Lines::release`], and then prints the last `tail` lines of each lane.
    pub(crate) fn hold(&mut self, tail: usize) {
        self.held = Some(Held { tail, added: 0, lanes: HashMap::new() });
    }

    pub(crate) fn add(&mut self, job: &Rc<Job>, entry: Entry) {
        match &mut self.held {
            Some(held) => held.add(job, entry),
            None => self.format(job, &entry),
        }
    }

    pub(crate) fn release(&mut self) -> Result<()> {
        let held = self.held.take().map(Held::into_entries).unwrap_or_default();
        held.iter().for_each(|(job, entry)| self.format(job, entry));
        self.print()
    }

    /// Prints what was added, but for what is held back.
    pub(crate) fn print(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.text);
        if text.is_empty() { Ok(()) } else { self.context.printer.out(text) }
    }

    fn format(&mut self, job: &Job, entry: &Entry) {
        let text = match (&self.lanes, self.context.printer.format()) {
            (_, Format::Json) => object(job, entry),
            (Some(_), Format::Text) => self.prefixed(job, entry),
            (None, Format::Text) => self.below_header(job, entry),
        };
        self.text.push_str(&text);
    }

    fn below_header(&mut self, job: &Job, entry: &Entry) -> String {
        let mut text = String::new();
        let first = self.last.is_empty();
        let last = self.last.get("");
        // A job that wrote nothing is named all the same, once it has ended.
        let due = match entry {
            Entry::Began => false,
            Entry::Line(..) => last != Some(&job.id),
            Entry::Ended => !self.last.contains_key(&named(job)),
        };
        if due {
            let gap = if first { "" } else { "\n" };
            text.push_str(&format!("{gap}==> {}{} <==\n", job.id, ending(job.exit.as_ref())));
            self.last.insert(String::new(), job.id.clone());
            self.last.insert(named(job), job.id.clone());
        }
        if let Entry::Line(line, _) = entry {
            text.push_str(&format!("{line}\n"));
        }
        text
    }

    fn prefixed(&mut self, job: &Job, entry: &Entry) -> String {
        let known = self.last.insert(job.label().to_owned(), job.id.clone()).is_some_and(|last| last == job.id);
        let header = || format!("==> {}", job.id.within_lane());
        match entry {
            Entry::Began if known => String::new(),
            Entry::Began => self.line(job, Some(job.began), &header()),
            Entry::Line(line, at) => {
                let named = if known { String::new() } else { self.line(job, at.or(Some(job.began)), &header()) };
                named + &self.line(job, *at, line)
            }
            Entry::Ended => {
                let exit = job.exit.as_ref();
                let took = exit.map(|exit| format!(" after {}", short(exit.finished_at.since(exit.started_at))));
                let text = format!("<== {}{}{}", job.id.within_lane(), ending(exit), took.unwrap_or_default());
                exit.map(|exit| self.line(job, Some(exit.finished_at), &text)).unwrap_or_default()
            }
        }
    }

    /// `12:03:04 SL-1 | text`; without the time where it is not known.
    fn line(&self, job: &Job, at: Option<Timestamp>, text: &str) -> String {
        let lanes = self.lanes.as_deref().unwrap_or_default();
        let column = lanes.iter().map(|lane| width(lane)).max().unwrap_or_default().min(NAME);
        let place = lanes.iter().position(|lane| lane == job.label()).unwrap_or_default();
        let name = self.styles.paint(COLOURS[place % COLOURS.len()], &format!("{} |", pad(job.label(), column)));
        let time = at.map_or_else(|| " ".repeat(8), |at| clock(at, self.offset));
        let gap = if text.is_empty() { "" } else { " " };
        format!("{} {name}{gap}{text}\n", self.styles.paint(Tone::Faint, &time))
    }
}

/// The cells of the longest name.
pub(crate) const NAME: usize = 24;

/// Those of lanes, in turn.
const COLOURS: [Tone; 6] = [Tone::Busy, Tone::Good, Tone::Warn, Tone::Blue, Tone::Magenta, Tone::Strong];

/// The last lines of each lane, and what says of which jobs they are.
struct Held {
    tail: usize,
    /// How many entries were added: their order.
    added: usize,
    lanes: HashMap<String, LastOfLane>,
}

#[derive(Default)]
struct LastOfLane {
    entries: VecDeque<(usize, Rc<Job>, Entry)>,
    lines: usize,
}

impl Held {
    fn add(&mut self, job: &Rc<Job>, entry: Entry) {
        let last = match self.lanes.get_mut(job.label()) {
            Some(last) => last,
            None => self.lanes.entry(job.label().to_owned()).or_default(),
        };
        last.lines += usize::from(entry.is_line());
        last.entries.push_back((self.added, Rc::clone(job), entry));
        self.added += 1;
        while let Some((_, _, oldest)) = last.entries.front() {
            let is_line = oldest.is_line();
            if last.lines < self.tail || last.lines == self.tail && is_line {
                break;
            }
            last.lines -= usize::from(is_line);
            last.entries.pop_front();
        }
    }

    fn into_entries(self) -> Vec<(Rc<Job>, Entry)> {
        let mut all: Vec<_> = self.lanes.into_values().flat_map(|last| last.entries).collect();
        all.sort_by_key(|(number, ..)| *number);
        all.into_iter().map(|(_, job, entry)| (job, entry)).collect()
    }
}

fn named(job: &Job) -> String {
    format!("named {}", job.id)
}

/// A line as JSON; what begins and ends is in the run log.
fn object(job: &Job, entry: &Entry) -> String {
    let Entry::Line(line, at) = entry else { return String::new() };
    let id = &job.id;
    format!("{}\n", json!({"job": id, "line": line, "lane": id.lane, "agent": id.agent(), "time": at}))
}

fn ending(exit: Option<&JobExit>) -> String {
    match exit {
        None => String::new(),
        Some(exit) if exit.cause == ExitCause::Exited => format!(" · exit {}", exit.exit_code),
        Some(exit) => format!(" · {} · exit {}", exit.cause.word().replace('_', " "), exit.exit_code),
    }
}

pub(crate) fn planned(record: &Record) -> Option<Job> {
    match &record.event {
        lanewright_model::event::Event::JobPlanned { job, .. } => {
            Some(Job { id: job.clone(), began: record.at, exit: None })
        }
        _ => None,
    }
}
