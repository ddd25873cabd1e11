//! `status`: the state of a run, what it waits for and what to type next. Changes nothing.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use lanewright_model::event::Record;
use lanewright_model::safe_text;
use lanewright_model::text::shell_line;
use lanewright_model::{JobId, LaneId, RunId};
use lanewright_plan::settings::{Layer, json, table};
use lanewright_store::lock::is_held;
use lanewright_store::{Follower, RunDirectory, StateDirectory};
use lanewright_view::RunHistory;
use lanewright_view::status::lane_page::LanePage;
use lanewright_view::status::summary::{Summary, SummaryContext};
use serde_json::Value;

use super::last_output::LastOutput;
use super::report::where_it_is;
use crate::cli::args::{self, Format};
use crate::cli::error::OutputError;
use crate::cli::printer::{Printer, screen};
use crate::cli::runs::{beginning, pinned_plan, read_begun_log, state, unknown_lane};
use crate::cli::select::{DefaultRun, Selector, Target, no_run};
use crate::cli::{Context, ExitStatus, Result, local_now, offset};
use crate::progress::{Block, Plain, Reporter, is_unattended, styles_for};

/// `status --settings`: every setting and where its value came from. No plan is involved, so its layer is empty.
pub(crate) fn settings(context: &Context) -> Result<ExitStatus> {
    let settings = context.layers(Layer::default())?.resolve(None);
    context.printer.print(table(&settings), &json(&settings))
}

/// Shows the run that was named, else the newest unfinished one, else the newest.
pub(crate) fn run(context: &Context, arguments: &args::Status) -> Result<ExitStatus> {
    let (state, _) = state(context)?;
    let names: Vec<&args::Name> = arguments.run.run.iter().chain(&arguments.lane).collect();
    let selector = Selector::new(context, &state);
    let (run, lane, others) = if names.is_empty() {
        let DefaultRun { run, others } = selector.default_run()?.ok_or_else(|| no_run(&state))?;
        (run, None, others)
    } else {
        let Target { run, lane, .. } = selector.target(&names)?;
        (run, lane, Vec::new())
    };
    let directory = state.run(&run);
    let subject = Subject { state: &state, last_output: last_output(&directory), directory, lane };
    if arguments.watch {
        watch(context, &subject)?;
    }
    let contents = read_begun_log(context, &subject.directory)?;
    let view = beginning(&subject.directory).after(&contents.records);
    match context.printer.format() {
        Format::Text => context.printer.out(subject.text(&view, screen().1)?)?,
        // It is one document, and on a line of its own where there were others before it.
        Format::Json if arguments.watch => context.printer.out(format_args!("{}\n", subject.json(&view)?))?,
        Format::Json => context.printer.json(&subject.json(&view)?)?,
    }
    if context.printer.format() == Format::Text && subject.lane.is_none() && view.run.finished.is_some() {
        let place = where_it_is(&subject.directory);
        place.map_or(Ok(()), |place| context.printer.out(format_args!("\n{place}\n")))?;
    }
    mention(context, &others)?;
    Ok(ExitStatus::Done)
}

/// What is shown: a run, or one lane of it.
struct Subject<'a> {
    state: &'a StateDirectory,
    directory: RunDirectory,
    lane: Option<LaneId>,
    last_output: LastOutput,
}

impl Subject<'_> {
    fn text(&self, view: &RunHistory, width: usize) -> Result<String> {
        let styles = styles_for(&io::stdout());
        self.show(view, |summary| summary.render(width, styles), |page| page.render(width, styles))
    }

    fn json(&self, view: &RunHistory) -> Result<Value> {
        self.show(view, |summary| summary.json(), |page| page.json())
    }

    fn show<T>(
        &self,
        view: &RunHistory,
        of_run: impl Fn(&Summary<'_>) -> T,
        of_lane: impl Fn(&LanePage<'_, '_>) -> T,
    ) -> Result<T> {
        let program = self.state.program();
        let context = SummaryContext { now: local_now(), program: &program, held: is_held(&self.directory.lock()) };
        let said = |job: &JobId| self.last_output.of(job);
        let summary = Summary::of(view, context).with_said(&said);
        let Some(lane) = &self.lane else { return Ok(of_run(&summary)) };
        let unknown = || unknown_lane(lane, view.lanes().iter().map(|lane| &lane.id));
        let lane = summary.lanes.iter().find(|summary| summary.lane.id == *lane).ok_or_else(unknown)?;
        let output_of = |job: &JobId| self.last_output.end_of(job, OUTPUT_LINES);
        let how = |command: &[String]| shell_line(command);
        Ok(of_lane(&LanePage { summary: &summary, lane, program: &program, output_of: &output_of, how: &how }))
    }

    /// Whether a line about `record` belongs to it.
    fn concerns(&self, record: &Record) -> bool {
        self.lane.is_none() || record.event.lane().is_none_or(|lane| self.lane.as_ref() == Some(lane))
    }
}

