//! What can go wrong with a forge, each with its remedy.

use std::io;
use std::time::Duration;

use lanewright_model::text::shell_line;
use lanewright_model::time::exact;

#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error("`{program}` is not installed, and the forge is asked through it")]
    Missing { program: String, remedy: String },
    #[error("`{program}` is not logged in: {said}")]
    NotLoggedIn { program: &'static str, said: String, remedy: String },
    #[error("the forge of {remote} cannot be detected from its address")]
    Unknown { remote: String },
    #[error("`forge` is `command`, and no `pull_request_command` is set")]
    NoCommand,
    #[error("`follow` is set, and no `pull_request_status_command` says what becomes of pull requests")]
    NoStatusCommand,
    #[error("`pull_request_command` opens pull requests, and does not merge them")]
    NoMerge,
    #[error("`pull_request_command` opens pull requests, and knows no issues")]
    NoIssues,
    #[error("cannot start `{command}`: {source}")]
    Start { command: String, source: io::Error },
    #[error("`{command}` {}:{said}", .code.map_or_else(|| "was ended by a signal".to_owned(), |code| format!("failed with exit code {code}")), said = indented(said))]
    Failed {
        command: String,
        /// Its exit code; `None`: a signal ended it.
        code: Option<i32>,
        said: String,
    },
    #[error("`{command}` was stopped after {}", exact(*.limit))]
    TimedOut { command: String, limit: Duration },
    #[error("`{command}` {expected}; it said: {said}")]
    Answer {
        command: String,
        /// What it should have said: `must print …`.
        expected: &'static str,
        said: String,
    },
}

impl ForgeError {
    pub(super) fn answer(call: &[String], expected: &'static str, said: &str) -> Self {
        Self::Answer { command: shell_line(call), expected, said: said.trim().to_owned() }
    }

    /// Whether the forge has no such thing, as `gh api` and `glab api` print it: `gh: Not Found (HTTP 404)`, `glab: HTTP 404`.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Failed { said, .. } if said.contains("HTTP 404"))
    }

    pub fn remedy(&self) -> String {
        match self {
            Self::Missing { remedy, .. } | Self::NotLoggedIn { remedy, .. } => remedy.clone(),
            Self::Unknown { .. } => {
                "set `forge` in lanewright.toml to `gh` or `glab`, or `pull_request_command` to a command".to_owned()
            }
            Self::NoCommand => "set it in lanewright.toml, such as [\"./open-pull-request\"]".to_owned(),
            Self::NoStatusCommand => "set it in lanewright.toml, such as [\"./pull-request-status\"]".to_owned(),
            Self::NoMerge => "merge it on the forge".to_owned(),
            Self::NoIssues => "set `forge` in lanewright.toml to `gh` or `glab`".to_owned(),
            Self::Failed { .. } => "fix what it names".to_owned(),
            Self::Start { .. } => "check that it is executable".to_owned(),
            Self::TimedOut { .. } => "check what it waits for".to_owned(),
            Self::Answer { .. } => "check that the program is the right one".to_owned(),
        }
    }
}

/// A program's output, each line on a separate line.
fn indented(said: &str) -> String {
    if said.is_empty() {
        " it said nothing".to_owned()
    } else {
        said.lines().map(|line| format!("\n  {line}")).collect()
    }
}
