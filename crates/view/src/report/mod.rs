//! The execution report (SPEC §11): everything in a run's log, in order, as one value, and the formats in which it is
//! written. [`ExecutionReport::render`] is the one place that a new format is added to.

mod annotations;
mod code_quality;
mod drawing;
mod escape;
mod html;
mod json;
mod junit;
mod lanes;
mod markdown;
mod pull_request;
mod render;
mod text;
mod timeline;

use std::collections::HashMap;

use super::history::RunHistory;
use crate::status::summary::{Summary, SummaryContext};
use lanes::{JobReport, LaneReport, Reporter};
use lanewright_model::{LaneId, PhaseId};
use timeline::{Timeline, Times};

pub use annotations::{Annotation, annotations};
pub use html::changes::{ChangedFile, LaneChanges, MOST_CHANGES};
pub use json::RunReport;
pub use markdown::markdown;
pub use pull_request::pull_request;
pub use render::MARKDOWN_LIMIT;

#[derive(Debug, Clone)]
pub struct ExecutionReport<'h> {
    pub history: &'h RunHistory,
    pub summary: Summary<'h>,
    pub lanes: Vec<LaneReport<'h>>,
    pub final_gate: Vec<JobReport<'h>>,
    pub times: Times,
    pub timeline: Timeline,
    /// Lines of the run log that are damaged and therefore missing here.
    pub damaged_lines: usize,
    /// What lanes changed, where that was read from the repository; only HTML shows it.
    pub changes: HashMap<LaneId, LaneChanges>,
    /// The words before a command.
    pub program: Vec<String>,
}

impl<'h> ExecutionReport<'h> {
    /// Of a history without the secrets of the plan.
    pub fn of(history: &'h RunHistory, context: SummaryContext<'_>, damaged_lines: usize) -> Self {
        let summary = Summary::of(history, context);
        let run = &history.run;
        let until = summary.until;
        let clock = history.clock(until);
        let reporter = Reporter { until, clock: &clock };
        let lanes = reporter.lanes(history, &summary.lanes);
        let final_gate = reporter.jobs(run.jobs.all());
        let (timeline, times) = timeline::of(history, &reporter, &lanes, &final_gate);
        let (changes, program) = (HashMap::new(), context.program.to_vec());
        Self { history, summary, lanes, final_gate, times, timeline, damaged_lines, changes, program }
    }

    #[must_use]
    pub fn with_changes(self, changes: HashMap<LaneId, LaneChanges>) -> Self {
        Self { changes, ..self }
    }

    /// `P1 Billing`.
    pub(super) fn subject(&self) -> String {
        let phase = self.history.run.phase.as_ref().map_or("run", PhaseId::as_str);
        self.history.run.title.as_ref().map_or_else(|| phase.to_owned(), |title| format!("{phase} {title}"))
    }
}

#[cfg(test)]
mod tests;
