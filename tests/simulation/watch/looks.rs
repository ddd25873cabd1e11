//! What a person approved after looking at it is asked about again when an agent has worked on it since.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_model::event::Event;
use lanewright_model::{Approval, HumanGate, JobId, JobRole, Lane, LaneId, Plan, Round, TaskKind};

/// What of each lane has to be looked at before it is merged.
#[derive(Default)]
pub struct Looks(BTreeMap<LaneId, BTreeSet<HumanGate>>);

impl Looks {
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

/// What a person has to look at after that job.
fn gates_after(lane: &Lane, job: &JobId) -> Vec<HumanGate> {
    let JobRole::Attempt { agent, task } = &job.role else { return vec![] };
    let Some(agent) = lane.agents.iter().find(|known| known.name == *agent) else { return vec![] };
    if agent.round != Round::Implementation {
        return vec![];
    }
    let later = agent.tasks.iter().skip_while(|known| known.id != *task);
    let looks = later.filter(|task| task.kind == TaskKind::HumanVerify).map(|task| HumanGate::Task(task.id.clone()));
    let changes = lane.needs(Approval::Changes).then(|| Approval::Changes.into());
    looks.chain(changes).collect()
}
