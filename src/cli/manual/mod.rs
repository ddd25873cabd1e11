//! `man` and `completions`: what is generated from the command line's definition and the schema of plans.

pub(super) mod complete;
mod plan_page;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use lanewright_files::regular_file;

use super::args;
use super::error::exit_code_table;
use super::{Context, ExitStatus};

/// The same for every build. Without blank the title's next part would take its place.
const NO_DATE: &str = " ";

const SOURCE: &str = concat!("lanewright ", env!("CARGO_PKG_VERSION"));

pub(super) fn completions(context: &Context, shell: clap_complete::Shell) -> Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "lanewright", &mut script);
    context.printer.out(String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Done)
}

/// Writes the page of the program to standard output, or all pages into a directory.
pub(super) fn man(context: &Context, directory: Option<&Path>) -> Result<ExitStatus> {
    match directory {
        Some(directory) => write_pages(&context.directory.join(directory))?,
        None => context.printer.out(page(args::command(), "").context("cannot render the page")?)?,
    }
    Ok(ExitStatus::Done)
}

fn write_pages(directory: &Path) -> Result<()> {
    let written = write_commands(directory).and_then(|()| {
        let plans = directory_of_plans(directory);
        fs::create_dir_all(&plans)?;
        regular_file::write_argument(&plans.join("lanewright-plan.5"), plan_page::page().as_bytes())
    });
    written.with_context(|| format!("cannot write manual pages to {}", directory.display()))
}

/// `man` looks for pages of section 5 in `man5`, beside `man1`.
fn directory_of_plans(directory: &Path) -> PathBuf {
    if directory.ends_with("man1") { directory.with_file_name("man5") } else { directory.to_owned() }
}

fn write_commands(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut program = args::command().disable_help_subcommand(true);
    program.build();
    write_aliases(&program, directory)?;
    write_command(program, "", directory)
}

/// Pages of other names for commands, which lead to the command's own.
fn write_aliases(program: &clap::Command, directory: &Path) -> io::Result<()> {
    for command in program.get_subcommands() {
        for alias in command.get_visible_aliases() {
            let text = format!(".so man1/lanewright-{}.1\n", command.get_name());
            regular_file::write_argument(&directory.join(format!("lanewright-{alias}.1")), text.as_bytes())?;
        }
    }
    Ok(())
}

fn write_command(command: clap::Command, path: &str, directory: &Path) -> io::Result<()> {
    for inner in command.get_subcommands() {
        let path = format!("{path} {}", inner.get_name());
        write_command(inner.clone(), path.trim_start(), directory)?;
    }
    let file = directory.join(Man::new(command.clone()).get_filename());
    regular_file::write_argument(&file, page(command, path)?.as_bytes())
}

/// The page of the command with this path below `lanewright`.
fn page(command: clap::Command, path: &str) -> io::Result<String> {
    let has_commands = command.has_subcommands();
    let has_codes = command.get_after_long_help().is_some_and(|text| text.to_string().ends_with(&exit_code_table()));
    // What short help leaves out would have no text.
    let page = Man::new(command.mut_args(|option| option.hide_short_help(false))).date(NO_DATE).source(SOURCE);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if has_commands {
        page.render_subcommands_section(&mut text)?;
    }
    rest(path, has_codes).to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn rest(path: &str, has_codes: bool) -> Roff {
    let mut page = Roff::new();
    if has_codes {
        page.control("SH", ["EXIT STATUS"]);
        for status in ExitStatus::ALL {
            page.control("TP", []).text([bold(status.code().to_string())]).text([roman(status.meaning())]);
        }
    }
    page.control("SH", ["EXAMPLES"]);
    for (at, (line, about)) in args::examples_of(path).iter().enumerate() {
        if at > 0 {
            page.control("PP", []);
        }
        if !about.is_empty() {
            page.text([roman(format!("{about}:"))]);
        }
        verbatim(&mut page, line);
    }
    if matches!(path, "" | "execute-phase" | "execute-lane") || path.starts_with("plan") {
        page.control("SH", ["SEE ALSO"]).text([bold("lanewright-plan"), roman("(5)")]);
    }
    page
}

/// `text` as it is, indented.
fn verbatim(page: &mut Roff, text: &str) {
    page.control("RS", ["4"]).control("nf", []);
    for line in text.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []).control("RE", []);
}
