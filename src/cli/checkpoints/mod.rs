//! `checkpoints`: what a run has on record, and its snapshots (SPEC §2, §4 and §5).

mod create;
mod find;
mod list;
mod prune;
mod restore;
mod show;

use anyhow::Result;

use super::args::Checkpoints;
use super::context::Context;
use super::error::ExitStatus;

pub(super) fn run(context: &Context, command: &Checkpoints) -> Result<ExitStatus> {
    match command {
        Checkpoints::List(arguments) => list::run(context, arguments),
        Checkpoints::Show(arguments) => show::run(context, arguments),
        Checkpoints::Create(arguments) => create::run(context, arguments),
        Checkpoints::Restore(arguments) => restore::run(context, arguments),
        Checkpoints::Prune(arguments) => prune::run(context, arguments),
    }
}
