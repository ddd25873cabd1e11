//! Folding events into a lane, and into what the run keeps of its lanes.

use lanewright_model::event::{Event, LaneStage, SnapshotReason};
use lanewright_model::{
    AgentName, Approval, Checkpoint, CommitId, Failure, HumanGate, Lane, LaneIndex, MergeMode, Round, Stage, TaskKind,
    Timestamp,
};

use crate::apply::Fault;
use crate::apply::judge::Words;
use crate::state::RunState;
use crate::state::agent::{AgentStep, RestartFrom};
use crate::state::gate::{Gate, is_unknown};
use crate::state::in_vain::Decision;
use crate::state::lane::{LaneEnd, LaneState};
use crate::state::lane_stage::may_move;
use crate::state::merging::{Rebuild, StagedMerge};
use crate::state::rework::Rework;
use crate::state::validation::{Search, Validation};

impl RunState {
    #[deny(clippy::wildcard_enum_match_arm, reason = "the compiler names this fold where an event is added")]
    pub(super) fn apply_to_lane(&mut self, lane: LaneIndex, event: &Event, at: Timestamp) -> Result<(), Fault> {
        match event {
            Event::LaneMoved { from, to, .. } => self.move_lane(lane, *from, *to, at)?,
            Event::LaneMerged { commit, .. } => self.lane_merged(lane, commit),
            Event::RollbackBegun { .. } => {
                self.lanes[lane.at()].apply(event, self.plan.lane(lane), at);
                self.unfinish();
            }
            Event::LaneRolledBack { integration, .. } => self.lane_rolled_back(lane, integration.as_ref()),
            Event::CheckpointReached { checkpoint, .. } => self.checkpoint_reached(lane, checkpoint),
            Event::LaneFailed { failure, .. } => self.end_lane(lane, LaneEnd::Failed(failure.clone())),
            Event::LaneBlocked { reason, .. } => self.end_lane(lane, LaneEnd::Blocked(reason.clone())),
            Event::LaneSkipped { .. } => self.skip_lane(lane),
            Event::StopRequested { force, .. } => self.stop_lane(lane, *force),
            Event::BranchMoved { agent, head, .. } => self.branch_moved(lane, agent.as_ref(), head, at)?,
            Event::JobPlanned { job } => self.job_planned(lane, job)?,
            Event::JobExited { job, exit, report, reading, transcript } => {
                let (reading, transcript) = (reading.as_deref(), transcript.as_deref());
                self.job_exited(lane, job, exit, Words { report: report.as_ref(), reading, transcript }, at)?;
            }
            Event::LaneOffered { .. }
            | Event::LanePlaced { .. }
            | Event::LaneClaimed { .. }
            | Event::LaneReturned { .. }
            | Event::PlacementEnded { .. } => self.apply_placement(lane, event, at),
            Event::PersonAsked { .. }
            | Event::GateAnswered { .. }
            | Event::LaneBased { .. }
            | Event::WorktreeOpened { .. }
            | Event::WorktreeLost { .. }
            | Event::WorktreeReleased { .. }
            | Event::JobStarted { .. }
            | Event::WorkCommitted { .. }
            | Event::SnapshotTaken { .. }
            | Event::SnapshotFailed { .. }
            | Event::SnapshotDamaged { .. }
            | Event::AgentMerged { .. }
            | Event::FailureNoted { .. }
            | Event::RetryPlanned { .. }
            | Event::AgentReset { .. }
            | Event::LaneReset { .. }
            | Event::MergeStaged { .. }
            | Event::MergeSuperseded { .. }
            | Event::MergesBisected { .. }
            | Event::MustHavesChecked { .. }
            | Event::ChangesMeasured { .. }
            | Event::BranchPushed { .. }
            | Event::PullRequestOpened { .. }
            | Event::ForgeUnavailable { .. }
            | Event::LaneCleaned { .. } => {
                self.lanes[lane.at()].apply(event, self.plan.lane(lane), at);
                if let Some(agent) = event.facts().agent {
                    self.worker(lane, agent)?.apply(event)?;
                }
            }
            // Nothing is decided by them.
            Event::GitWorked { .. } | Event::Noted { .. } | Event::WorktreeMadeAhead { .. } => {}
            // See `apply_to_run`.
            Event::RunStarted(_)
            | Event::RunResumed { .. }
            | Event::RunMoved(_)
            | Event::RunFinished { .. }
            | Event::FinalOpened { .. }
            | Event::PhaseBlocked { .. }
            | Event::PoolEmptied { .. }
            | Event::Slept { .. } => {}
        }
        Ok(())
    }

