//! The candidate that is chosen passed its gates, no other one works again, and a pick of the user is heard.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use lanewright_model::event::Event;
use lanewright_model::{AgentName, JobId, JobRole, LaneId, LaneIndex, Plan, Round, TaskId};

#[derive(Default)]
pub struct Candidates {
    exited: HashSet<JobId>,
    /// The last gate of each candidate that passed, if no attempt was planned after it.
    passed: BTreeMap<(LaneId, AgentName), TaskId>,
    chosen: BTreeMap<LaneId, AgentName>,
    picked: BTreeMap<LaneId, AgentName>,
    /// Lanes that were taken back to a point of their own, at which gates had passed or not.
    returned: BTreeSet<LaneId>,
}

impl Candidates {
    pub fn see(&mut self, plan: &Plan, event: &Event) -> Option<String> {
        match event {
            // What is said of a gate again says nothing.
            Event::JobExited { job, exit, .. } if self.exited.insert(job.clone()) => {
                let JobRole::Verify { agent, task } = &job.role else { return None };
                let candidate = (job.lane.clone()?, agent.clone());
                match exit.passed() {
                    true => self.passed.insert(candidate, task.clone()),
                    false => self.passed.remove(&candidate),
                };
            }
            Event::JobPlanned { job, .. } if job.is_attempt() => {
                let (lane, agent) = (job.lane.clone()?, job.agent()?.clone());
                let (at, of_lane) = (plan.find(&lane)?, (lane.clone(), agent.clone()));
                if plan.lane(at).agents.iter().any(|known| known.name == agent && known.round == Round::Judge) {
                    return self.asked_too_early(plan, &lane, at);
                }
                let at_last = plan.lane(at).agents.iter().find(|known| known.name == agent);
                let at_last = at_last.filter(|known| known.candidate.is_some())?.tasks.last()?;
                match self.chosen.get(&lane) {
                    Some(chosen) if *chosen != agent => {
                        return Some(format!("{job} was planned, and {chosen} is chosen"));
                    }
                    None if self.passed.get(&of_lane) == Some(&at_last.id) && !self.returned.contains(&lane) => {
                        return Some(format!("{job} was planned, and all of its gates have passed"));
                    }
                    _ => drop(self.passed.remove(&of_lane)),
                }
            }
            Event::CandidatePicked { lane, agent } if self.chosen.get(lane) == Some(agent) => {
                drop(self.picked.remove(lane))
            }
            Event::CandidatePicked { lane, agent } => drop(self.picked.insert(lane.clone(), agent.clone())),
            Event::CandidateChosen { lane, agent, .. } => {
                self.chosen.insert(lane.clone(), agent.clone());
                self.picked
                    .remove(lane)
                    .filter(|picked| picked != agent)
                    .map(|it| self.picked.insert(lane.clone(), it));
                let of_lane = plan.lane(plan.find(lane)?);
                let at = of_lane.agents.iter().position(|known| known.name == *agent)?;
                let last = of_lane.agents[at].tasks.last()?;
                let is_due = plan.is_gated(of_lane, at, last) && !self.returned.contains(lane);
                let has_passed = self.passed.get(&(lane.clone(), agent.clone())) == Some(&last.id);
                return (is_due && !has_passed)
                    .then(|| format!("{agent} of {lane} was chosen and has not passed its gates"));
            }
            // Which one was chosen at a point that a lane was taken back to is not known here.
            Event::LaneMerged { lane, .. } if !self.returned.contains(lane) => {
                let picked = self.picked.get(lane).filter(|picked| self.chosen.get(lane) != Some(picked))?;
                return Some(format!("{lane} was merged, and the user had picked {picked}"));
            }
            Event::LaneRolledBack { lane, point, .. } => {
                self.chosen.remove(lane);
                self.picked.remove(lane);
                self.passed.retain(|(of, _), _| of != lane);
                if point.is_some() {
                    self.returned.insert(lane.clone())
                } else {
                    self.returned.remove(lane)
                };
            }
            _ => {}
        }
        None
    }

    /// A judge has something to choose from.
    fn asked_too_early(&self, plan: &Plan, lane: &LaneId, at: LaneIndex) -> Option<String> {
        let of_lane = plan.lane(at);
        let is_due = |at: usize| plan.is_gated(of_lane, at, of_lane.agents[at].tasks.last().unwrap());
        let passed = self.passed.keys().filter(|(of, _)| of == lane).count();
        let is_too_early = of_lane.candidates().all(is_due) && !self.returned.contains(lane) && passed < 2;
        is_too_early.then(|| format!("the judge of {lane} was asked when {passed} candidates had passed"))
    }
}
