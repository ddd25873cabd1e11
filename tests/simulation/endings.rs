//! What must hold when a simulated run has ended.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_model::event::{Event, LaneStage, Record};
use lanewright_model::{AgentName, AgentPhase, ExitCause, FailureKind, JobRole, LaneId, LaneIndex, MergeMode};
use lanewright_schedule::LaneEnd;

use super::run::Simulation;

impl Simulation {
    pub fn check_ending(&self) -> Result<(), String> {
        let state = self.run_loop.state();
        for lane in self.world.plan.indices() {
            let merged = state.lane(lane).end() == Some(&LaneEnd::Merged);
            if self.world.script.merge() == MergeMode::Pr {
                self.check_proposal(lane, merged)?;
                continue;
            }
            let times = self.world.merges.iter().filter(|other| **other == lane).count();
            let id = &self.world.plan.lane(lane).id;
            if times != usize::from(merged) {
                return Err(format!("{id} was merged {times} times and is said to be {:?}", state.lane(lane).end()));
            }
            if merged && !self.world.integrated().is_superset(&self.world.pieces(lane)) {
                return Err(format!("work of {id} is not on the integration branch"));
            }
        }
        if !self.world.running.is_empty() {
            return Err("a job outlived the run".to_owned());
        }
        self.check_reasons()?;
        self.check_sequences()?;
        self.check_phases()?;
        self.check_tasks_done_once()
    }

    /// A lane that never began names what keeps it, and how that ended.
    fn check_reasons(&self) -> Result<(), String> {
        let (state, plan) = (self.run_loop.state(), &self.world.plan);
        for lane in plan.indices().filter(|lane| !state.lane(*lane).has_begun() && !state.lane(*lane).is_skipped()) {
            let reason = |on: &LaneIndex| {
                let how = match state.lane(*on).end() {
                    Some(LaneEnd::Failed(_)) => "failed",
                    _ => "is blocked",
                };
                Some(LaneEnd::Blocked(format!("it depends on {}, which {how}", plan.lane(*on).id)))
            };
            let end = state.lane(lane).end();
            if !plan.dag().dependencies(lane).iter().any(|on| reason(on).as_ref() == end) {
                return Err(format!("{} ended with {end:?}", plan.lane(lane).id));
            }
        }
        Ok(())
    }

    /// A lane that is over has one pull request, for its head, unless it changed nothing: then it has none, or the one
    /// from before a rollback as that was. And nobody moved the integration branch for it.
    fn check_proposal(&self, lane: LaneIndex, over: bool) -> Result<(), String> {
        let (state, id) = (self.run_loop.state().lane(lane), &self.world.plan.lane(lane).id);
        let changed = state.head() != state.base();
        match self.world.pulls.get(&lane) {
            Some((1, head)) if !over || !changed || state.head() == Some(head) => {}
            Some((count, _)) => return Err(format!("{id} has {count} pull requests, not one for its head")),
            None if over && changed => return Err(format!("{id} is over and has no pull request")),
            None => {}
        }
        match self.world.merges.is_empty() {
            true => Ok(()),
            false => Err("a lane was merged that was to be proposed".to_owned()),
        }
    }

    /// Of two lanes that keep an order the second never began while the first one was still to come.
    fn check_sequences(&self) -> Result<(), String> {
        let mut over: BTreeSet<LaneId> = BTreeSet::new();
        let plan = &self.world.plan;
        for record in self.durable() {
            match &record.event {
                Event::LaneMerged { lane, .. }
                | Event::LaneFailed { lane, .. }
                | Event::LaneBlocked { lane, .. }
                | Event::LaneSkipped { lane, .. } => {
                    over.insert(lane.clone());
                }
                Event::LaneRolledBack { lane, .. } => drop(over.remove(lane)),
                Event::LaneMoved { lane, from: LaneStage::Waiting, .. } => {
                    let waits = |(first, then): &&(LaneIndex, LaneIndex)| {
                        plan.lane(*then).id == *lane && !over.contains(&plan.lane(*first).id)
                    };
                    if let Some((first, _)) = plan.sequences.iter().find(waits) {
                        return Err(format!("{lane} began before {} was over", plan.lane(*first).id));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The phases of each agent follow each other in the log, which ends with the one that it is in.
    fn check_phases(&self) -> Result<(), String> {
        let mut phases: BTreeMap<(&LaneId, &AgentName), AgentPhase> = BTreeMap::new();
        let durable = self.durable();
        for record in &durable {
            let Event::AgentMoved { lane, agent, from, to } = &record.event else { continue };
            let phase = phases.entry((lane, agent)).or_default();
            if phase != from || !from.may_record(*to) {
                return Err(format!("{agent} of {lane} went from {from} to {to} in {}, at {phase}", record.seq));
            }
            *phase = *to;
        }
        let state = self.run_loop.state();
        for lane in self.world.plan.indices() {
            let plan = self.world.plan.lane(lane);
            for (agent, worker) in plan.agents.iter().zip(state.lane(lane).agents()) {
                let recorded = phases.get(&(&plan.id, &agent.name)).copied().unwrap_or_default();
                if recorded != worker.phase.now() {
                    return Err(format!("{} of {} is {}, not {recorded}", agent.name, plan.id, worker.phase.now()));
                }
            }
        }
        Ok(())
    }

    /// Every task that passed ran to success exactly once for each time its work was asked for.
    fn check_tasks_done_once(&self) -> Result<(), String> {
        let mut passed: BTreeMap<(String, String, String), usize> = BTreeMap::new();
        for (id, job) in &self.world.jobs {
            let success =
                job.exit.as_ref().is_some_and(|(exit, ..)| exit.cause == ExitCause::Exited && exit.exit_code == 0);
            if let (JobRole::Attempt { agent, task }, true) = (&id.role, success)
                && agent.as_str() != "reviewer"
            {
                *passed.entry((format!("{:?}", id.lane), agent.to_string(), task.to_string())).or_default() += 1;
            }
        }
        let durable = self.durable();
        for ((lane, agent, task), times) in passed {
            let asked_again = |record: &&Record| {
                let again = match &record.event {
                    Event::FailureNoted { task, failure, .. } => {
                        task.is_none()
                            || matches!(failure.kind, FailureKind::Rejected | FailureKind::Idle | FailureKind::Gate)
                    }
                    Event::LaneRolledBack { .. } | Event::SnapshotDamaged { .. } => true,
                    // The user has its agents work again, also where a gate lacked a program.
                    Event::RunResumed { retried, .. } => {
                        return retried.iter().any(|retried| format!("{:?}", Some(retried)) == lane);
                    }
                    _ => false,
                };
                again && format!("{:?}", record.event.lane().cloned()) == lane
            };
            let allowed = 1 + durable.iter().filter(asked_again).count();
            if times > allowed {
                return Err(format!("task {task} of {lane} was done by {agent} {times} times, wanted {allowed}"));
            }
        }
        Ok(())
    }
}