    fn move_lane(&mut self, lane: LaneIndex, from: LaneStage, to: LaneStage, at: Timestamp) -> Result<(), Fault> {
        let (state, plan) = (&mut self.lanes[lane.at()], self.plan.lane(lane));
        if state.stage != from || !may_move(from, to) {
            return Err(Fault::ImpossibleMove { lane: plan.id.clone(), stands: state.stage, from, to });
        }
        state.stage = to;
        state.clock.move_on(at);
        match to {
            LaneStage::Requirements => state.answers.forget(&Approval::Plan.into()),
            LaneStage::Implementation if from != LaneStage::Synthesis => {
                state.reopen(plan);
                self.merge_queue.retain(|&queued| queued != lane);
            }
            LaneStage::Review => state.excuse_all(false),
            _ => {}
        }
        Ok(())
    }

    /// What was judged before is judged again. One event says so: a part of it after a crash would merge what no gate saw.
    fn branch_moved(
        &mut self,
        lane: LaneIndex,
        agent: Option<&AgentName>,
        head: &CommitId,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let stage = self.lanes[lane.at()].stage;
        if stage > LaneStage::Implementation {
            self.move_lane(lane, stage, LaneStage::Implementation, at)?;
        }
        match agent {
            Some(agent) => self.worker(lane, agent)?.agent().take_in(Some(head), false),
            None => {
                let has_checkpoint_gate = !self.plan.gates.checkpoint.is_empty();
                self.lanes[lane.at()].stand_at(head, self.plan.lane(lane), has_checkpoint_gate);
            }
        }
        Ok(())
    }

    fn lane_merged(&mut self, lane: LaneIndex, commit: &CommitId) {
        self.merge_queue.retain(|&queued| queued != lane);
        if !self.lanes[lane.at()].merging.finish(commit) {
            return;
        }
        if self.merges_here() {
            self.merges.push((lane, commit.clone()));
            self.integration = Some(commit.clone());
        }
        for dependant in self.plan.clone().dag().dependants(lane) {
            self.lanes[dependant.at()].missing -= 1;
            self.refresh(*dependant);
        }
    }

    fn lane_rolled_back(&mut self, lane: LaneIndex, integration: Option<&CommitId>) {
        let plan = self.plan.clone();
        self.merge_queue.retain(|&queued| queued != lane);
        // What is merged from now on is searched from here: the commits before hold what was put back.
        if let Some(integration) = integration {
            self.integration = Some(integration.clone());
            self.merges.clear();
            self.searched_from = Some(integration.clone());
        }
        self.unfinish();
        // What the final gate saw is no more.
        self.final_gate = Gate::Due;
        self.final_worktree = None;
        let state = &mut self.lanes[lane.at()];
        self.running_attempts -= state.attempts_here();
        let was_merged = state.is_merged();
        let proposal = std::mem::take(&mut state.proposal).after_rollback();
        let placement = std::mem::take(&mut state.placement).after_rollback();
        let missing = self.missing(lane);
        self.lanes[lane.at()] = LaneState { proposal, placement, ..LaneState::new(plan.lane(lane), missing) };
        for dependant in plan.dag().dependants(lane).iter().filter(|_| was_merged) {
            self.lanes[dependant.at()].missing += 1;
            self.refresh(*dependant);
        }
    }

    fn checkpoint_reached(&mut self, lane: LaneIndex, checkpoint: &Checkpoint) {
        let proposes = self.merge_mode() == Some(MergeMode::Pr);
        let state = &mut self.lanes[lane.at()];
        state.checkpoints.insert(checkpoint.stage);
        if checkpoint.stage != Stage::PrePr {
            return;
        }
        if let Some(head) = checkpoint.head_sha.as_ref().filter(|_| proposes) {
            state.proposal.announced.push(head.clone());
        }
        if !self.merge_queue.contains(&lane) {
            self.merge_queue.push_back(lane);
        }
    }

    fn end_lane(&mut self, lane: LaneIndex, end: LaneEnd) {
        self.merge_queue.retain(|&queued| queued != lane);
        let state = &mut self.lanes[lane.at()];
        if matches!(end, LaneEnd::Failed(_)) {
            state.agents.iter_mut().for_each(|agent| agent.give_up());
        }
        state.end = Some(end);
    }

    /// What depends on it goes on as if it were merged.
    fn skip_lane(&mut self, lane: LaneIndex) {
        let was_merged = self.lanes[lane.at()].is_merged();
        self.end_lane(lane, LaneEnd::Skipped);
        self.unfinish();
        for dependant in self.plan.clone().dag().dependants(lane).iter().filter(|_| !was_merged) {
            self.lanes[dependant.at()].missing -= 1;
            self.refresh(*dependant);
        }
    }

