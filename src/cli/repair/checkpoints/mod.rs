//! `checkpoints`: what a run has on record, and its snapshots (SPEC §2, §4 and §5).

mod create;
mod find;
mod list;
mod prune;
mod restore;
mod show;

use crate::cli::args::Checkpoints;
use crate::cli::{Context, ExitStatus, RepositoryContext, Result};
use lanewright_plan::settings::Layer;

pub(crate) fn run(context: &Context, command: &Checkpoints) -> Result<ExitStatus> {
    let flags = match command {
        Checkpoints::Prune(arguments) => arguments.progress.layer(),
        _ => Layer::default(),
    };
    let within = &RepositoryContext::open(context, flags)?;
    match command {
        Checkpoints::List(arguments) => list::run(within, arguments),
        Checkpoints::Show { name } => show::run(within, name),
        Checkpoints::Create(arguments) => create::run(within, arguments),
        Checkpoints::Restore(arguments) => restore::run(within, arguments),
        Checkpoints::Prune(arguments) => prune::run(within, arguments),
    }
}
