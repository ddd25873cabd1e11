//! `man`: manual pages.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;

use super::args;
use super::context::Context;
use super::error::{CliError, ExitStatus};

/// Writes the page of the program to standard output, or a page for every command into a directory.
pub(super) fn run(context: &Context, arguments: &args::Man) -> Result<ExitStatus, CliError> {
    match &arguments.dir {
        Some(directory) => write_pages(&context.directory.join(directory))?,
        None => context.printer.out(main_page()?)?,
    }
    Ok(ExitStatus::Done)
}

fn main_page() -> Result<String, CliError> {
    let mut page = Vec::new();
    let rendered = Man::new(args::Args::command()).render(&mut page);
    rendered.map_err(|error| CliError::new(ExitStatus::Failed, format!("cannot render the page: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_pages(directory: &Path) -> Result<(), CliError> {
    let written = fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(args::Args::command().disable_help_subcommand(true), directory));
    written.map_err(|error| {
        CliError::new(ExitStatus::Failed, format!("cannot write manual pages to {}: {error}", directory.display()))
    })
}