/// How much of a job's output the page of a lane shows.
const OUTPUT_LINES: usize = 12;

fn last_output(directory: &RunDirectory) -> LastOutput {
    LastOutput::new(directory.clone(), pinned_plan(directory).map(Arc::new))
}

/// Names the other unfinished runs.
fn mention(context: &Context, others: &[RunId]) -> Result<()> {
    if context.printer.format() == Format::Json || others.is_empty() {
        return Ok(());
    }
    let newest: Vec<&str> = others.iter().take(OTHERS).map(RunId::as_str).collect();
    context.printer.out(format_args!("\nOther unfinished runs: {}. See: lanewright status RUN\n", newest.join(", ")))
}

const OTHERS: usize = 5;

/// How often a watched run is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Shows `subject` until the run ends or its process does.
fn watch(context: &Context, subject: &Subject<'_>) -> Result<()> {
    let mut screen = Screen::new(context);
    let mut view = beginning(&subject.directory);
    let mut log = Follower::new(&subject.directory.log());
    loop {
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let held = is_held(&subject.directory.lock());
        for record in log.poll()?.records {
            view.apply(&record);
            if subject.concerns(&record) {
                screen.record(&record, &view)?;
            }
        }
        if !held || view.run.finished.is_some() {
            return screen.clear();
        }
        screen.draw(subject, &view)?;
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// How a watched run is shown: redrawn on a terminal, as lines or as JSON objects elsewhere.
enum Screen {
    Redrawn(Block<io::Stdout>),
    Lines(Plain<io::Stdout>),
    Objects { printer: Printer, last: Value },
}

impl Screen {
    fn new(context: &Context) -> Self {
        if context.printer.format() == Format::Json {
            return Self::Objects { printer: context.printer, last: Value::Null };
        }
        let dumb = context.environment.get("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        if dumb || !io::stdout().is_terminal() || is_unattended(&context.environment) {
            return Self::Lines(Plain::new(io::stdout(), offset(), styles_for(&io::stdout())));
        }
        Self::Redrawn(Block::new(io::stdout()))
    }

    fn record(&mut self, record: &Record, view: &RunHistory) -> Result<()> {
        match self {
            Self::Lines(plain) => Ok(plain.record(record, view).map_err(OutputError)?),
            Self::Redrawn(_) | Self::Objects { .. } => Ok(()),
        }
    }

    fn draw(&mut self, subject: &Subject<'_>, view: &RunHistory) -> Result<()> {
        match self {
            Self::Lines(_) => {}
            Self::Redrawn(block) => {
                let (rows, columns) = screen();
                // The last column stays free, a full line would wrap on some terminals.
                let text = subject.text(view, columns.saturating_sub(1))?;
                let shown = text.lines().take(rows.saturating_sub(2));
                let picture = shown.map(|line| safe_text::for_terminal(line).into_owned()).collect();
                block.draw("", picture, (rows, columns)).map_err(OutputError)?;
            }
            Self::Objects { printer, last } => {
                let now = subject.json(view)?;
                let mut timeless = now.clone();
                for time in ["elapsed_ms", "work_ms", "waiting_ms", "idle_ms"] {
                    timeless[time] = Value::Null;
                }
                if timeless != *last {
                    printer.out(format_args!("{now}\n"))?;
                    *last = timeless;
                }
            }
        }
        Ok(())
    }

    fn clear(self) -> Result<()> {
        match self {
            Self::Redrawn(mut block) => Ok(block.clear().map_err(OutputError)?),
            Self::Lines(_) | Self::Objects { .. } => Ok(()),
        }
    }
}
