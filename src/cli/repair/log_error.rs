//! `log-error`: records errors of scripts and agents (SPEC §10; seed 002).

use lanewright_model::event::{PLANNING, SPECIALIST_ERRORS};
use lanewright_model::ownership::RUN_LOG_DIRECTORY;
use lanewright_plan::settings::Layer;
use lanewright_programs::process;
use lanewright_store::error_log::{ErrorEntry, append};
use serde_json::json;

use crate::cli::args::LogError;
use crate::cli::secrets::redactor_of_run;
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, RepositoryContext, Result, now};

/// Adds a line to the error log of a run, or of the repository where no run is named.
pub(crate) fn run(context: &Context, arguments: &LogError) -> Result<ExitStatus> {
    let RepositoryContext { repository, settings, state, .. } = RepositoryContext::open(context, Layer::default())?;
    let (path, redactor) = match &arguments.run {
        Some(run) => {
            let directory = state.run(&Selector::new(context, &state).named(run)?);
            directory.create()?;
            (directory.errors(), redactor_of_run(&settings, &directory))
        }
        None => {
            state.create()?;
            repository.ensure_excluded(&[&format!("/{RUN_LOG_DIRECTORY}/")])?;
            (state.errors(), process::redactor([], settings.redacted_patterns()))
        }
    };
    let entry = ErrorEntry {
        timestamp: now(),
        phase: arguments.phase.clone(),
        plan: redactor.redact(&arguments.plan).into_owned(),
        lane: arguments.lane.clone(),
        task: Some(arguments.task.clone()),
        specialist: Some(arguments.specialist.clone()),
        error_type: arguments.error_type,
        details: redactor.redact(&arguments.details).into_owned(),
    };
    append(&path, std::slice::from_ref(&entry))?;
    let planning = repository.main_worktree().join(PLANNING);
    if planning.is_dir() {
        repository.ensure_excluded(&[&format!("/{PLANNING}/{SPECIALIST_ERRORS}")])?;
        append(&planning.join(SPECIALIST_ERRORS), std::slice::from_ref(&entry))?;
    }
    let json = json!({"path": path, "entry": entry});
    context.printer.print(format_args!("Recorded in {}\n", path.display()), &json)
}
