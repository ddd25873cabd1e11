//! `--timings FILE`: where the time goes, for whoever looks at it in Perfetto.

use std::path::Path;

use serde_json::Map;

use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::{now, redactor};
use crate::engine::ports::timed::row;
use crate::event::Record;
use crate::model::Plan;
use crate::process;
use crate::settings::{Settings, absolute};
use crate::timing::Timings;
use crate::view::waits::{Wait, WaitFold};

/// Begins the trace before anything else, so that a file that cannot be written stops nothing half-way.
pub(super) fn begin(context: &Context, file: &Path) -> Result<Timings, CliError> {
    let path = absolute(&context.directory, file);
    Timings::create(&path, now(), process::redactor([], &[])).map_err(|error| {
        CliError::new(ExitStatus::Usage, format!("cannot write the timings to {}: {error}", path.display()))
            .hint("name a file in a directory that exists and is yours")
    })
}

/// Draws where lanes waited, which no span tells.
pub(super) struct Waits {
    timings: Timings,
    fold: WaitFold,
}

impl Waits {
    /// For a run of `plan` that has come as far as `history`. From now on the secrets of both are kept out.
    pub(super) fn new(timings: &Timings, settings: &Settings, plan: &Plan, history: &[Record]) -> Self {
        timings.redact(redactor(settings, plan));
        let ids = |lanes: &[crate::model::LaneIndex]| lanes.iter().map(|&lane| plan.lane(lane).id.clone()).collect();
        let dependencies = plan.indices().map(|lane| (plan.lane(lane).id.clone(), ids(plan.dag().dependencies(lane))));
        let mut fold = WaitFold::new(dependencies);
        history.iter().for_each(|record| drop(fold.apply(record)));
        Self { timings: timings.clone(), fold }
    }

    /// Draws the waits that ended with `records`.
    pub(super) fn draw(&mut self, records: &[Record]) {
        for Wait { lane, agent, reason, from, until } in records.iter().flat_map(|record| self.fold.apply(record)) {
            self.timings.add(&row(Some(&lane), agent.as_ref()), reason.word(), (from, until), Map::new());
        }
    }
}
