//! Arguments of the commands for those who call Lanewright from somewhere else than a shell.

use std::ffi::OsStr;

use clap::ValueEnum;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};

/// What Claude Code calls a hook for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookEvent {
    /// A session starts or continues: reports unfinished runs.
    SessionStart,
    /// The user sent a prompt: notes the interruption.
    UserPromptSubmit,
    /// A tool was used: counts it, and has work kept.
    PostToolUse,
    /// The agent has answered: reminds of an unfinished run.
    Stop,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The programs: claude, codex, gemini, opencode; separated by commas
    ///
    /// Default: Claude Code, and those that the repository has files of.
    #[arg(long = "for", value_parser = Trimmed::<AgentProgram>::new(), value_name = "PROGRAMS", value_delimiter = ',')]
    #[arg(hide_possible_values = true)]
    pub(crate) programs: Vec<AgentProgram>,
    /// Write lanewright.toml, with every setting as a comment
    #[arg(long)]
    pub(crate) config: bool,
    /// Write `setup` and `copy` into lanewright.toml for what worktrees would lack
    ///
    /// Installed dependencies of lock files, and files such as .env that are not in git.
    #[arg(long)]
    pub(crate) worktrees: bool,
    /// Write the tests of the repository into lanewright.toml
    ///
    /// What package.json, Makefile, justfile, Cargo.toml, pyproject.toml or go.mod in the root say.
    #[arg(long)]
    pub(crate) gates: bool,
    /// Write the slash commands execute-phase and execute-lane
    #[arg(long)]
    pub(crate) commands: bool,
    /// Enter the hooks into .claude/settings.json
    #[arg(long)]
    pub(crate) hooks: bool,
    /// Enter the MCP server into the programs' files
    #[arg(long)]
    pub(crate) mcp: bool,
    /// Write a workflow for this CI service; repeatable
    #[arg(long, value_enum, value_name = "SERVICE")]
    pub(crate) ci: Vec<CiService>,
    /// Only show what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Replace also command files that Lanewright did not write
    #[arg(long)]
    pub(crate) force: bool,
}

/// Reads a value of a list, which may have blanks around it.
#[derive(Clone)]
struct Trimmed<T: ValueEnum + Clone + Send + Sync + 'static>(EnumValueParser<T>);

impl<T: ValueEnum + Clone + Send + Sync + 'static> Trimmed<T> {
    fn new() -> Self {
        Self(EnumValueParser::new())
    }
}

impl<T: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for Trimmed<T> {
    type Value = T;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&clap::Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let trimmed = value.to_str().map_or(value, |value| OsStr::new(value.trim()));
        self.0.parse_ref(command, arg, trimmed)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Programs of coding agents that a repository is set up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentProgram {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
}

/// Services that there is a workflow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CiService {
    /// GitHub Actions.
    Github,
    /// GitLab CI.
    Gitlab,
}
