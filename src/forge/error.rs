//! What can go wrong with a forge, each with its remedy.

use std::io;
use std::time::Duration;

use crate::model::time::short;

/// Why a pull request was not opened.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The program is not installed.
    #[error("`{program}` is not installed, and pull requests are opened with it")]
    Missing {
        /// Its name.
        program: String,
        /// What to do about it.
        remedy: String,
    },
    /// The program has no account to act for.
    #[error("`{program}` is not logged in: {said}")]
    NotLoggedIn {
        /// Its name.
        program: &'static str,
        /// What it says.
        said: String,
        /// What to do about it.
        remedy: String,
    },
    /// Nobody knows which forge it is.
    #[error("which forge {remote} belongs to cannot be told from its address")]
    Unknown {
        /// The remote.
        remote: String,
    },
    /// A command is to be used and none is set.
    #[error("`forge` is `command`, and no `pull_request_command` is set")]
    NoCommand,
    /// A program could not be started.
    #[error("cannot start `{command}`: {source}")]
    Start {
        /// What was run; can be pasted into a shell.
        command: String,
        /// Why not.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` {}:{said}", .code.map_or_else(|| "was ended by a signal".to_owned(), |code| format!("failed with exit code {code}")), said = indented(said))]
    Failed {
        /// What was run; can be pasted into a shell.
        command: String,
        /// Its exit code; `None`: a signal ended it.
        code: Option<i32>,
        /// What it said.
        said: String,
    },
    /// A program took longer than it may, and was ended.
    #[error("`{command}` was stopped after {}", short(*.limit))]
    TimedOut {
        /// What was run; can be pasted into a shell.
        command: String,
        /// How long it might have taken.
        limit: Duration,
    },
    /// A program said something that is no answer.
    #[error("`{command}` {expected}; it said: {said}")]
    Answer {
        /// What was run; can be pasted into a shell.
        command: String,
        /// What it should have said: `must print …`.
        expected: &'static str,
        /// What it said.
        said: String,
    },
}

impl ForgeError {
    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Missing { remedy, .. } | Self::NotLoggedIn { remedy, .. } => remedy.clone(),
            Self::Unknown { .. } => {
                "set `forge` in lanekeeper.toml to `gh` or `glab`, or `pull_request_command` to a command".to_owned()
            }
            Self::NoCommand => "set it in lanekeeper.toml, such as [\"./open-pull-request\"]".to_owned(),
            Self::Failed { .. } => "put right what it names".to_owned(),
            Self::Start { .. } => "see that it may be run".to_owned(),
            Self::TimedOut { .. } => "see what keeps it".to_owned(),
            Self::Answer { .. } => "see that the program is the one that is meant".to_owned(),
        }
    }
}

/// What a program said, each line on one of its own.
fn indented(said: &str) -> String {
    if said.is_empty() {
        " it said nothing".to_owned()
    } else {
        said.lines().map(|line| format!("\n  {line}")).collect()
    }
}
