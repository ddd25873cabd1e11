//! The executors of the settings, and the exchange through which this machine and their jobs reach each other.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use lanewright_engine::placement::Engine;
use lanewright_engine::state_sync::exchange::lane_run::drop_all;
use lanewright_engine::state_sync::{Ownership, StateSyncError};
use lanewright_git::{GitError, Remote, Repository};
use lanewright_model::redact::has_password;
use lanewright_model::{ExecutorSettings, HERE, LaneId, LaneIndex, Plan, RunId};
use lanewright_programs::cluster::{self, Cluster};
use lanewright_schedule::lane_log::lane_run;

use super::context::path_or_address;
use super::runs::did_you_mean;
use super::{CliError, Context, ExitStatus, Hint, RepositoryContext, Result, host, now};

pub(super) fn named<'a>(within: &'a RepositoryContext, name: &str) -> Result<&'a ExecutorSettings> {
    let executors = &within.settings.executors;
    executors.get(name).map(|setting| &setting.value).ok_or_else(|| {
        let known: Vec<&str> = executors.keys().map(String::as_str).collect();
        let message = match known.as_slice() {
            [] => format!("executor `{name}` is not defined; none is"),
            known => format!("executor `{name}` is not defined; defined: {}", known.join(", ")),
        };
        let define = || Some(format!("define [executors.{name}] in lanewright.toml (docs/clusters.md)"));
        did_you_mean(ExitStatus::Usage.error(message), name, &known, define)
    })
}

/// Refuses an executor of lanes that name none which there is not, also where every lane names one.
pub(super) fn check_default(within: &RepositoryContext) -> Result<()> {
    let default = &within.settings.executor;
    let name = default.value.as_deref().filter(|name| *name != HERE);
    name.map_or(Ok(()), |name| named(within, name).map(drop).with_context(|| format!("{}", default.origin)))
}

/// The engine of an executor; nothing is asked of it yet.
pub(super) fn engine(context: &Context, name: &str, settings: &ExecutorSettings) -> Result<Box<dyn Cluster>> {
    let opened = cluster::open(settings, variables(context, name, settings)?);
    opened.map_err(|error| ExitStatus::Usage.error(error.to_string()).hint(error.remedy()))
}

pub(super) fn engines(within: &RepositoryContext, plan: &Plan) -> Result<HashMap<String, Engine>> {
    let names: BTreeSet<&String> = plan.lanes.iter().filter_map(|lane| lane.executor.as_ref()).collect();
    let engines = names.into_iter().map(|name| {
        let settings = named(within, name)?;
        Ok((name.clone(), Engine { settings: settings.clone(), cluster: engine(&within.context, name, settings)? }))
    });
    engines.collect()
}

/// Refuses to begin a run of these lanes that could not be placed. Nothing is written.
pub(super) fn check(
    within: &RepositoryContext,
    plan: &Plan,
    mut lanes: impl Iterator<Item = LaneIndex>,
    run: &RunId,
) -> Result<()> {
    if engines(within, plan)?.is_empty() {
        return Ok(());
    }
    exchange(within)?;
    if lanes.all(|lane| plan.lane(lane).executor.is_none()) {
        return Ok(());
    }
    ownership(within, run)?.check_free().map_err(|error| match error {
        StateSyncError::Taken { by, .. } => ExitStatus::Usage
            .error(format!("run {run} already exists; its lanes are placed by {by}"))
            .hint(format!("to continue that one here: lanewright state pull {run}"))
            .hint("to start another one: choose another name with --run-id, or leave it out"),
        error => anyhow::Error::from(error).context("the exchange cannot be used"),
    })
}

pub(super) fn exchange_of(within: &RepositoryContext) -> Result<String> {
    let settings = &within.settings;
    settings.exchange.value.clone().or_else(|| settings.state_remote.value.clone()).ok_or_else(|| {
        ExitStatus::Usage
            .error("no exchange is set, through which this machine and the jobs reach each other")
            .hint("name a git remote or its address: --exchange REMOTE, or `exchange` in lanewright.toml")
    })
}

/// The remote of that name, or the repository at that address; a relative path is seen from `base`.
pub(super) fn remote_or_address(repository: &Repository, base: &Path, named: &str) -> Result<Remote> {
    match Remote::named(repository, named) {
        Err(GitError::NoSuchRemote { .. }) => Ok(Remote::named_or_at(repository, &path_or_address(base, named))?),
        found => Ok(found?),
    }
}

