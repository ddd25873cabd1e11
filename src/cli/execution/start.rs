//! Beginning a run.

use serde_json::json;

use super::PlanFile;
use super::claims::Survey;
use super::forge;
use super::locks::{Locks, Reach, choosing, lock_branches, lock_run};
use super::patience::patiently;
use super::preflight;
use super::site::{Site, now, owner, redactor};
use super::watch::{Work, work};
use crate::cli::args::{Format, Intent};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{Alone, Options};
use crate::event::{Event, RunOptions, RunStarted};
use crate::fs::{atomic, regular_file};
use crate::git::Pool;
use crate::model::digest::sha256;
use crate::model::text::{headline, shell_line};
use crate::model::{LaneId, LaneIndex, MergeMode, Plan, RunId};
use crate::plan_source::explain;
use crate::recover::resume::has_begun;
use crate::schedule::RunState;
use crate::settings::Settings;
use crate::store::{Journal, RunDirectory, RunLock, StateDirectory, checkpoints, run_log};
use crate::view::RunView;

/// The version of the run log's format.
const FORMAT: &str = "1.0";

/// `--dry-run`: what would be done.
pub(super) fn dry_run(context: &Context, plan: &PlanFile) -> Result<ExitStatus, CliError> {
    context.printer.out(explain::explain(&plan.plan))?;
    context.printer.out("\nNothing was run (--dry-run).\n")?;
    Ok(ExitStatus::Done)
}

/// Begins a run and sees it through.
pub(super) fn start(context: &Context, site: &Site, options: &Options, plan: PlanFile) -> Result<ExitStatus, CliError> {
    let base_branch = base_branch(site, options)?;
    if site.repository.branch_commit(&base_branch)?.is_none() {
        let message = format!("there is no branch `{base_branch}` to build on");
        return Err(CliError::new(ExitStatus::Usage, message).hint("name one with --base BRANCH"));
    }
    site.state_remote(&options.settings)?;
    let state = site.state(&options.settings);
    checkpoints::check(&state.checkpoints())?;
    let named = chosen_lanes(&plan.plan, options)?;
    let wanted = |lane: &LaneIndex| named.is_empty() || named.contains(&plan.plan.lane(*lane).id);
    preflight::check(context, &plan.plan, plan.plan.indices().filter(wanted))?;
    preflight::note_gates(context, &plan.plan, &|lane| named.is_empty() || named.contains(lane));
    let run_id = options.run_id.clone().unwrap_or_else(|| new_run_id(&plan.plan));
    let forge = forge::ready(site, &options.settings, options.settings.merge.value, &base_branch)?;
    let worktree_root = &options.settings.worktree_root.value;
    site.prepare(context, &state, worktree_root)?;
    site.ignore_leavings(&plan.plan)?;
    let wish = Wish { site, options, plan: &plan, base: &base_branch, named: &named, run: &run_id };
    let shared = patiently(context, &options.settings, || share(&state, &wish));
    if !matches!(shared, Ok(Some(_))) {
        // Nothing begins, so nothing is left; a root that holds something stays.
        Pool::new(site.repository.clone(), worktree_root, 0, false).remove_empty(&run_id);
    }
    let Some(Share { lanes, done, locks }) = shared? else {
        return nothing_left(context, &plan.plan, &base_branch);
    };
    if lanes != named {
        context
            .printer
            .note(format!("Lane {} is next.", lanes.iter().map(LaneId::as_str).collect::<Vec<_>>().join(", ")));
    }
    if options.settings.merge.value == MergeMode::Local {
        let all = |lane: &LaneIndex| lanes.is_empty() || lanes.contains(&plan.plan.lane(*lane).id);
        let lanes = plan.plan.indices().filter(all);
        preflight::report_obstacles(context, &site.repository, &base_branch, &plan.plan, lanes)?;
    }
    let branch_suffix = if options.intent == Intent::StartBeside { format!("-{run_id}") } else { String::new() };
    let base_commit = site
        .repository
        .branch_commit(&base_branch)?
        .ok_or_else(|| CliError::new(ExitStatus::Usage, format!("the branch `{base_branch}` was deleted meanwhile")))?;
    let pinned = plan_text(&plan.plan, &options.settings)?;
    let started = RunStarted {
        format: FORMAT.to_owned(),
        lanekeeper: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: run_id.clone(),
        phase: plan.plan.phase.clone(),
        plan_path: plan.path.clone(),
        plan_sha256: plan.sha256.clone(),
        pinned_sha256: sha256(&pinned),
        base_branch,
        base_commit,
        owner: owner(&options.session_id),
        options: RunOptions { lanes, done, branch_suffix, plan_format: plan.format, ..options.run_options() },
    };
    let directory = state.run(&run_id);
    directory.create()?;
    let locks = Locks { _branches: locks, _run: lock_run(&state, &run_id, &options.session_id)? };
    remove_unbegun(&state, &run_id)?;
    refuse_old_results(&run_id, &directory)?;
    let journal = Journal::create(&directory.log(), &run_id, &plan.plan.phase)?;
    let journal = journal.redacting(redactor(&options.settings, &plan.plan));
    work(
        context,
        Work {
            site: site.clone(),
            state,
            plan: plan.plan.clone(),
            plan_text: pinned,
            view: RunView::for_plan(&plan.plan),
            run_state: RunState::new(plan.plan),
            history: Default::default(),
            first: vec![Event::RunStarted(Box::new(started.clone()))],
            started,
            journal,
            settings: options.settings.clone(),
            forge,
            _locks: locks,
        },
    )
}

