//! A line for each event, for logs and without a terminal.

use std::io::{self, Write};

use chrono::FixedOffset;
use lanewright_model::event::Record;
use lanewright_model::safe_text;
use lanewright_view::RunHistory;
use lanewright_view::messages::line::line;
use lanewright_view::status::styles::Styles;

use super::Reporter;

/// Writes a line for each event that a user wants to read.
pub(crate) struct Plain<W> {
    out: W,
    offset: FixedOffset,
    styles: Styles,
}

impl<W: Write> Plain<W> {
    /// Times are shown at `offset` from UTC.
    pub(crate) fn new(out: W, offset: FixedOffset, styles: Styles) -> Self {
        Self { out, offset, styles }
    }
}

impl<W: Write> Reporter for Plain<W> {
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        let Some(text) = line(record, history, self.offset, self.styles) else { return Ok(()) };
        // In one write, so that the lines of other writers do not end up inside.
        self.out.write_all(format!("{}\n", safe_text::for_terminal(&text)).as_bytes())?;
        self.out.flush()
    }
}
