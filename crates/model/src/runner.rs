//! Runners: how a coding agent's program is called, how it gets its prompt, and how its event stream is read.
//!
//! A runner is data. Those that Lanewright knows are in `crates/agents/templates/runners`, others in configuration files;
//! what a run uses is pinned with its plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent_options::AgentOptions;
use super::command::CommandLine;
use super::transcript::{Budget, Dollars};
use super::word_enum;

mod output_rules;

pub use output_rules::{EventRule, Expected, OutagePatterns, TextRule, ToolCallPlaces, ToolResultPlaces, Totals};

/// A runner as it is described; absent values come from the runner in `like`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerText {
    /// The runner that says everything which this one does not.
    pub like: Option<String>,
    /// What people call the program.
    pub title: Option<String>,
    /// What its service knows its user by: runners with the same account share its limits; absent: the runner's name.
    pub account: Option<String>,
    /// The runners that take its place while it is paused for long, best first.
    pub fallback: Option<Vec<String>>,
    /// How many US dollars its attempts in a run may cost before no more begin.
    pub max_cost: Option<Dollars>,
    /// How many tokens they may use, those of the cache included.
    pub max_tokens: Option<u64>,
    /// The program that must be there before anything begins.
    pub program: Option<String>,
    /// What to type to install it.
    pub install: Option<String>,
    /// What is run.
    pub command: Option<CommandLine>,
    /// Added to the end of `command`, where that is a list: a model, for example.
    pub arguments: Option<Vec<String>>,
    /// How the prompt goes in.
    pub prompt: Option<PromptWay>,
    /// Added to `command` to continue a session.
    #[serde(rename = "continue")]
    pub continuation: Option<Vec<String>>,
    /// Run in place of `command` to continue a session.
    pub continue_command: Option<Vec<String>>,
    /// The arguments for each option of an agent, with `{value}` in them.
    pub options: Option<BTreeMap<String, Vec<String>>>,
    /// Whether a session can also be continued in another worktree than the one in which it began.
    pub continue_anywhere: Option<bool>,
    /// Set for the program, unless the user's environment says something else.
    pub environment: Option<BTreeMap<String, String>>,
    /// Variables that it needs although agents do not get variables of such names, with `*` for any text; those of `key`
    /// need not be repeated.
    pub pass_env: Option<Vec<String>>,
    /// Variables that it sets for the programs that it starts, to say that they run inside of it: no job of a run that is
    /// started there gets them. With `*` for any text.
    pub drop_env: Option<Vec<String>>,
    /// What it writes outside of its worktree: `~/…`, `$NAME/…` or absolute; a directory with `/` at its end is made where it is
    /// missing.
    pub writes: Option<Vec<String>>,
    /// What it needs in order to be let in by its service.
    pub key: Option<KeyRule>,
    /// How its output is read where that is JSON lines.
    pub event: Option<Vec<EventRule>>,
    /// How its output is read where that is text.
    pub text: Option<Vec<TextRule>>,
    /// What it prints when something outside is out.
    pub outages: Option<OutagePatterns>,
    /// Files that it leaves in its worktree and that are no work, as patterns of `.gitignore`.
    pub ignore: Option<Vec<String>>,
    /// The tools that write files.
    pub write_tools: Option<Vec<String>>,
    /// What the result of a tool call says that was refused and did not just fail: regular expressions, in capitals or not.
    pub refusals: Option<Vec<String>>,
}

impl RunnerText {
    /// Every key that a description may have.
    pub fn keys() -> Vec<String> {
        let Ok(Value::Object(fields)) = serde_json::to_value(Self::default()) else { return Vec::new() };
        fields.into_iter().map(|(key, _)| key).collect()
    }

    /// This description, with absent values taken from `other`. With a command of its own it does not inherit how the
    /// other's command is installed, called and continued.
    pub fn or(self, mut other: Self) -> Self {
        if self.command.is_some() {
            (other.program, other.install, other.key, other.options) = (None, None, None, None);
            (other.account, other.max_cost, other.max_tokens) = (None, None, None);
            (other.arguments, other.continuation, other.continue_command) = (None, None, None);
        }
        Self {
            like: self.like,
            title: self.title.or(other.title),
            account: self.account.or(other.account),
            fallback: self.fallback.or(other.fallback),
            max_cost: self.max_cost.or(other.max_cost),
            max_tokens: self.max_tokens.or(other.max_tokens),
            program: self.program.or(other.program),
            install: self.install.or(other.install),
            command: self.command.or(other.command),
            arguments: self.arguments.or(other.arguments),
            prompt: self.prompt.or(other.prompt),
            continuation: self.continuation.or(other.continuation),
            continue_command: self.continue_command.or(other.continue_command),
            options: self.options.or(other.options),
            continue_anywhere: self.continue_anywhere.or(other.continue_anywhere),
            environment: self.environment.or(other.environment),
            pass_env: self.pass_env.or(other.pass_env),
            drop_env: self.drop_env.or(other.drop_env),
            writes: self.writes.or(other.writes),
            key: self.key.or(other.key),
            event: self.event.or(other.event),
            text: self.text.or(other.text),
            outages: self.outages.or(other.outages),
            ignore: self.ignore.or(other.ignore),
            write_tools: self.write_tools.or(other.write_tools),
            refusals: self.refusals.or(other.refusals),
        }
    }

