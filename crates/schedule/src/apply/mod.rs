//! Folding events into state. What a fenced or repeated word says is ignored; what cannot be is a [`Fault`].

mod agent;
mod job;
mod judge;
mod lane;
mod placement;
mod sleep;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lanewright_model::event::{Event, LaneStage, Owner, Record, RunStarted};
use lanewright_model::{AgentName, AgentPhase, Budget, LaneId, LaneIndex, MergeMode, Plan, RetryLevel, Timestamp};

use crate::apply::agent::Worker;
use crate::state::gate::Gate;
use crate::state::lane::{LaneEnd, agent_index};
use crate::state::{RunState, StopState};

/// An event that cannot follow from those before it: the log was damaged or belongs to another plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("the plan has no lane `{0}`")]
    UnknownLane(LaneId),
    #[error("lane `{0}` has no agent `{1}`")]
    UnknownAgent(LaneId, AgentName),
    /// The event moves a lane where it cannot go from where it stands.
    #[error("lane `{lane}` stands at {stands} and cannot go from {from} to {to}")]
    ImpossibleMove { lane: LaneId, stands: LaneStage, from: LaneStage, to: LaneStage },
    /// The event takes an agent's work where the table of seed 000 has no arrow.
    #[error("agent `{agent}` of lane `{lane}` cannot go from {from} to {to}")]
    ImpossiblePhase { lane: LaneId, agent: AgentName, from: AgentPhase, to: AgentPhase },
    /// The event takes a lane back to where it never stood, or to a record that was not expected ([`RunState::expect`]).
    #[error("lane `{lane}` is taken back to record {seq}, which is not one of its own")]
    UnknownPoint { lane: LaneId, seq: u64 },
}

impl RunState {
    /// Folds one record into the state.
    ///
    /// # Errors
    /// A [`Fault`]; the state is then not to be used any more.
    pub fn apply(&mut self, record: &Record) -> Result<(), Fault> {
        let event = &record.event;
        self.following.apply(event, record.at);
        if let Some(id) = event.lane() {
            let lane = self.find(id).ok_or_else(|| Fault::UnknownLane(id.clone()))?;
            self.note_copy(lane, record);
            self.apply_to_lane(lane, event, record.at)?;
            self.reconcile(lane, record.at)?;
            if let Some(point) = self.points.get_mut(&(lane, record.seq)) {
                *point = Some(self.lanes[lane.at()].clone());
            }
            // The pool of a run that failed otherwise may have been emptied while the lane waited.
            self.pool_emptied &= !matches!(event, Event::GateAnswered { .. });
        } else {
            self.apply_to_run(event, record.at);
        }
        if cfg!(debug_assertions) {
            self.check_indexes();
        }
        Ok(())
    }

    /// What follows from an event in its lane, whatever the event was.
    fn reconcile(&mut self, lane: LaneIndex, at: Timestamp) -> Result<(), Fault> {
        for agent in 0..self.lane(lane).agents().len() {
            self.worker_at(lane, agent).pass_answered_task()?;
        }
        self.lanes[lane.at()].attempts.agents_mut().iter_mut().for_each(|agent| agent.note_keeping(at));
        self.park(lane, at);
        self.refresh(lane);
        Ok(())
    }

    /// Stops the clock of a lane that waits for a person or for its runners.
    fn park(&mut self, lane: LaneIndex, at: Timestamp) {
        let is_parked = self.lane(lane).is_parked(self.plan.lane(lane)) || self.is_paused(lane);
        self.lanes[lane.at()].clock.park(is_parked, at);
    }

    /// The state after all of `records`.
    ///
    /// # Errors
    /// The number of the first record that contradicts those before it, or the plan.
    pub fn replay(plan: &Arc<Plan>, records: &[Record]) -> Result<Self, (u64, Fault)> {
        let mut state = Self::new(plan.clone());
        state.expect(records);
        for record in records {
            state.apply(record).map_err(|fault| (record.seq, fault))?;
        }
        Ok(state)
    }

