//! Repairs what a power cut may have left of the worktrees of a run (decision 50).

use std::collections::HashSet;

use lanewright_git::{AfterBoot, Outage};
use lanewright_model::event::{Event, Record};
use lanewright_model::text::listed;
use lanewright_model::{CommitId, LaneIndex};
use lanewright_programs::process::{self, Observation};
use lanewright_schedule::RunState;

use crate::executor::held_worktrees::HeldWorktree;
use crate::executor::{Answer, Executor, LaneContext};

/// How many files a message names.
const NAMED: usize = 10;

impl Executor {
    /// Repairs the worktrees and branches of all lanes of the run whose log is `records`, except where a job is alive. What cannot be repaired is noted; the
    /// job that needs it says why it cannot run.
    pub fn recover_after_boot(&self, state: &RunState, records: &[Record], outage: Outage) -> Vec<Event> {
        let mut events = Vec::new();
        let mut note = |answer: Answer| match answer {
            Ok(found) => events.extend(found),
            Err(error) => events.push(Event::Noted {
                lane: None,
                message: format!("not all is repaired after a restart of the machine: {error}"),
            }),
        };
        let contexts: Vec<LaneContext> = self.plan.indices().map(|lane| self.lane_context(lane, state)).collect();
        let slots = contexts.iter().flat_map(|context| &context.holdings).map(|holding| holding.worktree.slot);
        let held: Vec<u32> = slots.chain(state.final_worktree().map(|worktree| worktree.slot)).collect();
        note(self.repository.remove_torn_objects().map(|()| Vec::new()).map_err(Into::into));
        let at_rest: Vec<&LaneContext> = contexts.iter().filter(|context| !self.has_live_job(context, state)).collect();
        let heads: Vec<(LaneIndex, String, CommitId)> =
            at_rest.iter().flat_map(|context| self.recorded_heads(context.lane, state)).collect();
        let branches: Vec<String> = self.plan.indices().flat_map(|lane| self.branches(lane, state)).collect();
        note(self.repository.remove_torn_references(&branches).map(|()| Vec::new()).map_err(Into::into));
        let unheld = self.pool.recover_unheld(&self.facts.run_id, &held, &branches, (outage, self.clock.now()));
        note(unheld.map(|()| Vec::new()).map_err(Into::into));
        let at_rest: Vec<(&LaneContext, &HeldWorktree)> =
            at_rest.iter().flat_map(|context| context.holdings.iter().map(move |held| (*context, held))).collect();
        for (_, holding) in &at_rest {
            if let Some((branch, _)) = &holding.branch {
                note(self.repository.remove_dead_branch_lock(branch, outage).map(|()| Vec::new()).map_err(Into::into));
            }
        }
        // Before branches are set again: what was set after the outage is no remnant.
        for lane in self.plan.indices() {
            note(self.delete_references_again(lane, state, outage).map(|()| Vec::new()));
        }
        let known: HashSet<CommitId> = records.iter().flat_map(|record| heads_in(&record.event)).collect();
        for (lane, branch, head) in &heads {
            // The branches of a merged lane are deleted one after the other.
            let make = state.lane(*lane).is_left_to_do();
            note(self.recover_branch(*lane, branch, (head, &known), (make, outage)));
        }
        for (context, holding) in at_rest {
            note(self.recover_worktree(holding, context, outage));
        }
        events
    }

    /// The branches that a lane and its agents have or will have here.
    pub(in crate::executor) fn branches(&self, lane: LaneIndex, state: &RunState) -> Vec<String> {
        let here = (!state.lane(lane).is_elsewhere()).then(|| self.lane_branch(lane));
        let agents = (0..self.plan.lane(lane).agents.len()).map(|agent| self.agent_branch(lane, agent));
        here.into_iter().flat_map(|own| std::iter::once(own).chain(agents.clone())).collect()
    }

    /// The same that exist, each with its last recorded head.
    fn recorded_heads(&self, lane: LaneIndex, state: &RunState) -> Vec<(LaneIndex, String, CommitId)> {
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let of_agents = lane_state.agents().iter().enumerate().map(|(at, agent)| {
            let head = agent.head.as_ref().or(agent.start.as_ref());
            head.filter(|_| !plan.shares_worktree(at))
        });
        let heads = std::iter::once(lane_state.head()).chain(of_agents);
        let named = self.branches(lane, state).into_iter().zip(heads);
        named.filter_map(|(branch, head)| Some((lane, branch, head?.clone()))).collect()
    }

    fn has_live_job(&self, context: &LaneContext, state: &RunState) -> bool {
        let lane = self.id(context.lane);
        let mut jobs = state.running_jobs().filter(|job| job.lane.as_ref() == Some(&lane));
        let is_alive = |seen| matches!(seen, Observation::Starting | Observation::Running(_));
        jobs.any(|job| process::observe(&self.run.job(job)).is_ok_and(is_alive))
    }

    fn recover_branch(
        &self,
        lane: LaneIndex,
        branch: &str,
        (head, earlier): (&CommitId, &HashSet<CommitId>),
        (make, outage): (bool, Outage),
    ) -> Answer {
        let recovered = self.repository.recover_branch(branch, (head, earlier), make, outage)?;
        let message = || format!("set branch {branch} to {} again after a restart of the machine", head.short());
        Ok(recovered.then(|| self.note(lane, message())).into_iter().collect())
    }

    fn recover_worktree(&self, holding: &HeldWorktree, context: &LaneContext, outage: Outage) -> Answer {
        let HeldWorktree { holder, worktree, .. } = holding;
        let place = self.pool.shown(holder, &worktree.path);
        let place = place.display();
        let found = match self.pool.after_boot(holder, worktree, context.at)? {
            // What an agent left may be meant so; its next attempt starts from a commit.
            AfterBoot::Sound if holding.busy || holding.is_worked_on => None,
            AfterBoot::Sound => {
                let torn = self.repository.restore_torn_files(&worktree.path, outage)?;
                let names = listed(&torn, NAMED);
                (!torn.is_empty()).then(|| format!("restored {names} in {place} after a restart of the machine"))
            }
            AfterBoot::SetAside(aside) => {
                let aside = aside.display();
                Some(format!("git cannot read {place} after a restart of the machine; moved what was there to {aside}"))
            }
            AfterBoot::Missing => None,
        };
        Ok(found.map(|message| self.note(context.lane, message)).into_iter().collect())
    }
}

/// Where an event says that branches of a lane and its agents stand.
fn heads_in(event: &Event) -> Vec<CommitId> {
    match event {
        Event::LaneBased { base, .. } | Event::LaneReset { base, .. } => vec![base.clone()],
        Event::WorktreeOpened { worktree, .. } => vec![worktree.head.clone()],
        Event::WorkCommitted { head, .. } | Event::AgentMerged { head, .. } | Event::AgentReset { head, .. } => {
            vec![head.clone()]
        }
        Event::LaneRolledBack { point: Some(point), .. } => {
            point.worktrees.iter().map(|opened| opened.worktree.head.clone()).collect()
        }
        _ => Vec::new(),
    }
}
