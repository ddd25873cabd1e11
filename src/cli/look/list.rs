//! `list`: all runs of the repository, also those whose logs are damaged.

use std::io;

use lanewright_model::RunId;
use lanewright_store::lock::is_held;
use lanewright_store::{RunDirectory, StateDirectory, run_log};
use lanewright_view::status::run_list::{ListedRun, RunList, render};
use serde_json::json;

use crate::cli::args::Format;
use crate::cli::printer::screen;
use crate::cli::runs::{all_runs, beginning, state};
use crate::cli::{Context, ExitStatus, Result, now};
use crate::progress::styles_for;

pub(crate) fn run(context: &Context) -> Result<ExitStatus> {
    let (state, _) = state(context)?;
    let mut list = RunList { runs: listed(&all_runs(&state)?) };
    // A log that says nothing of its start is listed last.
    list.runs.sort_by_key(|run| std::cmp::Reverse(run.started));
    match context.printer.format() {
        Format::Json => context.printer.json(&json!(list))?,
        Format::Text if list.runs.is_empty() => {
            context.printer.out("No runs in this repository yet. Start one: lanewright execute-phase PLAN\n")?;
        }
        Format::Text => context.printer.out(render(&list.runs, now(), screen().1, styles_for(&io::stdout())))?,
    }
    warn(context, &list.runs);
    Ok(ExitStatus::Done)
}

/// Reads the logs on all cores.
fn listed(runs: &[(RunId, StateDirectory)]) -> Vec<ListedRun> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |runs: &[(RunId, StateDirectory)]| -> Vec<ListedRun> {
        runs.iter().map(|(run, state)| listed_run(run, &state.run(run))).collect()
    };
    std::thread::scope(|scope| {
        let shares = runs.chunks(runs.len().div_ceil(cores).max(1));
        let reading: Vec<_> = shares.map(|share| scope.spawn(move || read(share))).collect();
        let read = reading.into_iter().map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        read.flatten().collect()
    })
}

fn listed_run(run: &RunId, directory: &RunDirectory) -> ListedRun {
    let held = is_held(&directory.lock());
    let contents = match run_log::read_checked(&directory.log(), ListedRun::is_decisive) {
        Ok(contents) => contents,
        Err(error) => return ListedRun::unreadable(run.clone(), held, error.to_string()),
    };
    let history = beginning(directory).after(&contents.records);
    let damage = contents.damage.first().map(ToString::to_string);
    ListedRun { damage, ..ListedRun::of(run.clone(), &history, held) }
}

fn warn(context: &Context, runs: &[ListedRun]) {
    for run in runs {
        if let Some(damage) = &run.damage {
            let hint = format!("to check it: lanewright doctor {}", run.run);
            context.printer.warning(format!("the log of run {} is damaged: {damage}", run.run), &[hint]);
        }
    }
}
