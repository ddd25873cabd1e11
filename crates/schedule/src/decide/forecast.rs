//! Lanes that can begin in a moment: places are kept for those that are more urgent than what could begin now.
//!
//! Between an agent's exit and the merge of its lane Lanewright itself is at work for less than a second. To give
//! the place away meanwhile, for minutes, would delay the lanes that wait for the merge.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use lanewright_model::event::LaneStage;
use lanewright_model::{Lane, LaneIndex, MergeMode, Plan, Round};

use crate::state::RunState;
use crate::state::agent::{AgentState, AgentStep};
use crate::state::gate::Gate;
use crate::state::lane::LaneState;

impl RunState {
    /// Lanes that wait only for lanes whose merge nothing but Lanewright itself is needed for, the longest remaining
    /// path first.
    pub(crate) fn upcoming(&self) -> BTreeSet<(Reverse<u64>, LaneIndex)> {
        let coming = self.coming();
        // Once each: those of a layer have the same dependencies.
        let dependants: BTreeSet<LaneIndex> =
            coming.iter().flat_map(|&lane| self.plan.dag().dependants(lane)).copied().collect();
        let waits_for_these = |lane: &&LaneIndex| {
            let dependencies = self.plan.dag().dependencies(**lane);
            self.lane(**lane).missing == dependencies.iter().filter(|on| coming.contains(on)).count()
        };
        let can_begin = |lane: &&LaneIndex| self.lane(**lane).is_waiting() && self.lane(**lane).missing <= coming.len();
        dependants
            .iter()
            .filter(can_begin)
            .filter(waits_for_these)
            .map(|&lane| (Reverse(self.indexes.path(lane)), lane))
            .collect()
    }

    /// How many lanes Lanewright alone is at work on. They are about to return their worktrees; creating others takes longer.
    pub(crate) fn leaving(&self) -> usize {
        let is_merged = |lane: &&LaneIndex| {
            let state = self.lane(**lane);
            state.merged().is_some() && state.end.is_none() && !self.indexes.is_held_back(**lane)
        };
        self.coming().len() + self.indexes.active().iter().filter(is_merged).count()
    }

    /// Lanes that are about to be merged; none while the merge queue waits for another one, which may take long.
    fn coming(&self) -> BTreeSet<LaneIndex> {
        let is_coming = |lane: &LaneIndex| !self.indexes.is_held_back(*lane) && self.is_coming(*lane);
        let coming: BTreeSet<LaneIndex> = self.indexes.active().iter().copied().filter(is_coming).collect();
        let queue_moves = self.merge_queue.iter().all(|lane| coming.contains(lane));
        if queue_moves { coming } else { BTreeSet::new() }
    }

    /// Whether the lane's work is done and it is merged without anybody else's doing: no gate, no test, no person.
    fn is_coming(&self, index: LaneIndex) -> bool {
        let (lane, plan) = (self.lane(index), self.plan.lane(index));
        let by_itself = plan.tests.is_empty()
            && plan.round(Round::Review).chain(plan.round(Round::Judge)).next().is_none()
            && !self.may_need_approval_of_changes(index)
            && (plan.setup.is_empty() || *lane.work.setup() == Gate::Passed)
            && self.plan.gates.checkpoint.is_empty()
            && self.merge_mode() != Some(MergeMode::Pr);
        by_itself && lane.merged().is_none() && is_on_its_way(lane, plan, &self.plan)
    }
}

fn is_on_its_way(state: &LaneState, lane: &Lane, plan: &Plan) -> bool {
    let worked = (LaneStage::Implementation..=LaneStage::AwaitingUserApproval).contains(&state.stage);
    let sound = state.end.is_none() && state.stopping.is_none() && state.failure.is_none() && state.rebuild().is_none();
    let done = |agent: usize| is_nearly_done(&state.agents()[agent], agent, lane, plan);
    worked && sound && lane.round(Round::Implementation).all(done)
}

fn is_nearly_done(state: &AgentState, at: usize, lane: &Lane, plan: &Plan) -> bool {
    let agent = &lane.agents[at];
    let is_last = state.task + 1 == agent.tasks.len();
    match state.step {
        AgentStep::Done | AgentStep::Merging | AgentStep::Unchosen { .. } => true,
        AgentStep::Snapshotting => is_last,
        AgentStep::Committing => is_last && !plan.is_gated(lane, at, &agent.tasks[state.task]),
        _ => false,
    }
}
