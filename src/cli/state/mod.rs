//! `state`: runs pushed to a git remote, and taken from there.

mod drop;
mod list;
mod pull;
mod push;

use super::args::{RemoteArgs, State};
use super::context::Context;
use super::error::{CliError, ExitStatus};
use crate::git::{Remote, Repository};
use crate::settings::Settings;

/// The remote where nobody says otherwise.
const REMOTE: &str = "origin";

/// `state`.
pub(super) fn run(context: &Context, command: &State) -> Result<ExitStatus, CliError> {
    match command {
        State::Push(arguments) => push::run(context, arguments),
        State::Pull(arguments) => pull::run(context, arguments),
        State::List(arguments) => list::run(context, arguments),
        State::Drop(arguments) => drop::run(context, arguments),
    }
}

/// The remote that is meant.
fn remote(repository: &Repository, arguments: &RemoteArgs, settings: &Settings) -> Result<Remote, CliError> {
    let named = arguments.remote.as_ref().or(settings.state_remote.value.as_ref());
    Ok(Remote::named(repository, named.map_or(REMOTE, String::as_str))?)
}
