//! Reporters: what a person or a program sees of a run while it goes on.
//!
//! Reporters are told of every record after it is durable, and can do nothing to the run: one that fails is dropped
//! with a warning, and a reader that went away (a broken pipe) is no failure at all.

use std::io;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};

use crate::event::Record;
use crate::model::{Progress, Timestamp};
use crate::view::{RunView, Styles};

mod jsonl;
mod live;
mod plain;

pub use jsonl::Jsonl;
pub use live::{LastLine, Live};
pub use plain::Plain;

/// Somebody who shows a run.
pub trait Reporter {
    /// Shows a record; `view` has taken it in already.
    ///
    /// # Errors
    /// What writing says; the reporter is not asked again.
    fn record(&mut self, record: &Record, view: &RunView) -> io::Result<()>;

    /// Shows that time goes by. Called often, between records.
    ///
    /// # Errors
    /// What writing says; the reporter is not asked again.
    fn tick(&mut self, view: &RunView, now: Timestamp) -> io::Result<()>;

    /// Leaves the terminal as it was.
    ///
    /// # Errors
    /// What writing says.
    fn finish(&mut self, view: &RunView) -> io::Result<()>;
}

/// All reporters of a run, and the view that they share. Without a reporter it only keeps the view.
pub struct FanOut<'a> {
    view: RunView,
    reporters: Vec<(&'static str, Box<dyn Reporter + 'a>)>,
}

impl<'a> FanOut<'a> {
    /// Nobody yet; `view` has taken in what happened so far.
    pub fn new(view: RunView) -> Self {
        Self { view, reporters: Vec::new() }
    }

    /// Adds a reporter, called `name` in the warning when it fails.
    #[must_use]
    pub fn with(mut self, name: &'static str, reporter: impl Reporter + 'a) -> Self {
        self.reporters.push((name, Box::new(reporter)));
        self
    }

    /// The run as it stands.
    pub fn view(&self) -> &RunView {
        &self.view
    }

    /// Takes in a record and shows it.
    pub fn record(&mut self, record: &Record) {
        self.view.apply(record);
        self.each(|reporter, view| reporter.record(record, view));
    }

    /// Lets reporters show that time goes by.
    pub fn tick(&mut self, now: Timestamp) {
        self.each(|reporter, view| reporter.tick(view, now));
    }

    /// Ends all reporting; what remains is the view.
    pub fn finish(mut self) -> RunView {
        self.each(|reporter, view| reporter.finish(view));
        self.view
    }

    fn each(&mut self, mut tell: impl FnMut(&mut dyn Reporter, &RunView) -> io::Result<()>) {
        let view = &self.view;
        self.reporters.retain_mut(|(name, reporter)| match tell(reporter.as_mut(), view) {
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

/// What is shown in the end: never [`Progress::Auto`], and [`Progress::Live`] only where lines can be redrawn. `term` is
/// the value of `TERM`.
pub fn choose(progress: Progress, stderr_is_terminal: bool, term: Option<&str>) -> Progress {
    let redraws = stderr_is_terminal && term.is_some_and(|term| !term.is_empty() && term != "dumb");
    match progress {
        Progress::Auto | Progress::Live if redraws => Progress::Live,
        Progress::Auto | Progress::Live => Progress::Plain,
        Progress::Plain | Progress::Json | Progress::None => progress,
    }
}

/// Whether text on `stream` is coloured: `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and `TERM` decide, then whether it is a
/// terminal.
pub fn styles_for(stream: &impl RawStream) -> Styles {
    match AutoStream::choice(stream) {
        ColorChoice::Never => Styles::plain(),
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => Styles::coloured(),
    }
}

#[cfg(test)]
mod tests;
