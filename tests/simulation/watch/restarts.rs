//! Where an agent starts again after a failure in a task: what it left is put back if the plan or the level of the retry
//! says so, and is never put back otherwise. What specialists leave is never taken further.

use std::collections::BTreeSet;

use lanewright_model::event::Event;
use lanewright_model::plan::RetryFrom;
use lanewright_model::{AgentName, JobRole, Lane, LaneId, Plan, RetryLevel, Round};

type Worker = (LaneId, AgentName);

#[derive(Default)]
pub struct Restarts {
    /// Agents whose last failure was in a task.
    failed_in_task: BTreeSet<Worker>,
    put_back: BTreeSet<Worker>,
    left: BTreeSet<Worker>,
    /// Where the run was at work last.
    boot: String,
    /// Agents that have not begun an attempt since the machine was started again: what they left before may be empty.
    unsynced: BTreeSet<Worker>,
}

impl Restarts {
    pub fn see(&mut self, plan: &Plan, event: &Event) -> Option<String> {
        match event {
            Event::FailureNoted { lane, agent: Some(agent), task, .. } => {
                let worker = (lane.clone(), agent.clone());
                self.forget(&worker);
                if task.is_some() {
                    self.failed_in_task.insert(worker);
                }
            }
            Event::RetryPlanned { lane, agent, level, .. } => {
                let worker = (lane.clone(), agent.clone());
                let plan = plan.lane(plan.find(lane)?);
                let is_fresh = plan.resume == RetryFrom::Fresh;
                match self.failed_in_task.contains(&worker) {
                    true if is_fresh || *level == RetryLevel::Rollback => self.put_back.insert(worker),
                    true if is_merged(plan, agent) && !self.unsynced.contains(&worker) => self.left.insert(worker),
                    _ => false,
                };
            }
            Event::RunStarted(started) => self.boot.clone_from(&started.owner.boot),
            Event::RunResumed { owner, .. } => {
                self.left.clear();
                if std::mem::replace(&mut self.boot, owner.boot.clone()) != owner.boot {
                    let lanes = plan.lanes.iter();
                    let all = lanes.flat_map(|lane| lane.agents.iter().map(|it| (lane.id.clone(), it.name.clone())));
                    self.unsynced.extend(all);
                }
            }
            Event::WorktreeOpened { lane, agent: Some(agent), .. } => self.forget(&(lane.clone(), agent.clone())),
            Event::AgentReset { lane, agent, .. } => {
                let worker = (lane.clone(), agent.clone());
                if self.left.contains(&worker) {
                    return Some(format!("{agent} of {lane} lost what its failed attempt left"));
                }
                self.unsynced.remove(&worker);
                self.forget(&worker);
            }
            Event::LaneRolledBack { lane, .. } => {
                for workers in [&mut self.failed_in_task, &mut self.put_back, &mut self.left] {
                    workers.retain(|(of, _)| of != lane);
                }
                // The point may be from before the machine was started again.
                let agents = &plan.lane(plan.find(lane)?).agents;
                self.unsynced.extend(agents.iter().map(|it| (lane.clone(), it.name.clone())));
            }
            Event::JobPlanned { job, .. } => {
                let JobRole::Attempt { agent, .. } = &job.role else { return None };
                let worker = (job.lane.clone()?, agent.clone());
                if self.put_back.contains(&worker) {
                    return Some(format!("{job} starts from what failed"));
                }
                self.unsynced.remove(&worker);
                self.forget(&worker);
            }
            _ => {}
        }
        None
    }

    fn forget(&mut self, worker: &Worker) {
        for workers in [&mut self.failed_in_task, &mut self.put_back, &mut self.left] {
            workers.remove(worker);
        }
    }
}

fn is_merged(lane: &Lane, agent: &AgentName) -> bool {
    lane.round(Round::Implementation).any(|at| lane.agents[at].name == *agent)
}
