//! Changes of a lane that concern several of its parts.

use lanewright_model::event::{LanePoint, LaneStage, Reading, Worktree};
use lanewright_model::{
    Approval, CommitId, Failure, HumanGate, JobExit, JobId, JobRole, Lane, Round, Stage, TaskKind, Timestamp,
};

use crate::state::agent::{AgentState, AgentStep, RestartFrom};
use crate::state::gate::Gate;
use crate::state::lane::merge::Rebuild;
use crate::state::lane::validation::Validation;
use crate::state::lane::{LaneEnd, LaneState};
use crate::state::no_progress::Decision;

impl LaneState {
    pub(crate) fn open(&mut self, worktree: &Worktree) {
        self.work.set_head(&worktree.head);
        self.work.worktree = Some(worktree.clone()).filter(|_| !self.is_elsewhere());
    }

    /// Its work is where it belongs and nothing is left of its worktree.
    pub(crate) fn clean(&mut self) {
        self.end = Some(LaneEnd::Merged);
        self.work.close();
    }

    pub(crate) fn begin_rollback(&mut self, at: Timestamp) {
        if !self.rolling_back {
            self.rolling_back = true;
            self.clock.begin_rollback(at);
        }
    }

    /// The lane after a rollback: as new, but for what is known outside of the repository.
    pub(crate) fn roll_back(&mut self, plan: &Lane, missing: usize) {
        let proposal = std::mem::take(&mut self.proposal).after_rollback();
        let placement = std::mem::take(&mut self.placement).after_rollback();
        let phases = self.attempts.take_phases();
        *self = Self { proposal, placement, ..Self::new(plan, missing) };
        self.attempts.begin_again(phases);
    }

    /// After a rollback: the lane as it was at the `point`, `then`, in the worktrees that were opened for it. What ran, or
    /// had failed, is done again.
    pub(crate) fn return_to(&mut self, point: &LanePoint, then: Self, plan: &Lane, at: Timestamp) {
        let (missing, proposal) = (self.missing, std::mem::take(&mut self.proposal));
        let (placement, phases) = (std::mem::take(&mut self.placement), self.attempts.take_phases());
        *self = Self { missing, proposal, placement, end: None, stopping: None, failure: None, ..then };
        (self.interrupted, self.rolling_back) = (false, false);
        self.work.return_to(point);
        self.attempts.return_to(point, plan, phases);
        self.validation.start_again();
        self.merge.start_again();
        // It gets in the queue again.
        self.checkpoints.remove(&Stage::PrePr);
        self.approvals.forget_rejections();
        self.no_progress.forget_all();
        self.clock.begin_rollback(at);
        self.clock.restart(at);
    }

    /// Set-ups run again in the worktrees that are open.
    pub(crate) fn set_up_again(&mut self) {
        self.work.setup.run_again();
        self.attempts.agents_mut().iter_mut().for_each(|agent| agent.setup.run_again());
    }

    /// Its pull request is open, and it continues from `head`, which holds what other people pushed to its branch.
    pub(crate) fn take_up_again(&mut self, head: &CommitId, plan: &Lane, at: Timestamp) {
        (self.end, self.stage) = (None, LaneStage::AwaitingUserApproval);
        self.merge.start_again();
        self.work.lose_worktree();
        if self.head() != Some(head) {
            self.work.set_head(head);
            self.attempts.start_from(head, plan);
        }
        // What reviewers ask for is no retry.
        self.attempts.reset_rework();
        self.attempts.excuse_all(true);
        self.clock.restart(at);
        self.clock.move_on(at);
    }

    /// Its worktree is opened again on another machine.
    pub(crate) fn move_machine(&mut self) {
        self.work.setup.run_again();
        self.attempts.agents_mut().iter_mut().for_each(AgentState::lose_uncommitted);
    }

    /// The machine was started again while it was active.
    pub(crate) fn lose_unsynced(&mut self, plan: &Lane) {
        self.work.setup.run_again();
        let is_open = self.work.worktree.is_some();
        for (at, agent) in self.attempts.agents_mut().iter_mut().enumerate() {
            if agent.worktree.is_some() || (is_open && plan.shares_worktree(at)) {
                agent.lose_unsynced();
            }
        }
    }

    /// Nothing of it is anywhere else any more; its worktrees were there.
    pub(crate) fn come_back(&mut self) {
        self.placement.current = None;
        self.work.lose_worktree();
        self.attempts.agents_mut().iter_mut().for_each(|agent| agent.worktree = None);
    }

    pub(crate) fn job_planned(&mut self, job: &JobId) {
        let running = Gate::Running(job.clone());
        match &job.role {
            JobRole::Tests => {
                self.validation.tests = running;
                self.checkpoints.remove(&Stage::AfterLaneTests);
            }
            JobRole::MergedTests => self.validation.merged_tests = running,
            _ => self.work.setup = running,
        }
    }

    pub(crate) fn job_exited(&mut self, job: &JobId, exit: &JobExit, reading: Option<&Reading>) {
        for gate in [&mut self.work.setup, &mut self.validation.tests, &mut self.validation.merged_tests] {
            gate.record_exit(job, exit, reading, &mut self.no_progress);
        }
    }

    /// Its worktree was lost, and with it what agents that share it left: that is in snapshots only, which outlive the merge.
    pub(crate) fn lose_worktree(&mut self, plan: &Lane) {
        let Self { attempts, work, .. } = self;
        for agent in (0..plan.agents.len()).filter(|&agent| plan.shares_worktree(agent)) {
            attempts.agents_mut()[agent].session = None;
            work.forget_snapshots(|reference| attempts.agents()[agent].salvaged.contains(reference));
        }
    }

