//! `state`: runs pushed to a git remote, and taken from there.

mod drop;
mod list;
mod pull;
mod push;

use anyhow::Result;

use super::args::{RemoteArgs, State};
use super::context::Context;
use super::error::ExitStatus;
use super::repository_context::RepositoryContext;
use crate::git::Remote;

const REMOTE: &str = "origin";

pub(super) fn run(context: &Context, command: &State) -> Result<ExitStatus> {
    match command {
        State::Push(arguments) => push::run(context, arguments),
        State::Pull(arguments) => pull::run(context, arguments),
        State::List(arguments) => list::run(context, arguments),
        State::Drop(arguments) => drop::run(context, arguments),
    }
}

/// The remote that is named, else that of the settings.
fn remote(within: &RepositoryContext<'_>, arguments: &RemoteArgs) -> Result<Remote> {
    let named = arguments.remote.as_ref().or(within.settings.state_remote.value.as_ref());
    Ok(Remote::named(&within.repository, named.map_or(REMOTE, String::as_str))?)
}
