//! `report`, and the reports that a run leaves when it ends (SPEC §11). Neither changes anything of the run.

pub(crate) mod ci;
mod lane_changes;

use anyhow::{Context as _, Result};
use lanewright_files::{atomic, regular_file};
use lanewright_git::Repository;
use lanewright_model::{Ci, Plan, Redactor, ReportFormat, RunId};
use lanewright_store::lock::is_held;
use lanewright_store::{LogContents, RunDirectory, StateDirectory, run_log};
use lanewright_view::RunHistory;
use lanewright_view::report::{ExecutionReport, pull_request};
use lanewright_view::status::styles::Styles;
use lanewright_view::status::summary::SummaryContext;

use crate::cli::args;
use crate::cli::printer::screen;
use crate::cli::repository_context::redactor;
use crate::cli::runs::{beginning, read_begun_log, state};
use crate::cli::secrets::redactor_of_run;
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, local_now};
use crate::progress::styles_for;
use lane_changes::changes_of;

pub(crate) fn run(context: &Context, arguments: &args::Report, format: ReportFormat) -> Result<ExitStatus> {
    let (state, settings) = state(context)?;
    let run = Selector::new(context, &state).run(arguments.run.run.as_ref())?;
    let directory = state.run(&run);
    // Looked at before the log: what a process that has ended wrote last is in the log by then.
    let held = is_held(&directory.lock());
    let contents = read_begun_log(context, &directory)?;
    let redactor = redactor_of_run(&settings, &directory);
    let history = history(&directory, &contents, &redactor);
    let mut report = report(&state, &history, &contents, held);
    if format == ReportFormat::Html {
        let repository = Repository::discover(&context.directory)?;
        report = report.with_changes(changes_of(&repository, &contents.records, &redactor));
    }
    match &arguments.output {
        Some(file) => {
            let path = context.directory.join(file);
            let text = rendered(&report, format, WIDTH, Styles::plain())?;
            let written = regular_file::write_argument(&path, text.as_bytes());
            let written = written.with_context(|| format!("cannot write the report to {}", path.display()));
            written.map_err(|error| error.hint("name a file in a directory that exists and can be written to"))?;
        }
        None => context.printer.out(rendered(&report, format, screen().1, styles_for(&std::io::stdout()))?)?,
    }
    Ok(ExitStatus::Done)
}

/// How wide text in a file is.
const WIDTH: usize = 100;

fn rendered(report: &ExecutionReport<'_>, format: ReportFormat, width: usize, styles: Styles) -> Result<String> {
    report.render(format, width, styles).with_context(|| format!("cannot write the report as {format}"))
}

fn history(directory: &RunDirectory, contents: &LogContents, redactor: &Redactor) -> RunHistory {
    beginning(directory).redacted(redactor).after(&contents.records)
}

fn report<'h>(
    state: &StateDirectory,
    history: &'h RunHistory,
    contents: &LogContents,
    held: bool,
) -> ExecutionReport<'h> {
    let program = state.program();
    let context = SummaryContext { now: local_now(), program: &program, held };
    ExecutionReport::of(history, context, contents.damage.len())
}

/// Writes the reports of a run that has just ended into its directory, and reports to the CI service. Errors are warnings
/// and do not change how the run ends.
pub(crate) fn keep(within: &RepositoryContext, plan: &Plan, run: &RunId) {
    let (context, settings, state) = (&within.context, &within.settings, &within.state);
    let directory = state.run(run);
    let contents = match run_log::read(&directory.log()) {
        Ok(contents) => contents,
        Err(error) => return not_written(context, &error),
    };
    let redactor = redactor(settings, plan);
    let history = history(&directory, &contents, &redactor);
    let report = report(state, &history, &contents, false);
    let report = report.with_changes(changes_of(&within.repository, &contents.records, &redactor));
    let service = ci::service(settings, &context.environment);
    let more = (service == Ci::Gitlab).then_some(ReportFormat::CodeQuality);
    let formats = [ReportFormat::Json, ReportFormat::Markdown, ReportFormat::Html, ReportFormat::Junit];
    for format in formats.into_iter().chain(more) {
        let written = report.render(format, WIDTH, Styles::plain()).map_err(|error| error.to_string());
        let kept = written
            .and_then(|text| atomic::write(&directory.report(format), text.as_bytes()).map_err(|it| it.to_string()));
        kept.unwrap_or_else(|error| not_written(context, &error));
    }
    ci::report(context, settings, service, &report);
}

/// The title and the text of the pull request with the work of a run: its Markdown report.
pub(crate) fn pull_request_text(within: &RepositoryContext, run: &RunId) -> Result<(String, String)> {
    let directory = within.state.run(run);
    let contents = read_begun_log(&within.context, &directory)?;
    let redactor = redactor_of_run(&within.settings, &directory);
    let history = history(&directory, &contents, &redactor);
    Ok(pull_request(&report(&within.state, &history, &contents, false)))
}

/// A sentence that names the page that the run left, if it did.
pub(crate) fn where_it_is(directory: &RunDirectory) -> Option<String> {
    let page = directory.report(ReportFormat::Html);
    page.exists().then(|| format!("Report: {}", page.display()))
}

fn not_written(context: &Context, error: &dyn std::fmt::Display) {
    let hint = "the run log holds everything: lanewright report RUN --format json|md|html|junit".to_owned();
    context.printer.warning(format!("the report is not complete: {error}"), &[hint]);
}
