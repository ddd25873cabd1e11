//! Commits that unfinished work needs and that cannot be read.

use crate::doctor::{Expected, Finding, Kind, Repair, RunFacts, Severity};
use crate::executor::repair::damaged_objects::DamagedCommit;

pub(super) fn findings(facts: &RunFacts, expected: &Expected) -> Vec<Finding> {
    let Some(state) = &expected.state else { return Vec::new() };
    let finding = |damaged: &super::super::DamagedLane| {
        let lane = &state.plan().lane(damaged.lane).id;
        let evidence: Vec<String> = damaged.commits.iter().map(described).collect();
        let (log, state) = (facts.log_path.clone(), Box::new(state.clone()));
        Finding::at(Kind::ObjectsDamaged, Severity::Error, &damaged.directory, evidence.join("; "))
            .of_run(&facts.run)
            .of_lane(lane)
            .repaired_by(Repair::RestoreObjects { log, state, lane: damaged.lane })
    };
    facts.damaged.iter().map(finding).collect()
}

fn described(damaged: &DamagedCommit) -> String {
    format!("{} leads to {}, of which cannot be read: {}", damaged.name, damaged.commit.short(), damaged.reason())
}
