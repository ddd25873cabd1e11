//! CI services: which one this is, and what is reported to it when a run has ended. For users: `docs/report.md`.

use std::fs;
use std::io;
use std::path::Path;

use lanewright_files::handle;
use lanewright_files::regular_file::Links;
use lanewright_model::Ci;
use lanewright_plan::settings::{Environment, Progress, Settings};
use lanewright_view::report::{Annotation, ExecutionReport, MARKDOWN_LIMIT, annotations, markdown};

use crate::cli::args::Format;
use crate::cli::{Context, Result};

/// The service that the settings name, or that the environment says it is; never [`Ci::Auto`].
pub(crate) fn service(settings: &Settings, environment: &Environment) -> Ci {
    let says_so = |name: &str| environment.get(name).is_some_and(|value| value == "true");
    match settings.ci.value {
        Ci::Auto if says_so("GITHUB_ACTIONS") => Ci::Github,
        Ci::Auto if says_so("GITLAB_CI") => Ci::Gitlab,
        Ci::Auto => Ci::None,
        named => named,
    }
}

/// Reports to the service how a run ended. GitLab reads the files that the run leaves.
pub(crate) fn report(context: &Context, settings: &Settings, service: Ci, report: &ExecutionReport<'_>) {
    if service != Ci::Github {
        return;
    }
    if let Err(error) = annotate(context, settings, &annotations(report)) {
        tracing::warn!("the annotations could not be written: {error}");
    }
    summarize(context, |room| markdown(report, room));
}

/// Adds text to the job's summary on GitHub; it is made for at most the bytes that there is room for.
pub(crate) fn summarize(context: &Context, text: impl FnOnce(usize) -> String) {
    let Some(summary) = context.environment.get("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return };
    if let Err(error) = add_summary(Path::new(summary), text) {
        let message = format!("the job summary {} could not be written: {error}", Path::new(summary).display());
        context.printer.warning(message, &["the run is not affected; its directory holds report.md".to_owned()]);
    }
}

/// Workflow commands: on standard output, but where that is for a program on standard error, which GitHub reads as well.
fn annotate(context: &Context, settings: &Settings, annotations: &[Annotation]) -> Result<()> {
    let lines: String = annotations.iter().map(|annotation| format!("{annotation}\n")).collect();
    if context.printer.format() == Format::Json || settings.progress.value == Progress::Json {
        context.printer.note(lines);
        return Ok(());
    }
    context.printer.out(lines)
}

/// What GitHub takes of one step, in bytes.
const SUMMARY_LIMIT: u64 = 1 << 20;

/// In bytes; a shorter summary says nothing that the log does not say.
const SHORTEST_SUMMARY: usize = 1024;

/// Adds text to what the step has written already, as far as there is room.
fn add_summary(path: &Path, text: impl FnOnce(usize) -> String) -> io::Result<()> {
    let there = fs::metadata(path).ok();
    // A pipe would be waited for, and a device is no summary.
    if there.as_ref().is_some_and(|file| !file.is_file()) {
        return Err(io::Error::other("it is not a regular file"));
    }
    let written = there.map_or(0, |file| file.len());
    let room = usize::try_from(SUMMARY_LIMIT.saturating_sub(written + 1)).unwrap_or_default().min(MARKDOWN_LIMIT);
    if room < SHORTEST_SUMMARY {
        return Err(io::Error::other("this step's summary is full"));
    }
    let file = handle::append(path, Links::Follow)?;
    handle::write_all(&file, format!("{}\n", text(room)).as_bytes())
}
