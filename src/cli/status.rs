//! `status`: where a run stands, what it waits for and what to type next. Changes nothing, ever.

use std::io::{self, IsTerminal};
use std::time::Duration;

use chrono::{Local, Offset};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::{self, Format};
use super::ci::is_unattended;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::now;
use super::printer::OutputError;
use super::runs::{beginning, existing, only_or_newest, read_begun_log, state, unfinished_of};
use crate::event::RunStarted;
use crate::model::RunId;
use crate::model::safe_text;
use crate::report::{Plain, Reporter, styles_for};
use crate::store::lock::is_held;
use crate::store::{Follower, RunDirectory, StateDirectory};
use crate::view::{RunView, Summary, SummaryContext};

/// Shows the run that was named, else the only unfinished one, else the newest.
pub(super) fn run(context: &Context, arguments: &args::Status) -> Result<ExitStatus, CliError> {
    let (state, _) = state(context)?;
    let (run, unfinished) = match &arguments.run {
        Some(run) => (existing(&state, run).map(|_| run.clone())?, Vec::new()),
        None => {
            let logs = state.logs_at_a_glance()?;
            let unfinished = unfinished_of(&state, &logs);
            (only_or_newest(&state, &logs, &unfinished)?, unfinished)
        }
    };
    let directory = state.run(&run);
    if arguments.watch {
        watch(context, &state, &directory)?;
    }
    let contents = read_begun_log(context, &directory)?;
    let view = beginning(&directory).after(&contents.records);
    show(context, &summary(&state, &view, &directory), arguments.watch)?;
    mention_others(context, &unfinished, &run)?;
    Ok(ExitStatus::Done)
}

fn summary(state: &StateDirectory, view: &RunView, directory: &RunDirectory) -> Summary {
    let program = state.program();
    Summary::of(view, SummaryContext { now: now(), program: &program, held: is_held(&directory.lock()) })
}

/// As JSON it is one document, and on a line of its own where there were others before it.
fn show(context: &Context, summary: &Summary, watched: bool) -> Result<(), CliError> {
    match context.printer.format() {
        Format::Text => context.printer.out(summary.render(screen().1, styles_for(&io::stdout())))?,
        Format::Json => {
            let value = serde_json::to_value(summary).map_err(unwritable)?;
            match watched {
                true => context.printer.out(format_args!("{value}\n"))?,
                false => context.printer.json(&value)?,
            }
        }
    }
    Ok(())
}

fn unwritable(error: serde_json::Error) -> CliError {
    CliError::new(ExitStatus::Failed, format!("cannot write the status as JSON: {error}"))
}

/// A person who named no run is told which other ones there are to name.
fn mention_others(context: &Context, unfinished: &[(RunId, RunStarted)], shown: &RunId) -> Result<(), CliError> {
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

/// How many other runs are named.
const OTHERS: usize = 5;

/// How often a watched run is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Shows the run as it goes on, until it ends or nobody works on it any more.
fn watch(context: &Context, state: &StateDirectory, directory: &RunDirectory) -> Result<(), CliError> {
    let mut screen = Screen::new(context);
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
            screen.clear();
            return Ok(());
        }
        screen.draw(&summary(state, &view, directory))?;
        std::thread::sleep(LOOK);
    }
}

/// How a watched run is shown: redrawn on a terminal, as lines or as JSON objects elsewhere.
enum Screen {
    Redrawn(ProgressBar),
    Lines(Plain<io::Stdout>),
    Objects { context: super::printer::Printer, last: String },
}

impl Screen {
    fn new(context: &Context) -> Self {
        if context.printer.format() == Format::Json {
            return Self::Objects { context: context.printer, last: String::new() };
        }
        let dumb = context.environment.get("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        if dumb || !io::stdout().is_terminal() || is_unattended(&context.environment) {
            return Self::Lines(Plain::new(io::stdout(), Local::now().offset().fix(), styles_for(&io::stdout())));
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self::Redrawn(bar)
    }

    fn record(&mut self, record: &crate::event::Record, view: &RunView) -> Result<(), CliError> {
        match self {
            Self::Lines(plain) => Ok(plain.record(record, view).map_err(OutputError)?),
            Self::Redrawn(_) | Self::Objects { .. } => Ok(()),
        }
    }

    fn draw(&mut self, summary: &Summary) -> Result<(), CliError> {
        match self {
            Self::Lines(_) => {}
            Self::Redrawn(bar) => {
                let (rows, columns) = screen();
                // The last column stays free, a full line would wrap on some terminals.
                let text = summary.render(columns.saturating_sub(1), styles_for(&io::stdout()));
                let shown: Vec<&str> = text.lines().take(rows.saturating_sub(1)).collect();
                bar.set_message(safe_text::for_terminal(&shown.join("\n")).into_owned());
            }
            Self::Objects { context, last } => {
                let text = serde_json::to_string(&Summary { elapsed: None, ..summary.clone() }).map_err(unwritable)?;
                if text != *last {
                    context.out(format_args!("{}\n", serde_json::to_string(summary).map_err(unwritable)?))?;
                    *last = text;
                }
            }
        }
        Ok(())
    }

    fn clear(self) {
        if let Self::Redrawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Rows and columns of the terminal; elsewhere wide enough for every table.
pub(super) fn screen() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    size.map_or((24, 100), |size| (size.ws_row.into(), size.ws_col.into()))
}
