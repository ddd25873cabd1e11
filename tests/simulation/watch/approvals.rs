//! An approval is asked for again when an agent has worked since on what was approved, and a setup is approved before any
//! job of its lane.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_model::event::{Event, Record};
use lanewright_model::{Approval, HumanGate, JobId, JobRole, Lane, LaneId, Plan, Round, TaskKind};

/// The gates of each lane that need an approval before it is merged.
#[derive(Default)]
pub struct Approvals {
    open: BTreeMap<LaneId, BTreeSet<HumanGate>>,
    /// The same after each record that changed it.
    past: BTreeMap<LaneId, BTreeMap<u64, BTreeSet<HumanGate>>>,
    /// Lanes that miss what a person sets up, each with whether that was approved.
    setups: BTreeMap<LaneId, bool>,
    /// Whether some files are protected.
    pub protects: bool,
    /// Lanes whose changes were looked at for protected files, and those that were found.
    looked_at: BTreeMap<LaneId, Vec<String>>,
}

impl Approvals {
    pub fn see(&mut self, plan: &Plan, record: &Record) -> Option<String> {
        let complaint = self.see_event(plan, &record.event);
        if let Some(lane) = record.event.lane()
            && let Some(open) = self.open.get(lane)
        {
            let past = self.past.entry(lane.clone()).or_default();
            if past.values().next_back() != Some(open) {
                past.insert(record.seq, open.clone());
            }
        }
        complaint
    }

    fn see_event(&mut self, plan: &Plan, event: &Event) -> Option<String> {
        match event {
            Event::JobPlanned { job, .. } => {
                let lane = job.lane.clone()?;
                if self.setups.get(&lane) == Some(&false) {
                    return Some(format!("{job} is planned before the setup of its lane was approved"));
                }
                let has_protected = self.looked_at.get(&lane).is_some_and(|found| !found.is_empty());
                let gates = gates_after(plan.lane(plan.find(&lane)?), job, has_protected);
                self.open.entry(lane).or_default().extend(gates);
            }
            Event::LaneBased { lane, missing, .. } if !missing.is_empty() => {
                self.setups.entry(lane.clone()).or_default();
            }
            Event::LaneRolledBack { lane, point, .. } => {
                self.setups.remove(lane);
                match point {
                    None => drop(self.looked_at.remove(lane)),
                    Some(point) => {
                        let then = self.past.get(lane).and_then(|past| past.range(..=point.seq).next_back());
                        let then = then.map(|(_, open)| open.clone()).unwrap_or_default();
                        self.open.insert(lane.clone(), then);
                    }
                }
            }
            Event::ChangesMeasured { lane, protected, .. } => {
                let before = self.looked_at.insert(lane.clone(), protected.clone()).unwrap_or_default();
                if protected.iter().any(|path| !before.contains(path)) {
                    self.open.entry(lane.clone()).or_default().insert(Approval::Changes.into());
                }
            }
            Event::GateAnswered { lane, gate: HumanGate::Approval(Approval::Setup), approved, .. } => {
                self.setups.insert(lane.clone(), *approved);
            }
            Event::GateAnswered { lane, gate, approved: true, .. } => {
                self.open.entry(lane.clone()).or_default().remove(gate);
            }
            Event::LaneMerged { lane, .. } if self.protects && !self.looked_at.contains_key(lane) => {
                return Some(format!("{lane} was merged and nothing looked for protected files in it"));
            }
            Event::LaneMerged { lane, .. } => {
                let gate = self.open.get(lane)?.first()?;
                return Some(format!("{lane} was merged and nobody looked at it: {gate}"));
            }
            _ => {}
        }
        None
    }
}

/// The gates that need an approval after that job.
fn gates_after(lane: &Lane, job: &JobId, has_protected: bool) -> Vec<HumanGate> {
    let JobRole::Attempt { agent, task } = &job.role else { return vec![] };
    let Some(agent) = lane.agents.iter().find(|known| known.name == *agent) else { return vec![] };
    if agent.round != Round::Implementation {
        return vec![];
    }
    let later = agent.tasks.iter().skip_while(|known| known.id != *task);
    let tasks = later.filter(|task| task.kind == TaskKind::HumanVerify).map(|task| HumanGate::Task(task.id.clone()));
    let changes = (has_protected || lane.needs(Approval::Changes)).then(|| Approval::Changes.into());
    tasks.chain(changes).collect()
}
