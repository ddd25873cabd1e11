//! How the demo speaks: a line for every step, for people or as JSON.

use serde_json::json;

use crate::cli::args::Format;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::model::JobId;
use crate::view::line::Line;
use crate::view::{Styles, Tone};

/// Cells for the word that a line begins with.
const WORD: usize = 9;

/// Tells what happens.
pub(super) struct Telling {
    printer: Printer,
}

impl Telling {
    /// Tells through `printer`, in its format.
    pub(super) fn new(printer: Printer) -> Self {
        Self { printer }
    }

    /// Something that the demo does or has found out.
    pub(super) fn step(&self, step: &str, text: &str) -> Result<(), CliError> {
        self.line(step, Tone::Strong, text, Tone::Plain)
    }

    /// Something that the run log says.
    pub(super) fn event(&self, line: &Line) -> Result<(), CliError> {
        self.line("run", Tone::Faint, &line.text, line.tone)
    }

    /// What a command printed, after the step that names it.
    pub(super) fn block(&self, step: &str, text: &str) -> Result<(), CliError> {
        match self.printer.format() {
            Format::Text => {
                let indented = text.trim_end().lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n");
                Ok(self.printer.out(format!("\n{}\n", indented.collect::<String>()))?)
            }
            Format::Json => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                lines.into_iter().try_for_each(|line| self.line(step, Tone::Plain, line, Tone::Plain))
            }
        }
    }

    /// Colours for text that is made elsewhere; the printer takes them out where nobody wants them.
    pub(super) fn styles(&self) -> Styles {
        match self.printer.format() {
            Format::Text => Styles::coloured(),
            Format::Json => Styles::plain(),
        }
    }

    /// The same for git.
    pub(super) fn git_colour(&self) -> &'static str {
        match self.printer.format() {
            Format::Text => "--color=always",
            Format::Json => "--color=never",
        }
    }

    fn line(&self, step: &str, step_tone: Tone, text: &str, tone: Tone) -> Result<(), CliError> {
        let styles = self.styles();
        match self.printer.format() {
            Format::Text => {
                let word = styles.paint(step_tone, &format!("{step:WORD$}"));
                self.printer.out(format_args!("{word} {}\n", styles.paint(tone, text)))?;
            }
            Format::Json => self.printer.out(format_args!("{}\n", json!({"step": step, "text": text})))?,
        }
        Ok(())
    }
}

/// `API engineer`: whose job it is.
pub(super) fn subject(job: &JobId) -> String {
    let lane = job.lane.as_ref().map(ToString::to_string);
    let words: Vec<String> = lane.into_iter().chain(job.agent().map(ToString::to_string)).collect();
    words.join(" ")
}
