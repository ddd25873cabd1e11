//! Arguments of the commands for those who call Lanekeeper from somewhere else than a shell.

use clap::ValueEnum;

/// `hook`.
#[derive(Debug, clap::Args)]
pub struct Hook {
    /// What happened
    #[arg(value_enum)]
    pub event: HookEvent,
}

/// What Claude Code calls a hook for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookEvent {
    /// A session began, or goes on: tells of unfinished runs.
    SessionStart,
    /// The user sent a prompt: notes the interruption.
    UserPromptSubmit,
    /// A tool was used: counts it, and has work kept.
    PostToolUse,
    /// The agent has answered: reminds of an unfinished run.
    Stop,
}

/// `init`.
#[derive(Debug, clap::Args)]
pub struct Init {
    /// Write lanekeeper.toml, with every setting as a comment
    #[arg(long)]
    pub config: bool,
    /// Write the slash commands execute-phase and execute-lane
    #[arg(long)]
    pub commands: bool,
    /// Enter the hooks into .claude/settings.json
    #[arg(long)]
    pub hooks: bool,
    /// Enter the MCP server into .mcp.json
    #[arg(long)]
    pub mcp: bool,
    /// Write a workflow for this CI service; repeatable
    #[arg(long, value_enum, value_name = "SERVICE")]
    pub ci: Vec<CiService>,
    /// Only show what would be written
    #[arg(long)]
    pub dry_run: bool,
    /// Write without asking
    #[arg(long)]
    pub yes: bool,
}

/// Services that there is a workflow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CiService {
    /// GitHub Actions.
    Github,
    /// GitLab CI.
    Gitlab,
}
