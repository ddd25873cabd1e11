//! The worktrees that lanes and agents hold according to the run log.

use lanewright_git::Holder;
use lanewright_model::event::Worktree;
use lanewright_model::{AgentName, CommitId, JobId, LaneIndex};
use lanewright_schedule::{AgentState, AgentStep, LaneState, RunState};

use super::Executor;

/// A worktree that is held according to the run log.
#[derive(Debug, Clone)]
pub(crate) struct HeldWorktree {
    pub(super) holder: Holder,
    /// How to open it again: for a merge that is being tested, without a branch.
    pub(super) worktree: Worktree,
    pub(super) branch: Option<(String, CommitId)>,
    pub(super) busy: bool,
    /// The commits that its work can continue from if the head is lost, the best first.
    pub(super) points: Vec<CommitId>,
    /// Whether an agent is at a task there, and commits what it finds.
    pub(super) is_worked_on: bool,
    /// The agent whose head the branch has.
    pub(super) worker: Option<AgentName>,
    /// An agent's work there is not committed yet. If the worktree is gone, so is that work: the commit must fail, not
    /// find an empty worktree.
    pub(super) unsaved: bool,
}

/// A worktree of a lane, or of an agent with its own, that is open according to the run log.
pub(crate) struct OpenWorktree {
    /// The agent's index; `None`: the lane's.
    pub(crate) agent: Option<usize>,
    /// While the lane's tests judge its merge, the lane's worktree is at the staged commit, on no branch.
    pub(crate) worktree: Worktree,
    /// The last recorded head of its branch.
    pub(crate) head: CommitId,
}

pub(crate) fn open_worktrees(state: &RunState, lane: LaneIndex) -> Vec<OpenWorktree> {
    let (lane_state, plan) = (state.lane(lane), state.plan().lane(lane));
    if lane_state.is_elsewhere() {
        return Vec::new();
    }
    let open = |agent, worktree: Option<&Worktree>, head: Option<&CommitId>| {
        let worktree = worktree.cloned()?;
        let head = head.cloned().unwrap_or_else(|| worktree.head.clone());
        Some(OpenWorktree { agent, worktree, head })
    };
    let mut own = open(None, lane_state.worktree(), lane_state.head());
    if let (Some(own), Some(staged)) = (&mut own, lane_state.merge_under_test(plan)) {
        own.worktree.branch.clear();
        own.worktree.head = staged.commit.clone();
    }
    let agents = lane_state.agents().iter().enumerate().filter(|(agent, _)| !plan.shares_worktree(*agent));
    own.into_iter()
        .chain(agents.filter_map(|(at, agent)| open(Some(at), agent.worktree.as_ref(), agent.head.as_ref())))
        .collect()
}

impl Executor {
    pub(super) fn holdings(&self, lane: LaneIndex, state: &RunState) -> Vec<HeldWorktree> {
        let plan = self.plan.lane(lane);
        let holding = |OpenWorktree { agent, worktree, head }| {
            let works_here = |other: Option<usize>| match agent {
                Some(agent) => other == Some(agent),
                None => other.is_none_or(|other| plan.shares_worktree(other)),
            };
            let branch = agent.map_or_else(|| self.lane_branch(lane), |agent| self.agent_branch(lane, agent));
            let lane_state = state.lane(lane);
            let mut workers = lane_state.agents().iter().enumerate();
            let is_at_a_task = |at: &usize| works_here(Some(*at)) && lane_state.is_worked_on(plan, Some(*at));
            let worker = (0..plan.agents.len()).find(is_at_a_task);
            HeldWorktree {
                points: points(lane_state, agent.or(worker)),
                is_worked_on: lane_state.is_worked_on(plan, agent),
                worker: worker.map(|at| plan.agents[at].name.clone()),
                holder: self.holder(lane, agent),
                worktree,
                branch: Some((branch, head)),
                busy: self.is_busy(lane, state, works_here),
                unsaved: workers.any(|(at, worker)| works_here(Some(at)) && is_uncommitted(worker)),
            }
        };
        open_worktrees(state, lane).into_iter().map(holding).collect()
    }

    fn is_busy(&self, lane: LaneIndex, state: &RunState, own: impl Fn(Option<usize>) -> bool) -> bool {
        let plan = self.plan.lane(lane);
        let at = |job: &JobId| job.agent().and_then(|name| plan.agents.iter().position(|agent| agent.name == *name));
        state.lane(lane).running().iter().any(|job| own(at(job)))
    }

    /// Notes the holder of each slot according to the run log, so that a slot without a claim is not given to another.
    pub fn note_holders(&self, state: &RunState) {
        for lane in self.plan.indices().filter(|&lane| state.lane(lane).is_left_to_do()) {
            for holding in self.holdings(lane, state) {
                self.pool.note_holder(holding.worktree.slot, &holding.holder);
            }
        }
    }
}

/// Where the work of an agent, or of the lane, can start again: the newest first.
fn points(lane: &LaneState, agent: Option<usize>) -> Vec<CommitId> {
    let mut points = agent.map_or_else(Vec::new, |agent| lane.agents()[agent].good_points());
    points.extend(lane.merges().iter().rev().map(|(_, head)| head.clone()));
    points
}

fn is_uncommitted(worker: &AgentState) -> bool {
    worker.step == AgentStep::Committing
}
