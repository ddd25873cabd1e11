//! One lane: where it is, what it has, and what was decided about it.
//!
//! Each concern has its own part with its own rules: `work` (branch and worktree), `attempts` (agents and jobs, with
//! `integration`: their work on its way into the lane, and `candidates`: which of them continues), `validation`, `merge`, `proposal`, `approvals`, `placement` and
//! `clock`. Here and in `changes` is what concerns several of them.

pub(crate) mod approvals;
pub(crate) mod attempts;
pub(crate) mod candidates;
mod changes;
mod choice;
mod clock;
mod integration;
pub(crate) mod merge;
pub(crate) mod placement;
pub(crate) mod proposal;
pub(crate) mod recovery;
pub(crate) mod stage;
pub(crate) mod validation;
mod work;

use std::collections::BTreeSet;

use lanewright_model::event::{LaneStage, Worktree};
use lanewright_model::{
    AgentName, Approval, ChangeSize, CommitId, Failure, HumanGate, JobId, Lane, Round, Runner, Session, Stage, TaskId,
    Timestamp, user_setup,
};

use crate::state::agent::{AgentState, RestartFrom};
use crate::state::lane::approvals::{Answer, Approvals};
use crate::state::lane::attempts::Attempts;
use crate::state::lane::clock::LaneClock;
use crate::state::lane::merge::{Merge, Rebuild, StagedMerge};
use crate::state::lane::placement::PlacementState;
use crate::state::lane::proposal::ProposalState;
use crate::state::lane::recovery::Recovery;
use crate::state::lane::validation::Validation;
use crate::state::lane::work::Work;
use crate::state::no_progress::NoProgress;

