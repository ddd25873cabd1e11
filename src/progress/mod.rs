//! Progress reporters: what a user or a program sees of a run while it works.
//!
//! Reporters receive every record after it is durable, and cannot affect the run: one that fails is dropped with a
//! warning, and a reader that is gone (a broken pipe) is not a failure.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use lanewright_files::awake::TICK;
use lanewright_model::event::Record;
use lanewright_model::{Progress, Timestamp};
use lanewright_plan::settings::Environment;
use lanewright_view::RunHistory;
use lanewright_view::status::styles::Styles;

mod activity;
mod block;
mod jsonl;
mod live;
mod notifier;
mod plain;
pub mod projections;

pub(crate) use activity::{Activity, above_activity};
pub(crate) use block::Block;
pub(crate) use jsonl::Jsonl;
pub(crate) use live::Live;
pub(crate) use notifier::Notifier;
pub(crate) use plain::Plain;

/// What a worktree waits for before work in it begins: a hook of the user's, or files that are copied.
#[derive(Debug, Clone)]
pub(crate) struct Preparation {
    /// `A: waits for post-checkout`
    pub(crate) what: String,
    /// How far it is: `12 s`, `3.2 GiB of 20.0 GiB`.
    pub(crate) progress: String,
    pub(crate) takes: Duration,
}

/// Shows a run. A reporter that returns an error is not called again.
pub(crate) trait Reporter {
    /// Shows a record, which `history` includes already.
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()>;

    /// The worktree pool is being emptied `since` then, until the record that says so.
    fn emptying_pool(&mut self, _since: Timestamp) {}

    /// What takes time now and is in no record.
    fn preparations(&mut self, _running: &[Preparation], _now: Timestamp) -> io::Result<()> {
        Ok(())
    }

    /// Whether it shows time passing, so that ticks are to come often.
    fn shows_time(&self) -> bool {
        false
    }

    /// Called between records.
    fn tick(&mut self, _history: &RunHistory, _now: Timestamp) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All reporters of a run, and the history that they share.
pub struct FanOut<'a> {
    history: RunHistory,
    reporters: Vec<(&'static str, Box<dyn Reporter + 'a>)>,
}

impl<'a> FanOut<'a> {
    /// No reporter yet; `history` includes what happened so far.
    pub fn new(history: RunHistory) -> Self {
        Self { history, reporters: Vec::new() }
    }

    /// Adds a reporter, called `name` in the warning when it fails.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, reporter: impl Reporter + 'a) -> Self {
        self.reporters.push((name, Box::new(reporter)));
        self
    }

    pub(crate) fn history(&self) -> &RunHistory {
        &self.history
    }

    /// Adds a record to the history and shows it.
    pub fn record(&mut self, record: &Record) {
        self.history.apply(record);
        self.each(|reporter, history| reporter.record(record, history));
    }

    pub(crate) fn emptying_pool(&mut self, since: Timestamp) {
        self.reporters.iter_mut().for_each(|(_, reporter)| reporter.emptying_pool(since));
    }

    /// How often [`FanOut::tick`] is to be called at least.
    pub(crate) fn tick_interval(&self) -> Duration {
        if self.reporters.iter().any(|(_, reporter)| reporter.shows_time()) { live::REDRAW } else { TICK }
    }

    /// Shows what waits for a hook of the user's now, and for how long.
    pub(crate) fn preparations(&mut self, running: &[Preparation], now: Timestamp) {
        self.each(|reporter, _| reporter.preparations(running, now));
    }

    pub(crate) fn tick(&mut self, now: Timestamp) {
        self.each(|reporter, history| reporter.tick(history, now));
    }

    pub(crate) fn finish(mut self) -> RunHistory {
        self.each(|reporter, _| reporter.finish());
        self.history
    }

    fn each(&mut self, mut show: impl FnMut(&mut dyn Reporter, &RunHistory) -> io::Result<()>) {
        let history = &self.history;
        self.reporters.retain_mut(|(name, reporter)| match show(reporter.as_mut(), history) {
            Ok(()) => true,
            Err(error) => {
                if error.kind() != io::ErrorKind::BrokenPipe {
                    tracing::warn!("progress ({name}) is not shown any more: {error}; the run continues");
                }
                false
            }
        });
    }
}

/// Never [`Progress::Auto`], and [`Progress::Live`] only where lines can be redrawn. `term` is the value of `TERM`.
pub(crate) fn choose(progress: Progress, stderr_is_terminal: bool, term: Option<&str>) -> Progress {
    let redraws = stderr_is_terminal && term.is_some_and(|term| !term.is_empty() && term != "dumb");
    match progress {
        Progress::Auto | Progress::Live if redraws => Progress::Live,
        Progress::Auto | Progress::Live => Progress::Plain,
        Progress::Plain | Progress::Json | Progress::None => progress,
    }
}

/// Whether no user watches the terminal: CI services set `CI`, may give a program a terminal all the same, and keep every
/// redrawn line of it.
pub(crate) fn is_unattended(environment: &Environment) -> bool {
    ["CI", "GITHUB_ACTIONS", "GITLAB_CI"]
        .iter()
        .any(|name| environment.get(*name).is_some_and(|value| !value.is_empty() && value != "false" && value != "0"))
}

/// The width of text that is written to no terminal, in columns: a pager or the page of a CI service wraps it itself.
pub(crate) const UNWRAPPED: usize = 500;

/// Rows and columns of a terminal; `columns` where `stream` is none.
pub(crate) fn terminal_size(stream: impl AsFd, columns: usize) -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(stream).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    size.map_or((24, columns), |size| (size.ws_row.into(), size.ws_col.into()))
}

/// `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and `TERM` decide, then whether `stream` is a terminal.
pub(crate) fn styles_for(stream: &impl RawStream) -> Styles {
    match AutoStream::choice(stream) {
        ColorChoice::Never => Styles::plain(),
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => Styles::coloured(),
    }
}

#[cfg(test)]
mod tests;
