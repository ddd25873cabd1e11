//! Folding events into state. What a fenced or repeated word says is ignored; what cannot be is a [`Fault`].

mod agent;
mod job;
mod judge;
mod lane;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::event::{Event, LaneStage, Record, RunStarted};
use crate::model::{AgentName, Approval, Budget, Checkpoint, LaneId, LaneIndex, MergeMode, Plan, Stage, Timestamp};
use crate::schedule::apply::lane::apply_to_lane;
use crate::schedule::state::agent::{AgentState, AgentStep};
use crate::schedule::state::agent_phase::AgentPhase;
use crate::schedule::state::gate::Gate;
use crate::schedule::state::lane::{LaneEnd, LaneState, agent_index};
use crate::schedule::state::lane_stage::may_move;
use crate::schedule::state::{RunState, StopState};

/// An event that cannot follow from those before it: the log was damaged or belongs to another plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The event names a lane that the plan does not have.
    #[error("the plan has no lane `{0}`")]
    UnknownLane(LaneId),
    /// The event names an agent that the lane does not have.
    #[error("lane `{0}` has no agent `{1}`")]
    UnknownAgent(LaneId, AgentName),
    /// The event moves a lane where it cannot go from where it stands.
    #[error("lane `{lane}` stands at {stands} and cannot go from {from} to {to}")]
    ImpossibleMove {
        /// Which lane.
        lane: LaneId,
        /// Where it stands.
        stands: LaneStage,
        /// Where the event says it stands.
        from: LaneStage,
        /// Where the event moves it.
        to: LaneStage,
    },
    /// The event takes an agent's work where the table of seed 000 has no arrow.
    #[error("agent `{agent}` of lane `{lane}` cannot go from {from} to {to}")]
    ImpossiblePhase {
        /// Which lane.
        lane: LaneId,
        /// Which agent.
        agent: AgentName,
        /// Where its work stands.
        from: AgentPhase,
        /// Where the event takes it.
        to: AgentPhase,
    },
}

impl RunState {
    /// Folds one record into the state.
    ///
    /// # Errors
    /// A [`Fault`]; the state is then not to be used any more.
    pub fn apply(&mut self, record: &Record) -> Result<(), Fault> {
        let touched = self.apply_event(&record.event, record.at)?;
        if let Some(lane) = touched {
            self.pass_answered_tasks(lane)?;
            let plan = self.plan.clone();
            self.lanes[lane.at()].note_waiting(plan.lane(lane), record.at);
            self.refresh(lane);
        }
        #[cfg(debug_assertions)]
        self.check_lists();
        Ok(())
    }

    /// The state after all of `records`.
    ///
    /// # Errors
    /// The number of the first record that contradicts those before it, or the plan.
    pub fn replay(plan: &Arc<Plan>, records: &[Record]) -> Result<Self, (u64, Fault)> {
        let mut state = Self::new(plan.clone());
        for record in records {
            state.apply(record).map_err(|fault| (record.seq, fault))?;
        }
        Ok(state)
    }

    fn apply_event(&mut self, event: &Event, at: Timestamp) -> Result<Option<LaneIndex>, Fault> {
        let Some(id) = event.lane() else {
            self.apply_to_run(event, at);
            return Ok(None);
        };
        let lane = self.find(id).ok_or_else(|| Fault::UnknownLane(id.clone()))?;
        match event {
            Event::LaneMoved { from, to, .. } => self.move_lane(lane, *from, *to, at)?,
            Event::LaneMerged { commit, .. } => self.lane_merged(lane, commit.clone()),
            Event::LaneRolledBack { integration, .. } => self.lane_rolled_back(lane, integration.clone()),
            Event::CheckpointReached { checkpoint, .. } => self.checkpoint_reached(lane, checkpoint),
            Event::LaneFailed { failure, .. } => self.lane_failed(lane, failure.clone()),
            Event::LaneBlocked { reason, .. } => self.end_lane(lane, LaneEnd::Blocked(reason.clone())),
            _ => {
                match event {
                    Event::RollbackBegun { .. } => self.lanes[lane.at()].begin_rollback(at),
                    // The lanes behind it go on; a resume lets it reach its last checkpoint again.
                    Event::StopRequested { .. } => self.merge_queue.retain(|&queued| queued != lane),
                    _ => {}
                }
                apply_to_lane(&mut self.lanes[lane.at()], event, at);
                self.apply_to_agents(lane, event, at)?;
                self.lanes[lane.at()].agents.iter_mut().for_each(|agent| agent.note_keeping(at));
            }
        }
        Ok(Some(lane))
    }

