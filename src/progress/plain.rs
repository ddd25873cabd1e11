//! A line for each event, for logs and without a terminal.

use std::io::{self, Write};

use chrono::FixedOffset;
use lanewright_model::event::{Event, Record};
use lanewright_model::{Timestamp, safe_text};
use lanewright_view::RunHistory;
use lanewright_view::messages::line::{clock, line};
use lanewright_view::status::styles::{Styles, Tone};

use super::Reporter;
use super::activity::DELAY;

/// Writes a line for each event that a user wants to read.
pub(crate) struct Plain<W> {
    out: W,
    offset: FixedOffset,
    styles: Styles,
    emptying_since: Option<Timestamp>,
}

impl<W: Write> Plain<W> {
    /// Times are shown at `offset` from UTC.
    pub(crate) fn new(out: W, offset: FixedOffset, styles: Styles) -> Self {
        Self { out, offset, styles, emptying_since: None }
    }

    /// In one write, so that the lines of other writers do not end up inside.
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(format!("{}\n", safe_text::for_terminal(text)).as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Reporter for Plain<W> {
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        if matches!(record.event, Event::PoolEmptied { .. }) {
            self.emptying_since = None;
        }
        line(record, history, self.offset, self.styles).map_or(Ok(()), |text| self.write(&text))
    }

    fn emptying_pool(&mut self, since: Timestamp) {
        self.emptying_since = Some(since);
    }

    fn tick(&mut self, _history: &RunHistory, now: Timestamp) -> io::Result<()> {
        match self.emptying_since.take_if(|since| now.since(*since) >= DELAY) {
            Some(_) => {
                let time = self.styles.paint(Tone::Faint, &clock(now, self.offset));
                self.write(&format!("{time} removing worktrees"))
            }
            None => Ok(()),
        }
    }
}
