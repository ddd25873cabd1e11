//! What belongs to the end of a run: the final gate, the search for what broke it, and an empty pool.

use std::collections::BTreeSet;

use lanewright_model::event::{Event, RunOutcome};
use lanewright_model::{ExitCause, JobId, JobRole, LaneId, Plan};

#[derive(Default)]
pub struct Finish {
    /// The final gate failed, in this life or an earlier one.
    failed_once: bool,
    /// Whether finished lanes are merged into the integration branch.
    pub merges_here: bool,
    /// The final gate that is waited for. What is said of an earlier one says nothing.
    running: Option<JobId>,
    merged: BTreeSet<LaneId>,
    /// Those whose merges can be searched: merged since the last merge was undone, before which the branch holds that merge.
    searchable: BTreeSet<LaneId>,
    skipped: BTreeSet<LaneId>,
    /// Since the run was last resumed.
    life: Life,
}

#[derive(Default)]
struct Life {
    gate_failed: bool,
    searched: bool,
    pool_emptied: bool,
    stopped: bool,
}

impl Finish {
    pub fn see(&mut self, plan: &Plan, event: &Event) -> Option<String> {
        match event {
            Event::RunResumed { .. } => self.life = Life::default(),
            Event::StopRequested { lane: None, .. } => self.life.stopped = true,
            Event::LaneMerged { lane, .. } => {
                self.merged.insert(lane.clone());
                self.searchable.insert(lane.clone());
            }
            Event::LaneSkipped { lane, .. } => drop(self.skipped.insert(lane.clone())),
            Event::LaneRolledBack { lane, integration, .. } => {
                if integration.is_some() {
                    self.searchable.clear();
                }
                self.merged.remove(lane);
                self.skipped.remove(lane);
            }
            Event::MergesBisected { lane: None, .. } => self.life.searched = true,
            Event::PoolEmptied { .. } => self.life.pool_emptied = true,
            Event::JobPlanned { job, .. } if job.role == JobRole::Final => {
                self.running = Some(job.clone());
                let is_due = self.merges_here && self.merged.len() + self.skipped.len() == plan.lanes.len();
                return (!is_due).then(|| "the final gate runs before every lane is merged here or skipped".to_owned());
            }
            Event::JobExited { job, exit, .. } if self.running.take_if(|running| running == job).is_some() => {
                let judges = matches!(exit.cause, ExitCause::Exited | ExitCause::TimedOut);
                self.life.gate_failed = judges && !exit.passed();
                self.failed_once |= self.life.gate_failed;
            }
            Event::RunFinished { outcome, .. } if !self.life.stopped => return self.finished(*outcome),
            _ => {}
        }
        None
    }

    fn finished(&self, outcome: RunOutcome) -> Option<String> {
        let search = self.life.gate_failed && self.searchable.len() > 1;
        match () {
            () if self.life.pool_emptied != (outcome != RunOutcome::Blocked) => {
                Some(format!("the run is {outcome}; its pool was emptied: {}", self.life.pool_emptied))
            }
            () if search && !self.life.searched => Some("merges were not searched".to_owned()),
            // The gate may have failed in an earlier life, which died before the search.
            () if self.life.searched && !self.failed_once => {
                Some("merges were searched, and no gate failed".to_owned())
            }
            () => None,
        }
    }
}
