//! Reading a plan from disk: its text, its prompt files, every fault at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::model::text::counted;
use crate::model::{Plan, PlanParts};
use crate::plan_source::{self, Diagnostic, Fallbacks, Source, SourceFile};
use crate::settings::Settings;

/// A plan and where it came from.
#[derive(Debug, Clone)]
pub(in crate::cli) struct PlanFile {
    /// Absolute.
    pub(in crate::cli) path: PathBuf,
    /// What was read, prompt files included.
    pub(in crate::cli) sha256: String,
    /// The plan.
    pub(in crate::cli) plan: Arc<Plan>,
}

/// Reads a plan and tells every fault of it.
pub(in crate::cli) fn read_plan(context: &Context, path: &Path, settings: &Settings) -> Result<PlanFile, CliError> {
    let path = crate::settings::absolute(&context.directory, path);
    let reading = read(&path, settings)?;
    tell(context, &reading.diagnostics);
    let errors = reading.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    match reading.plan {
        Some(plan) => {
            Ok(PlanFile { path: super::site::canonical(&path), sha256: reading.sha256, plan: Arc::new(plan) })
        }
        None => Err(CliError::new(
            ExitStatus::Usage,
            format!("{} is no valid plan ({})", path.display(), counted(errors, "error")),
        )),
    }
}

/// Reads a plan; faults stay with it.
pub(in crate::cli) fn read(path: &Path, settings: &Settings) -> Result<plan_source::Reading, CliError> {
    let unreadable =
        |reason: String| CliError::new(ExitStatus::Usage, format!("cannot read the plan {}: {reason}", path.display()));
    if path.is_dir() {
        return Err(unreadable("it is a directory".to_owned()).hint("name the plan's file"));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let name = path.to_string_lossy();
    let text = plan_source::decode(&name, &bytes).map_err(|diagnostic| unreadable(diagnostic.to_string()))?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let load = |file: &str| std::fs::read_to_string(directory.join(file)).map_err(|error| error.to_string());
    let runners = |name: &str| settings.runners.get(name).map(|runner| runner.value.clone());
    let fallbacks = Fallbacks { runner: settings.runner.value.as_deref(), retries: settings.retries.value };
    let mut reading = plan_source::read(
        &Source { files: &[SourceFile { path: &name, text }], fallbacks, ..Source::default() },
        &load,
        &runners,
    );
    reading.plan = reading.plan.map(|plan| overridden(plan, settings));
    Ok(reading)
}

/// What was given for this one call wins over what the plan says of its lanes.
fn overridden(plan: Plan, settings: &Settings) -> Plan {
    let Some(retries) = settings.retries.value.filter(|_| settings.retries.origin.outranks_plan()) else { return plan };
    let mut parts = PlanParts::from(plan.clone());
    parts.lanes.iter_mut().for_each(|lane| lane.retries = retries);
    Plan::new(parts).unwrap_or(plan)
}

/// Prints diagnostics to standard error, one after another, or as JSON objects.
pub(in crate::cli) fn tell(context: &Context, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        match context.printer.format() {
            Format::Text => context.printer.note(diagnostic),
            Format::Json => context.printer.note(serde_json::to_string(diagnostic).unwrap_or_default()),
        }
    }
}
