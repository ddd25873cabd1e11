//! `execute-phase`, `execute-lane` and `resume`: what happens to each plan, one after another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lanewright_engine::rollback::Asked;
use lanewright_git as git;
use lanewright_model::{MergeMode, RunId};
use lanewright_plan::settings::{Layer, Layers, Settings};
use lanewright_plan::{PlanFormat, explain};
use serde_json::json;

use super::chain::{PhaseEnd, follow};
use super::existing_run::{latest_run, no_run};
use super::run_intent::{Outcome, Position, outcome};
use crate::cli::args::{ExecuteLane, ExecutePhase, FollowArgs, Intent, ReadingArgs, Resume};
use crate::cli::executors;
use crate::cli::run::execute::{resume, start};
use crate::cli::run::intent::{Adoption, PlanFile, PlanText, ResumeReach, RunRequest, phase_sequence, single_plan};
use crate::cli::run::rollback;
use crate::cli::runs::half_done;
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};

pub(crate) fn execute_phase(context: &Context, arguments: &ExecutePhase) -> Result<ExitStatus> {
    let ExecutePhase { plan, next_phases, execution, .. } = arguments;
    let layer = execution.layer(&context.directory);
    execute_plans(context, (plan, next_phases), layer, &execution.reading, RunRequest::phase(arguments))
}

/// Runs the phases of a plan, and of those `next` to it; paths are seen from the current directory.
pub(crate) fn execute_plans(
    context: &Context,
    (plan, next): (&Path, &[PathBuf]),
    layer: Layer,
    reading: &ReadingArgs,
    request: RunRequest,
) -> Result<ExitStatus> {
    let sequence = phase_sequence(context, plan, reading.redo)?;
    sequence.notes.iter().for_each(|note| context.printer.warning(note, &[]));
    let chained = sequence.of_roadmap || !next.is_empty();
    let next_plans = next.iter().map(|path| single_plan(context, path)).collect::<Result<Vec<PathBuf>>>()?;
    let plans: Vec<PathBuf> = sequence.plans.into_iter().chain(next_plans).collect();
    let phases = Phases::new(context, layer, reading)?;
    if request.intent != Intent::Rollback {
        check_chain(&plans, &phases.general.settings)?;
    }
    let (first, later) = match (sequence.of_roadmap && !reading.redo, chained) {
        (true, _) => (Position::Later, Position::Later),
        (false, true) => (Position::First, Position::Later),
        (false, false) => (Position::Single, Position::Single),
    };
    let next_phases = chained.then(|| plans[1..].to_vec());
    let first = phases.begin(&plans[0], first, RunRequest { next_phases, ..request.clone() })?;
    follow(context, first, &|plan, rest| phases.begin(plan, later, request.later(rest)))
}

pub(crate) fn execute_lane(context: &Context, arguments: &ExecuteLane) -> Result<ExitStatus> {
    let execution = &arguments.execution;
    let phases = Phases::new(context, execution.layer(&context.directory), &execution.reading)?;
    let request = RunRequest::lane(arguments, &phases.general.settings);
    Ok(phases.begin(&single_plan(context, &arguments.plan)?, Position::Single, request)?.status)
}

/// `resume`: the run, and the phases that it records as coming after it.
pub(crate) fn resume_run(context: &Context, arguments: &Resume) -> Result<ExitStatus> {
    let within = RepositoryContext::open_for_work(context, arguments.layer())?;
    let run = Selector::new(context, &within.state).run(arguments.run.run.as_ref())?;
    let adoption = Adoption {
        message: arguments.message.clone(),
        message_for: arguments.message_for.clone(),
        wait: arguments.wait,
        reach: if arguments.lanes.is_empty() { ResumeReach::All } else { ResumeReach::Only(arguments.lanes.clone()) },
        ..Adoption::of(&arguments.control)
    };
    resume_with(&within, &run, &adoption, arguments.layer())
}

/// Asks the forge about the pull requests of a run, and has the lanes continue that are sent back.
pub(crate) fn follow_run(context: &Context, arguments: &FollowArgs) -> Result<ExitStatus> {
    let within = RepositoryContext::open_for_work(context, arguments.control.layer())?;
    let run = Selector::new(context, &within.state).run(arguments.run.run.as_ref())?;
    let time = if arguments.once { Some(Duration::ZERO) } else { arguments.time.or(within.settings.follow.value) };
    let adoption = Adoption {
        reach: ResumeReach::Followed,
        follow: Some(time.unwrap_or(FOLLOW)),
        ..Adoption::of(&arguments.control)
    };
    resume_with(&within, &run, &adoption, arguments.control.layer())
}

/// For how long `follow` follows where neither its flag nor the setting says it.
const FOLLOW: Duration = Duration::from_secs(2 * 60 * 60);

/// Resumes a run with the settings of `layer`, with which `within` was opened.
pub(crate) fn resume_with(
    within: &RepositoryContext,
    run: &RunId,
    adoption: &Adoption,
    layer: Layer,
) -> Result<ExitStatus> {
    let context = &within.context;
    let resumed = resume::resume(within, run, adoption)?;
    let (reading, layer) = (ReadingArgs::default(), resume::as_before(&resumed.started).or(layer));
    let phases = Phases::new(context, layer, &reading)?;
    let ended = PhaseEnd { status: resumed.status, next: resumed.started.options.next_phases };
    follow(context, ended, &|plan, rest| phases.begin(plan, Position::Later, RunRequest::default().later(rest)))
}

