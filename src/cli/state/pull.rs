//! `state pull`: a run that was pushed elsewhere, put down here to go on with.

use serde_json::json;

use super::remote;
use crate::cli::args::{Format, PullState};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::{Control, Part, Site, complete_files, holder, host, now, take};
use crate::cli::options::session_id;
use crate::cli::runs::command;
use crate::git::{Pool, Remote};
use crate::model::RunId;
use crate::model::text::counted;
use crate::settings::{OnConflict, Settings};
use crate::store::{RunLock, StateDirectory};
use crate::travel::{Arrived, Landed, Landing, Manifest, Standing, TravelError, fetch, offers, standing};

pub(super) fn run(context: &Context, arguments: &PullState) -> Result<ExitStatus, CliError> {
    let site = Site::find_to_work_in(context)?;
    let settings = context.layers(arguments.layer(&context.directory))?.resolve(None);
    let remote = remote(&site.repository, &arguments.remote, &settings)?;
    let run = match &arguments.run {
        Some(run) => run.clone(),
        None => only_unfinished(&site, &remote)?,
    };
    let arrived = fetch(&site.repository, &remote, &run)?;
    let state = site.state(&settings);
    let landed = put_down(context, &site, &settings, &remote, &arrived, &state)?;
    if landed.is_some() {
        follow_up(context, &site, &settings, &run).unwrap_or_else(|error| {
            let message = format!("checkpoints.json or task.json is behind: {}", error.message);
            context.printer.warning(message, &["`lanekeeper resume` writes them".to_owned()]);
        });
    }
    report(context, &arrived, landed.as_ref(), &state)?;
    Ok(ExitStatus::Done)
}

/// The one run that a remote has of the branch that is checked out (of any, where none is) and with which there is
/// something to do.
fn only_unfinished(site: &Site, remote: &Remote) -> Result<RunId, CliError> {
    let here = site.repository.current_branch()?;
    let mut found = Vec::new();
    for offer in offers(&site.repository, remote)? {
        let fits = match &offer.manifest {
            Ok(it) if here.as_ref().is_some_and(|here| *here != it.base_branch) => false,
            Ok(it) => !it.is_done() || !is_merged_here(site, it)?,
            // What cannot be read must not be passed over in silence: a fresh run would be begun beside it.
            Err(_) => true,
        };
        found.extend(fits.then_some(offer));
    }
    let on = here.map(|branch| format!(" on {branch}")).unwrap_or_default();
    match found.len() {
        1 => Ok(found.remove(0).run),
        0 => {
            let message = format!("{} has no unfinished run{on}", remote.name());
            Err(CliError::new(ExitStatus::InvalidState, message)
                .hint(format!("to see what is there: lanekeeper state list --remote {}", remote.name())))
        }
        count => {
            let names: Vec<&str> = found.iter().map(|offer| offer.run.as_str()).collect();
            let message = format!("{} has {count} unfinished runs{on}, so name the one you mean", remote.name());
            Err(CliError::new(ExitStatus::Usage, message).hint(format!("there are {}", names.join(", "))))
        }
    }
}

/// Whether what a run merged is in the integration branch of this clone. A run that is done and was not published when
/// its machine died has its work in the pushed state only.
fn is_merged_here(site: &Site, manifest: &Manifest) -> Result<bool, CliError> {
    let here = site.repository.branch_commit(&manifest.base_branch)?;
    here.map_or(Ok(false), |here| Ok(site.repository.is_ancestor(&manifest.integration, &here)?))
}

/// Puts a run down that is not here; `None`: it is here already, with all that arrived.
fn put_down(
    context: &Context,
    site: &Site,
    settings: &Settings,
    remote: &Remote,
    arrived: &Arrived,
    state: &StateDirectory,
) -> Result<Option<Landed>, CliError> {
    let (run, worktree_root) = (&arrived.manifest.run_id, &settings.worktree_root.value);
    site.prepare(context, state, worktree_root)?;
    let directory = state.run(run);
    directory.create()?;
    let _lock = RunLock::acquire(&directory.lock(), &holder(state, &session_id(settings), run))?;
    let host = host();
    let landing = Landing {
        repository: &site.repository,
        pool: &Pool::new(site.repository.clone(), worktree_root, u32::MAX, settings.keep_caches.value),
        remote,
        directory: &directory,
        host: &host,
        now: now(),
    };
    match standing(arrived, &directory)? {
        Standing::New => Ok(Some(landing.put_down(arrived)?)),
        Standing::Known => {
            landing.remember(arrived)?;
            Ok(None)
        }
        Standing::Other => Err(left_behind(arrived, remote, state)),
    }
}

/// Writes the files that follow from the run log.
fn follow_up(context: &Context, site: &Site, settings: &Settings, run: &RunId) -> Result<(), CliError> {
    let session_id = session_id(settings);
    let settings = settings.clone();
    let control = Control { session_id, accept_plan_change: false, on_conflict: OnConflict::Fail, settings };
    let opened = take(context, site, run, &control, Part::Own)?;
    complete_files(site, &opened, &control)
}

fn left_behind(arrived: &Arrived, remote: &Remote, state: &StateDirectory) -> CliError {
    let manifest = &arrived.manifest;
    let theirs = TravelError::Superseded {
        remote: remote.name().to_owned(),
        run: manifest.run_id.clone(),
        host: manifest.host.clone(),
        at: manifest.at,
        records: manifest.records,
    };
    let run = manifest.run_id.as_str();
    let clean = command(state, &["clean", run, "--force", "--logs"]);
    CliError::new(ExitStatus::Held, format!("{theirs}; nothing was changed"))
        .hint(format!("to take theirs and give up what is here: {clean}, then pull again"))
        .hint(format!("to keep this one: {}", command(state, &["state", "push", run, "--force"])))
}

fn report(
    context: &Context,
    arrived: &Arrived,
    landed: Option<&Landed>,
    state: &StateDirectory,
) -> Result<(), CliError> {
    let manifest = &arrived.manifest;
    let run = manifest.run_id.as_str();
    if context.printer.format() == Format::Json {
        let moved = landed.and_then(|landed| landed.integration.as_ref()).map(|(_, to)| to);
        return Ok(context.printer.json(&json!({
            "run_id": run,
            "commit": arrived.commit,
            "records": manifest.records,
            "host": manifest.host,
            "outcome": manifest.outcome,
            "new": landed.is_some(),
            "worktrees": landed.map(|landed| landed.worktrees),
            "lost_jobs": landed.map(|landed| landed.lost.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "integration": moved,
        }))?);
    }
    let Some(landed) = landed else {
        return Ok(context.printer.out(format_args!("Run {run} is here already, with all that was pushed.\n"))?);
    };
    let mut lines = vec![format!("Pulled run {run}, as {} left it at {}.", manifest.host, manifest.at)];
    lines.extend(
        landed.integration.as_ref().map(|(_, to)| format!("  {} is at {} now", manifest.base_branch, to.short())),
    );
    lines.push(format!("  {} opened again", counted(landed.worktrees, "worktree")));
    lines.extend(landed.lost.iter().map(|job| format!("  {job} was running there; it will run again here")));
    if !manifest.is_done() {
        lines.push(format!("To resume it: {}", command(state, &["resume", run])));
        let host = &manifest.host;
        lines
            .push(format!("If the run is still active on {host}, the second of the two machines to push is rejected."));
    }
    Ok(context.printer.out(lines.join("\n") + "\n")?)
}
