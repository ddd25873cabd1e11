//! One lane: where it is, what it has, and what was decided about it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::event::{Event, LaneStage, Worktree};
use crate::model::{
    AgentName, Approval, CommitId, Failure, HumanGate, JobId, Lane, RetryLevel, Round, Stage, TaskId, Timestamp,
    Verdict,
};
use crate::schedule::state::agent::{AgentState, AgentStep};
use crate::schedule::state::gate::Gate;
use crate::schedule::state::in_vain::InVain;
use crate::schedule::state::proposal::ProposalState;

/// One lane.
#[derive(Debug, Clone)]
pub struct LaneState {
    /// Where it stands.
    pub stage: LaneStage,
    /// How it ended, if it did.
    pub end: Option<LaneEnd>,
    /// Dependencies that are not merged yet.
    pub missing: usize,
    /// What it is built on.
    pub base: Option<CommitId>,
    /// The first of its ports; 0 before it has any.
    pub port: u16,
    /// Its own worktree.
    pub worktree: Option<Worktree>,
    /// Its branch's head.
    pub head: Option<CommitId>,
    /// Its `setup` commands.
    pub setup: Gate,
    /// Its agents, in the order of the plan.
    pub agents: Vec<AgentState>,
    /// Agents whose work is taken into the lane, one at a time, first come first served.
    pub intake: VecDeque<usize>,
    /// Merges of agents into the lane since it stands on its base, oldest first: whose, and the lane's head after it.
    pub merges: Vec<(usize, CommitId)>,
    /// The merges were searched for the one that broke the tests that failed last.
    pub bisected: bool,
    /// The agent whose merge that search found.
    pub culprit: Option<usize>,
    /// How often a gate failed on the lane as a whole and nobody could tell of which kind that was.
    pub misunderstood: u32,
    /// The agent that is to fix that, until its work is in the lane again.
    pub assignee: Option<usize>,
    /// Its tests, on its branch.
    pub tests: Gate,
    /// Its tests, on the merged result.
    pub merged_tests: Gate,
    /// What became of its must-haves, and at which head.
    pub must_haves: Option<(CommitId, Vec<Verdict>)>,
    /// The checkpoints it reached on its present way.
    pub checkpoints: BTreeSet<Stage>,
    /// The answers that people gave.
    pub answers: BTreeMap<HumanGate, Answer>,
    /// What people said when they resumed the run, oldest first.
    pub remarks: Vec<String>,
    /// How often it was sent back to its agents.
    pub rework: u32,
    /// A merge that is made and not published.
    pub staged: Option<StagedMerge>,
    /// What the lane must be put onto before its agents go on.
    pub rebuild: Option<Rebuild>,
    /// The integration branch with its work in it; with `--merge none` and `pr` the lane's own head.
    pub merged: Option<CommitId>,
    /// What the remote and the forge have of it.
    pub proposal: ProposalState,
    /// Jobs that were started and have not ended.
    pub running: BTreeSet<JobId>,
    /// It was asked to stop; nothing new begins in it.
    pub stopping: Option<bool>,
    /// A failure that was noted for the lane and has not been acted upon.
    pub failure: Option<Failure>,
    /// Since when its time limit counts.
    pub clock: Option<Timestamp>,
    /// When it came to its stage, or somebody began to put it back; a resume changes nothing of that. What is kept of
    /// its worktree is named by it, so that who is asked again finds what was kept before.
    pub stands_since: Option<Timestamp>,
    /// Since when it waits for a person.
    pub parked_since: Option<Timestamp>,
    /// The refs that keep its snapshots, and what they keep.
    pub snapshots: Vec<(String, CommitId)>,
    /// Somebody began to put it back and has not come to the end of that.
    pub rolling_back: bool,
    /// Decisions that came to nothing and are made again.
    pub(crate) in_vain: InVain,
}

/// How a lane ended.
#[derive(Debug, Clone, PartialEq)]
pub enum LaneEnd {
    /// Its work is where it belongs and it is cleaned up.
    Merged,
    /// An earlier run merged it.
    MergedBefore,
    /// It is not part of this run.
    Left,
    /// No retry is left.
    Failed(Failure),
    /// Something outside must change first.
    Blocked(String),
}

/// A person's answer at a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Yes or no.
    pub approved: bool,
    /// What was said.
    pub message: String,
}

/// A merge that is made and not published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedMerge {
    /// The integration branch it was made for.
    pub onto: CommitId,
    /// The merge.
    pub commit: CommitId,
    /// Whether the lane's tests have not seen all that it holds.
    pub moved: bool,
}

