//! The integration of agents' work into their lane: its branch and its worktree change for one at a time.

use std::collections::VecDeque;

use lanewright_model::CommitId;
use lanewright_model::event::LanePoint;

use crate::state::agent::{AgentState, AgentStep};

/// What was merged into a lane, and what waits for that.
#[derive(Debug, Clone, Default)]
pub(crate) struct Integration {
    /// Agents that are merged and judged by the `checkpoint` gate one at a time, first come first served.
    queue: VecDeque<usize>,
    merges: Vec<(usize, CommitId)>,
    /// Commits that the lane's branch must have when it is merged.
    accepted: Vec<CommitId>,
}

impl Integration {
    /// Merges of agents since the lane stands on its base, oldest first: whose, and the lane's head after it.
    pub(crate) fn merges(&self) -> &[(usize, CommitId)] {
        &self.merges
    }

    /// What the lane's branch must have when it is merged: the work of its agents, oldest first, from where a person moved
    /// the branch last.
    pub(crate) fn accepted(&self) -> &[CommitId] {
        &self.accepted
    }

    /// A person moved the lane's branch to `head`, which stands for everything before it.
    pub(crate) fn set_head(&mut self, head: &CommitId) {
        self.accepted = vec![head.clone()];
    }

    pub(crate) fn has(&self, agent: usize) -> bool {
        self.merges.iter().any(|(merged, _)| *merged == agent)
    }

    /// Agents whose work is in the lane, in the order in which it came, the last time each.
    pub(crate) fn agents(&self) -> Vec<usize> {
        let is_last = |at: usize, agent: usize| self.merges[at + 1..].iter().all(|(later, _)| *later != agent);
        let merges = self.merges.iter().enumerate().filter(|(at, (agent, _))| is_last(*at, *agent));
        merges.map(|(_, (agent, _))| *agent).collect()
    }

    pub(crate) fn is_turn_of(&self, agent: usize) -> bool {
        self.queue.front() == Some(&agent)
    }

    pub(crate) fn merged(&mut self, agent: usize, head: &CommitId) {
        if self.merges.last().is_none_or(|(last, at)| (*last, at) != (agent, head)) {
            self.merges.push((agent, head.clone()));
            self.accepted.push(head.clone());
        }
    }

    /// The lane is back at a point of its own, where other commits may stand for those that it had.
    pub(crate) fn return_to(&mut self, point: &LanePoint) {
        let merges = self.merges.iter_mut().map(|(_, head)| head);
        merges.chain(&mut self.accepted).for_each(|commit| *commit = point.now(commit));
    }

    /// The lane is on another base, with nothing of its agents in it.
    pub(crate) fn restart(&mut self) {
        self.merges.clear();
        self.accepted.clear();
    }

    pub(crate) fn line_up(&mut self, agents: &[AgentState]) {
        self.queue.retain(|&agent| matches!(agents[agent].step, AgentStep::Merging | AgentStep::Gating(_)));
        let arrives = |agent: &usize| agents[*agent].step == AgentStep::Merging && !self.queue.contains(agent);
        let new: Vec<usize> = (0..agents.len()).filter(arrives).collect();
        self.queue.extend(new);
    }
}

#[cfg(test)]
mod tests;
