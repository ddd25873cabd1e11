//! Commands that a plan names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A command of a plan: a shell line where the plan wrote a string, an argument vector where it wrote a list.
///
/// Only the first form ever meets a shell (`sh -c`), and nothing is expanded into it (SPEC §13).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// Run through `sh -c`.
    Shell(String),
    /// Run as it is; the first element is the program.
    Arguments(Vec<String>),
}

impl CommandLine {
    /// Program and arguments as they are executed.
    pub fn to_arguments(&self) -> Vec<String> {
        match self {
            Self::Shell(line) => vec!["sh".into(), "-c".into(), line.clone()],
            Self::Arguments(arguments) => arguments.clone(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Shell(line) => line.trim().is_empty(),
            Self::Arguments(arguments) => arguments.first().is_none_or(|program| program.is_empty()),
        }
    }
}

impl fmt::Display for CommandLine {
    /// As a person would type it; quoted where needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(line) => f.write_str(line),
            Self::Arguments(arguments) => f.write_str(&super::text::shell_line(arguments)),
        }
    }
}