    /// The runner, if it has a command.
    pub fn complete(self) -> Option<Runner> {
        let command = self.command?;
        let added = self.arguments.unwrap_or_default();
        let full = |mut arguments: Vec<String>| {
            arguments.extend(added.iter().cloned());
            arguments
        };
        Some(Runner {
            title: self.title,
            account: self.account,
            fallback: self.fallback.unwrap_or_default(),
            budget: Budget { cost: self.max_cost, tokens: self.max_tokens },
            program: self.program,
            install: self.install,
            continuation: self.continuation,
            continue_command: self.continue_command.map(full),
            options: self.options.unwrap_or_default(),
            continue_anywhere: self.continue_anywhere.unwrap_or_default(),
            command: match command {
                CommandLine::Arguments(arguments) => CommandLine::Arguments(full(arguments)),
                line @ CommandLine::Shell(_) => line,
            },
            prompt: self.prompt.unwrap_or(PromptWay::Stdin),
            environment: self.environment.unwrap_or_default(),
            pass_env: self.pass_env.unwrap_or_default(),
            drop_env: self.drop_env.unwrap_or_default(),
            writes: self.writes.unwrap_or_default(),
            key: self.key.unwrap_or_default(),
            event: self.event.unwrap_or_default(),
            text: self.text.unwrap_or_default(),
            outages: self.outages.unwrap_or_default(),
            ignore: self.ignore.unwrap_or_default(),
            write_tools: self.write_tools.unwrap_or_default(),
            refusals: self.refusals.unwrap_or_default(),
        })
    }
}

/// A runner with everything that a run needs to know of it; [`RunnerText`] describes the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Runner {
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// What its attempts together may use before no more begin.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// The program that must be there before anything begins; absent: that of its command.
    pub program: Option<String>,
    pub install: Option<String>,
    /// What is run; may hold the placeholders of [`Runner::filled`].
    pub command: CommandLine,
    pub prompt: PromptWay,
    pub continuation: Option<Vec<String>>,
    pub continue_command: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continue_anywhere: bool,
    pub environment: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop_env: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    pub key: KeyRule,
    pub event: Vec<EventRule>,
    pub text: Vec<TextRule>,
    pub outages: OutagePatterns,
    pub ignore: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_tools: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
}

impl Runner {
    /// Whether its output tells which tools it calls.
    pub fn reports_tool_calls(&self) -> bool {
        self.event.iter().any(|rule| rule.tool_call.is_some())
    }

    /// Whether its output has what its attempts cost.
    pub fn reports_cost(&self) -> bool {
        let has_cost = |rule: &TextRule| rule.pattern.contains("<cost>");
        self.event.iter().any(|rule| rule.cost.is_some()) || self.text.iter().any(has_cost)
    }

    /// Whether its output is made for programs, so that people are shown what it means.
    pub fn has_stream(&self) -> bool {
        !self.event.is_empty()
    }

    /// What is run for an agent with this `command` and these `options`, in `session` if there is one that can be
    /// continued, with `places` as in [`Runner::filled`]. Values of options stay as they are. An agent with its own command
    /// gets none of them.
    pub fn invocation(
        &self,
        command: &CommandLine,
        options: &AgentOptions,
        session: Option<&str>,
        places: &[(&str, &str)],
    ) -> CommandLine {
        if *command != self.command {
            return Self::filled(command, places);
        }
        let continuation = session.and(self.continuation.as_ref()).map_or(&[][..], Vec::as_slice);
        let (before, after) = match (session.and(self.continue_command.as_ref()), command) {
            (Some(whole), _) => (whole, &[][..]),
            (None, CommandLine::Arguments(arguments)) => (arguments, continuation),
            (None, CommandLine::Shell(_)) => return command.clone(),
        };
        let places = [&[("session", session.unwrap_or_default())], places].concat();
        let fill = |arguments: &[String]| arguments.iter().map(|argument| fill(argument, &places)).collect();
        let parts: [Vec<String>; 3] = [fill(before), self.option_arguments(options, &places), fill(after)];
        CommandLine::Arguments(parts.concat())
    }

    fn option_arguments(&self, options: &AgentOptions, places: &[(&str, &str)]) -> Vec<String> {
        let filled = |argument: &String, value: &str| {
            argument.split("{value}").map(|part| fill(part, places)).collect::<Vec<_>>().join(value)
        };
        let arguments = |(name, value): (&str, String)| {
            let arguments = self.options.get(name)?;
            Some(arguments.iter().map(|argument| filled(argument, &value)).collect::<Vec<_>>())
        };
        options.set_options().into_iter().filter_map(arguments).flatten().collect()
    }

