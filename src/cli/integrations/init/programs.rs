//! The programs that a repository is set up for: which of them it uses, and the files of each.

use std::path::Path;

use super::{claude, commands, server};
use crate::cli::args::AgentProgram;
use crate::cli::{ExitStatus, Hint, Result};

/// The text of a file from the one that it has.
pub(crate) type Entry = fn(&str) -> Result<String, String>;

/// The text of a new file.
type Text = fn() -> String;

/// What `init` writes for a program.
pub(super) struct Program {
    pub(crate) which: AgentProgram,
    pub(crate) name: &'static str,
    /// Files and directories that show that a repository uses it.
    signs: &'static [&'static str],
    pub(crate) commands: fn() -> commands::Files,
    pub(crate) server: (&'static str, Entry),
    pub(crate) hooks: Option<(&'static str, Entry)>,
    /// What lets the program run the commands; a file that exists is the user's.
    pub(crate) rules: Option<(&'static str, Text)>,
    /// What the user has to do, or what the program cannot do.
    pub(crate) note: &'static str,
}

const PROGRAMS: [Program; 4] = [
    Program {
        which: AgentProgram::Claude,
        name: "Claude Code",
        signs: &[],
        commands: commands::claude,
        server: (".mcp.json", server::claude),
        hooks: Some((".claude/settings.json", claude::with_hooks)),
        rules: None,
        note: "reads them in its next session.",
    },
    Program {
        which: AgentProgram::Codex,
        name: "Codex",
        signs: &[".codex"],
        commands: commands::codex,
        server: (".codex/config.toml", server::codex),
        hooks: None,
        rules: Some((".codex/rules/lanewright.rules", commands::codex_rules)),
        note: "reads .codex in projects that you trust, and then runs these commands without asking; call $execute-phase \
               and $execute-lane. No hooks.",
    },
    Program {
        which: AgentProgram::Gemini,
        name: "Gemini CLI",
        signs: &[".gemini", "GEMINI.md"],
        commands: commands::gemini,
        server: (".gemini/settings.json", server::gemini),
        hooks: None,
        rules: None,
        note: "starts the MCP server in folders that you trust, and then calls its tools without asking; call \
               /execute-phase and /execute-lane. No hooks.",
    },
    Program {
        which: AgentProgram::Opencode,
        name: "opencode",
        signs: &[".opencode", "opencode.json", "opencode.jsonc"],
        commands: commands::opencode,
        server: ("opencode.json", server::opencode),
        hooks: None,
        rules: None,
        note: "needs nothing else; call /execute-phase and /execute-lane. No hooks.",
    },
];

/// The programs that are named; if none is, Claude Code and those that the repository has files of.
pub(crate) fn chosen(root: &Path, named: &[AgentProgram]) -> Vec<Program> {
    let is_used = |program: &Program| program.signs.iter().any(|sign| root.join(sign).symlink_metadata().is_ok());
    let is_chosen = |program: &Program| match named {
        [] => program.which == AgentProgram::Claude || is_used(program),
        named => named.contains(&program.which),
    };
    PROGRAMS.into_iter().filter(is_chosen).collect()
}

/// Which programs were found, where none was named and there is more than the usual one.
pub(super) fn announced(named: &[AgentProgram], chosen: &[Program]) -> String {
    match (named, chosen) {
        ([], [_, found, ..]) => {
            let names: Vec<&str> = chosen.iter().skip(1).map(|program| program.name).collect();
            let for_one = format!("{:?}", found.which).to_lowercase();
            format!(
                "# Also for {}, whose files are in this repository; --for chooses, such as --for {for_one}\n",
                names.join(", ")
            )
        }
        _ => String::new(),
    }
}

/// Refuses to write hooks alone for programs that have none.
pub(super) fn check_hooks(programs: &[Program]) -> Result<()> {
    if programs.iter().any(|program| program.hooks.is_some()) {
        return Ok(());
    }
    let names: Vec<&str> = programs.iter().map(|program| program.name).collect();
    let error = ExitStatus::Usage.error(format!("Lanewright has no hooks for {}", names.join(", ")));
    Err(error.hint("hooks are for Claude Code: lanewright init --hooks --for claude"))
}
