//! `state pull`: fetches a run that was pushed elsewhere, to resume it here.

use lanewright_engine::state_sync::{
    Destination, LocalRun, Manifest, ReceivedState, Restored, StateSyncError, check, fetch, local_run, offers,
};
use lanewright_git::Remote;
use lanewright_model::RunId;
use lanewright_model::event::RunOutcome;
use lanewright_model::text::{counted, shell_line};
use lanewright_store::{LogError, StateDirectory};
use serde_json::json;

use super::run_of;
use crate::cli::args::PullState;
use crate::cli::executors::take_over;
use crate::cli::run::{Adoption, PlanReader, PlannedPhase, Reach, adopt, complete_files, lock_resting_run};
use crate::cli::runs::command;
use crate::cli::{CliError, ExitStatus, Hint, RepositoryContext, Result, host, now};

pub(super) fn run(within: &RepositoryContext, remote: &Remote, arguments: &PullState) -> Result<ExitStatus> {
    let fetching = within.activity(format_args!("Looking for runs on {}", remote.name()));
    let run = match (&arguments.run, &arguments.plan) {
        (Some(name), _) => run_of(within, remote, name)?,
        (None, Some(plan)) => {
            let phases = PlanReader::new(&within.context, arguments.layer(&within.context.directory))?.phases(plan)?;
            only_unfinished(within, remote, Some(&phases))?
        }
        (None, None) => only_unfinished(within, remote, None)?,
    };
    drop(fetching);
    let (received, restored) = pull(within, remote, &run)?;
    report(within, &received, restored.as_ref())
}

/// Fetches a run and restores it, if this clone does not have it with all that was pushed.
pub(super) fn pull(
    within: &RepositoryContext,
    remote: &Remote,
    run: &RunId,
) -> Result<(ReceivedState, Option<Restored>)> {
    let fetching = within.activity(format_args!("Fetching run {run} from {}", remote.name()));
    let mut received = fetch(&within.repository, remote, run)?;
    if found(within, &received)? == LocalRun::Missing {
        // What cannot be restored here stays the other clone's.
        check(&within.repository, remote, &within.state.run(run), &received)?;
        if take_over(within, run) {
            // What the other clone pushed until then.
            received = fetch(&within.repository, remote, run)?;
        }
    }
    drop(fetching);
    let restoring = within.activity(format_args!("Restoring run {run}"));
    let restored = restore(within, remote, &received)?;
    drop(restoring);
    if restored.is_some() {
        let written = adopt(within, run, &Adoption::default(), Reach::Own);
        written.and_then(|locked| complete_files(within, &locked)).unwrap_or_else(|error| {
            let message = format!("checkpoints.json or task.json is behind: {}", CliError::from(error).message);
            within.context.printer.warning(message, &["`lanewright resume` writes them".to_owned()]);
        });
    }
    Ok((received, restored))
}

/// Whether there is something to do with a run of `remote` that was pushed from anywhere: it is unfinished, or this clone
/// does not have what it merged.
pub(super) fn is_open(within: &RepositoryContext, manifest: &Manifest) -> Result<bool> {
    // The run that placed a lane resumes it.
    let is_own = manifest.placed_by.is_none() && manifest.outcome != Some(RunOutcome::RolledBack);
    Ok(is_own && (!manifest.is_done() || !is_merged_here(within, manifest)?))
}

/// The one run with which there is something to do that a remote has of these phases, else of the branch that is checked
/// out, else of any.
fn only_unfinished(within: &RepositoryContext, remote: &Remote, phases: Option<&[PlannedPhase]>) -> Result<RunId> {
    let here = within.repository.current_branch()?;
    let mut found = Vec::new();
    for offer in offers(&within.repository, remote)? {
        let is_wanted = match (&offer.manifest, phases) {
            (Ok(it), Some(phases)) => phases.iter().any(|planned| planned.is_phase_of(it)),
            (Ok(it), None) => here.as_ref().is_none_or(|here| *here == it.base_branch),
            (Err(_), Some(phases)) => phases.iter().any(|planned| planned.may_have_named(&offer.run)),
            // Skipping one that cannot be read would start a new run beside it.
            (Err(_), None) => true,
        };
        let is_open = |manifest: &_| is_open(within, manifest);
        if is_wanted && offer.manifest.as_ref().map_or(Ok(true), is_open)? {
            found.push(offer);
        }
    }
    let on = match phases {
        Some([planned]) => format!(" of phase {} on {}", planned.phase, planned.base),
        Some(_) => " of these phases".to_owned(),
        None => here.map(|branch| format!(" on {branch}")).unwrap_or_default(),
    };
    match found.len() {
        1 => Ok(found.remove(0).run),
        0 => {
            let message = format!("{} has no unfinished run{on}", remote.name());
            Err(ExitStatus::InvalidState
                .error(message)
                .hint(format!("to list its runs: lanewright state list --remote {}", remote.name())))
        }
        count => {
            let names: Vec<&str> = found.iter().map(|offer| offer.run.as_str()).collect();
            let message = format!("{} has {count} unfinished runs{on}, so name the one you mean", remote.name());
            Err(ExitStatus::Usage.error(message).hint(format!("there are {}", names.join(", "))))
        }
    }
}