/// Resumes a run that this process claimed, and no phase after it.
pub(crate) fn resume_claimed(within: &RepositoryContext, run: &RunId) -> Result<ExitStatus> {
    let resumed = resume::resume(within, run, &Adoption::default())?;
    let next = resumed.started.options.next_phases.unwrap_or_default();
    if let Some(next) = next.first().filter(|_| resumed.status == ExitStatus::Done) {
        let message = format!("the phase after this one is not started here: {}", next.display());
        within.context.printer.warning(message, &["pull the run where it began, and run that plan there".to_owned()]);
    }
    Ok(resumed.status)
}

struct Phases<'a> {
    /// With the settings of no plan.
    general: RepositoryContext,
    layers: Layers,
    reading: &'a ReadingArgs,
}

impl<'a> Phases<'a> {
    fn new(context: &Context, layer: Layer, reading: &'a ReadingArgs) -> Result<Self> {
        git::require_version()?;
        let repository = git::Repository::discover(&context.directory)?;
        let layers = context.layers(layer)?;
        let general = RepositoryContext::new(context, repository, layers.resolve(None));
        Ok(Self { general, layers, reading })
    }

    fn begin(&self, path: &Path, position: Position, request: RunRequest) -> Result<PhaseEnd> {
        let context = &self.general.context;
        executors::check_default(&self.general)?;
        let text = PlanText::open(path)?;
        let unfinished = |plan: &_| half_done(&self.general.state, plan);
        let (mut whole, rest) = text.whole_and_rest(&self.general.settings, self.reading, &unfinished)?;
        if whole.plan.is_some() && rest.is_some() {
            // The rest has the same diagnostics, and they are reported when it is accepted.
            whole.diagnostics.clear();
        }
        let whole = text.accept(context, whole)?;
        let within = self.general.with_settings(self.layers.resolve(Some(&whole.plan)));
        let latest = latest_run(&within, &request, &whole.plan)?;
        let (run, progress) = latest.map_or((None, None), |(run, progress)| (Some(run), Some(progress)));
        let decided = outcome(request.intent, progress, position, rest.is_some());
        match (decided, run, rest) {
            (Outcome::RollBack, Some(run), _) => {
                let status = {
                    let asked = Asked { lanes: &request.lanes, to: None };
                    rollback::roll_back(&within, &run, asked, (&request.adoption, request.consent))?
                };
                Ok(PhaseEnd { status, next: None })
            }
            (Outcome::Resume, Some(run), _) => {
                let resumed = resume::resume(&within, &run, &request.adoption)?;
                let next = resumed.started.options.next_phases.or(request.next_phases);
                Ok(PhaseEnd { status: resumed.status, next })
            }
            (Outcome::Start, _, Some(rest)) => start_lanes(&within, request, &text.accept(context, rest)?),
            (Outcome::Skip, ..) => Ok(already_complete(&within, &whole, request)),
            (Outcome::NothingLeft, ..) => nothing_left(&within, &whole),
            _ => Err(no_run(&within, &whole, request.intent)?),
        }
    }
}

/// Starts a run of the lanes that are left.
fn start_lanes(within: &RepositoryContext, request: RunRequest, plan: &PlanFile) -> Result<PhaseEnd> {
    let chosen = start::choose(within, &request, plan)?;
    let status = match chosen.report_if_done(within, &plan.plan)? {
        Some(status) => status,
        None if request.consent.dry_run => {
            within.context.printer.out(explain::explain(&plan.plan))?;
            chosen.note_done(within);
            within.context.printer.out("\nNothing was run (--dry-run).\n")?;
            return Ok(PhaseEnd { status: ExitStatus::Done, next: None });
        }
        None => start::start(within, &request, plan, &chosen)?,
    };
    Ok(PhaseEnd { status, next: request.next_phases })
}

fn already_complete(within: &RepositoryContext, plan: &PlanFile, request: RunRequest) -> PhaseEnd {
    within.context.printer.note(format!("Phase {} is complete.", plan.plan.phase));
    PhaseEnd { status: ExitStatus::Done, next: request.next_phases }
}

fn nothing_left(within: &RepositoryContext, plan: &PlanFile) -> Result<PhaseEnd> {
    let phase = &plan.plan.phase;
    let message = match plan.format {
        Some(PlanFormat::Gsd) => {
            format!("nothing to do: every plan of phase {phase} is done: there is a summary of each")
        }
        _ => format!("nothing to do: every task of {phase} is done"),
    };
    let json = json!({"phase": phase, "lane": null, "outcome": "done"});
    let status =
        within.context.printer.print(format_args!("{message}\nto do them again: the same with --redo\n"), &json)?;
    Ok(PhaseEnd { status, next: None })
}

/// Refuses a chain that could not be followed to its end.
fn check_chain(plans: &[PathBuf], settings: &Settings) -> Result<()> {
    if let Some(missing) = plans.iter().find(|plan| !plan.exists()) {
        return Err(ExitStatus::Usage.error(format!("there is no plan {}", missing.display())));
    }
    if plans.len() > 1 && settings.merge.value.mode() != MergeMode::Local {
        let (merge, reason) = (settings.merge.value, "phases that follow each other build on what is merged");
        let message = format!("{reason}, and nothing is merged with `merge = {merge}`");
        return Err(ExitStatus::Usage.error(message).hint("run them one by one, or with --merge local"));
    }
    Ok(())
}
