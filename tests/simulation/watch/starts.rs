//! When an attempt may begin: its worktree is set up, and the time of its retry has come.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_model::event::{Event, Record};
use lanewright_model::{AgentName, JobRole, LaneId, Plan, Timestamp};

#[derive(Default)]
pub struct Starts {
    /// Worktrees in which the set-up commands ran.
    set_up: BTreeSet<(LaneId, Option<AgentName>)>,
    not_before: BTreeMap<(LaneId, AgentName), Timestamp>,
}

impl Starts {
    pub fn see(&mut self, plan: &Plan, record: &Record) -> Option<String> {
        match &record.event {
            Event::WorktreeOpened { lane, agent, .. } => drop(self.set_up.remove(&(lane.clone(), agent.clone()))),
            Event::RunMoved(_) => self.set_up.clear(),
            Event::LaneRolledBack { lane, .. } => {
                self.set_up.retain(|(of, _)| of != lane);
                self.not_before.retain(|(of, _), _| of != lane);
            }
            Event::RetryPlanned { lane, agent, not_before, .. } => {
                self.not_before.insert((lane.clone(), agent.clone()), *not_before);
            }
            Event::Slept { duration } => {
                self.not_before.values_mut().for_each(|moment| *moment = moment.plus(*duration));
            }
            // What had ended begins anew.
            Event::RunResumed { pinned_sha256, .. } => {
                self.not_before.clear();
                if pinned_sha256.is_some() {
                    self.set_up.clear();
                }
            }
            Event::JobExited { job, exit, .. } if exit.passed() => {
                let JobRole::Setup { agent } = &job.role else { return None };
                self.set_up.insert((job.lane.clone()?, agent.clone()));
            }
            Event::JobPlanned { job, .. } => {
                let (JobRole::Attempt { agent, .. }, Some(lane)) = (&job.role, &job.lane) else { return None };
                let worker = (lane.clone(), agent.clone());
                if self.not_before.remove(&worker).is_some_and(|moment| record.at < moment) {
                    return Some(format!("{job} was planned too early"));
                }
                let plan = plan.lane(plan.find(lane)?);
                let at = plan.agents.iter().position(|known| known.name == *agent)?;
                let own = Some(agent.clone()).filter(|_| !plan.shares_worktree(at));
                let is_set_up = |agent| self.set_up.contains(&(lane.clone(), agent));
                let ready = plan.setup.is_empty() || is_set_up(None) && is_set_up(own);
                return (!ready).then(|| format!("{job} was planned before the set-up"));
            }
            _ => {}
        }
        None
    }
}
