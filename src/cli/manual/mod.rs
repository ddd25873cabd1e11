//! `man` and `completions`: what is generated from the command line's definition and the schema of plans.

pub(super) mod complete;
mod plan_page;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap_complete::env::Shells;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use lanewright_files::regular_file;

use super::args;
use super::error::exit_code_table;
use super::{Context, ExitStatus};

/// The variable in which a shell names itself when it asks for completions: that of `CompleteEnv`.
const COMPLETION_VARIABLE: &str = "COMPLETE";

const NAME: &str = "lanewright";

/// The same for every build. Without blank the title's next part would take its place.
const NO_DATE: &str = " ";

const SOURCE: &str = concat!("lanewright ", env!("CARGO_PKG_VERSION"));

/// Writes the script that has a shell ask this program for completions, as only that knows runs, lanes and agents.
pub(super) fn completions(context: &Context, shell: clap_complete::Shell) -> Result<ExitStatus> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).context("no completion for this shell")?;
    completer.write_registration(COMPLETION_VARIABLE, NAME, NAME, NAME, &mut script)?;
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
    let synopsis = synopsis(&command);
    let page = Man::new(command.mut_args(|option| option.hide_short_help(false))).date(NO_DATE).source(SOURCE);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    synopsis.to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if has_commands {
        page.render_subcommands_section(&mut text)?;
    }
    rest(path, has_codes).to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// How to call the command: every option with its value, and the arguments.
fn synopsis(command: &clap::Command) -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["SYNOPSIS"]);
    if let Some(usage) = command.get_overridden_usage() {
        verbatim(&mut page, &usage.to_string());
        return page;
    }
    let mut line = vec![bold(command.get_bin_name().unwrap_or(command.get_name()))];
    let shown = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    for option in shown().filter(|arg| !arg.is_positional()) {
        let short = option.get_short().map(|short| format!("-{short}"));
        let long = option.get_long().map(|long| format!("--{long}"));
        let name = bold(short.into_iter().chain(long).collect::<Vec<_>>().join("|"));
        let value = option.get_action().takes_values().then(|| [roman(" "), italic(value_name(option))]);
        line.extend(marked(option, std::iter::once(name).chain(value.into_iter().flatten())));
    }
    for argument in shown().filter(|arg| arg.is_positional()) {
        line.extend(marked(argument, [italic(value_name(argument))].into_iter()));
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("COMMAND")]);
    }
    page.text(line);
    page
}

/// In brackets where it may be left out, with dots where it may be given more than once.
fn marked(arg: &clap::Arg, words: impl Iterator<Item = Inline>) -> Vec<Inline> {
    let (open, close) = if arg.is_required_set() { (" ", "") } else { (" [", "]") };
    let is_repeated = matches!(arg.get_action(), clap::ArgAction::Append | clap::ArgAction::Count);
    let dots = if is_repeated { "..." } else { "" };
    std::iter::once(roman(open)).chain(words).chain([roman(format!("{close}{dots}"))]).collect()
}

fn value_name(arg: &clap::Arg) -> String {
    let names = arg.get_value_names().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    names.unwrap_or_else(|| arg.get_id().as_str().to_uppercase())
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
