//! `execute-phase`, `execute-lane` and `resume`: from a plan on disk to a run and its exit code.

mod chain;
mod claims;
mod external;
mod itinerary;
mod locks;
mod patience;
mod plan_changes;
mod plan_file;
mod resume;
mod site;
mod start;
mod watch;

use std::path::{Path, PathBuf};

use super::args::{ExecuteLane, ExecutePhase, Intent, ReadingArgs, Resume};
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::options::Options;
use super::rollback;
use super::runs::half_done;
use crate::settings::{Layers, Settings, absolute};
use chain::Ended;
pub(super) use itinerary::itinerary;

pub(super) use locks::lock_phase;
use plan_file::{PlanFile, read_plan};
pub(super) use plan_file::{options as reading_options, read, tell};
pub(super) use resume::{Control, Opened, Part, take};
use resume::{Standing, resume};
pub(super) use site::{Site, holder, now, redactor};
pub(super) use watch::ports;

/// `execute-phase`.
pub(super) fn run_phase(context: &Context, arguments: &ExecutePhase) -> Result<ExitStatus, CliError> {
    let place = |path: &PathBuf| absolute(&context.directory, path);
    let found = itinerary(&place(&arguments.plan))?;
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

/// What stays the same for every phase of a chain.
struct Course<'a> {
    context: &'a Context,
    site: Site,
    layers: Layers,
    reading: &'a ReadingArgs,
    options: &'a dyn Fn(Settings) -> Options,
    /// Phases that are done already are passed over.
    passes_over: bool,
}

impl Course<'_> {
    /// Does with a plan what was asked for; `next` is what comes after it. Only the `first` plan of a chain may have had
    /// a run and lanes named for it.
    fn begin(&self, path: &Path, next: Option<Vec<PathBuf>>, first: bool) -> Result<Ended, CliError> {
        let context = self.context;
        let general = self.layers.resolve(None);
        let mut plan = read_plan(context, path, &general, self.reading, &[])?;
        let half_done = half_done(&self.site.state(&general), &plan.plan)?;
        if !half_done.is_empty() {
            plan = read_plan(context, path, &general, self.reading, &half_done)?;
        }
        let mut options = Options { plan: path.to_owned(), ..(self.options)(self.layers.resolve(Some(&plan.plan))) };
        options.next_phases.clone_from(&next);
        if !first {
            (options.run_id, options.lanes) = (None, Vec::new());
        }
        if options.intent == Intent::Rollback {
            let run = resume::latest_of(&self.site, &options, &plan)?;
            let status = rollback::roll_back(context, &self.site, &run, &options.lanes.clone(), &options.into())?;
            return Ok(Ended { status, next: None });
        }
        if options.dry_run && options.intent != Intent::Resume {
            return Ok(Ended { status: start::dry_run(context, &plan)?, next });
        }
        let passes_over = self.passes_over || (options.intent == Intent::Resume && next.is_some());
        match resume::standing(&self.site, &options, &plan)? {
            Standing::Complete(run) if passes_over && options.run_id.is_none() => {
                context.printer.note(format!("Phase {} is complete (run {run}).", plan.plan.phase));
                Ok(Ended { status: ExitStatus::Done, next })
            }
            Standing::Never if options.intent == Intent::Resume && (first || next.is_none()) => {
                Err(resume::nothing_to_resume(&self.site, &options, &plan))
            }
            Standing::Unfinished(run) | Standing::Complete(run) if options.intent == Intent::Resume => {
                Ok(resume(context, &self.site, &run, &options.into())?.or_else(next))
            }
            _ => Ok(Ended { status: start::start(context, &self.site, &options, plan)?, next }),
        }
    }
}
