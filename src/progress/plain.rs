//! A line for each event, for logs and without a terminal.

use std::io::{self, Write};
use std::time::Duration;

use chrono::FixedOffset;
use lanewright_model::event::{Event, Record};
use lanewright_model::{Ci, Timestamp, safe_text};
use lanewright_view::RunHistory;
use lanewright_view::messages::ci_log::folded;
use lanewright_view::messages::line::{clock, line};
use lanewright_view::status::styles::{Styles, Tone};

use super::activity::DELAY;
use super::{Preparation, Reporter};

/// How long a hook of the user's runs before it is named.
const LONG: Duration = Duration::from_secs(2);

/// Writes a line for each event that a user wants to read.
pub(crate) struct Plain<W> {
    out: W,
    offset: FixedOffset,
    styles: Styles,
    /// The service whose log it is.
    service: Ci,
    emptying_since: Option<Timestamp>,
    /// Of which preparations that run a line was written.
    preparations: Vec<String>,
}

impl<W: Write> Plain<W> {
    /// Times are shown at `offset` from UTC.
    pub(crate) fn new(out: W, offset: FixedOffset, styles: Styles) -> Self {
        Self { out, offset, styles, service: Ci::None, emptying_since: None, preparations: Vec::new() }
    }

    /// The same for the log of a CI service, which gets the output of what failed as well, folded.
    pub(crate) fn in_log_of(self, service: Ci) -> Self {
        Self { service, ..self }
    }

    /// In one write, so that the lines of other writers do not end up inside.
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.write_all(&format!("{}\n", safe_text::for_terminal(text)))
    }

    fn write_all(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Reporter for Plain<W> {
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        if matches!(record.event, Event::PoolEmptied { .. }) {
            self.emptying_since = None;
        }
        let Some(text) = line(record, history, self.offset, self.styles) else { return Ok(()) };
        match folded(self.service, record, &text) {
            Some(group) => self.write_all(&group),
            None => self.write(&text),
        }
    }

    fn emptying_pool(&mut self, since: Timestamp) {
        self.emptying_since = Some(since);
    }

    fn preparations(&mut self, running: &[Preparation], now: Timestamp) -> io::Result<()> {
        self.preparations.retain(|known| running.iter().any(|it| it.what == *known));
        for Preparation { what, progress, .. } in running.iter().filter(|it| it.takes >= LONG) {
            if !self.preparations.contains(what) {
                self.preparations.push(what.clone());
                let time = self.styles.paint(Tone::Faint, &clock(now, self.offset));
                self.write(&format!("{time} {what}, {progress}"))?;
            }
        }
        Ok(())
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
