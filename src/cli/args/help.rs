//! The help of the commands: examples below each, and the commands of the program in groups.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Command, CommandFactory, Error, FromArgMatches};

use super::Args;
use super::examples::{Example, examples_of};

/// The page of the words in messages and helps, in the repository of Lanewright.
const WORDS: &str = "docs/words.md";

type Groups = &'static [(&'static str, &'static [&'static str])];

/// The commands of most days, in the program's short help.
const MAIN: Groups = &[
    ("Work", &["plan", "execute-phase", "resume", "approve", "retry"]),
    ("Look", &["status", "ui", "logs", "diff"]),
    ("Set-up", &["init", "demo"]),
];

/// All commands by what they are for. A name that does not exist is not shown.
const GROUPS: Groups = &[
    ("Work", &["plan", "execute-phase", "execute-lane", "resume", "follow", "gate", "stop", "rollback"]),
    ("Look", &["list", "status", "ui", "logs", "diff", "path", "open", "report"]),
    ("Answer", &["approve", "reject", "tell", "pick", "retry", "recover", "skip"]),
    (
        "State and repair",
        &["checkpoints", "state", "publish", "work", "ci", "doctor", "clean", "log-error", "log-event"],
    ),
    ("Set-up", &["init", "hook", "mcp", "notify", "completions", "man", "demo"]),
];

/// The definition of the command line, with its help.
pub(crate) fn command() -> Command {
    with_groups(with_examples(Args::command(), ""))
}

/// Reads what was typed; the first argument is the program's own name.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Args, Error> {
    let mut command = command();
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Args::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn with_examples(command: Command, path: &str) -> Command {
    let examples = example_lines(&examples_of(path));
    let long = match command.get_after_long_help() {
        Some(table) => format!("{examples}\n\n{table}"),
        None => examples.clone(),
    };
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(command.after_help(examples).after_long_help(long), |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |command| with_examples(command, path.trim_start()))
    })
}

/// The examples with what they are for in a column of its own.
fn example_lines(examples: &[Example]) -> String {
    let width = examples.iter().map(|(line, _)| line.len()).max().unwrap_or_default();
    examples.iter().fold("Examples:".to_owned(), |mut text, (line, about)| {
        let _ = match about.is_empty() {
            true => write!(text, "\n  {line}"),
            false => write!(text, "\n  {line:width$}  # {about}"),
        };
        text
    })
}

/// The help of the program: clap has no groups of commands. The short one fits 24 lines with the prompt below.
fn with_groups(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let main = format!("{}\n  {:<13}  See all commands with --help", groups(&command, MAIN), "...");
    let all = format!("{}\n\nWhat the words mean: {WORDS}", groups(&command, GROUPS));
    let template = "{about}\n\n{usage-heading} {usage}\n\n{before-help}";
    command
        .help_template(format!("{template}{header}Options:{header:#}\n{{options}}{{after-help}}"))
        .before_help(main)
        .before_long_help(all)
        .after_help("")
}

