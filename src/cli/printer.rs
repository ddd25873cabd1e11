//! The one place that writes to standard output and standard error, and so the edge where text of others is made safe.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use super::args::Format;
use super::error::{CliError, ExitStatus};
use crate::model::safe_text;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Standard output did not take what was written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct OutputError(#[source] pub io::Error);

/// Writes for people or for programs; styles are taken out where the stream is no terminal that knows them.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    format: Format,
}

impl Printer {
    /// A printer for people or for programs.
    pub fn new(format: Format) -> Self {
        Self { format }
    }

    /// Who is written for.
    pub fn format(self) -> Format {
        self.format
    }

    /// Writes data to standard output, made safe to show.
    ///
    /// # Errors
    /// When nobody reads any more, or the disk is full. Passed up, a reader who went away ends the command quietly.
    pub fn out(self, text: impl Display) -> Result<(), OutputError> {
        let mut stdout = anstream::stdout().lock();
        let text = text.to_string();
        stdout.write_all(self.safe(&text).as_bytes()).and_then(|()| stdout.flush()).map_err(OutputError)
    }

    /// What programs read keeps its data, escaped.
    fn safe(self, text: &str) -> Cow<'_, str> {
        match self.format {
            Format::Text => safe_text::for_terminal(text),
            Format::Json => safe_text::json(text),
        }
    }

    /// Writes data to standard output as indented JSON.
    ///
    /// # Errors
    /// Those of [`Printer::out`].
    pub fn json(self, value: &Value) -> Result<(), OutputError> {
        self.out(format_args!("{value:#}\n"))
    }

    /// Tells of something odd that does not stop the command.
    pub fn warning(self, message: impl Display, hints: &[String]) {
        match self.format {
            Format::Text => self.tell(&format!("{WARNING}warning:{WARNING:#} {message}{}", hint_lines(hints))),
            Format::Json => {
                self.tell(&json!({"kind": "warning", "message": message.to_string(), "hints": hints}).to_string());
            }
        }
    }

    /// Tells a person, on standard error, what is no data; nothing where there is nothing to tell.
    pub fn note(self, text: impl Display) {
        let text = text.to_string();
        if !text.trim().is_empty() {
            self.tell(&text);
        }
    }

    /// Writes a line to standard error. When that fails there is nobody left to tell.
    fn tell(self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{}", self.safe(text.trim_end()));
    }

    /// Tells why the command ends, and gives the status to end with.
    pub fn error(self, error: &CliError) -> ExitStatus {
        match self.format {
            _ if error.status == ExitStatus::Done => {}
            Format::Text => self.tell(&format!("{ERROR}error:{ERROR:#} {}{}", error.message, hint_lines(&error.hints))),
            Format::Json => self.tell(&error.to_json().to_string()),
        }
        error.status
    }

    /// Tells what clap says instead of parsed arguments: help and version on standard output, faults as errors.
    ///
    /// # Errors
    /// The fault in its machine form, or what standard output did not take.
    pub fn refusal(self, refusal: &clap::Error) -> Result<ExitStatus, CliError> {
        let text = refusal.render();
        match self.format {
            _ if !refusal.use_stderr() => {
                self.out(text.ansi())?;
                Ok(ExitStatus::Done)
            }
            Format::Text => {
                self.tell(&text.ansi().to_string());
                Ok(ExitStatus::Usage)
            }
            Format::Json => Err(CliError::from(refusal)),
        }
    }
}

fn hint_lines(hints: &[String]) -> String {
    hints.iter().map(|hint| format!("\n{HINT}hint:{HINT:#} {hint}")).collect()
}

/// Standard error for diagnostics of `tracing`, made safe to show.
#[derive(Debug)]
pub(super) struct Diagnostics;

impl Write for Diagnostics {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An event comes in one piece.
        io::stderr().write_all(safe_text::for_terminal(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
