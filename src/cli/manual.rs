//! `man` and `completions`: what is generated from the command line's definition.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory;
use clap_mangen::Man;

use super::args;
use super::{Context, ExitStatus};
use crate::fs::atomic;

pub(super) fn completions(context: &Context, shell: clap_complete::Shell) -> Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::Args::command(), "lanekeeper", &mut script);
    context.printer.out(String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Done)
}

/// Writes the page of the program to standard output, or a page for every command into a directory.
pub(super) fn man(context: &Context, directory: Option<&Path>) -> Result<ExitStatus> {
    match directory {
        Some(directory) => write_pages(&context.directory.join(directory))?,
        None => context.printer.out(main_page()?)?,
    }
    Ok(ExitStatus::Done)
}

fn main_page() -> Result<String> {
    let mut page = Vec::new();
    Man::new(args::Args::command()).render(&mut page).context("cannot render the page")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_pages(directory: &Path) -> Result<()> {
    let written = fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(args::Args::command().disable_help_subcommand(true), directory));
    written.with_context(|| format!("cannot write manual pages to {}", directory.display()))?;
    write_aliases(directory)
}

/// Pages of other names for commands, which lead to the command's own.
fn write_aliases(directory: &Path) -> Result<()> {
    for command in args::Args::command().get_subcommands() {
        for alias in command.get_visible_aliases() {
            let text = format!(".so man1/lanekeeper-{}.1\n", command.get_name());
            atomic::rewrite(&directory.join(format!("lanekeeper-{alias}.1")), text.as_bytes())?;
        }
    }
    Ok(())
}
