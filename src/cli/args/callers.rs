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
