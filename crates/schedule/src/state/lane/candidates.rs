//! Candidates: agents of a lane that do the same, of which one is chosen.

use lanewright_model::event::Event;
use lanewright_model::{AgentPhase, CommitId, Lane, Round, Stage};

use crate::state::agent::AgentStep;
use crate::state::lane::LaneState;
use crate::state::lane::attempts::Attempts;
use crate::state::lane::choice::Choice;
use crate::state::lane::merge::Rebuild;

/// Why a candidate cannot be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpickable {
    Merged,
    Skipped,
    /// Its pull request is open.
    Proposed,
    /// The lane is in the merge queue.
    InQueue,
    /// It has not passed its gates yet.
    AtWork,
    /// It failed.
    Failed,
}

impl Attempts {
    /// The candidate that continues as the lane's agent.
    pub(crate) fn chosen(&self) -> Option<usize> {
        self.choice.chosen
    }

    /// Whether the agent is a candidate and none was chosen yet.
    pub(super) fn awaits_choice(&self, plan: &Lane, agent: usize) -> bool {
        plan.agents[agent].candidate.is_some() && self.choice.chosen.is_none()
    }

    /// Whether its worktree is opened although its runner is not available: one that is being opened is to be returned.
    pub(crate) fn opens_first(&self, plan: &Lane, agent: usize) -> bool {
        self.awaits_choice(plan, agent) && self.agents()[agent].worktree.is_none()
    }

    /// Whether the lane has candidates and none was chosen yet.
    pub(crate) fn is_undecided(&self, plan: &Lane) -> bool {
        self.choice.chosen.is_none() && plan.candidates().next().is_some()
    }

    /// Whether a candidate that has not failed may be chosen, now or later.
    pub(crate) fn may_choose(&self, plan: &Lane) -> bool {
        let has_failed = |agent: usize| matches!(self.end_of(plan, agent), Some(Event::LaneFailed { .. }));
        let may_pass = |agent: usize| self.choice.chosen.is_none() && !has_failed(agent);
        plan.candidates().any(|agent| self.agents()[agent].may_be_chosen() || may_pass(agent))
    }

    /// The candidate that the user wants in place of the chosen one.
    pub(crate) fn picked(&self) -> Option<usize> {
        let picked = self.choice.picked.filter(|_| self.choice.chosen.is_some())?;
        self.agents()[picked].may_be_chosen().then_some(picked)
    }

    /// The same, where the run was resumed since.
    pub(crate) fn picked_before_resume(&self) -> Option<usize> {
        self.picked().filter(|_| self.choice.is_due)
    }

    /// The candidate that the user picked last, if nothing was chosen since.
    pub(crate) fn wanted(&self) -> Option<usize> {
        self.choice.picked
    }

    pub(super) fn resume_choice(&mut self) {
        self.choice.is_due = true;
    }

    /// Has `agent` continue as the lane's agent; whether it takes the place of another one.
    fn choose(&mut self, plan: &Lane, agent: usize) -> bool {
        let before = self.choice.chosen;
        self.choice = Choice { chosen: Some(agent), ..Choice::default() };
        for other in plan.candidates().filter(|other| *other != agent && before.is_none_or(|before| before == *other)) {
            self.agents_mut()[other].set_unchosen();
        }
        for judge in plan.round(Round::Judge) {
            let judge = &mut self.agents_mut()[judge];
            if judge.step != AgentStep::Done {
                (judge.step, judge.verdict) = (AgentStep::Done, None);
                let _ = judge.phase.advance(AgentPhase::Abandoned);
            }
        }
        let worker = &mut self.agents_mut()[agent];
        if worker.is_unchosen() {
            worker.step = AgentStep::Merging;
            worker.kept = None;
        }
        let replaces = before.is_some_and(|before| before != agent);
        if replaces {
            self.reset_rework();
        }
        replaces
    }
}

impl LaneState {
    /// The candidate that continues as its agent.
    pub fn chosen(&self) -> Option<usize> {
        self.attempts.chosen()
    }

    /// The candidate that the user wants in place of that.
    pub fn picked(&self) -> Option<usize> {
        self.attempts.picked()
    }

    /// The candidates of which one can be chosen now.
    pub fn passed_candidates(&self, plan: &Lane) -> impl Iterator<Item = usize> {
        plan.candidates().filter(|candidate| self.agents()[*candidate].may_be_chosen())
    }

    /// The refs that keep the work of candidates that were not chosen, and their commits.
    pub fn kept_candidates(&self) -> impl Iterator<Item = &(String, CommitId)> {
        self.agents().iter().filter_map(|agent| agent.kept.as_ref())
    }

    /// The implementation agents that its work is of.
    pub fn workers(&self, plan: &Lane) -> Vec<usize> {
        plan.round(Round::Implementation).filter(|agent| !self.agents()[*agent].is_unchosen()).collect()
    }

    /// The implementation agent that fixes what concerns the lane as a whole.
    pub fn last_worker(&self, plan: &Lane) -> Option<usize> {
        self.chosen().or_else(|| plan.last_worker())
    }

    /// One candidate continues. The work of one that did before leaves the lane.
    pub(crate) fn choose(&mut self, plan: &Lane, agent: usize) {
        if self.attempts.choose(plan, agent) {
            self.merge.rebuild = Some(Rebuild::OnFirstBase);
        }
    }

    /// The user wants the candidate; without effect where it cannot be had.
    pub(crate) fn pick(&mut self, agent: usize) {
        if self.may_pick(agent).is_ok() {
            self.attempts.choice.picked = Some(agent);
            self.attempts.choice.is_due = false;
        }
    }

    /// Whether the candidate is chosen, or will be because the user picked it.
    pub fn wants(&self, candidate: usize) -> bool {
        let choice = &self.attempts.choice;
        choice.picked.or(choice.chosen) == Some(candidate)
    }

    /// Whether the candidate can be chosen by the user now.
    ///
    /// # Errors
    /// Why not.
    pub fn may_pick(&self, agent: usize) -> Result<(), Unpickable> {
        let worker = &self.agents()[agent];
        match worker.step {
            _ if self.is_skipped() => Err(Unpickable::Skipped),
            _ if self.is_merged() => Err(Unpickable::Merged),
            _ if self.proposal.made_for.is_some() => Err(Unpickable::Proposed),
            // A merge that was published may not be on record.
            _ if self.staged().is_some() || self.checkpoints.contains(&Stage::PrePr) => Err(Unpickable::InQueue),
            _ if worker.may_be_chosen() || self.chosen() == Some(agent) => Ok(()),
            AgentStep::Unchosen { .. } | AgentStep::PermanentlyFailed(_) | AgentStep::Failed(_) => {
                Err(Unpickable::Failed)
            }
            _ => Err(Unpickable::AtWork),
        }
    }
}
