//! `state`: runs pushed to a git remote, and taken from there.

mod drop;
mod list;
mod pull;
mod push;

use super::args::{RemoteArgs, State};
use super::{Context, ExitStatus, RepositoryContext, Result};
use crate::git::Remote;
use crate::settings::Layer;

const REMOTE: &str = "origin";

pub(super) fn run(context: &Context, command: &State) -> Result<ExitStatus> {
    let (flags, remote) = match command {
        State::Push(arguments) => (Layer::default(), &arguments.remote),
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

/// The remote that is named, else that of the settings.
fn named_remote(within: &RepositoryContext<'_>, arguments: &RemoteArgs) -> Result<Remote> {
    let named = arguments.remote.as_ref().or(within.settings.state_remote.value.as_ref());
    Ok(Remote::named(&within.repository, named.map_or(REMOTE, String::as_str))?)
}
