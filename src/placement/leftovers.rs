//! Removes what merged lanes left on engines and on the exchange.

use super::lane_log::lane_run;
use super::watch::Watch;
use crate::cluster::OrderName;
use crate::model::RunId;
use crate::state_sync::lane_run::drop_all;

/// The most refs that one push removes.
const MOST_REMOVED: usize = 100;

impl Watch {
    /// Removes what lanes left that are merged.
    pub(super) fn forget(&mut self) {
        for some in std::mem::take(&mut self.over).chunks(MOST_REMOVED) {
            let runs: Vec<RunId> = some.iter().map(|it| lane_run(&self.placing.started.run_id, &it.lane)).collect();
            for (errand, run) in some.iter().zip(&runs) {
                let names: Vec<OrderName> = (1..=errand.number).map(|number| self.name(run, number)).collect();
                let engine = self.engine(&errand.executor);
                let forgotten = engine.and_then(|engine| Ok(engine.cluster.forget(&names)?));
                self.tolerate(&format!("the jobs of lane {}", errand.lane), forgotten);
            }
            let removed = drop_all(&self.placing.repository, &self.placing.exchange, &runs);
            if self.tolerate("the refs of merged lanes", removed).is_none() {
                self.over.extend_from_slice(some);
            }
        }
    }
}