/// A relative path is seen from the main worktree, wherever the command is given.
fn exchange_remote(within: &RepositoryContext) -> Result<Remote> {
    remote_or_address(&within.repository, within.repository.main_worktree(), &exchange_of(within)?)
}

/// The exchange as a remote, and the address by which jobs reach it.
pub(super) fn exchange(within: &RepositoryContext) -> Result<(Remote, String)> {
    let remote = exchange_remote(within)?;
    // Only a remote of the repository has one.
    let address = remote.url().unwrap_or_else(|_| remote.name().to_owned());
    if has_password(&address) {
        let message = "the address of the exchange has a password in it, which others on the nodes could read";
        let name = remote.name();
        return Err(ExitStatus::Usage
            .error(message)
            .hint(format!("remove it (git remote set-url {name} ADDRESS), and use ssh or a credential helper")));
    }
    let address = path_or_address(within.repository.main_worktree(), &address);
    Ok((remote, address))
}

/// The variables of jobs, with the values that they have here.
fn variables(context: &Context, name: &str, settings: &ExecutorSettings) -> Result<Vec<(String, String)>> {
    let value = |text: &str| match text.strip_prefix('$') {
        None => Ok(text.to_owned()),
        Some(other) => {
            context.environment.get(other).and_then(|value| value.to_str()).map(str::to_owned).ok_or_else(|| {
                let message =
                    format!("the variable {other}, which [executors.{name}] takes a value from, is not set here");
                ExitStatus::Usage.error(message).hint(format!("set it: export {other}=…"))
            })
        }
    };
    settings.environment.iter().map(|(name, text)| Ok((name.clone(), value(text)?))).collect()
}

/// How long a command waits for the exchange that could do without it.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The right to place the lanes of `run`, on the exchange of the settings.
pub(super) fn ownership(within: &RepositoryContext, run: &RunId) -> Result<Ownership> {
    let remote = exchange_remote(within)?.within(LONGEST_WAIT);
    Ok(Ownership::new(&within.repository, &remote, run, (&host(), now())))
}

/// Takes the lanes of a run from the clone that places them, which can remove nothing of them from then on. `false`: none
/// places any, or that is unknown.
pub(super) fn take_over(within: &RepositoryContext, run: &RunId) -> bool {
    if within.settings.executors.is_empty() {
        return false;
    }
    let taken = ownership(within, run).and_then(|mut ownership| Ok(ownership.take()?));
    taken.unwrap_or_else(|error| {
        let reason = CliError::from(error).message;
        let message = format!("another clone may still place the lanes of run {run}: {reason}");
        within.context.printer.warning(message, &[]);
        false
    })
}

/// Removes the states of lanes that were rolled back from the exchange. Nothing depends on it: a state that stays is
/// replaced when the lane is offered again.
pub(super) fn remove_states(within: &RepositoryContext, run: &RunId, lanes: &[LaneId]) {
    let lanes: Vec<RunId> = lanes.iter().map(|lane| lane_run(run, lane)).collect();
    let removed = ownership(within, run).and_then(|mut ownership| Ok(drop_all(&mut ownership, &lanes)?));
    report_states(within, run, removed);
}

/// Removes from the exchange what this clone pushed for the lanes of a run, and all that it knows of it.
pub(super) fn remove_all_states<'a>(within: &RepositoryContext, run: &RunId, lanes: impl Iterator<Item = &'a LaneId>) {
    // Most runs never had an exchange.
    let Ok(mut ownership) = ownership(within, run) else { return };
    if !ownership.is_known().unwrap_or(false) {
        return;
    }
    let lanes: Vec<RunId> = lanes.map(|lane| lane_run(run, lane)).collect();
    let removed = ownership.begin().and_then(|_| drop_all(&mut ownership, &lanes));
    report_states(within, run, removed.and_then(|()| ownership.end()).map_err(Into::into));
}

fn report_states(within: &RepositoryContext, run: &RunId, removed: Result<()>) {
    if let Err(error) = removed {
        let reason = CliError::from(error).message;
        let message = format!("the states of lanes of run {run} may still be on the exchange: {reason}");
        within.context.printer.warning(message, &[]);
    }
}
