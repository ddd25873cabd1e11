//! `execute-phase`, `execute-lane` and `resume`: from a plan on disk to a run and its exit code.

mod chain;
mod claims;
mod course;
mod external;
mod forge;
mod itinerary;
mod locks;
mod patience;
mod plan_changes;
mod plan_file;
mod preflight;
mod resume;
mod site;
mod start;
mod switches;
mod watch;

use std::path::PathBuf;

use super::args::{ExecuteLane, ExecutePhase, ReadingArgs, Resume};
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::options::Options;
use crate::model::MergeMode;
use crate::settings::{Settings, absolute};
use course::Course;
pub(super) use itinerary::itinerary;

pub(super) use locks::lock_phase;
pub(super) use patience::wait_for_refs;
use plan_file::PlanFile;
pub(super) use plan_file::{PlanText, invalid, tell};
pub(super) use preflight::check as preflight;
pub(super) use resume::{Control, Opened, Part, complete_files, take};
pub(super) use site::{Site, check_directory, holder, host, now, redactor, state_in};
pub(super) use watch::ports;

/// `execute-phase`.
pub(super) fn run_phase(context: &Context, arguments: &ExecutePhase) -> Result<ExitStatus, CliError> {
    let place = |path: &PathBuf| absolute(&context.directory, path);
    let found = itinerary(&place(&arguments.plan), arguments.execution.reading.redo)?;
    found.notes.iter().for_each(|note| context.printer.warning(note, &[]));
    let plans: Vec<PathBuf> = found.plans.into_iter().chain(arguments.next_phases.iter().map(place)).collect();
    let chained = found.of_roadmap || !arguments.next_phases.is_empty();
    let course = Course {
        site: Site::find_to_work_in(context)?,
        context,
        layers: context.layers(arguments.execution.layer(&context.directory))?,
        reading: &arguments.execution.reading,
        options: &|settings| Options::for_phase(arguments, settings),
        passes_over: found.of_roadmap && !arguments.execution.reading.redo,
    };
    if !arguments.execution.rollback {
        check_chain(&plans, &course.layers.resolve(None))?;
    }
    let first = course.begin(&plans[0], chained.then(|| plans[1..].to_vec()), true);
    chain::follow(context, first, &|plan, rest| course.begin(plan, Some(rest), false))
}

/// `execute-lane`.
pub(super) fn run_lane(context: &Context, arguments: &ExecuteLane) -> Result<ExitStatus, CliError> {
    let course = Course {
        site: Site::find_to_work_in(context)?,
        context,
        layers: context.layers(arguments.execution.layer(&context.directory))?,
        reading: &arguments.execution.reading,
        options: &|settings| Options::for_lane(arguments, settings),
        passes_over: false,
    };
    Ok(course.begin(&absolute(&context.directory, &arguments.plan), None, true)?.status)
}

/// `resume`: the run, and what it says comes after it.
pub(super) fn run_resume(context: &Context, arguments: &Resume) -> Result<ExitStatus, CliError> {
    let resumed = resume::run(context, arguments)?;
    let layer = resume::as_it_began(&resumed.started).or(arguments.layer());
    let course = Course {
        site: Site::find_to_work_in(context)?,
        context,
        layers: context.layers(layer)?,
        reading: &ReadingArgs::default(),
        options: &|settings| Options::after_resume(arguments, settings),
        passes_over: true,
    };
    chain::follow(context, Ok(resumed.into()), &|plan, rest| course.begin(plan, Some(rest), false))
}

/// Refuses a chain that could not be followed to its end.
fn check_chain(plans: &[PathBuf], settings: &Settings) -> Result<(), CliError> {
    if let Some(missing) = plans.iter().find(|plan| !plan.exists()) {
        return Err(CliError::new(ExitStatus::Usage, format!("there is no plan {}", missing.display())));
    }
    if plans.len() > 1 && settings.merge.value != MergeMode::Local {
        let (merge, reason) = (settings.merge.value, "phases that follow each other build on what is merged");
        let message = format!("{reason}, and nothing is merged with `merge = {merge}`");
        return Err(CliError::new(ExitStatus::Usage, message).hint("run them one by one, or with --merge local"));
    }
    Ok(())
}