    fn apply_to_run(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::RunStarted(started) => self.run_started(started, at),
            Event::RunResumed { number, timeout, budget, message, message_for, .. } => {
                self.change_limits(*timeout, *budget);
                self.run_resumed(*number, at);
                self.hear(message, message_for.as_ref());
            }
            Event::StopRequested { reason, force, .. } => {
                let earlier = self.stop.unwrap_or(StopState { reason: *reason, force: false });
                self.stop = Some(StopState { force: earlier.force || *force, ..earlier });
            }
            Event::FinalOpened { worktree } => self.final_worktree = Some(worktree.clone()),
            Event::PhaseBlocked { reason } => self.blocked = Some(reason.clone()),
            Event::PoolEmptied { .. } => self.pool_emptied = true,
            Event::MergesBisected { .. } => self.bisected = true,
            Event::RunFinished { outcome, code } => self.finished = Some((*outcome, *code)),
            Event::JobPlanned { job } => {
                self.count_job(job);
                self.final_gate = Gate::Running(job.clone());
            }
            Event::JobExited { job, exit, reading, .. } => {
                self.final_gate.settle(job, exit, reading.as_deref(), &mut self.final_in_vain);
            }
            Event::RunMoved(_) => self.run_moved(),
            _ => {}
        }
    }

    fn run_started(&mut self, started: &RunStarted, at: Timestamp) {
        self.integration = Some(started.base_commit.clone());
        self.alive_since = Some(at);
        self.started = Some(Box::new(started.clone()));
        let (done, chosen): (HashSet<_>, HashSet<_>) =
            (started.options.done.iter().collect(), started.options.lanes.iter().collect());
        for index in self.plan.indices() {
            let id = &self.plan.lane(index).id;
            if done.contains(id) {
                self.lanes[index.at()].end = Some(LaneEnd::MergedBefore);
            } else if !chosen.is_empty() && !chosen.contains(id) {
                self.lanes[index.at()].end = Some(LaneEnd::Left);
            }
        }
        for index in self.plan.indices() {
            let done = |&&dependency: &&LaneIndex| !self.lane(dependency).is_merged();
            self.lanes[index.at()].missing = self.plan.dag().dependencies(index).iter().filter(done).count();
            self.refresh(index);
        }
    }

    /// Limits that hold from now on; a time limit of zero is none.
    fn change_limits(&mut self, timeout: Option<Duration>, budget: Option<Budget>) {
        let Some(started) = &mut self.started else { return };
        if let Some(limit) = timeout {
            started.options.timeout = Some(limit).filter(|limit| !limit.is_zero());
        }
        started.options.budget = budget.unwrap_or(started.options.budget);
    }

    /// Failed and blocked lanes get another chance: a resume says that something has changed.
    fn run_resumed(&mut self, number: u32, at: Timestamp) {
        self.resumes = number;
        self.alive_since = Some(at);
        self.stop = None;
        self.finished = None;
        self.blocked = None;
        self.pool_emptied = false;
        self.final_gate.retry();
        self.final_in_vain.forget_all();
        // The user may have fixed the integration branch: the gate judges what it is now.
        if self.final_gate == Gate::Due {
            self.final_worktree = None;
        }
        self.bisected = false;
        let has_checkpoint_gate = !self.plan.gates.checkpoint.is_empty();
        for index in self.plan.indices() {
            self.lanes[index.at()].revive(has_checkpoint_gate, at);
            self.refresh(index);
        }
    }

    /// Keeps what was said at a resume for the agents of `lane`, or of all lanes.
    fn hear(&mut self, message: &str, lane: Option<&LaneId>) {
        let meant = |index: &LaneIndex| lane.is_none_or(|lane| self.plan.lane(*index).id == *lane);
        let meant: Vec<LaneIndex> = self.plan.indices().filter(meant).filter(|_| !message.is_empty()).collect();
        for index in meant {
            self.lanes[index.at()].remarks.push(message.to_owned());
        }
    }

    /// Worktrees were opened anew elsewhere: what set-up commands left in them is gone, and so is what an attempt left
    /// that had ended and was not committed yet.
    fn run_moved(&mut self) {
        self.final_worktree = None;
        for index in self.plan.indices() {
            let lane = &mut self.lanes[index.at()];
            if lane.worktree.is_some() {
                lane.setup.run_again();
            }
            lane.agents.iter_mut().for_each(AgentState::lose_what_is_not_committed);
            self.refresh(index);
        }
    }

    fn move_lane(&mut self, lane: LaneIndex, from: LaneStage, to: LaneStage, at: Timestamp) -> Result<(), Fault> {
        let plan = self.plan.clone();
        let state = &mut self.lanes[lane.at()];
        if state.stage != from || !may_move(from, to) {
            return Err(Fault::ImpossibleMove { lane: plan.lane(lane).id.clone(), stands: state.stage, from, to });
        }
        state.stage = to;
        state.clock = state.clock.or(Some(at));
        state.stands_since = Some(at);
        if to == LaneStage::Implementation && from != LaneStage::Synthesis {
            state.reopen();
            for reviewer in plan.lane(lane).round(crate::model::Round::Review) {
                state.agents[reviewer].restart_work(0);
            }
            self.merge_queue.retain(|&queued| queued != lane);
        }
        if to == LaneStage::Review {
            state.agents.iter_mut().for_each(|worker| worker.excused = false);
        }
        if to == LaneStage::Requirements {
            state.answers.remove(&Approval::Plan.into());
        }
        Ok(())
    }

    fn lane_merged(&mut self, lane: LaneIndex, commit: crate::model::CommitId) {
        self.merge_queue.retain(|&queued| queued != lane);
        let state = &mut self.lanes[lane.at()];
        if state.merged.replace(commit.clone()).is_some() {
            return;
        }
        state.staged = None;
        if self.merges_here() {
            self.merges.push((lane, commit.clone()));
            self.integration = Some(commit);
        }
        for dependant in self.plan.clone().dag().dependants(lane) {
            self.lanes[dependant.at()].missing -= 1;
            self.refresh(*dependant);
        }
    }

    fn lane_rolled_back(&mut self, lane: LaneIndex, integration: Option<crate::model::CommitId>) {
        let plan = self.plan.clone();
        self.merge_queue.retain(|&queued| queued != lane);
        let undone = integration.clone();
        self.integration = integration.or(self.integration.take());
        // What is merged from now on is searched from here: the commits before hold what was put back.
        if let Some(integration) = &undone {
            self.merges.clear();
            self.searched_from = Some(integration.clone());
        }
        self.unfinish();
        self.running_attempts -= self.lane(lane).running.iter().filter(|job| job.is_attempt()).count();
        let was_merged = self.lane(lane).is_merged();
        let missing = plan.dag().dependencies(lane).iter().filter(|d| !self.lane(**d).is_merged()).count();
        let proposal = std::mem::take(&mut self.lanes[lane.at()].proposal).after_rollback();
        self.lanes[lane.at()] = LaneState { proposal, ..LaneState::new(plan.lane(lane), missing) };
        if was_merged {
            for dependant in plan.dag().dependants(lane) {
                self.lanes[dependant.at()].missing += 1;
                self.refresh(*dependant);
            }
        }
    }

    /// There is work left again, and what the final gate saw is no more.
    fn unfinish(&mut self) {
        self.finished = None;
        self.blocked = None;
        self.pool_emptied = false;
        self.final_gate = Gate::Due;
        self.bisected = false;
        self.final_worktree = None;
    }

    fn checkpoint_reached(&mut self, lane: LaneIndex, checkpoint: &Checkpoint) {
        let proposes = self.merge_mode() == Some(MergeMode::Pr);
        let state = &mut self.lanes[lane.at()];
        state.checkpoints.insert(checkpoint.stage);
        if checkpoint.stage != Stage::PrePr {
            return;
        }
        state.proposal.announced.extend(checkpoint.head_sha.clone().filter(|_| proposes));
        if !self.merge_queue.contains(&lane) {
            self.merge_queue.push_back(lane);
        }
    }

    fn lane_failed(&mut self, lane: LaneIndex, failure: crate::model::Failure) {
        for agent in &mut self.lanes[lane.at()].agents {
            if let AgentStep::Failed(failure) = &agent.step {
                agent.step = AgentStep::GaveUp(failure.clone());
                agent.abandon();
            }
        }
        self.end_lane(lane, LaneEnd::Failed(failure));
    }

    fn end_lane(&mut self, lane: LaneIndex, end: LaneEnd) {
        self.merge_queue.retain(|&queued| queued != lane);
        self.lanes[lane.at()].end = Some(end);
    }

    /// Keeps what [`crate::schedule::decide`] looks at in step with the lane.
    fn refresh(&mut self, index: LaneIndex) {
        self.lanes[index.at()].order_intake();
        self.indexes.place(index, &self.lanes[index.at()], self.plan.lane(index));
    }

    /// Whether finished lanes are merged into the integration branch by this run.
    pub(crate) fn merges_here(&self) -> bool {
        self.merge_mode() == Some(MergeMode::Local)
    }

    /// The lane's agent of that name.
    pub(crate) fn agent_at(&self, lane: LaneIndex, name: &AgentName) -> Result<usize, Fault> {
        let plan = self.plan.lane(lane);
        agent_index(plan, name).ok_or_else(|| Fault::UnknownAgent(plan.id.clone(), name.clone()))
    }
}
