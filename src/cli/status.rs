//! `status`: the state of a run, what it waits for and what to type next. Changes nothing.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use chrono::{Local, Offset};
use serde_json::Value;

use super::args::{self, Format};
use super::ci::is_unattended;
use super::error::OutputError;
use super::last_said::LastSaid;
use super::runs::{beginning, pinned_plan, read_begun_log, state, unfinished_of, unknown_lane};
use super::select::{Selector, Target, newest};
use super::{Context, ExitStatus, Result, now};
use crate::event::RunStarted;
use crate::model::safe_text;
use crate::model::{JobId, LaneId, RunId};
use crate::progress::{Block, Plain, Reporter, styles_for, terminal_size};
use crate::projection::RunHistory;
use crate::projection::lane_page::LanePage;
use crate::projection::summary::{Summary, SummaryContext};
use crate::settings::{Layer, json, table};
use crate::store::lock::is_held;
use crate::store::{Follower, RunDirectory, StateDirectory};

/// `status --settings`: every setting and where its value came from. No plan is involved, so its layer is empty.
pub(super) fn settings(context: &Context) -> Result<ExitStatus> {
    let settings = context.layers(Layer::default())?.resolve(None);
    context.printer.print(table(&settings), &json(&settings))
}

/// Shows the run that was named, else the newest unfinished one, else the newest.
pub(super) fn run(context: &Context, arguments: &args::Status) -> Result<ExitStatus> {
    let (state, _) = state(context)?;
    let names: Vec<&args::Name> = arguments.run.run.iter().chain(&arguments.lane).collect();
    let target = (!names.is_empty()).then(|| Selector::new(context, &state).target(&names)).transpose()?;
    let (run, lane) = target.map_or((None, None), |Target { run, lane, .. }| (Some(run), lane));
    let (run, unfinished) = match run {
        Some(run) => (run, Vec::new()),
        None => {
            let logs = state.logs_at_a_glance()?;
            let unfinished = unfinished_of(&state, &logs);
            (newest(&state, &logs, &unfinished)?, unfinished)
        }
    };
    let directory = state.run(&run);
    if arguments.watch {
        watch(context, &state, &directory)?;
    }
    let contents = read_begun_log(context, &directory)?;
    let view = beginning(&directory).after(&contents.records);
    if let Some(lane) = &lane {
        return page(context, &state, &directory, &view, lane);
    }
    let last_said = last_said(&directory);
    show(context, &summary(&state, &view, &directory).with_said(&|job| last_said.of(job)), arguments.watch)?;
    mention_others(context, &unfinished, &run)?;
    Ok(ExitStatus::Done)
}

/// Shows one lane.
fn page(
    context: &Context,
    state: &StateDirectory,
    directory: &RunDirectory,
    view: &RunHistory,
    lane: &LaneId,
) -> Result<ExitStatus> {
    let last_said = last_said(directory);
    let summary = summary(state, view, directory).with_said(&|job| last_said.of(job));
    let unknown = || unknown_lane(lane, view.lanes().iter().map(|lane| &lane.id));
    let of_lane = summary.lanes.iter().find(|summary| summary.lane.id == *lane).ok_or_else(unknown)?;
    let output_of = |job: &JobId| last_said.end_of(job, OUTPUT_LINES);
    let page = LanePage { summary: &summary, lane: of_lane, program: &state.program(), output_of: &output_of };
    context.printer.print(page.render(screen().1, styles_for(&io::stdout())), &page.json())
}

/// How much of a job's output the page of a lane shows.
const OUTPUT_LINES: usize = 12;

fn summary<'h>(state: &StateDirectory, view: &'h RunHistory, directory: &RunDirectory) -> Summary<'h> {
    let program = state.program();
    Summary::of(view, SummaryContext { now: now(), program: &program, held: is_held(&directory.lock()) })
}

fn last_said(directory: &RunDirectory) -> LastSaid {
    LastSaid::new(directory.clone(), pinned_plan(directory).map(Arc::new))
}

