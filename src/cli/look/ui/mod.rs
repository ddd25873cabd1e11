//! `ui`: the terminal interface. What it shows and what keys mean is in `lanewright_view::ui`; this is the terminal, the files and
//! the child processes.

mod app;
mod commands;
mod files;
mod live;
mod screen;

use std::io::{self, IsTerminal};

use crate::cli::args::{Name, RunArg};
use crate::cli::runs::{read_begun_log, state};
use crate::cli::select::Selector;
use crate::cli::signals::Signals;
use crate::cli::{Context, ExitStatus, Hint, Result};
use app::App;
use screen::Screen;

/// Shows the run that was named, else the newest unfinished one, else the newest, until the user leaves.
pub(crate) fn run(context: &Context, arguments: &RunArg) -> Result<ExitStatus> {
    require_terminal(context, arguments.run.as_ref())?;
    let (state, _) = state(context)?;
    let run = Selector::new(context, &state).run(arguments.run.as_ref())?;
    read_begun_log(context, &state.run(&run))?;
    let signals = Signals::watch()?;
    let mut app = App::new(context, &state, &run)?;
    let status = app.follow(&mut Screen::open()?, &signals)?;
    match app.last_outcome(&signals) {
        Some(Err(refused)) => Err(ExitStatus::Failed.error(refused)),
        Some(Ok(said)) => {
            context.printer.note(said.trim());
            Ok(status)
        }
        None => Ok(status),
    }
}

fn require_terminal(context: &Context, run: Option<&Name>) -> Result<()> {
    let term = context.environment.get("TERM").filter(|term| !term.is_empty());
    let why = match term {
        _ if !io::stdin().is_terminal() => "standard input is not a terminal",
        _ if !io::stdout().is_terminal() => "standard output is not a terminal",
        None => "TERM is not set",
        Some(term) if term == "dumb" => "TERM is dumb",
        Some(_) => return Ok(()),
    };
    let run = run.map(|run| format!(" {run}")).unwrap_or_default();
    let error = ExitStatus::Usage.error(format!("the interface needs a terminal that can move its cursor: {why}"));
    Err(error.hint(format!("elsewhere: lanewright status{run} --watch")))
}
