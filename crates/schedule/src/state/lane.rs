//! One lane: where it is, what it has, and what was decided about it.

use std::collections::BTreeSet;

use lanewright_model::event::{Event, LaneStage, Worktree};
use lanewright_model::{
    AgentName, Approval, CommitId, Failure, FailureKind, HumanGate, JobId, Lane, RetryLevel, Round, Runner, Session,
    Stage, TaskId, Timestamp,
};

use crate::state::agent::{AgentState, AgentStep, RestartFrom};
use crate::state::answers::{Answer, Answers};
use crate::state::gate::Gate;
use crate::state::in_vain::InVain;
use crate::state::intake::Intake;
use crate::state::lane_clock::LaneClock;
use crate::state::merging::{Merging, Rebuild, StagedMerge};
use crate::state::placement::PlacementState;
use crate::state::proposal::ProposalState;
use crate::state::rework::Rework;
use crate::state::validation::Validation;

/// One lane.
#[derive(Debug, Clone, Default)]
pub struct LaneState {
    pub(crate) stage: LaneStage,
    pub(crate) end: Option<LaneEnd>,
    /// Dependencies that are not merged yet.
    pub(crate) missing: usize,
    pub(crate) base: Option<CommitId>,
    pub(crate) port: u16,
    pub(crate) worktree: Option<Worktree>,
    pub(crate) head: Option<CommitId>,
    pub(crate) setup: Gate,
    pub(crate) agents: Vec<AgentState>,
    pub(crate) intake: Intake,
    pub(crate) validation: Validation,
    pub(crate) rework: Rework,
    pub(crate) merging: Merging,
    pub(crate) proposal: ProposalState,
    pub(crate) placement: PlacementState,
    pub(crate) answers: Answers,
    /// What people said when they resumed the run, oldest first.
    pub(crate) remarks: Vec<String>,
    pub(crate) clock: LaneClock,
    /// The checkpoints it reached on its present way.
    pub(crate) checkpoints: BTreeSet<Stage>,
    pub(crate) snapshots: Vec<(String, CommitId)>,
    pub(crate) running: BTreeSet<JobId>,
    /// It was asked to stop, perhaps by force; nothing new begins in it.
    pub(crate) stopping: Option<bool>,
    /// It was left out of a resume after a crash: a step of it may be done and not recorded.
    pub(crate) interrupted: bool,
    /// A failure that was noted for the lane and has not been acted upon.
    pub(crate) failure: Option<Failure>,
    pub(crate) rolling_back: bool,
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
    /// The user leaves it out: it counts as merged without work.
    Skipped,
    /// Its work is done here, and goes back to the run that placed it.
    Returned,
    /// No retry is left.
    Failed(Failure),
    /// Something outside must change first.
    Blocked(String),
}

impl LaneState {
    pub(crate) fn new(lane: &Lane, missing: usize) -> Self {
        Self { missing, agents: vec![AgentState::default(); lane.agents.len()], ..Self::default() }
    }

    /// Where it stands.
    pub fn stage(&self) -> LaneStage {
        self.stage
    }

    /// How it ended, if it did.
    pub fn end(&self) -> Option<&LaneEnd> {
        self.end.as_ref()
    }

    /// What it is built on.
    pub fn base(&self) -> Option<&CommitId> {
        self.base.as_ref()
    }

    /// Its branch's head.
    pub fn head(&self) -> Option<&CommitId> {
        self.head.as_ref()
    }

    /// The first of its ports; 0 before it has any.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its own worktree.
    pub fn worktree(&self) -> Option<&Worktree> {
        self.worktree.as_ref()
    }

    /// Where the agent works; the lane's worktree if it shares that.
    pub fn workplace(&self, plan: &Lane, agent: usize) -> Option<&Worktree> {
        if plan.shares_worktree(agent) { self.worktree.as_ref() } else { self.agents[agent].worktree.as_ref() }
    }

    /// The session that an agent's next attempt continues with the program that `runner` describes.
    pub fn continued_session(&self, plan: &Lane, agent: usize, runner: &Runner) -> Option<&Session> {
        let worktree = &self.workplace(plan, agent)?.path;
        let worker = &self.agents[agent];
        let session = worker.session.as_ref().filter(|_| worker.restart == RestartFrom::Here)?;
        (runner.continue_anywhere || session.worktree == *worktree).then_some(session)
    }

    /// Its agents, in the order of the plan.
    pub fn agents(&self) -> &[AgentState] {
        &self.agents
    }

