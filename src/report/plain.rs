//! A line for each event, for logs and for people without a terminal.

use std::io::{self, Write};

use chrono::FixedOffset;

use super::Reporter;
use crate::event::Record;
use crate::model::{Timestamp, safe_text};
use crate::view::line::line;
use crate::view::{RunView, Styles};

/// Writes a line for each event that a person wants to read.
pub struct Plain<W> {
    out: W,
    offset: FixedOffset,
    styles: Styles,
}

impl<W: Write> Plain<W> {
    /// Times are shown at `offset` from UTC.
    pub fn new(out: W, offset: FixedOffset, styles: Styles) -> Self {
        Self { out, offset, styles }
    }
}

impl<W: Write> Reporter for Plain<W> {
    fn record(&mut self, record: &Record, view: &RunView) -> io::Result<()> {
        let Some(text) = line(record, view, self.offset, self.styles) else { return Ok(()) };
        let mut text = safe_text::for_terminal(&text).into_owned();
        // In one piece, so that another writer's line never ends up inside.
        text.push('\n');
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn tick(&mut self, _view: &RunView, _now: Timestamp) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _view: &RunView) -> io::Result<()> {
        self.out.flush()
    }
}