/// What a lane is put onto before its agents go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuild {
    /// The integration branch alone: the lane's work does not merge and is done again.
    OnIntegration,
    /// The lane's own work merged with the integration branch: it merges, and its tests fail.
    OnMerge(CommitId),
}

impl LaneState {
    pub(crate) fn new(lane: &Lane, missing: usize) -> Self {
        Self {
            stage: LaneStage::Waiting,
            end: None,
            missing,
            base: None,
            port: 0,
            worktree: None,
            head: None,
            setup: Gate::Due,
            agents: lane.agents.iter().map(|_| AgentState::new()).collect(),
            intake: VecDeque::new(),
            merges: Vec::new(),
            bisected: false,
            culprit: None,
            misunderstood: 0,
            assignee: None,
            tests: Gate::Due,
            merged_tests: Gate::Due,
            must_haves: None,
            checkpoints: BTreeSet::new(),
            answers: BTreeMap::new(),
            remarks: Vec::new(),
            rework: 0,
            staged: None,
            rebuild: None,
            merged: None,
            proposal: ProposalState::default(),
            running: BTreeSet::new(),
            stopping: None,
            failure: None,
            clock: None,
            stands_since: None,
            parked_since: None,
            snapshots: Vec::new(),
            rolling_back: false,
            in_vain: InVain::default(),
        }
    }

    /// Whether anything of it was made that is still there.
    pub fn has_begun(&self) -> bool {
        self.stage != LaneStage::Waiting || self.rolling_back
    }

    /// Whether its work is where it belongs, now or from an earlier run.
    pub fn is_merged(&self) -> bool {
        self.merged.is_some() || self.end == Some(LaneEnd::MergedBefore)
    }

    /// Whether this run has work to do in it.
    pub fn is_left_to_do(&self) -> bool {
        !self.is_merged() && self.end != Some(LaneEnd::Left)
    }

    /// Whether it can do nothing before a person says something.
    pub fn is_parked(&self, plan: &Lane) -> bool {
        let unanswered = |gate: Approval| plan.needs(gate) && !self.answers.contains_key(&gate.into());
        self.is_stopped() || self.waits_for_people(plan) || approval_at(self.stage).is_some_and(unanswered)
    }

    /// Whether it was asked to stop and nothing of it is left running.
    pub fn is_stopped(&self) -> bool {
        self.stopping.is_some() && self.is_quiet()
    }

    /// Agents whose work is in the lane, in the order in which it came, the last time each.
    pub(crate) fn merged_agents(&self) -> Vec<usize> {
        let last = |&(at, (agent, _)): &(usize, &(usize, CommitId))| {
            self.merges[at + 1..].iter().all(|(later, _)| later != agent)
        };
        self.merges.iter().enumerate().filter(last).map(|(_, (agent, _))| *agent).collect()
    }

    /// Whether no agent of it is at work and nothing that one did waits to be judged, committed, kept or merged.
    pub(crate) fn is_at_rest(&self) -> bool {
        let rests = |step: &AgentStep| match step {
            AgentStep::Ready | AgentStep::Asking | AgentStep::Retrying(_) => true,
            AgentStep::Done | AgentStep::Blocked(_) | AgentStep::GaveUp(_) => true,
            AgentStep::Running(_) | AgentStep::Committing | AgentStep::Verifying(_) | AgentStep::Snapshotting => false,
            AgentStep::Salvaging(..) | AgentStep::Merging | AgentStep::Gating(_) => false,
            AgentStep::Judging(_) | AgentStep::Failed(_) => false,
        };
        self.running.is_empty() && self.agents.iter().all(|agent| rests(&agent.step))
    }

    /// Whether no job of it runs and nothing that a job left waits to be kept.
    pub fn is_quiet(&self) -> bool {
        let salvaging = |agent: &AgentState| matches!(agent.step, AgentStep::Salvaging(..)) && agent.unkept.is_none();
        self.running.is_empty() && !self.agents.iter().any(salvaging)
    }

    /// Whether a person already said yes at `gate`.
    pub fn approved(&self, gate: &HumanGate) -> bool {
        self.answers.get(gate).is_some_and(|answer| answer.approved)
    }

