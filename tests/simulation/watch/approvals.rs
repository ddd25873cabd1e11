//! An approval is asked for again when an agent has worked since on what was approved.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_model::event::Event;
use lanewright_model::{Approval, HumanGate, JobId, JobRole, Lane, LaneId, Plan, Round, TaskKind};

/// The gates of each lane that need an approval before it is merged.
#[derive(Default)]
pub struct Approvals(BTreeMap<LaneId, BTreeSet<HumanGate>>);

impl Approvals {
    pub fn see(&mut self, plan: &Plan, event: &Event) -> Option<String> {
        match event {
            Event::JobPlanned { job } => {
                let lane = job.lane.clone()?;
                let gates = gates_after(plan.lane(plan.find(&lane)?), job);
                self.0.entry(lane).or_default().extend(gates);
            }
            Event::GateAnswered { lane, gate, approved: true, .. } => {
                self.0.entry(lane.clone()).or_default().remove(gate);
            }
            Event::LaneMerged { lane, .. } => {
                let gate = self.0.get(lane)?.first()?;
                return Some(format!("{lane} was merged and nobody looked at it: {gate}"));
            }
            _ => {}
        }
        None
    }
}

/// The gates that need an approval after that job.
fn gates_after(lane: &Lane, job: &JobId) -> Vec<HumanGate> {
    let JobRole::Attempt { agent, task } = &job.role else { return vec![] };
    let Some(agent) = lane.agents.iter().find(|known| known.name == *agent) else { return vec![] };
    if agent.round != Round::Implementation {
        return vec![];
    }
    let later = agent.tasks.iter().skip_while(|known| known.id != *task);
    let tasks = later.filter(|task| task.kind == TaskKind::HumanVerify).map(|task| HumanGate::Task(task.id.clone()));
    let changes = lane.needs(Approval::Changes).then(|| Approval::Changes.into());
    tasks.chain(changes).collect()
}
