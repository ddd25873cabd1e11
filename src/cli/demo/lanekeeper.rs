//! This same program as a child, working on the scratch repository.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};

use super::amiss;
use super::scratch::Scratch;
use crate::cli::error::CliError;
use crate::fs::regular_file::Links;
use crate::fs::{handle, regular_file};
use crate::model::text::shell_line;
use crate::process;

/// A Lanekeeper at work. One that is let go of is killed.
pub(super) struct Lanekeeper {
    child: Child,
    command: String,
    output: PathBuf,
}

impl Lanekeeper {
    /// Starts it with `arguments`; what it prints goes into a file.
    pub(super) fn start(scratch: &Scratch, arguments: &[&str]) -> Result<Self, CliError> {
        let output = scratch.directory().join(format!("{}.txt", arguments[0]));
        let start = || {
            let program = process::current_program()?;
            let mut command = scratch.command(&program);
            command.arg0("lanekeeper").args(arguments).args(["--progress", "plain"]);
            // A group of its own: Ctrl-C at the terminal is for the demo, which then ends what it has started.
            let printed = handle::overwrite(&output, Links::Refuse)?;
            command.process_group(0).stdout(printed.try_clone()?).stderr(printed).spawn()
        };
        let child = start().map_err(|error| amiss(format!("cannot start this program again: {error}")))?;
        Ok(Self { child, command: shell_line([&["lanekeeper"], arguments].concat()), output })
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`: nothing in it gets to run any more.
    pub(super) fn kill(mut self) -> Result<ExitStatus, CliError> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map_err(|error| amiss(format!("process {} cannot be killed: {error}", self.pid())))
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, CliError> {
        self.child.try_wait().map_err(|error| amiss(format!("process {} cannot be watched: {error}", self.pid())))
    }

    /// The end of what it printed.
    pub(super) fn last_words(&self) -> String {
        let text = regular_file::read_text(&self.output).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl fmt::Display for Lanekeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.command, self.pid())
    }
}

impl Drop for Lanekeeper {
    fn drop(&mut self) {
        // Both fail only when it has ended and was collected.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
