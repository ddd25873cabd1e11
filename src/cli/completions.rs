//! `completions`: scripts that complete our command line in a shell.

use anyhow::Result;
use clap::CommandFactory;

use super::args::Args;
use super::{Context, ExitStatus};

pub(super) fn run(context: &Context, shell: clap_complete::Shell) -> Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "lanekeeper", &mut script);
    context.printer.out(String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Done)
}
