//! Commands of the program that the interface has carried out: as children, so that there is one truth about what a
//! command does and refuses.

use std::process::{ExitStatus as Exit, Output, Stdio};
use std::sync::Arc;

use lanewright_model::{LaneId, RunId};
use lanewright_store::RunDirectory;
use lanewright_view::ui::diff::Diff;
use lanewright_view::ui::material::Change;
use lanewright_view::ui::update::Call;

use crate::cli::child::Caller;
use crate::cli::child::detached::{Start, start_resume};
use crate::cli::{CliError, Result};

/// How many words `open RUN LANE` has: with more of them it opens a shell.
pub(super) const OPEN_EDITOR: usize = 3;

/// The error with what to do about it.
pub(crate) fn with_hints(error: anyhow::Error) -> String {
    let CliError { message, hints, .. } = CliError::from(error);
    let hints: String = hints.iter().map(|hint| format!("\nhint: {hint}")).collect();
    format!("{}{hints}", message.trim())
}

/// Calls the program about one run.
#[derive(Clone)]
pub(crate) struct Commands {
    pub(crate) caller: Arc<Caller>,
    pub(crate) run: RunId,
    pub(crate) directory: RunDirectory,
    /// Why no editor can be opened, if none can.
    pub(super) no_editor: Option<String>,
}

impl Commands {
    /// Carries it out; what it printed, or its error with what to do about it.
    pub(crate) fn call(&self, call: &Call) -> Result<String, String> {
        let done = if call.detached { self.resume(&call.words) } else { self.printed(&call.words) };
        done.map_err(with_hints)
    }

    /// Carries out a command that resumes the run, in a process that outlives this one.
    fn resume(&self, words: &[String]) -> Result<String> {
        let name = words.first().map_or("", String::as_str);
        let (output, started) = start_resume(&self.caller, &self.directory, words)?;
        Ok(match started {
            Start::Begun(_) => format!("{name}: the run continues, and its output is in {}", output.display()),
            Start::NotYet => format!("{name} has started; its output is in {}", output.display()),
            Start::Ended(said) => format!("{name}: {}", said.trim()),
        })
    }

    fn printed(&self, words: &[String]) -> Result<String> {
        let Output { stdout, stderr, .. } = self.output(words)?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok(format!("{}\n{}", said(&stdout), said(&stderr)))
    }

    /// What a command wrote that succeeded, else its error as it wrote it.
    fn output(&self, words: &[String]) -> Result<Output> {
        let output = self.caller.for_people(words)?.output()?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(anyhow::anyhow!("{}", said.trim().trim_start_matches("error: ")))
    }

    /// Says why `open` with these words would be refused, while what it prints can still be shown.
    pub(super) fn require_place(&self, words: &[String]) -> Result<(), String> {
        let place = words.iter().take(OPEN_EDITOR).skip(1).cloned();
        self.output(&["path".to_owned()].into_iter().chain(place).collect::<Vec<_>>()).map_err(with_hints)?;
        match &self.no_editor {
            Some(why) if words.len() == OPEN_EDITOR => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// Carries it out on this process's terminal.
    pub(super) fn on_terminal(&self, words: &[String]) -> Result<Exit> {
        Ok(self.caller.for_people(words)?.stdin(Stdio::inherit()).status()?)
    }

    /// What the lane has changed.
    pub(crate) fn diff(&self, lane: &LaneId) -> Change {
        // As it is parsed, whatever the user's settings are.
        let git = ["--", "--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/"];
        let words = ["diff", self.run.as_str(), lane.as_str()].into_iter().chain(git).map(str::to_owned);
        match self.output(&words.collect::<Vec<_>>()) {
            Ok(output) => Change::Shown(Diff::parse(&String::from_utf8_lossy(&output.stdout))),
            Err(error) => Change::Missing(error.to_string()),
        }
    }
}