/// Whether what a run made is in the integration branch of this clone, also where a forge squashed it. A run that is done
/// and was not published when its machine died has its work in the pushed state only, and one that leaves it on the branches
/// of its lanes is known to be done by its state only.
fn is_merged_here(within: &RepositoryContext, manifest: &Manifest) -> Result<bool> {
    let repository = &within.repository;
    let Some(here) = repository.branch_commit(&manifest.base_branch)? else { return Ok(false) };
    for commit in std::iter::once(&manifest.integration).chain(manifest.branches.values()) {
        if !repository.has_commit(commit)? || !repository.has_work_of(&here, commit)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Restores the run if this clone does not have it; `None`: it has it, with everything that was pushed.
pub(super) fn restore(
    within: &RepositoryContext,
    remote: &Remote,
    received: &ReceivedState,
) -> Result<Option<Restored>> {
    let (run, worktree_root) = (&received.manifest.run_id, &within.settings.worktree_root.value);
    within.prepare(worktree_root)?;
    let directory = within.state.run(run);
    directory.create()?;
    let _lock = lock_resting_run(within, run)?;
    let host = host();
    let destination = Destination {
        repository: &within.repository,
        pool: &within.pool(worktree_root, within.settings.keep_caches.value),
        remote,
        directory: &directory,
        host: &host,
        now: now(),
    };
    match found(within, received)? {
        LocalRun::Missing => Ok(Some(destination.restore(received)?)),
        LocalRun::UpToDate => {
            destination.remember(received)?;
            Ok(None)
        }
        LocalRun::Behind => Err(behind(received, &within.state)),
        LocalRun::Different => Err(left_behind(received, remote, &within.state)),
    }
}

/// What this clone has of a received run.
pub(super) fn found(within: &RepositoryContext, received: &ReceivedState) -> Result<LocalRun> {
    let run = &received.manifest.run_id;
    local_run(&within.repository, received, &within.state.run(run)).map_err(|error| match error {
        StateSyncError::Log(LogError::Empty { path }) => ExitStatus::Held
            .error(format!("run {run} was also started in this clone, and its log is empty; nothing was changed"))
            .hint(format!("to use the remote's state: rm {}, then pull again", shell_line([path.to_string_lossy()]))),
        error => error.into(),
    })
}

/// The run was continued elsewhere, and nothing of it here is newer.
fn behind(received: &ReceivedState, state: &StateDirectory) -> anyhow::Error {
    let manifest = &received.manifest;
    let (run, host) = (manifest.run_id.as_str(), &manifest.host);
    let message = format!("run {run} was continued on {host} until {}; nothing was changed", manifest.at);
    let clean = command(state, &["clean", run, "--force", "--logs"]);
    ExitStatus::Held.error(message).hint(format!("to take it: {clean}, then pull again"))
}

fn left_behind(received: &ReceivedState, remote: &Remote, state: &StateDirectory) -> anyhow::Error {
    let manifest = &received.manifest;
    let theirs = StateSyncError::Superseded {
        remote: remote.name().to_owned(),
        run: manifest.run_id.clone(),
        host: manifest.host.clone(),
        at: manifest.at,
        records: manifest.records,
    };
    let run = manifest.run_id.as_str();
    let clean = command(state, &["clean", run, "--force", "--logs"]);
    ExitStatus::Held
        .error(format!("{theirs}; nothing was changed"))
        .hint(format!("to take theirs and give up what is here: {clean}, then pull again"))
        .hint(format!("to keep this one: {}", command(state, &["state", "push", run, "--force"])))
}

fn report(within: &RepositoryContext, received: &ReceivedState, restored: Option<&Restored>) -> Result<ExitStatus> {
    let manifest = &received.manifest;
    let json = json!({
        "run_id": manifest.run_id,
        "commit": received.commit,
        "records": manifest.records,
        "host": manifest.host,
        "outcome": manifest.outcome,
        "new": restored.is_some(),
        "worktrees": restored.map(|restored| restored.worktrees),
        "lost_jobs": restored.map(|restored| restored.lost.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "integration": restored.and_then(|restored| restored.integration.as_ref()).map(|(_, to)| to),
    });
    within.context.printer.print(as_text(manifest, restored, &within.state), &json)
}

fn as_text(manifest: &Manifest, restored: Option<&Restored>, state: &StateDirectory) -> String {
    let (run, host) = (manifest.run_id.as_str(), &manifest.host);
    let Some(restored) = restored else { return format!("Run {run} is here already, with all that was pushed.\n") };
    let mut lines = vec![format!("Pulled run {run}, as {host} left it at {}.", manifest.at)];
    let moved = restored.integration.as_ref();
    lines.extend(moved.map(|(_, to)| format!("  {} is at {} now", manifest.base_branch, to.short())));
    lines.push(format!("  {} opened again", counted(restored.worktrees, "worktree")));
    lines.extend(restored.lost.iter().map(|job| format!("  {job} was running there; it will run again here")));
    if !manifest.is_done() {
        lines.push(format!("To resume it: {}", command(state, &["resume", run])));
        lines
            .push(format!("If the run is still active on {host}, the second of the two machines to push is rejected."));
    }
    lines.join("\n") + "\n"
}