#[derive(Debug, Clone, Default)]
pub struct LaneState {
    pub(crate) stage: LaneStage,
    pub(crate) end: Option<LaneEnd>,
    /// Dependencies that are not merged yet.
    pub(crate) missing: usize,
    pub(crate) work: Work,
    pub(crate) attempts: Attempts,
    pub(crate) validation: Validation,
    pub(crate) merge: Merge,
    pub(crate) proposal: ProposalState,
    pub(crate) placement: PlacementState,
    pub(crate) approvals: Approvals,
    pub(crate) clock: LaneClock,
    /// The checkpoints it reached on its present way.
    pub(crate) checkpoints: BTreeSet<Stage>,
    /// It was asked to stop, perhaps by force; nothing new begins in it.
    pub(crate) stopping: Option<bool>,
    /// It was left out of a resume after a crash: a step of it may be done and not recorded.
    interrupted: bool,
    /// A failure that was noted for the lane and has not been acted upon.
    pub(crate) failure: Option<Failure>,
    rolling_back: bool,
    pub(crate) no_progress: NoProgress,
}

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
        Self { missing, attempts: Attempts::new(lane.agents.len()), ..Self::default() }
    }

    pub fn stage(&self) -> LaneStage {
        self.stage
    }

    pub fn end(&self) -> Option<&LaneEnd> {
        self.end.as_ref()
    }

    /// What it is built on.
    pub fn base(&self) -> Option<&CommitId> {
        self.work.base.as_ref()
    }

    /// What it was built on at first, none of which is its own work.
    pub fn first_base(&self) -> Option<&CommitId> {
        self.work.first_base.as_ref()
    }

    pub fn head(&self) -> Option<&CommitId> {
        self.work.head.as_ref()
    }

    /// The first of its ports; 0 before it has any.
    pub fn port(&self) -> u16 {
        self.work.port
    }

    pub fn worktree(&self) -> Option<&Worktree> {
        self.work.worktree.as_ref()
    }

    /// Where the agent works; the lane's worktree if it shares that.
    pub fn workplace(&self, plan: &Lane, agent: usize) -> Option<&Worktree> {
        if plan.shares_worktree(agent) { self.worktree() } else { self.agents()[agent].worktree.as_ref() }
    }

    /// The session that an agent's next attempt continues with the program that `runner` describes.
    pub fn continued_session(&self, plan: &Lane, agent: usize, runner: &Runner) -> Option<&Session> {
        let worktree = &self.workplace(plan, agent)?.path;
        let worker = &self.agents()[agent];
        let session = worker.session.as_ref().filter(|_| worker.restart == RestartFrom::Here)?;
        (runner.continue_anywhere || session.worktree == *worktree).then_some(session)
    }

    /// Its agents, in the order of the plan.
    pub fn agents(&self) -> &[AgentState] {
        self.attempts.agents()
    }

    /// Whether an agent is at a task in the worktree of `agent`, or of the lane; what else is changed there is committed
    /// by no agent.
    pub fn is_worked_on(&self, plan: &Lane, agent: Option<usize>) -> bool {
        self.attempts.is_worked_on(plan, agent)
    }

    /// The commit that an agent began at. Agents that share the lane's worktree begin where the one before ended.
    pub fn start_of(&self, agent: usize) -> Option<&CommitId> {
        let before = || self.merges().last().map(|(_, head)| head);
        self.agents()[agent].start.as_ref().or_else(before).or(self.base())
    }

    /// Merges of agents into it since it stands on its base, oldest first: whose, and its head after it.
    pub fn merges(&self) -> &[(usize, CommitId)] {
        self.attempts.integration().merges()
    }

    /// Commits that its head must hold before it is merged, whatever the scheduler decided: the work of its agents.
    pub fn accepted(&self) -> &[CommitId] {
        self.attempts.integration().accepted()
    }

    /// A merge into the integration branch that is made and not published.
    pub fn staged(&self) -> Option<&StagedMerge> {
        self.merge.staged.as_ref()
    }

    /// The last one of them, also where it is not to be published any more: its worktree may still be at it.
    pub fn last_staged(&self) -> Option<&CommitId> {
        self.merge.last_staged.as_ref()
    }

    /// The merge that its tests judge in its worktree, which is on no branch meanwhile.
    pub fn merge_under_test(&self, plan: &Lane) -> Option<&StagedMerge> {
        self.staged().filter(|staged| staged.moved && !plan.tests.is_empty())
    }

    /// What it must be put onto before its agents continue.
    pub fn rebuild(&self) -> Option<&Rebuild> {
        self.merge.rebuild.as_ref()
    }

    /// The integration branch with its work in it; with `--merge none` and `pr` the lane's own head.
    pub fn merged(&self) -> Option<&CommitId> {
        self.merge.merged.as_ref()
    }

    pub fn placement(&self) -> &PlacementState {
        &self.placement
    }

    /// Its attempts that run here, so that they count for the limit of attempts.
    pub(crate) fn attempts_here(&self) -> usize {
        if self.is_elsewhere() { 0 } else { self.attempts.running_attempts() }
    }

    /// Whether the phases of its agents are to be recorded by this run.
    pub(crate) fn has_moves_to_record(&self) -> bool {
        !self.is_elsewhere() && self.agents().iter().any(|agent| !agent.phase.is_recorded())
    }

    /// Whether a job of a cluster has it, or is about to.
    pub fn is_elsewhere(&self) -> bool {
        self.placement.current().is_some()
    }

    pub fn proposal(&self) -> &ProposalState {
        &self.proposal
    }

    /// Whether reviewers and checks of its pull request may still send it back.
    pub fn is_followed(&self) -> bool {
        self.end == Some(LaneEnd::Merged) && self.stopping.is_none() && self.proposal.is_open()
    }

    /// What the lanes that depend on it start from: its merge, or what its pull request has while it continues.
    pub fn delivered(&self) -> Option<&CommitId> {
        self.merged().or(self.proposal.made_for.as_ref()).filter(|_| !self.is_skipped())
    }

    /// The refs that keep its snapshots, and what they keep.
    pub fn snapshots(&self) -> &[(String, CommitId)] {
        &self.work.snapshots
    }

    pub fn running(&self) -> &BTreeSet<JobId> {
        self.attempts.running()
    }

    /// When it came to its stage, or its rollback began.
    pub fn since(&self) -> Option<Timestamp> {
        self.clock.since()
    }

    /// Whether its rollback began and is not finished.
    pub fn is_half_rolled_back(&self) -> bool {
        self.rolling_back
    }

    /// What people said of it, in their answers and when they resumed the run.
    pub fn remarks(&self) -> Vec<String> {
        self.approvals.remarks()
    }

    pub fn answer(&self, gate: &HumanGate) -> Option<&Answer> {
        self.approvals.get(gate)
    }

    /// Whether anything of it was made that is still there.
    pub fn has_begun(&self) -> bool {
        self.stage != LaneStage::Waiting || self.rolling_back
    }

    /// Whether it has not begun and may once its dependencies are merged.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stage == LaneStage::Waiting && self.end.is_none() && self.stopping.is_none()
    }

    pub fn is_skipped(&self) -> bool {
        self.end == Some(LaneEnd::Skipped)
    }

    /// Whether its work is where it belongs, now or from an earlier run.
    pub fn is_merged(&self) -> bool {
        self.merged().is_some() || matches!(self.end, Some(LaneEnd::MergedBefore | LaneEnd::Skipped))
    }

    /// Whether it failed or is blocked, which a resume tries again.
    /// Which level of recovery is next in a lane that ended, after `by_hand` retries that users asked for since its last
    /// progress; the plan is the lane's.
    pub fn recovery(&self, plan: &Lane, by_hand: u32) -> Recovery {
        self.attempts.recovery(plan, by_hand)
    }

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

    /// Whether a person must approve; an empty change needs no approval, and a setup is checked first.
    pub(crate) fn needs(&self, plan: &Lane, gate: Approval) -> bool {
        let is_empty = || self.validation.changes(self.head()).is_some_and(|changes| changes.is_empty());
        let is_due = || user_setup::is_due(&plan.user_setup, self.work.missing());
        match gate {
            Approval::Setup => self.checkpoints.contains(&Stage::BeforeLaneStart) && (plan.needs(gate) || is_due()),
            Approval::Plan => plan.needs(gate),
            Approval::Changes => plan.needs(gate) && !is_empty() || !self.protected().is_empty(),
        }
    }

    /// The protected files that it changes, as far as that was measured.
    pub fn protected(&self) -> &[String] {
        self.validation.protected(self.head())
    }

    /// How much it changes, as far as that was measured.
    pub fn changes(&self) -> Option<ChangeSize> {
        self.validation.changes(self.head())
    }

    /// Whether it can do nothing before a person says something.
    pub fn is_parked(&self, plan: &Lane) -> bool {
        let unanswered = |gate: Approval| self.needs(plan, gate) && self.answer(&gate.into()).is_none();
        let asks = || self.waits_for_people(plan) || approval_at(self.stage).is_some_and(unanswered);
        !self.is_elsewhere() && (self.is_stopped() || self.picked().is_none() && asks())
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
        self.rebuild().is_some() || self.attempts.has_unrecorded_step(plan)
    }

    /// Whether no agent of it is at work and nothing that one did waits to be judged, committed, kept or merged. An
    /// agent that ends the lane once the others rest does nothing more either.
    pub(crate) fn is_at_rest(&self, plan: &Lane) -> bool {
        self.attempts.is_at_rest(plan, current_round(plan, self.stage))
    }

    /// Whether no job of it runs and nothing that a job left waits to be kept.
    pub fn is_quiet(&self) -> bool {
        // A lane that was cleaned up has no worktree left of which something could be kept.
        let is_cleaned = matches!(self.end, Some(LaneEnd::Merged)) && !self.attempts.has_jobs();
        !self.is_elsewhere() && (is_cleaned || self.attempts.is_quiet())
    }

    /// The person's task that the agent waits for.
    pub fn asks<'p>(&self, plan: &'p Lane, agent: usize) -> Option<&'p TaskId> {
        self.attempts.asks(plan, agent)
    }

    /// Whether the agents of the round have come as far as they can without a person's answer.
    pub(crate) fn waits_for_people(&self, plan: &Lane) -> bool {
        let unanswered = |task: &TaskId| self.answer(&HumanGate::Task(task.clone())).is_none();
        current_round(plan, self.stage).is_some_and(|round| self.attempts.wait_for_people(plan, round, unanswered))
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
        LaneStage::Classified => Some(Approval::Setup),
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