    /// Whether an agent is at a task in the worktree of `agent`, or of the lane; what else is changed there is committed
    /// by no agent.
    pub fn is_worked_on(&self, plan: &Lane, agent: Option<usize>) -> bool {
        match agent {
            Some(agent) => plan.agents[agent].round != Round::Implementation || self.agents[agent].is_at_a_task(),
            None => plan.round(Round::Implementation).filter(|&agent| plan.shares_worktree(agent)).any(|agent| {
                let works_again = self.agents[agent].failure().is_some() && !self.has_all_of(agent);
                works_again || self.agents[agent].is_at_a_task()
            }),
        }
    }

    /// Whether the lane's branch has what the agent will bring, as long as it does not work again.
    pub(crate) fn has_all_of(&self, agent: usize) -> bool {
        let is_idle = |failure: &Failure| failure.kind == FailureKind::Idle;
        self.intake.has(agent) || self.agents[agent].failure().is_some_and(is_idle)
    }

    /// The commit that an agent began at. Agents that share the lane's worktree begin where the one before ended.
    pub fn start_of(&self, agent: usize) -> Option<&CommitId> {
        let before = || self.intake.merges().last().map(|(_, head)| head);
        self.agents[agent].start.as_ref().or_else(before).or(self.base.as_ref())
    }

    /// Merges of agents into it since it stands on its base, oldest first: whose, and its head after it.
    pub fn merges(&self) -> &[(usize, CommitId)] {
        self.intake.merges()
    }

    /// Commits that its head must hold before it is merged, whatever the scheduler decided: the work of its agents.
    pub fn accepted(&self) -> &[CommitId] {
        self.intake.accepted()
    }

    /// A merge into the integration branch that is made and not published.
    pub fn staged(&self) -> Option<&StagedMerge> {
        self.merging.staged.as_ref()
    }

    /// The merge that its tests judge in its worktree, which is on no branch meanwhile.
    pub fn merge_under_test(&self, plan: &Lane) -> Option<&StagedMerge> {
        self.staged().filter(|staged| staged.moved && !plan.tests.is_empty())
    }

    /// What it must be put onto before its agents go on.
    pub fn rebuild(&self) -> Option<&Rebuild> {
        self.merging.rebuild.as_ref()
    }

    /// The integration branch with its work in it; with `--merge none` and `pr` the lane's own head.
    pub fn merged(&self) -> Option<&CommitId> {
        self.merging.merged.as_ref()
    }

    /// What is known of its work on a cluster.
    pub fn placement(&self) -> &PlacementState {
        &self.placement
    }

    /// Its attempts that run here, so that they count for the limit of attempts.
    pub(crate) fn attempts_here(&self) -> usize {
        if self.is_elsewhere() { 0 } else { self.running.iter().filter(|job| job.is_attempt()).count() }
    }

    /// Whether a job of a cluster has it, or is about to.
    pub fn is_elsewhere(&self) -> bool {
        self.placement.current().is_some()
    }

    /// What the remote and the forge have of it.
    pub fn proposal(&self) -> &ProposalState {
        &self.proposal
    }

    /// The refs that keep its snapshots, and what they keep.
    pub fn snapshots(&self) -> &[(String, CommitId)] {
        &self.snapshots
    }

    /// Jobs that were started and have not ended.
    pub fn running(&self) -> &BTreeSet<JobId> {
        &self.running
    }

    /// When it came to its stage, or its rollback began.
    pub fn stands_since(&self) -> Option<Timestamp> {
        self.clock.stands_since()
    }

    /// Whether its rollback began and is not finished.
    pub fn is_half_rolled_back(&self) -> bool {
        self.rolling_back
    }

    /// What people said of it, in their answers and when they resumed the run.
    pub fn remarks(&self) -> Vec<String> {
        self.answers.messages().chain(&self.remarks).cloned().collect()
    }

    /// The answer that was given at a gate.
    pub fn answer(&self, gate: &HumanGate) -> Option<&Answer> {
        self.answers.get(gate)
    }

    /// Whether anything of it was made that is still there.
    pub fn has_begun(&self) -> bool {
        self.stage != LaneStage::Waiting || self.rolling_back
    }

    /// Whether the user leaves it out.
    pub fn is_skipped(&self) -> bool {
        self.end == Some(LaneEnd::Skipped)
    }

    /// Whether its work is where it belongs, now or from an earlier run.
    pub fn is_merged(&self) -> bool {
        self.merged().is_some() || matches!(self.end, Some(LaneEnd::MergedBefore | LaneEnd::Skipped))
    }

    /// Whether it failed or is blocked, which a resume tries again.
    pub fn gave_up(&self) -> bool {
        matches!(self.end, Some(LaneEnd::Failed(_) | LaneEnd::Blocked(_)))
    }

