//! `state`: runs pushed to a git remote, and taken from there; `work` and `ci`: jobs that do both.

pub(super) mod ci;
mod clones;
mod drop;
mod list;
pub(super) mod publish;
mod pull;
mod push;
pub(super) mod work;

use lanewright_engine::state_sync::{StateSyncError, offers, runs_of};
use lanewright_git::Remote;
use lanewright_model::RunId;
use lanewright_plan::settings::Layer;

use super::args::{Name, RemoteArgs, State};
use super::executors::remote_or_address;
use super::runs::did_you_mean;
use super::select::only_beginning_with;
use super::{Context, ExitStatus, RepositoryContext, Result};

const REMOTE: &str = "origin";

pub(super) fn run(context: &Context, command: &State) -> Result<ExitStatus> {
    let (flags, remote) = match command {
        State::Push(arguments) => (arguments.progress.layer(), &arguments.remote),
        State::Pull(arguments) => (arguments.layer(&context.directory), &arguments.remote),
        State::List(remote) => (Layer::default(), remote),
        State::Drop(arguments) => (Layer::default(), &arguments.remote),
    };
    let within = RepositoryContext::open_for_work(context, flags)?;
    let remote = named_remote(&within, remote)?;
    match command {
        State::Push(arguments) => push::run(&within, &remote, arguments),
        State::Pull(arguments) => pull::run(&within, &remote, arguments),
        State::List(_) => list::run(&within, &remote),
        State::Drop(arguments) => drop::run(&within, &remote, arguments),
    }
}

/// The run that `name` means on a remote: the one of that name, else the only one that begins with it. What lanes on
/// executors are there must be named in full.
fn run_of(within: &RepositoryContext, remote: &Remote, name: &Name) -> Result<RunId> {
    if let Some((run, _)) = runs_of(remote)?.into_iter().find(|(run, _)| run.as_str() == name.as_str()) {
        return Ok(run);
    }
    let mut offers = offers(&within.repository, remote)?;
    offers.retain(|offer| !offer.manifest.as_ref().is_ok_and(|it| it.placed_by.is_some()));
    let runs: Vec<RunId> = offers.into_iter().map(|offer| offer.run).collect();
    if let Some(run) = only_beginning_with(name.as_str(), &runs)? {
        return Ok(run);
    }
    let run = RunId::new(name.as_str()).map_err(|error| ExitStatus::Usage.error(error.to_string()))?;
    let error = StateSyncError::NoState { remote: remote.name().to_owned(), run };
    let known: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    Err(did_you_mean(error.into(), name.as_str(), &known, || None))
}

/// The remote that is named, or the repository at that address, else the remote of the settings.
fn named_remote(within: &RepositoryContext, arguments: &RemoteArgs) -> Result<Remote> {
    if let Some(named) = &arguments.remote {
        return remote_or_address(&within.repository, &within.context.directory, named);
    }
    let named = within.settings.state_remote.value.as_deref();
    Ok(Remote::named(&within.repository, named.unwrap_or(REMOTE))?)
}
