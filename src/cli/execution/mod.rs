//! `execute-phase`, `execute-lane` and `resume`: from a plan on disk to a run and its exit code.

mod claims;
mod external;
mod locks;
mod patience;
mod plan_file;
mod resume;
mod site;
mod start;
mod watch;

use super::args::{ExecuteLane, ExecutePhase, Intent};
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::options::Options;
use super::rollback;
use crate::settings::{Layer, Layers};

pub(super) use locks::lock_phase;
use plan_file::{PlanFile, read_plan};
pub(super) use plan_file::{read, tell};
use resume::resume;
pub(super) use resume::{Control, Opened, Part, run as run_resume, take};
pub(super) use site::{Site, holder, now, redactor};
pub(super) use watch::ports;

/// `execute-phase`.
pub(super) fn run_phase(context: &Context, arguments: &ExecutePhase) -> Result<ExitStatus, CliError> {
    execute(context, arguments.execution.layer(&context.directory), |settings| Options::for_phase(arguments, settings))
}

/// `execute-lane`.
pub(super) fn run_lane(context: &Context, arguments: &ExecuteLane) -> Result<ExitStatus, CliError> {
    execute(context, arguments.execution.layer(&context.directory), |settings| Options::for_lane(arguments, settings))
}

fn execute(
    context: &Context,
    flags: Layer,
    options: impl Fn(crate::settings::Settings) -> Options,
) -> Result<ExitStatus, CliError> {
    let site = Site::find_to_work_in(context)?;
    let layers: Layers = context.layers(flags)?;
    let general = options(layers.resolve(None));
    let plan = read_plan(context, &general.plan, &general.settings)?;
    let options = options(layers.resolve(Some(&plan.plan)));
    match options.intent {
        Intent::Start | Intent::StartBeside if options.dry_run => start::dry_run(context, &plan),
        Intent::Start | Intent::StartBeside => start::start(context, &site, &options, plan),
        Intent::Resume => {
            let run = resume::latest_of(&site, &options, &plan)?;
            resume(context, &site, &run, &options.into())
        }
        Intent::Rollback => {
            let run = resume::latest_of(&site, &options, &plan)?;
            rollback::roll_back(context, &site, &run, &options.lanes.clone(), &options.into())
        }
    }
}
