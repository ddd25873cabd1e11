//! Arguments of the commands for those who call Lanekeeper from somewhere else than a shell.

use clap::ValueEnum;

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
    #[arg(long = "for", value_enum, value_name = "PROGRAMS", value_delimiter = ',', hide_possible_values = true)]
    pub(crate) programs: Vec<AgentProgram>,
    /// Write lanekeeper.toml, with every setting as a comment
    #[arg(long)]
    pub(crate) config: bool,
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
