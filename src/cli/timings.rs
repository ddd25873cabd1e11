//! `--timings FILE`: a trace of where the time goes, for Perfetto.

use std::path::Path;

use lanewright_engine::executor::timed::row;
use lanewright_files::timing::Timings;
use lanewright_model::Plan;
use lanewright_plan::settings::{Settings, absolute};
use lanewright_programs::process;
use lanewright_view::RunHistory;
use lanewright_view::history::Wait;
use serde_json::Map;

use super::repository_context::redactor;
use super::{Context, ExitStatus, Hint, Result, now};

/// Begins the trace before anything else, so that a file that cannot be written stops nothing half-way.
pub(super) fn begin(context: &Context, file: &Path) -> Result<Timings> {
    let path = absolute(&context.directory, file);
    Timings::create(&path, now(), process::redactor([], &[])).map_err(|error| {
        ExitStatus::Usage
            .error(format!("cannot write the timings to {}: {error}", path.display()))
            .hint("name a file in a directory that exists and is yours")
    })
}

/// Draws where lanes waited, which spans do not show.
pub(super) struct Waits {
    timings: Timings,
    /// How many are drawn, or ended before.
    drawn: usize,
}

impl Waits {
    /// For a run of `plan` with this history. From now on the secrets of both are redacted.
    pub(super) fn new(timings: &Timings, settings: &Settings, plan: &Plan, history: &RunHistory) -> Self {
        timings.redact(redactor(settings, plan));
        Self { timings: timings.clone(), drawn: history.run.waits.len() }
    }

    /// Draws the waits that ended since the last call.
    pub(super) fn draw(&mut self, history: &RunHistory) {
        for Wait { lane, agent, reason, from, until } in &history.run.waits[self.drawn..] {
            self.timings.add(&row(Some(lane), agent.as_ref()), reason.word(), (*from, *until), Map::new());
        }
        self.drawn = history.run.waits.len();
    }
}
