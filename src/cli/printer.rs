//! The one place that writes to standard output and standard error, and so the edge where text of others is made safe.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use lanewright_model::safe_text;
use serde_json::{Value, json};

use super::args::Format;
use super::error::{CliError, ExitStatus, OutputError, WarningLine};
use crate::progress::{above_activity, terminal_size};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Writes for people or for programs; styles are removed where the stream is not a terminal that shows them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    format: Format,
}

impl Printer {
    pub(super) fn new(format: Format) -> Self {
        Self { format }
    }

    pub(super) fn format(self) -> Format {
        self.format
    }

    /// Writes data to standard output, made safe to show. The error of a reader that went away ends the command quietly.
    pub(super) fn out(self, text: impl Display) -> Result<()> {
        let text = text.to_string();
        let written = above_activity(|| {
            let mut stdout = anstream::stdout().lock();
            stdout.write_all(self.safe(&text).as_bytes()).and_then(|()| stdout.flush())
        });
        Ok(written.map_err(OutputError)?)
    }

    /// Data for programs is escaped, not removed.
    fn safe(self, text: &str) -> Cow<'_, str> {
        match self.format {
            Format::Text => safe_text::for_terminal(text),
            Format::Json => safe_text::json(text),
        }
    }

    pub(super) fn json(self, value: &Value) -> Result<()> {
        self.out(format_args!("{value:#}\n"))
    }

    /// Writes data to standard output: `text` for people, `json` for programs. A command may end with it.
    pub(super) fn print(self, text: impl Display, json: &Value) -> Result<ExitStatus> {
        match self.format {
            Format::Text => self.out(text)?,
            Format::Json => self.json(json)?,
        }
        Ok(ExitStatus::Done)
    }

    /// Writes to standard error what is odd but does not stop the command.
    pub(super) fn warning(self, message: impl Display, hints: &[String]) {
        match self.format {
            Format::Text => self.error_line(&format!("{WARNING}warning:{WARNING:#} {message}{}", hint_lines(hints))),
            Format::Json => self.error_line(&json!(WarningLine::new(message, hints)).to_string()),
        }
    }

    /// Writes a message to standard error; nothing if it is blank.
    pub(super) fn note(self, text: impl Display) {
        let text = text.to_string();
        if !text.trim().is_empty() {
            self.error_line(&text);
        }
    }

    /// Writes a line to standard error, in one piece. A failure cannot be reported anywhere.
    fn error_line(self, text: &str) {
        let line = format!("{}\n", self.safe(text.trim_end()));
        let _ = above_activity(|| anstream::stderr().lock().write_all(line.as_bytes()));
    }

    /// Writes why the command ends, and returns the status to end with.
    pub(super) fn error(self, error: &CliError) -> ExitStatus {
        match self.format {
            _ if error.status == ExitStatus::Done => {}
            Format::Text => {
                self.error_line(&format!("{ERROR}error:{ERROR:#} {}{}", error.message, hint_lines(&error.hints)))
            }
            Format::Json => self.error_line(&error.to_json().to_string()),
        }
        error.status
    }

    /// Writes what clap returns instead of arguments: help and version to standard output, bad usage as an error.
    pub(super) fn refusal(self, refusal: &clap::Error) -> Result<ExitStatus> {
        let text = refusal.render();
        match self.format {
            _ if !refusal.use_stderr() => {
                self.out(text.ansi())?;
                Ok(ExitStatus::Done)
            }
            Format::Text => {
                self.error_line(&text.ansi().to_string());
                Ok(ExitStatus::Usage)
            }
            Format::Json => Err(CliError::from(refusal).into()),
        }
    }
}

fn hint_lines(hints: &[String]) -> String {
    hints.iter().map(|hint| format!("\n{HINT}hint:{HINT:#} {hint}")).collect()
}

/// Rows and columns of the terminal; elsewhere wide enough for every table.
pub(super) fn screen() -> (usize, usize) {
    terminal_size(io::stdout(), 100)
}

/// Standard error for diagnostics of `tracing`, made safe to show.
#[derive(Debug)]
pub(super) struct Diagnostics;

impl Write for Diagnostics {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An event comes in one piece.
        let text = String::from_utf8_lossy(bytes);
        above_activity(|| io::stderr().write_all(safe_text::for_terminal(&text).as_bytes()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