    /// The lanes behind it in the queue go on; a resume lets it reach its last checkpoint again.
    fn stop_lane(&mut self, lane: LaneIndex, force: bool) {
        self.merge_queue.retain(|&queued| queued != lane);
        let stopping = &mut self.lanes[lane.at()].stopping;
        *stopping = Some(stopping.unwrap_or(false) || force);
    }
}

impl LaneState {
    fn apply(&mut self, event: &Event, plan: &Lane, at: Timestamp) {
        match event {
            Event::GateAnswered { gate, approved, message, .. } => {
                self.answers.give(gate.clone(), *approved, message);
            }
            Event::LaneBased { base, port, .. } => {
                self.base = Some(base.clone());
                self.port = *port;
            }
            Event::WorktreeOpened { agent: None, worktree, .. } => {
                self.head = Some(worktree.head.clone());
                self.worktree = Some(worktree.clone()).filter(|_| !self.is_elsewhere());
            }
            Event::FailureNoted { agent: None, failure, .. } => self.failure = Some(failure.clone()),
            // What a person did may be nowhere else: it outlives the merge.
            Event::SnapshotTaken { reason: SnapshotReason::External, .. } => {}
            Event::SnapshotTaken { commit, reference, .. } => self.snapshots.push((reference.clone(), commit.clone())),
            Event::SnapshotDamaged { reference, .. } => self.snapshots.retain(|(known, _)| known != reference),
            Event::AgentMerged { head, .. } => self.head = Some(head.clone()),
            Event::LaneReset { base, .. } => self.reset(base, plan),
            Event::MergeStaged { onto, commit, moved, .. } => {
                self.merging.staged = Some(StagedMerge { onto: onto.clone(), commit: commit.clone(), moved: *moved });
            }
            Event::MergeSuperseded { .. } => self.supersede(),
            Event::MergesBisected { culprit, .. } => {
                let guilty = plan.agents.iter().position(|agent| Some(agent.name.as_str()) == culprit.as_deref());
                self.validation.search = guilty.map_or(Search::FoundNothing, Search::Found);
            }
            Event::MustHavesChecked { head, verdicts, .. } => self.validation.check(head, verdicts),
            Event::ChangesMeasured { head, changes, .. } => self.validation.measure(head, *changes),
            Event::BranchPushed { .. } | Event::PullRequestOpened { .. } | Event::ForgeUnavailable { .. } => {
                self.proposal.apply(event, at);
            }
            Event::LaneCleaned { .. } => {
                self.end = Some(LaneEnd::Merged);
                self.worktree = None;
            }
            Event::RollbackBegun { .. } if !self.rolling_back => {
                self.rolling_back = true;
                self.clock.begin_rollback(at);
            }
            _ => {}
        }
    }

    /// It stands on another base; what did not merge is done again.
    fn reset(&mut self, base: &CommitId, plan: &Lane) {
        self.base = Some(base.clone());
        self.head = Some(base.clone());
        self.merging.staged = None;
        if self.merging.rebuild.take() != Some(Rebuild::OnIntegration) {
            return;
        }
        self.intake.begin_again();
        for agent in plan.round(Round::Implementation) {
            if self.agents[agent].step == AgentStep::Done {
                self.agents[agent].restart_work(0);
                self.agents[agent].restart = RestartFrom::LaneHead;
                self.ask_again(plan, agent);
            }
        }
    }

    /// A person's commits are in it now, and are judged as what its last agent brought.
    fn stand_at(&mut self, head: &CommitId, plan: &Lane, has_checkpoint_gate: bool) {
        self.head = Some(head.clone());
        self.intake.stand_at(head);
        self.merging.rebuild = None;
        for agent in plan.round(Round::Implementation) {
            let is_there = self.has_all_of(agent) && (plan.shares_worktree(agent) || self.intake.has(agent));
            let worker = &mut self.agents[agent];
            if plan.shares_worktree(agent) {
                worker.head = Some(head.clone());
            }
            if is_there && worker.failure().is_some() {
                worker.take_in(None, false);
            }
        }
        let shared = plan.round(Round::Implementation).rfind(|&agent| plan.shares_worktree(agent));
        let last = shared.or_else(|| self.intake.agents().last().copied());
        if let Some(last) = last.filter(|&last| self.agents[last].step == AgentStep::Done) {
            self.agents[last].take_in(shared.map(|_| head), has_checkpoint_gate);
        }
    }

    fn supersede(&mut self) {
        if let Some(staged) = self.merging.staged.take() {
            self.in_vain.count(Decision::Merge(staged.onto));
        }
        self.validation.merged_tests = Gate::Due;
    }