/// What somebody wants to begin.
struct Wish<'a> {
    site: &'a Site,
    options: &'a Options,
    plan: &'a PlanFile,
    base: &'a str,
    /// The lanes that were named, with what has to run with them; empty: all.
    named: &'a [LaneId],
    run: &'a RunId,
}

/// What a new run may work on, locked.
struct Share {
    /// Empty: all.
    lanes: Vec<LaneId>,
    /// Those beside them that are merged.
    done: Vec<LaneId>,
    locks: Vec<RunLock>,
}

/// Decides what a new run works on and takes it; `None`: every lane is merged, and none was wanted by its name.
fn share(state: &StateDirectory, wish: &Wish<'_>) -> Result<Option<Share>, CliError> {
    let plan = &wish.plan.plan;
    choosing(state, &plan.phase, || {
        let survey = Survey::take(wish.site, state, plan, wish.base)?;
        let lanes = match wish.options.alone {
            Alone::No | Alone::Lane => wish.named.to_vec(),
            Alone::Next => {
                let preferred = wish.named.first().and_then(|lane| plan.find(lane));
                match survey.next(plan, wish.base, preferred)? {
                    Some(lane) => vec![lane],
                    None => return Ok(None),
                }
            }
        };
        if wish.options.intent == Intent::Start {
            survey.refuse_live(plan, &lanes)?;
            refuse_beside_unfinished(&survey, wish, &lanes)?;
        }
        if wish.options.alone != Alone::No {
            lanes
                .iter()
                .filter_map(|lane| plan.find(lane))
                .try_for_each(|lane| survey.refuse_early(plan, wish.base, lane))?;
        }
        let locks = match wish.options.intent {
            Intent::Start => lock_branches(state, plan, Reach::of(&lanes), wish.run, &wish.options.session_id)?,
            _ => Vec::new(),
        };
        Ok(Some(Share { done: survey.merged_beside(plan, &lanes), lanes, locks }))
    })
}

/// `--next` where there is nothing left to do.
fn nothing_left(context: &Context, plan: &Plan, base: &str) -> Result<ExitStatus, CliError> {
    let phase = &plan.phase;
    match context.printer.format() {
        Format::Text => context.printer.out(format!("Every lane of phase {phase} is merged into {base}.\n"))?,
        Format::Json => {
            context.printer.json(&json!({"phase": phase, "base_branch": base, "lane": null, "outcome": "done"}))?;
        }
    }
    Ok(ExitStatus::Done)
}

/// How the first line of every run log begins.
const FIRST: &[u8] = b"{\"seq\":1,";

/// Removes the log and the plan of a run of that name that died before it had begun: nothing was done in it. The run's
/// lock is held.
fn remove_unbegun(state: &StateDirectory, run: &RunId) -> Result<(), CliError> {
    let directory = state.run(run);
    let log = directory.log();
    let is_log = log.symlink_metadata().is_ok_and(|it| it.is_file()) && state.has(run);
    if !is_log || directory.directory().join("lanes").exists() {
        return Ok(());
    }
    let contents = run_log::read(&log)?;
    let torn_first =
        || regular_file::read(&log).is_ok_and(|bytes| FIRST.starts_with(&bytes) || bytes.starts_with(FIRST));
    let ours = !contents.records.is_empty() || torn_first();
    if ours && contents.damage.is_empty() && !has_begun(&contents.records) {
        // The log last: without it the plan is taken for what is left of a run that did something.
        atomic::remove(&directory.plan())?;
        atomic::remove(&log)?;
    }
    Ok(())
}

