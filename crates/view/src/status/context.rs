//! What views of a run depend on besides its history.

use lanewright_model::Timestamp;
use lanewright_model::time::LocalTime;

use crate::history::RunHistory;

#[derive(Debug, Clone, Copy)]
pub struct SummaryContext<'a> {
    pub now: LocalTime,
    /// The words before a command, normally `lanewright` alone.
    pub program: &'a [String],
    /// Whether a live process works on the run.
    pub held: bool,
}

impl SummaryContext<'_> {
    /// Up to when times are counted: the clock of a run that no process works on stops.
    pub(crate) fn until(&self, history: &RunHistory) -> Timestamp {
        let run = &history.run;
        run.until(if self.held { self.now.at } else { run.last.unwrap_or(self.now.at) })
    }
}