fn groups(command: &Command, groups: Groups) -> String {
    let header = command.get_styles().get_header();
    let mut text = String::new();
    for (group, names) in groups {
        // The line break is within the style, because clap counts the width of a line on from an unstyled one.
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{header}{gap}{group}:{header:#}");
        for found in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = found.get_about().map(ToString::to_string).unwrap_or_default();
            let alias = found.get_visible_aliases().map(|alias| format!(" [alias: {alias}]")).collect::<String>();
            let _ = write!(text, "\n  {:<13}  {about}{alias}", found.get_name());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;
    use crate::cli::error::exit_code_table;

    /// The commands with commands below them, each with its path.
    fn all() -> Vec<(String, Command)> {
        fn below(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
            all.push((path.to_owned(), command.clone()));
            for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
                below(inner, format!("{path} {}", inner.get_name()).trim_start(), all);
            }
        }
        let mut command = command().term_width(80);
        command.build();
        let mut all = Vec::new();
        below(&command, "", &mut all);
        all
    }

    /// The most lines of a command's short help.
    fn most_lines(path: &str) -> usize {
        match path {
            // The prompt is below it.
            "" => 23,
            "execute-phase" | "execute-lane" => 40,
            _ => 24,
        }
    }

    #[test]
    fn short_help_fits_a_screen() {
        for (path, mut command) in all() {
            let text = command.render_help().to_string();
            assert!(text.lines().count() <= most_lines(&path), "{path}: {}\n{text}", text.lines().count());
            let wide = text.lines().find(|line| line.width() > 80);
            assert_eq!(wide, None, "{path}");
        }
    }

    #[test]
    fn every_command_has_two_examples_that_parse() {
        for (path, mut command) in all() {
            let examples = examples_of(&path);
            assert!(examples.len() >= 2, "{path} has {} examples", examples.len());
            for (line, _) in &examples {
                let words = shlex::split(&line.replace("\\\n", "")).unwrap();
                // A pipe or a file behind it, and what is in front of it, are the shell's.
                let own = words.iter().position(|word| word == "lanewright").unwrap();
                let words: Vec<OsString> = words[own..]
                    .iter()
                    .take_while(|word| !["|", ">"].contains(&word.as_str()))
                    .map(OsString::from)
                    .collect();
                // `NAME add lanewright -- lanewright mcp` has the line behind the dashes.
                let last = words.iter().rposition(|word| word == "lanewright").unwrap();
                parse(&words[last..]).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
            let short = (!path.is_empty()).then(|| command.render_help());
            for text in short.into_iter().chain([command.render_long_help()]) {
                assert!(text.to_string().contains(&examples[0].0), "{path} does not show its examples");
            }
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        for command in command().get_subcommands() {
            let name = command.get_name();
            let groups = GROUPS.iter().flat_map(|(_, names)| *names).filter(|other| **other == name);
            assert_eq!(groups.count(), 1, "{name}");
        }
        let all = GROUPS.iter().flat_map(|(_, names)| *names).collect::<Vec<_>>();
        assert!(MAIN.iter().flat_map(|(_, names)| *names).all(|name| all.contains(&name)));
    }

    #[test]
    fn short_helps_are_these() {
        let texts = all()
            .into_iter()
            .map(|(path, mut command)| format!("==== lanewright {path}\n\n{}\n", command.render_help()));
        insta::assert_snapshot!(texts.collect::<String>());
    }

    #[test]
    fn words_are_explained_on_a_page_that_is_linked() {
        let page = include_str!("../../../docs/words.md");
        let words = ["gate", "stage", "slot", "supervisor", "integration branch", "lane", "run", "phase", "checkpoint"];
        for word in words.into_iter().chain(["salvage", "snapshot", "agent"]) {
            assert!(page.contains(&format!("\n| {word} | ")), "{word}");
        }
        let help = all().swap_remove(0).1.render_long_help().to_string();
        let (readme, docs) = (include_str!("../../../README.md"), include_str!("../../../docs/README.md"));
        assert!(help.contains(WORDS) && readme.contains(&format!("({WORDS})")) && docs.contains("(words.md)"));
    }

    #[test]
    fn readme_has_a_short_table_of_commands() {
        let readme = include_str!("../../../README.md");
        let table = readme.split_once("\n| to | type |\n").expect("the table").1;
        let rows = table.lines().take_while(|line| line.starts_with('|')).count() - 1;
        assert_eq!(rows, 12);
    }

    #[test]
    fn exit_codes_are_in_long_help_only() {
        let (_, mut program) = all().swap_remove(0);
        let (short, long) = (program.render_help().to_string(), program.render_long_help().to_string());
        for text in [exit_code_table().as_str(), "--checkpoint-path"] {
            assert!(long.contains(text) && !short.contains(text), "{text}");
        }
    }
}