    /// Whether there is nothing left to do in it.
    pub fn is_complete(&self) -> bool {
        matches!(
            self.end,
            Some(LaneEnd::Merged | LaneEnd::MergedBefore | LaneEnd::Left | LaneEnd::Skipped | LaneEnd::Returned)
        )
    }

    /// Whether it ended or its work is where it belongs.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() || self.merged().is_some()
    }

    /// Whether this run has work to do in it.
    pub fn is_left_to_do(&self) -> bool {
        !self.is_merged() && self.end != Some(LaneEnd::Left)
    }

    /// Whether a person must approve; an empty change needs no approval.
    pub(crate) fn needs(&self, plan: &Lane, gate: Approval) -> bool {
        let is_empty = || self.validation.changes(self.head()).is_some_and(|changes| changes.is_empty());
        plan.needs(gate) && !(gate == Approval::Changes && is_empty())
    }

    /// Whether it can do nothing before a person says something.
    pub fn is_parked(&self, plan: &Lane) -> bool {
        let unanswered = |gate: Approval| self.needs(plan, gate) && self.answers.get(&gate.into()).is_none();
        let asks = || self.waits_for_people(plan) || approval_at(self.stage).is_some_and(unanswered);
        !self.is_elsewhere() && (self.is_stopped() || asks())
    }

    /// Whether it was asked to stop and nothing of it is left running.
    pub fn is_stopped(&self) -> bool {
        self.stopping.is_some() && self.is_quiet()
    }

    /// Whether a step of it may be done and not recorded, although the run has ended since.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether a step that moves a branch or changes a worktree of it was wanted and is not recorded as done. If the
    /// process died, also after a stop or a failure, the step may be done all the same.
    pub(crate) fn has_unrecorded_step(&self, plan: &Lane) -> bool {
        let is_unrecorded = |(at, agent): (usize, &AgentState)| match agent.step {
            AgentStep::Merging | AgentStep::Committing => true,
            AgentStep::Done => agent.worktree.is_some() && !plan.shares_worktree(at),
            _ => agent.restart != RestartFrom::Here,
        };
        self.rebuild().is_some() || self.agents.iter().enumerate().any(is_unrecorded)
    }

    /// Whether no agent of it is at work and nothing that one did waits to be judged, committed, kept or merged. An
    /// agent that ends the lane once the others rest does nothing more either.
    pub(crate) fn is_at_rest(&self, plan: &Lane) -> bool {
        let waits = |agent: usize| match self.agents[agent].step {
            AgentStep::Ready | AgentStep::Asking | AgentStep::Retrying(_) | AgentStep::Done => true,
            _ => self.agent_end(plan, agent).is_some(),
        };
        let round = current_round(plan, self.stage);
        self.running.is_empty() && round.is_none_or(|round| self.in_turn(plan, round).all(waits))
    }

    /// The agents of a round that may move now: those that share a worktree take turns.
    pub(crate) fn in_turn(&self, plan: &Lane, round: Round) -> impl Iterator<Item = usize> {
        let has_turn = |agent: &usize| plan.shares_worktree(*agent) && self.agents[*agent].step != AgentStep::Done;
        let last = plan.round(round).find(has_turn).unwrap_or(usize::MAX);
        plan.round(round).take_while(move |agent| *agent <= last)
    }

    /// Whether no job of it runs and nothing that a job left waits to be kept.
    pub fn is_quiet(&self) -> bool {
        let salvaging = |agent: &AgentState| matches!(agent.step, AgentStep::Salvaging(..)) && agent.unkept.is_none();
        !self.is_elsewhere() && self.running.is_empty() && !self.agents.iter().any(salvaging)
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
            let unanswered = |task: &TaskId| self.answers.get(&HumanGate::Task(task.clone())).is_none();
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
        let retries = if worker.failed_in_task() { worker.retries } else { self.rework.rounds };
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

    /// Whether another agent is being taken into the lane.
    pub(crate) fn waits_for_its_turn(&self, agent: usize) -> bool {
        self.agents[agent].step == AgentStep::Merging && !self.intake.is_turn_of(agent)
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
                Some(Event::LaneBlocked { lane, reason: blocked_reason(plan, agent, reason) })
            }
            _ => None,
        }
    }
}

/// Why the lane is blocked, in the words of its agent, which is named where there are others.
fn blocked_reason(plan: &Lane, agent: usize, reason: &str) -> String {
    let name = (plan.agents.len() > 1).then(|| &plan.agents[agent].name);
    match (name, reason) {
        (None, "") => "the agent reported BLOCKED without a reason".to_owned(),
        (Some(name), "") => format!("{name} reported BLOCKED without a reason"),
        (None, reason) => reason.to_owned(),
        (Some(name), reason) => format!("{name}: {reason}"),
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

#[cfg(test)]
mod tests;