/// The exits of an earlier run of that name would be taken for this one's.
fn refuse_old_results(run: &RunId, directory: &RunDirectory) -> Result<(), CliError> {
    let old = [directory.plan(), directory.directory().join("lanes")].into_iter().find(|path| path.exists());
    let Some(old) = old else { return Ok(()) };
    let message = format!("there was a run {run} already: {} is of its making", old.display());
    Err(CliError::new(ExitStatus::Usage, message)
        .hint("choose another name with --run-id, or leave it out")
        .hint(format!("to remove what it left: lanekeeper clean {run} --logs, or its directory if its log is gone")))
}

/// The plan as it is pinned for the run's whole life, without its secrets.
pub(super) fn plan_text(plan: &Plan, settings: &Settings) -> Result<Vec<u8>, CliError> {
    let plan = plan.without_secrets(settings.redacted_patterns());
    serde_json::to_vec_pretty(&plan).map_err(|error| CliError::new(ExitStatus::Failed, error.to_string()))
}

/// The branch that lanes are built on and merged into.
pub(super) fn base_branch(site: &Site, options: &Options) -> Result<String, CliError> {
    if let Some(base) = &options.settings.base.value {
        return Ok(base.clone());
    }
    site.repository.current_branch()?.ok_or_else(|| {
        CliError::new(ExitStatus::Usage, "HEAD is detached, so there is no current branch to build on")
            .hint("check out a branch, or name one with --base BRANCH")
    })
}

/// The lanes that were asked for: with what they depend on for `execute-phase`, alone for `execute-lane`.
fn chosen_lanes(plan: &Plan, options: &Options) -> Result<Vec<LaneId>, CliError> {
    let mut indices = Vec::new();
    for lane in &options.lanes {
        let Some(index) = plan.find(lane) else {
            let known: Vec<&str> = plan.lanes.iter().map(|lane| lane.id.as_str()).collect();
            let error = CliError::new(ExitStatus::Usage, format!("the plan has no lane `{lane}`"));
            return Err(match crate::settings::nearest(lane.as_str(), known.iter().copied()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("its lanes are {}", known.join(", "))),
            });
        };
        indices.push(index);
    }
    let chosen = if options.alone == Alone::No { plan.dag().with_dependencies(indices) } else { indices };
    let chosen = chosen.into_iter().map(|index| plan.lane(index).id.clone());
    Ok(chosen.filter(|lane| !options.merged_before.contains(lane)).collect())
}

/// What is half done is gone on with, not begun again by mistake; a dead session's work is taken over only by a resume.
fn refuse_beside_unfinished(survey: &Survey, wish: &Wish<'_>, lanes: &[LaneId]) -> Result<(), CliError> {
    let Some(abandoned) = survey.abandoned_with(lanes) else { return Ok(()) };
    let (phase, base, plan) = (&wish.plan.plan.phase, wish.base, wish.plan.path.to_string_lossy());
    let lane = wish.named.first().filter(|_| wish.options.alone != Alone::No);
    let what = if wish.options.alone == Alone::No { "execute-phase" } else { "execute-lane" };
    let words = ["lanekeeper", what, &plan].into_iter().chain(lane.map(LaneId::as_str)).chain(["--new-run"]);
    let message = format!("phase {phase} on {base} holds {abandoned}");
    Err(CliError::new(ExitStatus::InvalidOperation, message)
        .hint(format!("to resume it: {} (or the same as now with --resume)", abandoned.resume()))
        .hint(format!("to start another one beside it: {}", shell_line(words))))
}

/// `P1-20260131-120000-1a2b`: the phase, the time, and something that no other run has.
fn new_run_id(plan: &Plan) -> RunId {
    let moment = now().0.format("%Y%m%d-%H%M%S");
    let unique = uuid::Uuid::now_v7().simple().to_string();
    let phase: String = plan.phase.as_str().chars().take(40).collect();
    let phase = phase.trim_end_matches(['.', '-']);
    let id = format!("{phase}-{moment}-{}", &unique[unique.len() - 4..]);
    RunId::new(&id).unwrap_or_else(|_| {
        RunId::new(&format!("run-{}", headline(&unique, 40))).expect("hexadecimal digits make an id")
    })
}