    /// Back to the implementation: what came after it is done again.
    fn reopen(&mut self, plan: &Lane) {
        self.in_vain.forget_all();
        self.validation = Validation::default();
        self.merging.staged = None;
        self.answers.forget(&Approval::Changes.into());
        self.checkpoints.remove(&Stage::AfterLaneTests);
        self.checkpoints.remove(&Stage::PrePr);
        for reviewer in plan.round(Round::Review) {
            let reviewer = &mut self.agents[reviewer];
            // What one left is kept first; then it starts again from the lane's head, too.
            if !matches!(reviewer.step, AgentStep::Salvaging(..)) {
                reviewer.restart_work(0);
                reviewer.restart = RestartFrom::LaneHead;
            }
        }
    }

    /// A gate that failed on the work of one agent and is given to another is judged again with that one's work.
    pub(super) fn leave_gate_to(&mut self, assignee: usize, failure: &Failure) {
        for (agent, worker) in self.agents.iter_mut().enumerate() {
            if agent != assignee && matches!(worker.step, AgentStep::Gating(Gate::Failed(_))) {
                worker.step = AgentStep::Done;
            }
        }
        if is_unknown(failure.diagnosis.as_deref()) {
            self.rework.misunderstood += 1;
            self.rework.assignee = Some(assignee);
        }
    }

    /// Why the lane is sent back after its review, for the reviewers that judge it again.
    pub(super) fn inform_reviewers(&mut self, plan: &Lane, failure: &Failure) {
        if self.stage <= LaneStage::Validation {
            return;
        }
        for reviewer in plan.round(Round::Review) {
            if self.agents[reviewer].attempt > 0 {
                self.agents[reviewer].remember(None, failure);
            }
        }
    }

    pub(super) fn excuse_all(&mut self, excused: bool) {
        let free = self.agents.iter_mut().filter(|worker| !worker.waits_for_retry_in_task());
        free.for_each(|worker| worker.excused = excused);
    }

    /// Another life of the run: failures and blocks are tried again with a fresh count. `agent_first`: also where a gate
    /// failed, which a resume runs again before an agent works.
    pub(super) fn revive(&mut self, has_checkpoint_gate: bool, agent_first: bool, at: Timestamp) {
        // What it holds would be given to it again, and what it left unsaved would be saved.
        if self.is_skipped() {
            return;
        }
        // Only what had ended gets a fresh count: a crash in the middle must not give a lane more tries than it has.
        if self.gave_up() {
            self.end = None;
            self.rework = Rework::default();
            self.placement.losses = 0;
            // A no that ended the lane is asked about again; any other has not been acted upon yet.
            self.answers.forget_rejections();
        }
        // What was lost with the machine says nothing of the work, however often that happens.
        self.in_vain.forget_all();
        self.stopping = None;
        self.interrupted = false;
        self.failure = None;
        self.proposal.out = None;
        self.clock.restart(at);
        self.setup.retry();
        self.validation.retry();
        // A lane that stood in the queue when it ended reaches its last checkpoint again.
        if self.merged().is_none() {
            self.checkpoints.remove(&Stage::PrePr);
        }
        for (agent, worker) in self.agents.iter_mut().enumerate() {
            let failed_gate = worker.gave_up_at_gate();
            worker.revive(at);
            if failed_gate && !agent_first {
                worker.judge_again(has_checkpoint_gate, self.intake.has(agent));
            }
        }
        // The tests judge what all agents brought: the agent that is to fix that is excused.
        if self.agents.iter().any(|worker| worker.excused && !worker.failed_in_task()) {
            self.excuse_all(true);
        }
    }

    /// It stays as it is while others go on: what has not ended and does not wait for the user counts as stopped.
    /// `crashed`: the run had not ended.
    pub(super) fn set_aside(&mut self, plan: &Lane, crashed: bool) {
        if self.merged().is_some() {
            return;
        }
        let was_at_work = self.end.is_none() && !self.is_parked(plan);
        self.interrupted |= crashed && (was_at_work || self.has_unrecorded_step(plan));
        if was_at_work {
            self.stopping = Some(false);
        }
    }

    /// Answers that have to be given anew when the agent does its work again: what it showed is no more.
    pub(super) fn ask_again(&mut self, plan: &Lane, agent: usize) {
        let from = self.agents[agent].task;
        for task in plan.agents[agent].tasks[from..].iter().filter(|task| task.kind == TaskKind::HumanVerify) {
            self.answers.forget(&HumanGate::Task(task.id.clone()));
        }
    }
}
