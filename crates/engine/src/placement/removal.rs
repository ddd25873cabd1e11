//! Removes what lanes left on engines and on the exchange.

use std::time::Duration;

use lanewright_model::event::{Event, RunOutcome};
use lanewright_model::{LaneId, RunId};
use lanewright_programs::cluster::OrderName;
use lanewright_schedule::lane_log::lane_run;

use super::error::Result;
use super::watch::{EXCHANGE, RUN_STATE, Watch};
use crate::executor::crash::{CrashPoint, crash_point};
use crate::executor::placements::PlacementTask;
use crate::state_sync::exchange::lane_run::{drop_all, known};

/// How long each look at the exchange may take once the run has ended.
const LAST: Duration = Duration::from_secs(10);

impl Watch {
    /// Removes what lanes left that are merged. Until the remote of the run's own state has the merge, the states of its lanes
    /// are the only ones from which another machine could continue.
    pub(super) fn forget(&mut self) {
        if self.over.is_empty() {
            return;
        }
        let pushed = self.pushed_records();
        let Some(pushed) = self.tolerate(RUN_STATE, pushed) else { return };
        let is_pushed = |lane: &LaneId| {
            let last = self.records.iter().rev().find(|record| record.event.lane() == Some(lane));
            last.is_none_or(|record| record.seq <= pushed)
        };
        let (over, later) = std::mem::take(&mut self.over).into_iter().partition(|task| is_pushed(&task.lane));
        self.over = later;
        self.remove(over);
    }

    fn remove(&mut self, over: Vec<PlacementTask>) {
        let runs: Vec<RunId> = over.iter().map(|it| lane_run(&self.placing.started.run_id, &it.lane)).collect();
        let removed = if runs.is_empty() { Ok(()) } else { drop_all(&mut self.ownership, &runs) };
        if self.tolerate("the refs of merged lanes", removed).is_none() {
            return self.over.extend(over);
        }
        crash_point(CrashPoint::RefsRemoved);
        for (task, run) in over.iter().zip(&runs) {
            let names: Vec<OrderName> = (1..=task.number).map(|number| self.name(run, number)).collect();
            let engine = self.engine(&task.executor);
            let forgotten = engine.and_then(|engine| Ok(engine.cluster.forget(&names)?));
            self.tolerate(&format!("the jobs of lane {}", task.lane), forgotten);
        }
    }

    /// Removes everything of a run that is done. What another one needs, which can be resumed, stays.
    pub(super) fn remove_finished_run(&mut self) {
        if self.is_taken || !(self.ownership.has_begun() || self.ownership.is_known().unwrap_or(false)) {
            return;
        }
        self.limit_time(LAST);
        self.forget();
        let is_done = self.pushed_records().is_ok_and(|pushed| {
            let last = self.records.last().filter(|record| record.seq <= pushed).map(|record| &record.event);
            matches!(last, Some(Event::RunFinished { outcome: RunOutcome::Done, .. }))
        });
        if is_done && self.over.is_empty() {
            let run = &self.placing.started.run_id;
            let lanes = self.placing.plan.lanes.iter().filter(|lane| lane.executor.is_some());
            let runs: Vec<RunId> = lanes.map(|lane| lane_run(run, &lane.id)).collect();
            // An earlier process may have placed them.
            let begun = self.ownership.begin();
            if self.tolerate(EXCHANGE, begun) == Some(true) {
                let left = drop_all(&mut self.ownership, &runs).and_then(|()| self.ownership.end());
                self.tolerate(EXCHANGE, left);
            }
        }
    }

    /// How many records of the run log its remote has; all, where it has none. The log is read up to now.
    fn pushed_records(&mut self) -> Result<u64> {
        self.read_log()?;
        let Some(remote) = &self.placing.state_remote else { return Ok(u64::MAX) };
        let pushed = known(&self.placing.repository, remote, &self.placing.started.run_id)?;
        Ok(pushed.map_or(0, |state| state.manifest.records))
    }
}