    /// Has the points of lanes kept to which rollbacks in `records` take them back. Needed before the first of these
    /// records is applied.
    pub fn expect(&mut self, records: &[Record]) {
        for record in records {
            if let Event::LaneRolledBack { lane, point: Some(point), .. } = &record.event
                && let Some(lane) = self.find(lane)
            {
                self.expect_point(lane, point.seq);
            }
        }
    }

    /// Has the lane kept as it is after the record `seq`.
    pub fn expect_point(&mut self, lane: LaneIndex, seq: u64) {
        self.points.entry((lane, seq)).or_insert(None);
    }

    fn apply_to_run(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::RunStarted(started) => self.run_started(started, at),
            Event::RunResumed {
                number,
                owner,
                timeout,
                budget,
                message,
                message_for,
                lanes,
                retried,
                level,
                pinned_sha256,
                ..
            } => {
                self.change_owner(owner);
                self.change_limits(*timeout, *budget);
                self.run_resumed(*number, (lanes, retried, *level), at);
                if pinned_sha256.is_some() {
                    // Their set-up may be another one now.
                    self.lanes.iter_mut().filter(|lane| lane.is_left_to_do()).for_each(|lane| lane.set_up_again());
                }
                self.record_remark(message, message_for.as_ref().map_or(retried, std::slice::from_ref));
            }
            Event::StopRequested { reason, force, .. } => {
                let earlier = self.stop.unwrap_or(StopState { reason: *reason, force: false });
                self.stop = Some(StopState { force: earlier.force || *force, ..earlier });
            }
            Event::FinalOpened { worktree } => self.final_worktree = Some(worktree.clone()),
            Event::PhaseBlocked { reason } => self.blocked = Some(reason.clone()),
            Event::PoolEmptied { .. } => self.pool_emptied = true,
            Event::MergesBisected { .. } => self.bisected = true,
            Event::RunFinished { outcome, code } => {
                self.finished = Some((*outcome, *code));
                self.pauses.run_finished();
            }
            Event::JobPlanned { job, .. } => {
                self.count_job(job);
                self.final_gate = Gate::Running(job.clone());
            }
            Event::JobExited { job, exit, reading, .. } => {
                self.final_gate.record_exit(job, exit, reading.as_deref(), &mut self.final_no_progress);
            }
            Event::RunMoved(_) => self.run_moved(),
            Event::Slept { duration } => self.sleep(*duration),
            Event::RunnerPaused { account, outage, since, until } => {
                self.runner_paused(account, outage, (*since, *until), at);
            }
            Event::RunnerContinued { account } => self.runner_continued(account, at),
            _ => {}
        }
    }

    fn run_started(&mut self, started: &RunStarted, at: Timestamp) {
        self.integration = Some(started.base_commit.clone());
        self.alive_since = Some(at);
        self.started = Some(Box::new(started.clone()));
        self.owner = Some(started.owner.clone());
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
            self.lanes[index.at()].missing = self.missing(index);
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

    fn change_owner(&mut self, owner: &Owner) {
        let is_in_another_boot = self.owner.as_ref().is_some_and(|earlier| owner.is_in_another_boot(earlier));
        self.owner = Some(owner.clone());
        if is_in_another_boot {
            let plan = self.plan.clone();
            let lanes = plan.lanes.iter().zip(&mut self.lanes);
            let here = lanes.filter(|(_, lane)| lane.is_left_to_do() && !lane.is_elsewhere());
            here.for_each(|(plan, lane)| lane.lose_unsynced(plan));
        }
    }

    /// Failed and blocked lanes get another chance: a resume says that something has changed. Of the `retried` ones the
    /// agents start before a gate that failed runs again, with an attempt of `level`.
    fn run_resumed(
        &mut self,
        number: u32,
        (lanes, retried, level): (&[LaneId], &[LaneId], Option<RetryLevel>),
        at: Timestamp,
    ) {
        self.resumes = number;
        self.alive_since = Some(at);
        self.stop = None;
        let crashed = self.finished().is_none();
        self.pauses.resume(at);
        self.unfinish();
        self.final_gate.retry();
        self.final_no_progress.forget_all();
        // The user may have fixed the integration branch: the gate judges what it is now.
        if self.final_gate == Gate::Due {
            self.final_worktree = None;
        }
        let has_checkpoint_gate = !self.plan.gates.checkpoint.is_empty();
        // Where a lane runs by itself, the run that placed it has asked.
        let checks_setups = !self.is_lane_run();
        for index in self.plan.indices() {
            let plan = self.plan.lane(index);
            let lane = &mut self.lanes[index.at()];
            if lanes.is_empty() || lanes.contains(&plan.id) {
                let is_retried = retried.contains(&plan.id);
                if is_retried && lane.gave_up() && level == Some(RetryLevel::Rollback) {
                    lane.revive_differently(has_checkpoint_gate, at);
                } else {
                    lane.revive(has_checkpoint_gate, is_retried, at);
                }
                if checks_setups {
                    lane.check_setup_again();
                }
            } else {
                lane.set_aside(plan, crashed);
                // The lanes behind it in the queue continue; a resume lets it reach its last checkpoint again.
                self.leave_queue(index);
            }
            self.refresh(index);
        }
        self.failed_before = self.indexes.failed();
    }

    /// Keeps what was said at a resume for the agents of `lanes`; empty: of all lanes.
    fn record_remark(&mut self, message: &str, lanes: &[LaneId]) {
        let meant = |index: &LaneIndex| lanes.is_empty() || lanes.contains(&self.plan.lane(*index).id);
        let meant: Vec<LaneIndex> = self.plan.indices().filter(meant).filter(|_| !message.is_empty()).collect();
        for index in meant {
            self.lanes[index.at()].approvals.remark(message);
        }
    }

    /// Worktrees were opened again elsewhere: what set-up commands left in them is gone, and so is what an attempt left
    /// that had ended and was not committed yet.
    fn run_moved(&mut self) {
        self.final_worktree = None;
        for index in self.plan.indices() {
            let lane = &mut self.lanes[index.at()];
            if !lane.is_elsewhere() {
                lane.move_machine();
                self.refresh(index);
            }
        }
    }

    /// There is work left again.
    fn unfinish(&mut self) {
        self.finished = None;
        self.blocked = None;
        self.pool_emptied = false;
        self.bisected = false;
    }

    /// Keeps what [`crate::decide`] looks at in step with the lane.
    fn refresh(&mut self, index: LaneIndex) {
        self.lanes[index.at()].attempts.line_up();
        self.indexes.place(index, &self.lanes[index.at()], self.plan.lane(index));
    }

    /// Whether finished lanes are merged into the integration branch by this run.
    pub(crate) fn merges_here(&self) -> bool {
        self.merge_mode() == Some(MergeMode::Local)
    }

    /// How many dependencies of the lane are not merged.
    fn missing(&self, lane: LaneIndex) -> usize {
        self.plan.dag().dependencies(lane).iter().filter(|dependency| !self.lane(**dependency).is_merged()).count()
    }

    /// The lane's agent of that name.
    fn worker(&mut self, lane: LaneIndex, name: &AgentName) -> Result<Worker<'_>, Fault> {
        let plan = self.plan.lane(lane);
        let unknown = || Fault::UnknownAgent(plan.id.clone(), name.clone());
        let agent = agent_index(plan, name).ok_or_else(unknown)?;
        Ok(self.worker_at(lane, agent))
    }

    fn worker_at(&mut self, lane: LaneIndex, at: usize) -> Worker<'_> {
        Worker { plan: &self.plan, lane: self.plan.lane(lane), state: &mut self.lanes[lane.at()], at }
    }
}