/// As JSON it is one document, and on a line of its own where there were others before it.
fn show(context: &Context, summary: &Summary<'_>, watched: bool) -> Result<()> {
    match context.printer.format() {
        Format::Text => context.printer.out(summary.render(screen().1, styles_for(&io::stdout())))?,
        Format::Json => {
            let value = summary.json();
            match watched {
                true => context.printer.out(format_args!("{value}\n"))?,
                false => context.printer.json(&value)?,
            }
        }
    }
    Ok(())
}

/// Names the other unfinished runs, where the user named none.
fn mention_others(context: &Context, unfinished: &[(RunId, RunStarted)], shown: &RunId) -> Result<()> {
    let names: Vec<&str> =
        unfinished.iter().map(|(run, _)| run.as_str()).filter(|run| *run != shown.as_str()).collect();
    if context.printer.format() == Format::Text && !names.is_empty() {
        let newest: Vec<&str> = names.iter().take(OTHERS).copied().collect();
        context
            .printer
            .out(format_args!("\nOther unfinished runs: {}. See: lanekeeper status RUN\n", newest.join(", ")))?;
    }
    Ok(())
}

const OTHERS: usize = 5;

/// How often a watched run is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Shows the run until it ends or its process does.
fn watch(context: &Context, state: &StateDirectory, directory: &RunDirectory) -> Result<()> {
    let mut screen = Screen::new(context, last_said(directory));
    let mut view = beginning(directory);
    let mut log = Follower::new(&directory.log());
    loop {
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let held = is_held(&directory.lock());
        for record in log.poll()?.records {
            view.apply(&record);
            screen.record(&record, &view)?;
        }
        if !held || view.run.finished.is_some() {
            return screen.clear();
        }
        screen.draw(summary(state, &view, directory))?;
        std::thread::sleep(LOOK);
    }
}

/// How a watched run is shown: redrawn on a terminal, as lines or as JSON objects elsewhere.
enum Screen {
    Redrawn(Block<io::Stdout>, LastSaid),
    Lines(Plain<io::Stdout>),
    Objects { context: super::printer::Printer, last: Value },
}

impl Screen {
    fn new(context: &Context, last_said: LastSaid) -> Self {
        if context.printer.format() == Format::Json {
            return Self::Objects { context: context.printer, last: Value::Null };
        }
        let dumb = context.environment.get("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        if dumb || !io::stdout().is_terminal() || is_unattended(&context.environment) {
            return Self::Lines(Plain::new(io::stdout(), Local::now().offset().fix(), styles_for(&io::stdout())));
        }
        Self::Redrawn(Block::new(io::stdout()), last_said)
    }

    fn record(&mut self, record: &crate::event::Record, view: &RunHistory) -> Result<()> {
        match self {
            Self::Lines(plain) => Ok(plain.record(record, view).map_err(OutputError)?),
            Self::Redrawn(..) | Self::Objects { .. } => Ok(()),
        }
    }

    fn draw(&mut self, summary: Summary<'_>) -> Result<()> {
        match self {
            Self::Lines(_) => {}
            Self::Redrawn(block, last_said) => {
                let (rows, columns) = screen();
                let summary = summary.with_said(&|job| last_said.of(job));
                // The last column stays free, a full line would wrap on some terminals.
                let text = summary.render(columns.saturating_sub(1), styles_for(&io::stdout()));
                let shown = text.lines().take(rows.saturating_sub(2));
                let picture = shown.map(|line| safe_text::for_terminal(line).into_owned()).collect();
                block.draw("", picture, (rows, columns)).map_err(OutputError)?;
            }
            Self::Objects { context, last } => {
                let now = summary.json();
                let mut timeless = now.clone();
                timeless["elapsed_ms"] = Value::Null;
                if timeless != *last {
                    context.out(format_args!("{now}\n"))?;
                    *last = timeless;
                }
            }
        }
        Ok(())
    }

    fn clear(self) -> Result<()> {
        match self {
            Self::Redrawn(mut block, _) => Ok(block.clear().map_err(OutputError)?),
            Self::Lines(_) | Self::Objects { .. } => Ok(()),
        }
    }
}

/// Rows and columns of the terminal; elsewhere wide enough for every table.
pub(super) fn screen() -> (usize, usize) {
    terminal_size(io::stdout(), 100)
}
