//! `status` of runs that other writers logged: found, read and shown, never touched.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::args::Format;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::runs::existing;
use super::status::unwritable;
use crate::model::RunId;
use crate::report::styles_for;
use crate::store::{StateDirectory, foreign_log};
use crate::view::foreign_log::{self as view, ForeignRun};

/// What a word on the command line names.
pub(super) enum Found {
    /// A run of ours.
    Ours(RunId),
    /// A run of another writer.
    Foreign(Box<ForeignRun>),
}

/// Every log of other writers, the one that changed last first. What cannot be read is told as a warning.
fn logs(context: &Context, state: &StateDirectory) -> Vec<ForeignRun> {
    match state.foreign_logs() {
        Ok(paths) => read(context, &paths),
        Err(error) => {
            context.printer.warning(format!("the run logs of other writers cannot be listed: {error}"), &[]);
            Vec::new()
        }
    }
}

/// The logs of other writers at `paths`. What cannot be read is told as a warning.
pub(super) fn read(context: &Context, paths: &[PathBuf]) -> Vec<ForeignRun> {
    let read = |path: &PathBuf| match log(context, path) {
        Ok(log) => Some(log),
        Err(error) => {
            context.printer.warning(format!("{} cannot be read: {error}", path.display()), &[]);
            None
        }
    };
    paths.iter().filter_map(read).collect()
}

/// The run that `named` means: one of ours first, then a file, then a run of another writer.
pub(super) fn find(context: &Context, state: &StateDirectory, named: &OsStr) -> Result<Found, CliError> {
    let run = named.to_str().map(RunId::new);
    if let Some(Ok(run)) = &run
        && state.has(run)
    {
        return Ok(Found::Ours(run.clone()));
    }
    let path = context.directory.join(named);
    if path.is_file() {
        return file(context, &path);
    }
    if let Some(log) = logs(context, state).into_iter().find(|log| is_called(log, named)) {
        return Ok(Found::Foreign(Box::new(log)));
    }
    match run {
        Some(Ok(run)) => existing(state, &run).map(|_| Found::Ours(run)),
        _ => {
            let message = format!("`{}` is neither a run nor the file of a run log", named.to_string_lossy());
            Err(CliError::new(ExitStatus::Usage, message))
        }
    }
}

fn file(context: &Context, path: &Path) -> Result<Found, CliError> {
    let read = log(context, path).map_err(|error| {
        CliError::new(ExitStatus::InvalidState, format!("{} cannot be read: {error}", path.display()))
    })?;
    if read.records.is_empty() || !foreign_log::is_foreign(path) {
        let message = format!("{} is no run log of another writer", path.display());
        let error = CliError::new(ExitStatus::InvalidState, message);
        return Err(error.hint("a log of Lanekeeper's that is kept elsewhere: lanekeeper status --log-path FILE"));
    }
    Ok(Found::Foreign(Box::new(read)))
}

fn is_called(log: &ForeignRun, named: &OsStr) -> bool {
    log.run_id.as_str() == named || Path::new(&log.path).file_stem() == Some(named)
}

fn log(context: &Context, path: &Path) -> io::Result<ForeignRun> {
    let text = foreign_log::read(path)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let shown = path.strip_prefix(&context.directory).unwrap_or(path);
    Ok(ForeignRun::new(view::read(&text), &shown.to_string_lossy(), &stem))
}

/// Shows one log.
pub(super) fn show(context: &Context, log: &ForeignRun, width: usize) -> Result<(), CliError> {
    match context.printer.format() {
        Format::Text => context.printer.out(view::show(log, width, styles_for(&io::stdout())))?,
        Format::Json => {
            let value = serde_json::json!({ "other_run_log": serde_json::to_value(log).map_err(unwritable)? });
            context.printer.json(&value)?;
        }
    }
    Ok(())
}

/// Logs as a list has them: how many records there are, not what they say.
pub(super) fn listed(logs: &[ForeignRun]) -> Result<Value, CliError> {
    let short = |log: &ForeignRun| {
        let mut value = serde_json::to_value(ForeignRun { records: Vec::new(), ..log.clone() })?;
        value["records"] = log.records.len().into();
        Ok(value)
    };
    logs.iter().map(short).collect::<Result<Vec<_>, _>>().map(Value::from).map_err(unwritable)
}

/// Lists logs where nothing else is shown, or after a run of ours.
pub(super) fn show_list(context: &Context, logs: &[ForeignRun], width: usize) -> Result<(), CliError> {
    match context.printer.format() {
        Format::Text => context.printer.out(view::list(logs, width, styles_for(&io::stdout())))?,
        Format::Json => {
            context.printer.json(&serde_json::json!({ "other_run_logs": listed(logs)? }))?;
        }
    }
    Ok(())
}
