//! `state pull`: fetches a run that was pushed elsewhere, to resume it here.

use serde_json::json;

use crate::cli::args::PullState;
use crate::cli::run::{Adoption, Reach, adopt, complete_files};
use crate::cli::runs::command;
use crate::cli::{CliError, ExitStatus, Hint, RepositoryContext, Result, host, now};
use crate::git::Remote;
use crate::model::RunId;
use crate::model::text::counted;
use crate::state_sync::{Arrived, Landed, Landing, Manifest, Standing, StateSyncError, fetch, offers, standing};
use crate::store::{RunLock, StateDirectory};

pub(super) fn run(within: &RepositoryContext<'_>, remote: &Remote, arguments: &PullState) -> Result<ExitStatus> {
    let run = match &arguments.run {
        Some(run) => run.clone(),
        None => only_unfinished(within, remote)?,
    };
    let arrived = fetch(&within.repository, remote, &run)?;
    let landed = put_down(within, remote, &arrived)?;
    if landed.is_some() {
        let written = adopt(within, &run, &Adoption::default(), Reach::Own);
        written.and_then(|locked| complete_files(within, &locked)).unwrap_or_else(|error| {
            let message = format!("checkpoints.json or task.json is behind: {}", CliError::from(error).message);
            within.context.printer.warning(message, &["`lanekeeper resume` writes them".to_owned()]);
        });
    }
    report(within, &arrived, landed.as_ref())
}

/// The one run that a remote has of the branch that is checked out (of any, where none is) and with which there is
/// something to do.
fn only_unfinished(within: &RepositoryContext<'_>, remote: &Remote) -> Result<RunId> {
    let here = within.repository.current_branch()?;
    let mut found = Vec::new();
    for offer in offers(&within.repository, remote)? {
        let fits = match &offer.manifest {
            Ok(it) if here.as_ref().is_some_and(|here| *here != it.base_branch) => false,
            Ok(it) => !it.is_done() || !is_merged_here(within, it)?,
            // Skipping one that cannot be read would start a new run beside it.
            Err(_) => true,
        };
        found.extend(fits.then_some(offer));
    }
    let on = here.map(|branch| format!(" on {branch}")).unwrap_or_default();
    match found.len() {
        1 => Ok(found.remove(0).run),
        0 => {
            let message = format!("{} has no unfinished run{on}", remote.name());
            Err(ExitStatus::InvalidState
                .error(message)
                .hint(format!("to list its runs: lanekeeper state list --remote {}", remote.name())))
        }
        count => {
            let names: Vec<&str> = found.iter().map(|offer| offer.run.as_str()).collect();
            let message = format!("{} has {count} unfinished runs{on}, so name the one you mean", remote.name());
            Err(ExitStatus::Usage.error(message).hint(format!("there are {}", names.join(", "))))
        }
    }
}

/// Whether what a run merged is in the integration branch of this clone. A run that is done and was not published when
/// its machine died has its work in the pushed state only.
fn is_merged_here(within: &RepositoryContext<'_>, manifest: &Manifest) -> Result<bool> {
    let here = within.repository.branch_commit(&manifest.base_branch)?;
    here.map_or(Ok(false), |here| Ok(within.repository.is_ancestor(&manifest.integration, &here)?))
}

/// Makes a run here that does not exist here; `None`: it does, with all that arrived.
fn put_down(within: &RepositoryContext<'_>, remote: &Remote, arrived: &Arrived) -> Result<Option<Landed>> {
    let (run, worktree_root) = (&arrived.manifest.run_id, &within.settings.worktree_root.value);
    within.prepare(worktree_root)?;
    let directory = within.state.run(run);
    directory.create()?;
    let _lock = RunLock::acquire(&directory.lock(), &within.holder(run))?;
    let host = host();
    let landing = Landing {
        repository: &within.repository,
        pool: &within.pool(worktree_root, within.settings.keep_caches.value),
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
        Standing::Other => Err(left_behind(arrived, remote, &within.state)),
    }
}

fn left_behind(arrived: &Arrived, remote: &Remote, state: &StateDirectory) -> anyhow::Error {
    let manifest = &arrived.manifest;
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

fn report(within: &RepositoryContext<'_>, arrived: &Arrived, landed: Option<&Landed>) -> Result<ExitStatus> {
    let manifest = &arrived.manifest;
    let json = json!({
        "run_id": manifest.run_id,
        "commit": arrived.commit,
        "records": manifest.records,
        "host": manifest.host,
        "outcome": manifest.outcome,
        "new": landed.is_some(),
        "worktrees": landed.map(|landed| landed.worktrees),
        "lost_jobs": landed.map(|landed| landed.lost.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "integration": landed.and_then(|landed| landed.integration.as_ref()).map(|(_, to)| to),
    });
    within.context.printer.print(as_text(manifest, landed, &within.state), &json)
}

fn as_text(manifest: &Manifest, landed: Option<&Landed>, state: &StateDirectory) -> String {
    let (run, host) = (manifest.run_id.as_str(), &manifest.host);
    let Some(landed) = landed else { return format!("Run {run} is here already, with all that was pushed.\n") };
    let mut lines = vec![format!("Pulled run {run}, as {host} left it at {}.", manifest.at)];
    let moved = landed.integration.as_ref();
    lines.extend(moved.map(|(_, to)| format!("  {} is at {} now", manifest.base_branch, to.short())));
    lines.push(format!("  {} opened again", counted(landed.worktrees, "worktree")));
    lines.extend(landed.lost.iter().map(|job| format!("  {job} was running there; it will run again here")));
    if !manifest.is_done() {
        lines.push(format!("To resume it: {}", command(state, &["resume", run])));
        lines
            .push(format!("If the run is still active on {host}, the second of the two machines to push is rejected."));
    }
    lines.join("\n") + "\n"
}