    /// The options of an agent with this `command` that the runner has no arguments for.
    pub fn unknown_options(&self, command: &CommandLine, options: &AgentOptions) -> Vec<&'static str> {
        let is_told = *command == self.command && matches!(command, CommandLine::Arguments(_));
        let given = options.set_options().into_iter().map(|(name, _)| name);
        given.filter(|name| !is_told || !self.options.contains_key(*name)).collect()
    }

    /// `command` with values in the place of `{name}` in its arguments. A shell line stays as it is (SPEC §13).
    pub fn filled(command: &CommandLine, values: &[(&str, &str)]) -> CommandLine {
        match command {
            CommandLine::Shell(_) => command.clone(),
            CommandLine::Arguments(arguments) => {
                CommandLine::Arguments(arguments.iter().map(|argument| fill(argument, values)).collect())
            }
        }
    }
}

fn fill(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

word_enum! {
    /// How a prompt reaches the program. Never on the command line, which is short and which everybody can read.
    PromptWay {
        /// As standard input.
        Stdin = "stdin",
        /// As a file that an argument of the command names: `{prompt_file}`.
        Argument = "argument",
    }
}

/// What lets a program in: any of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyRule {
    /// Environment variables.
    pub variables: Vec<String>,
    /// Files; `~/` is the user's home, `$NAME/` what that variable holds, others are seen from the main worktree.
    pub files: Vec<String>,
    /// What to type to get one.
    pub obtain: String,
}

impl KeyRule {
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.files.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn known() -> RunnerText {
        RunnerText {
            program: Some("agent".into()),
            command: Some(CommandLine::Arguments(words(&["agent", "--print"]))),
            continuation: Some(words(&["--resume", "{session}"])),
            options: Some([("effort".to_owned(), words(&["--effort={value}"]))].into()),
            key: Some(KeyRule { variables: words(&["A_KEY"]), ..KeyRule::default() }),
            event: Some(vec![EventRule { tool_call: Some(ToolCallPlaces::default()), ..EventRule::default() }]),
            ..RunnerText::default()
        }
    }

    #[test]
    fn arguments_are_added_and_everything_else_stays() {
        let text = RunnerText { arguments: Some(words(&["--model", "small"])), ..RunnerText::default() };
        let runner = text.or(known()).complete().unwrap();
        assert_eq!(runner.command.to_string(), "agent --print --model small");
        let none = AgentOptions::default();
        let places = [("prompt_file", "/p")];
        let run = |options, session| runner.invocation(&runner.command, options, session, &places).to_string();
        assert_eq!(run(&none, Some("s1")), "agent --print --model small --resume s1");
        let options = AgentOptions { effort: Some("high".into()), max_turns: Some(7), ..none.clone() };
        assert_eq!(run(&options, None), "agent --print --model small '--effort=high'");
        assert_eq!(run(&options, Some("s1")), "agent --print --model small '--effort=high' --resume s1");
        let literal = AgentOptions { effort: Some("{session}{prompt_file}{value}".into()), ..none.clone() };
        assert!(run(&literal, Some("s1")).contains("'--effort={session}{prompt_file}{value}' --resume s1"));
        assert_eq!(runner.unknown_options(&runner.command, &options), ["max_turns"]);
        assert!(runner.reports_tool_calls() && !runner.key.is_empty());
        let mine = CommandLine::Arguments(words(&["mine"]));
        assert_eq!(runner.invocation(&mine, &options, Some("s1"), &places), mine);
        assert_eq!(runner.unknown_options(&mine, &options), ["effort", "max_turns"]);
    }

    #[test]
    fn own_command_inherits_output_rules_only() {
        let text = RunnerText { command: Some(CommandLine::Shell("mine {session}".into())), ..RunnerText::default() };
        let runner = text.or(known()).complete().unwrap();
        assert!(runner.reports_tool_calls() && runner.key.is_empty() && runner.program.is_none());
        assert_eq!(runner.invocation(&runner.command, &AgentOptions::default(), Some("s1"), &[]), runner.command);
        assert_eq!(RunnerText::default().complete(), None);
    }

    #[test]
    fn the_keys_are_all_that_can_be_written() {
        for key in RunnerText::keys() {
            let error = toml::from_str::<RunnerText>(&format!("{key} = [[1.5]]\n")).unwrap_err().to_string();
            assert!(!error.contains("unknown field"), "{key}: {error}");
        }
        let error = toml::from_str::<RunnerText>("x = 1").unwrap_err().to_string();
        assert_eq!(error.matches('`').count(), 2 * (RunnerText::keys().len() + 1), "{error}");
    }

    #[test]
    fn placeholders_are_not_filled_in_shell_lines() {
        let fill = |command: CommandLine| Runner::filled(&command, &[("prompt_file", "/p q")]).to_string();
        assert_eq!(fill(CommandLine::Arguments(words(&["a", "--file={prompt_file}"]))), "a '--file=/p q'");
        assert_eq!(fill(CommandLine::Shell("a {prompt_file}".into())), "a {prompt_file}");
    }
}
