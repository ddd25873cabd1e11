//! A stop ends what runs, as hard as it was asked for, and nothing begins after it.

use std::collections::BTreeMap;

use lanewright_model::LaneId;
use lanewright_model::event::Event;

/// What was asked to stop since the run was last resumed, and whether by force; `None` is the run.
#[derive(Default)]
pub struct Stops(BTreeMap<Option<LaneId>, bool>);

impl Stops {
    pub fn see(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::RunResumed { .. } => self.0.clear(),
            Event::LaneRolledBack { lane, .. } => drop(self.0.remove(&Some(lane.clone()))),
            Event::StopRequested { lane, force, .. } => *self.0.entry(lane.clone()).or_default() |= force,
            Event::JobPlanned { job, .. } if self.force(job.lane.as_ref()).is_some() => {
                return Some(format!("{job} was planned after a stop"));
            }
            _ => {}
        }
        None
    }

    /// Whether what runs in the lane is to be killed; `None`: it is not to stop.
    pub fn force(&self, lane: Option<&LaneId>) -> Option<bool> {
        [None, lane.cloned()].iter().filter_map(|it| self.0.get(it).copied()).reduce(|one, other| one || other)
    }
}