    /// The person's task that the agent waits for.
    pub fn asks<'p>(&self, plan: &'p Lane, agent: usize) -> Option<&'p TaskId> {
        let worker = &self.agents[agent];
        (worker.step == AgentStep::Asking).then(|| &plan.agents[agent].tasks[worker.task].id)
    }

    /// Whether the agents of the round have come as far as they can without a person's answer.
    pub(crate) fn waits_for_people(&self, plan: &Lane) -> bool {
        let Some(round) = current_round(plan, self.stage) else { return false };
        let mut asks = false;
        for agent in plan.round(round) {
            let unanswered = |task: &TaskId| !self.answers.contains_key(&HumanGate::Task(task.clone()));
            match &self.agents[agent].step {
                AgentStep::Asking if self.asks(plan, agent).is_some_and(unanswered) => asks = true,
                AgentStep::Done if self.agents[agent].worktree.is_none() || plan.shares_worktree(agent) => {}
                _ => return false,
            }
            // Those that share the worktree take turns.
            if asks && plan.shares_worktree(agent) {
                return true;
            }
        }
        asks
    }

    /// What a further attempt of the agent would be for; `None`: only a person can help now. Its task is retried, then
    /// put back once; the lane as a whole is only retried, because only a task has a last state that passed.
    pub(crate) fn next_level(&self, plan: &Lane, agent: usize) -> Option<RetryLevel> {
        let worker = &self.agents[agent];
        let retries = if worker.failed_in_task() { worker.retries } else { self.rework };
        let may_roll_back = worker.failed_in_task() && plan.retries > 0;
        match worker.outage {
            Some(outage) if outage.given_up => None,
            Some(_) => Some(RetryLevel::Wait),
            None if worker.excused => Some(RetryLevel::Wait),
            None if worker.rolled_back => None,
            None if retries < plan.retries && !worker.fails_alike() => Some(RetryLevel::Retry),
            None => may_roll_back.then_some(RetryLevel::Rollback),
        }
    }

    /// Whether another agent is being taken into the lane: its branch and its worktree change for one at a time, and
    /// the checkpoint gate judges one at a time.
    pub(crate) fn waits_for_its_turn(&self, agent: usize) -> bool {
        self.agents[agent].step == AgentStep::Merging && self.intake.front() != Some(&agent)
    }

    /// Whether nothing more will come of the agent in this life of the run.
    pub(crate) fn is_settled(&self, plan: &Lane, agent: usize) -> bool {
        let waits = self.asks(plan, agent).is_some();
        waits || self.agents[agent].step == AgentStep::Done || self.agent_end(plan, agent).is_some()
    }

    /// How the agent ends its lane, if no retry is left or something outside must come first.
    pub(crate) fn agent_end(&self, plan: &Lane, agent: usize) -> Option<Event> {
        let lane = plan.id.clone();
        match &self.agents[agent].step {
            AgentStep::Failed(_) if self.next_level(plan, agent).is_some() => None,
            AgentStep::Failed(failure) | AgentStep::GaveUp(failure) => {
                Some(Event::LaneFailed { lane, failure: failure.clone() })
            }
            AgentStep::Salvaging(..) => self.agents[agent].unkept.as_ref().map(|error| {
                let reason =
                    format!("what {} left cannot be kept, so it is not touched: {error}", plan.agents[agent].name);
                Event::LaneBlocked { lane, reason }
            }),
            AgentStep::Blocked(reason) => {
                let name = &plan.agents[agent].name;
                let reason = match reason.as_str() {
                    "" => format!("agent {name} reported BLOCKED without a reason"),
                    reason => format!("agent {name} is blocked: {reason}"),
                };
                Some(Event::LaneBlocked { lane, reason })
            }
            _ => None,
        }
    }
}

/// The round whose agents work, or are about to, while a lane stands at `stage`.
pub(crate) fn current_round(lane: &Lane, stage: LaneStage) -> Option<Round> {
    match stage {
        LaneStage::Waiting | LaneStage::Init | LaneStage::Classified => first_round(lane),
        LaneStage::Requirements => Some(Round::Requirements),
        LaneStage::Implementation => Some(Round::Implementation),
        LaneStage::Review => Some(Round::Review),
        _ => None,
    }
}

pub(crate) fn first_round(lane: &Lane) -> Option<Round> {
    Round::ALL.iter().copied().find(|&round| lane.round(round).next().is_some())
}

/// The approval that a lane may ask for at `stage`.
pub fn approval_at(stage: LaneStage) -> Option<Approval> {
    match stage {
        LaneStage::Synthesis => Some(Approval::Plan),
        LaneStage::AwaitingUserApproval => Some(Approval::Changes),
        _ => None,
    }
}

/// Where the agent of that name stands in its lane.
pub(crate) fn agent_index(lane: &Lane, name: &AgentName) -> Option<usize> {
    lane.agents.iter().position(|agent| agent.name == *name)
}