    /// It is on another base; what did not merge is done again.
    pub(crate) fn reset(&mut self, base: &CommitId, plan: &Lane) {
        self.work.reset(base);
        self.merge.drop_staged();
        let earlier = match self.merge.take_rebuild() {
            Some(Rebuild::OnIntegration) => self.work.last_snapshot().cloned(),
            // That is another candidate's.
            Some(Rebuild::OnFirstBase) => None,
            Some(Rebuild::OnMerge(_)) | None => return,
        };
        self.attempts.integration_mut().restart();
        for agent in plan.round(Round::Implementation) {
            let worker = &mut self.attempts.agents_mut()[agent];
            worker.changed.clear();
            worker.salvaged.extend(earlier.clone());
            // Also one whose gate is to run again: what it judged is no more.
            if matches!(worker.step, AgentStep::Done | AgentStep::Gating(_)) {
                worker.restart_work(0);
                worker.restart = RestartFrom::LaneHead;
                self.ask_again(plan, agent);
            }
        }
    }

    /// A person's commits are in it now, and are judged as what its last agent brought.
    pub(crate) fn set_head(&mut self, head: &CommitId, plan: &Lane, has_checkpoint_gate: bool) {
        self.work.set_head(head);
        self.merge.continue_by_hand();
        self.attempts.set_head(head, plan, has_checkpoint_gate);
    }

    pub(crate) fn supersede(&mut self) {
        if let Some(staged) = self.merge.drop_staged() {
            self.no_progress.count(Decision::Merge(staged.onto));
        }
        self.validation.merged_tests = Gate::Due;
    }

    /// Back to the implementation: what came after it is done again.
    pub(crate) fn reopen(&mut self, plan: &Lane) {
        self.no_progress.forget_all();
        self.validation = Validation::default();
        self.merge.drop_staged();
        self.approvals.forget(&Approval::Changes.into());
        self.checkpoints.remove(&Stage::AfterLaneTests);
        self.checkpoints.remove(&Stage::PrePr);
        self.attempts.reopen_review(plan);
    }

    /// Why the lane is sent back after its review, for the reviewers that judge it again.
    pub(crate) fn inform_reviewers(&mut self, plan: &Lane, failure: &Failure) {
        if self.stage > LaneStage::Validation {
            self.attempts.inform_reviewers(plan, failure);
        }
    }

    /// Another life of the run: failures and blocks are tried again with a fresh count. `agent_first`: also where a gate
    /// failed, which a resume runs again before an agent works.
    pub(crate) fn revive(&mut self, has_checkpoint_gate: bool, agent_first: bool, at: Timestamp) {
        // What it holds would be given to it again, and what it left unsaved would be saved.
        if self.is_skipped() {
            return;
        }
        // Only what had ended gets a fresh count: a crash in the middle must not give a lane more tries than it has.
        if self.gave_up() {
            self.end = None;
            self.attempts.reset_rework();
            self.placement.losses = 0;
            self.proposal.rounds = 0;
            // A no that ended the lane is asked about again; any other has not been acted upon yet.
            self.approvals.forget_rejections();
        }
        // What was lost with the machine says nothing of the work, however often that happens.
        self.no_progress.forget_all();
        self.stopping = None;
        self.interrupted = false;
        self.failure = None;
        self.proposal.out = None;
        self.proposal.refused = None;
        self.clock.restart(at);
        self.work.setup.retry();
        self.validation.retry();
        // A lane that stood in the queue when it ended reaches its last checkpoint again.
        if self.merged().is_none() {
            self.checkpoints.remove(&Stage::PrePr);
        }
        self.attempts.resume_choice();
        self.attempts.revive(has_checkpoint_gate, agent_first);
    }

    /// The same for a lane that ended, whose agent is reset to its last state that passed, for one attempt.
    pub(crate) fn revive_differently(&mut self, has_checkpoint_gate: bool, at: Timestamp) {
        let failed = self.attempts.failed_in_task();
        self.revive(has_checkpoint_gate, true, at);
        self.attempts.roll_back(&failed);
    }

    /// The environment may have the variables of its setup now; whether it waits for them is decided again.
    pub(crate) fn check_setup_again(&mut self) {
        let has_begun = self.work.worktree.is_some() || self.is_elsewhere();
        if self.stage == LaneStage::Classified && !has_begun && !self.work.missing.is_empty() {
            self.work.base = None;
            self.checkpoints.remove(&Stage::BeforeLaneStart);
        }
    }

    /// It stays as it is while others continue: what has not ended and does not wait for the user counts as stopped.
    /// `crashed`: the run had not ended.
    pub(crate) fn set_aside(&mut self, plan: &Lane, crashed: bool) {
        if self.merged().is_some() {
            return;
        }
        let was_at_work = self.end.is_none() && !self.is_parked(plan);
        self.interrupted |= crashed && (was_at_work || self.has_unrecorded_step(plan));
        if was_at_work {
            self.stopping = Some(false);
        }
    }

    /// Answers that have to be given again when the agent does its work again: what it showed is no more.
    pub(crate) fn ask_again(&mut self, plan: &Lane, agent: usize) {
        let from = self.agents()[agent].task;
        for task in plan.agents[agent].tasks[from..].iter().filter(|task| task.kind == TaskKind::HumanVerify) {
            self.approvals.forget(&HumanGate::Task(task.id.clone()));
        }
    }
}
