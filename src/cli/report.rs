//! `report`, and the reports that a run leaves when it ends (SPEC §11). Neither changes anything of the run.

use super::args;
use super::ci;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::{now, redactor};
use super::runs::{beginning, named_or_newest, pinned_plan, read_begun_log, state};
use super::status::screen;
use crate::fs::{atomic, regular_file};
use crate::model::{Plan, Redactor, ReportFormat, RunId};
use crate::report::styles_for;
use crate::settings::Settings;
use crate::store::lock::is_held;
use crate::store::{LogContents, RunDirectory, StateDirectory, run_log};
use crate::view::report::ReportContext;
use crate::view::{ExecutionReport, Styles, SummaryContext};

/// Writes the report of the run that was named, else of the only unfinished one, else of the newest.
pub(super) fn run(context: &Context, arguments: &args::Report, format: ReportFormat) -> Result<ExitStatus, CliError> {
    let (state, settings) = state(context)?;
    let run = named_or_newest(&state, arguments.run.as_ref())?;
    let directory = state.run(&run);
    // Looked at before the log: what a process that has ended wrote last is in the log by then.
    let held = is_held(&directory.lock());
    let contents = read_begun_log(context, &directory)?;
    let redactor = pinned_plan(&directory).map(|plan| redactor(&settings, &plan)).unwrap_or_default();
    let report = report(&state, &directory, &contents, &redactor, held);
    match &arguments.output {
        Some(file) => {
            let path = context.directory.join(file);
            let text = rendered(&report, format, WIDTH, Styles::plain())?;
            regular_file::write_argument(&path, text.as_bytes()).map_err(|error| {
                CliError::new(ExitStatus::Failed, format!("cannot write the report to {}: {error}", path.display()))
                    .hint("name a file in a directory that is there and can be written to")
            })?;
        }
        None => context.printer.out(rendered(&report, format, screen().1, styles_for(&std::io::stdout()))?)?,
    }
    Ok(ExitStatus::Done)
}

/// How wide text in a file is.
const WIDTH: usize = 100;

fn rendered(report: &ExecutionReport, format: ReportFormat, width: usize, styles: Styles) -> Result<String, CliError> {
    report
        .render(format, width, styles)
        .map_err(|error| CliError::new(ExitStatus::Failed, format!("cannot write the report as {format}: {error}")))
}

fn report(
    state: &StateDirectory,
    directory: &RunDirectory,
    contents: &LogContents,
    redactor: &Redactor,
    held: bool,
) -> ExecutionReport {
    let program = state.program();
    let summary = SummaryContext { now: now(), program: &program, held };
    let context = ReportContext { summary, redactor, damaged_lines: contents.damage.len() };
    ExecutionReport::of(beginning(directory), &contents.records, context)
}

/// Leaves the reports of a run that has just ended in its directory, and tells the CI service. What goes wrong with that
/// is told and is no matter of the run.
pub(super) fn keep(context: &Context, settings: &Settings, state: &StateDirectory, plan: &Plan, run: &RunId) {
    let directory = state.run(run);
    let contents = match run_log::read(&directory.log()) {
        Ok(contents) => contents,
        Err(error) => return not_written(context, &error),
    };
    let report = report(state, &directory, &contents, &redactor(settings, plan), false);
    let service = ci::service(settings, &context.environment);
    let more = (service == Some(ci::Service::Gitlab)).then_some(ReportFormat::CodeQuality);
    for format in [ReportFormat::Json, ReportFormat::Markdown, ReportFormat::Junit].into_iter().chain(more) {
        let written = report.render(format, WIDTH, Styles::plain()).map_err(|error| error.to_string());
        let kept = written
            .and_then(|text| atomic::write(&directory.report(format), text.as_bytes()).map_err(|it| it.to_string()));
        kept.unwrap_or_else(|error| not_written(context, &error));
    }
    if let Some(service) = service {
        ci::tell(context, settings, service, &report);
    }
}

fn not_written(context: &Context, error: &dyn std::fmt::Display) {
    let hint = "the run log holds everything: lanekeeper report RUN --format json|md|junit".to_owned();
    context.printer.warning(format!("the report is not complete: {error}"), &[hint]);
}
