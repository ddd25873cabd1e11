//! Folding events into the agents of a lane and their jobs.

use crate::event::{Event, Idle, LaneStage, SnapshotReason};
use crate::model::plan::{OwnershipRule, RetryFrom};
use crate::model::{AgentName, Failure, FailureKind, HumanGate, LaneIndex, RetryLevel, Round, TaskId, Timestamp};
use crate::schedule::apply::Fault;
use crate::schedule::apply::judge::{Words, idle_failure, is_unknown};
use crate::schedule::state::RunState;
use crate::schedule::state::agent::{AgentState, AgentStep, PastFailure, RestartFrom};
use crate::schedule::state::agent_phase::AgentPhase;
use crate::schedule::state::gate::Gate;
use crate::schedule::state::lane::Rebuild;

impl RunState {
    pub(crate) fn apply_to_agents(&mut self, lane: LaneIndex, event: &Event, at: Timestamp) -> Result<(), Fault> {
        match event {
            Event::JobPlanned { job } => return self.job_planned(lane, job),
            Event::JobExited { job, exit, report, reading, transcript } => {
                let words =
                    Words { report: report.as_ref(), reading: reading.as_deref(), transcript: transcript.as_deref() };
                return self.job_exited(lane, job, exit, words, at);
            }
            Event::FailureNoted { agent: Some(name), task, failure, .. } => {
                let agent = self.agent_at(lane, name)?;
                return self.failure_noted(lane, agent, task.as_ref(), failure);
            }
            Event::PersonAsked { agent, .. } => {
                let agent = self.agent_at(lane, agent)?;
                return self.person_asked(lane, agent);
            }
            Event::MergesBisected { culprit, .. } => {
                let plan = self.plan.lane(lane);
                let guilty = plan.agents.iter().position(|agent| Some(agent.name.as_str()) == culprit.as_deref());
                self.lanes[lane.at()].bisected = true;
                self.lanes[lane.at()].culprit = guilty;
            }
            Event::LaneReset { .. } => self.lane_reset(lane),
            Event::WorkCommitted { agent, head, changed, prohibited, idle, .. } => {
                let agent = self.agent_at(lane, agent)?;
                self.lanes[lane.at()].agents[agent].changed = changed.clone();
                return self.work_committed(lane, agent, head.clone(), prohibited, *idle);
            }
            Event::SnapshotTaken { agent: Some(name), reason: SnapshotReason::External, .. } => {
                return self.spare_what_was_lost(lane, name);
            }
            Event::SnapshotTaken { agent: Some(name), reason, reference, .. } => {
                let agent = self.agent_at(lane, name)?;
                return self.snapshot_done(lane, agent, *reason, Ok(reference));
            }
            Event::SnapshotFailed { agent: Some(name), reason, error, .. } => {
                let agent = self.agent_at(lane, name)?;
                return self.snapshot_done(lane, agent, *reason, Err(error));
            }
            Event::AgentMerged { agent, head, .. } => {
                let gate_due = !self.plan.gates.checkpoint.is_empty();
                let index = self.agent_at(lane, agent)?;
                let state = &mut self.lanes[lane.at()];
                if state.merges.last().is_none_or(|(last, at)| (*last, at) != (index, head)) {
                    state.merges.push((index, head.clone()));
                }
                if state.assignee == Some(index) {
                    state.assignee = None;
                }
                let agent = &mut state.agents[index];
                if agent.step == AgentStep::Merging {
                    agent.step = if gate_due { AgentStep::Gating(Gate::Due) } else { AgentStep::Done };
                }
            }
            Event::RetryPlanned { agent, level, not_before, .. } => {
                let agent = self.agent_at(lane, agent)?;
                return self.retry_planned(lane, agent, *level, *not_before);
            }
            Event::AgentReset { agent, head, .. } => {
                let agent = self.agent_mut(lane, agent)?;
                if agent.restart == RestartFrom::LaneHead {
                    agent.start = Some(head.clone());
                    agent.passed.clear();
                } else if agent.good.as_ref() != Some(head) {
                    agent.fall_back_to(head);
                }
                agent.restart = RestartFrom::Here;
                agent.session = None;
                agent.head = Some(head.clone());
                agent.good = Some(head.clone());
            }
            Event::WorktreeOpened { agent: Some(name), worktree, .. } => {
                let agent = self.agent_mut(lane, name)?;
                agent.worktree = Some(worktree.clone());
                agent.start = Some(worktree.head.clone());
                agent.head = Some(worktree.head.clone());
                agent.good = Some(worktree.head.clone());
                agent.passed.clear();
                agent.restart = RestartFrom::Here;
                agent.session = None;
                if agent.phase == AgentPhase::Initialized {
                    agent.phase = AgentPhase::Planning;
                }
            }
            Event::WorktreeLost { agent: Some(name), .. } => {
                self.agent_mut(lane, name)?.session = None;
                return self.spare_what_was_lost(lane, name);
            }
            Event::WorktreeReleased { agent, .. } => {
                let agent = self.agent_mut(lane, agent)?;
                agent.worktree = None;
                agent.setup = Gate::Due;
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn work_committed(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        head: crate::model::CommitId,
        prohibited: &[String],
        idle: Idle,
    ) -> Result<(), Fault> {
        let plan = self.plan.clone();
        self.advance(lane, agent, AgentPhase::Validating)?;
        let state = &mut self.lanes[lane.at()];
        // Gates, reviewers and people judge work again that is in the lane already: it may rightly stay as it is.
        let is_in_lane = state.merges.iter().any(|(merged, _)| *merged == agent);
        if plan.lane(lane).shares_worktree(agent) {
            state.head = Some(head.clone());
        }
        let worker = &mut state.agents[agent];
        worker.head = Some(head);
        let said = worker.said.clone();
        if !prohibited.is_empty() {
            let message = "changed files outside `owns`";
            let failure = Failure { paths: prohibited.to_vec(), ..Failure::new(FailureKind::Ownership, message) };
            worker.step = AgentStep::Judging(failure);
            return Ok(());
        }
        let writes = plan.lane(lane).ownership != OwnershipRule::Nothing;
        if writes && worker.claims_what_is_not(plan.lane(lane).agents[agent].tasks.len()) {
            let message = "says COMPLETE, but changed and committed nothing";
            worker.step = AgentStep::Judging(Failure::new(FailureKind::Report, message));
            return Ok(());
        }
        let of_plan = &plan.lane(lane).agents[agent];
        let is_last = worker.task == of_plan.last_own_task();
        if idle == Idle::Agent && is_last && !is_in_lane {
            worker.step = AgentStep::Judging(idle_failure(of_plan, &said));
            return Ok(());
        }
        if !plan.is_gated(&plan.lane(lane).agents[agent].tasks[worker.task]) {
            return self.start_snapshot(lane, agent);
        }
        worker.step = AgentStep::Verifying(Gate::Due);
        Ok(())
    }

    pub(crate) fn start_snapshot(&mut self, lane: LaneIndex, agent: usize) -> Result<(), Fault> {
        self.advance(lane, agent, AgentPhase::Checkpointing)?;
        self.lanes[lane.at()].agents[agent].step = AgentStep::Snapshotting;
        Ok(())
    }

    fn snapshot_done(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        reason: SnapshotReason,
        kept: Result<&String, &String>,
    ) -> Result<(), Fault> {
        let merges = self.plan.lane(lane).agents[agent].round == Round::Implementation;
        let worker = &mut self.lanes[lane.at()].agents[agent];
        match worker.step.clone() {
            AgentStep::Snapshotting if reason == SnapshotReason::Task => return self.task_passed(lane, agent),
            // Without a snapshot the work goes on (SPEC §5), but never by throwing away what is kept nowhere.
            AgentStep::Salvaging(wanted, Some(_))
                if reason == wanted && kept.is_err() && worker.restart != RestartFrom::Here =>
            {
                worker.unkept = kept.err().cloned();
            }
            AgentStep::Salvaging(wanted, failure) if reason == wanted => {
                // What a specialist left is never merged: its next attempt starts without it.
                if kept.is_ok() && !merges {
                    worker.restart = RestartFrom::LaneHead;
                }
                worker.salvaged.extend(kept.ok().cloned());
                worker.step = failure.map_or(AgentStep::Ready, AgentStep::Failed);
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn task_passed(&mut self, lane: LaneIndex, agent: usize) -> Result<(), Fault> {
        let plan = self.plan.clone();
        let plan = &plan.lane(lane).agents[agent];
        let worker = &mut self.lanes[lane.at()].agents[agent];
        worker.good = worker.head.clone();
        worker.passed.extend(worker.head.clone());
        worker.retries = 0;
        worker.rolled_back = false;
        worker.excused = false;
        worker.session = None;
        if worker.task + 1 < plan.tasks.len() {
            worker.task += 1;
            worker.step = AgentStep::Ready;
            return Ok(());
        }
        let merges = plan.round == Round::Implementation;
        worker.step = if merges { AgentStep::Merging } else { AgentStep::Done };
        self.advance(lane, agent, AgentPhase::Completed)
    }

    fn failure_noted(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        task: Option<&TaskId>,
        failure: &Failure,
    ) -> Result<(), Fault> {
        let plan = self.plan.clone();
        let plan = plan.lane(lane);
        if let Some(task) = task {
            self.advance(lane, agent, AgentPhase::Failed)?;
            self.back_to_task(lane, agent, task);
        } else if failure.kind != FailureKind::Idle {
            self.note_rebuild(lane, failure);
            self.leave_gate_to(lane, agent, failure);
        }
        let state = &mut self.lanes[lane.at()];
        let worker = &mut state.agents[agent];
        let context = if failure.kind.is_outage() { Vec::new() } else { failure.context(worker.attempt) };
        let findings = failure.diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings);
        let complaints = findings.map(ToString::to_string).collect();
        worker.past.push(PastFailure { task: task.cloned(), context, signature: failure.signature(), complaints });
        let puts_back = state.next_level(plan, agent) == Some(RetryLevel::Rollback);
        let worker = &mut state.agents[agent];
        worker.restart = match task {
            None if failure.kind == FailureKind::Idle => RestartFrom::Here,
            Some(_) if puts_back || failure.kind == FailureKind::Ownership || plan.resume == RetryFrom::Fresh => {
                RestartFrom::LastGood
            }
            Some(_) => RestartFrom::Here,
            None => RestartFrom::LaneHead,
        };
        let unmerged = matches!(worker.step, AgentStep::Merging);
        if task.is_none() {
            worker.restart_work(match failure.kind {
                FailureKind::Conflict => 0,
                FailureKind::Idle => plan.agents[agent].first_own_task(),
                _ => plan.agents[agent].last_own_task(),
            });
        }
        state.ask_again(plan, agent);
        let worker = &mut state.agents[agent];
        worker.step = match (task, failure.kind) {
            (Some(_), FailureKind::Timeout) => AgentStep::Salvaging(SnapshotReason::Timeout, Some(failure.clone())),
            (Some(_), _) => AgentStep::Salvaging(SnapshotReason::Failure, Some(failure.clone())),
            (None, _) if unmerged => AgentStep::Salvaging(SnapshotReason::Reset, Some(failure.clone())),
            (None, _) => AgentStep::Failed(failure.clone()),
        };
        Ok(())
    }

    /// What a worktree held that was lost, or that somebody changed meanwhile, is in snapshots only: they outlive the
    /// merge.
    fn spare_what_was_lost(&mut self, lane: LaneIndex, name: &AgentName) -> Result<(), Fault> {
        let agent = self.agent_at(lane, name)?;
        let state = &mut self.lanes[lane.at()];
        let worker = &state.agents[agent];
        state.snapshots.retain(|(reference, _)| !worker.salvaged.contains(reference));
        Ok(())
    }

    /// A person's no to a task is about the one before, which is done again.
    fn back_to_task(&mut self, lane: LaneIndex, agent: usize, task: &TaskId) {
        let plan = self.plan.clone();
        let plan = plan.lane(lane);
        let worker = &mut self.lanes[lane.at()].agents[agent];
        if let Some(at) = plan.agents[agent].tasks[..worker.task].iter().position(|known| known.id == *task) {
            worker.passed.truncate(worker.passed.len().saturating_sub(worker.task - at));
            worker.task = at;
            worker.retries = 0;
            for later in &plan.agents[agent].tasks[at..] {
                self.lanes[lane.at()].answers.remove(&HumanGate::Task(later.id.clone()));
            }
        }
    }

    /// A gate that failed on the work of one agent and is given to another is judged again with that one's work.
    fn leave_gate_to(&mut self, lane: LaneIndex, assignee: usize, failure: &Failure) {
        let state = &mut self.lanes[lane.at()];
        let of_others = state.agents.iter_mut().enumerate().filter(|(agent, _)| *agent != assignee);
        for (_, worker) in of_others.filter(|(_, worker)| matches!(worker.step, AgentStep::Gating(Gate::Failed(_)))) {
            worker.step = AgentStep::Done;
        }
        if is_unknown(failure.diagnosis.as_deref()) {
            state.misunderstood += 1;
            state.assignee = Some(assignee);
        }
    }

    /// A failure at the merge queue says what the lane has to be put onto.
    fn note_rebuild(&mut self, lane: LaneIndex, failure: &Failure) {
        let state = &mut self.lanes[lane.at()];
        if state.stage != LaneStage::AwaitingUserApproval {
            return;
        }
        state.rebuild = match (&failure.kind, &state.staged) {
            (FailureKind::Conflict, _) => Some(Rebuild::OnIntegration),
            (FailureKind::Gate, Some(staged)) => Some(Rebuild::OnMerge(staged.commit.clone())),
            _ => None,
        };
    }

    fn lane_reset(&mut self, lane: LaneIndex) {
        let plan = self.plan.clone();
        let state = &mut self.lanes[lane.at()];
        if state.rebuild.take() == Some(Rebuild::OnIntegration) {
            for agent in plan.lane(lane).round(Round::Implementation) {
                let worker = &mut state.agents[agent];
                if worker.step == AgentStep::Done {
                    worker.restart_work(0);
                    worker.restart = RestartFrom::LaneHead;
                    state.ask_again(plan.lane(lane), agent);
                }
            }
        }
    }

    fn retry_planned(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        level: RetryLevel,
        not_before: crate::model::Timestamp,
    ) -> Result<(), Fault> {
        let state = &mut self.lanes[lane.at()];
        if state.agents[agent].failed_in_task() {
            state.agents[agent].excused = false;
        } else {
            // What the agents brought together was judged again once for all of them.
            state.agents.iter_mut().for_each(|worker| worker.excused = false);
        }
        let worker = &mut state.agents[agent];
        worker.step = AgentStep::Retrying(not_before);
        match level {
            RetryLevel::Rollback => {
                worker.rolled_back = true;
                worker.session = None;
            }
            RetryLevel::Wait => worker.outage.iter_mut().for_each(|outage| outage.waits += 1),
            RetryLevel::Retry if worker.failed_in_task() => worker.retries += 1,
            RetryLevel::Retry => state.rework += 1,
        }
        if self.lanes[lane.at()].agents[agent].phase == AgentPhase::Failed {
            self.advance(lane, agent, AgentPhase::RollingBack)?;
        }
        Ok(())
    }

    /// Takes the agent's work along an arrow of seed 000; standing where it should go is no step.
    pub(crate) fn advance(&mut self, lane: LaneIndex, agent: usize, to: AgentPhase) -> Result<(), Fault> {
        let plan = self.plan.lane(lane);
        let worker = &mut self.lanes[lane.at()].agents[agent];
        let from = worker.phase;
        // A shared worktree opens nothing, and an agent that ran before is not planned again.
        if from == AgentPhase::Initialized && to == AgentPhase::Planned {
            worker.phase = AgentPhase::Planned;
            return Ok(());
        }
        if to == AgentPhase::Planned && from != AgentPhase::Planning {
            return Ok(());
        }
        if from != to && !from.may_become(to) {
            let (lane, agent) = (plan.id.clone(), plan.agents[agent].name.clone());
            return Err(Fault::ImpossiblePhase { lane, agent, from, to });
        }
        worker.phase = to;
        Ok(())
    }

    pub(crate) fn agent_mut(&mut self, lane: LaneIndex, name: &AgentName) -> Result<&mut AgentState, Fault> {
        let agent = self.agent_at(lane, name)?;
        Ok(&mut self.lanes[lane.at()].agents[agent])
    }

    /// Goes past the tasks to which people said yes.
    pub(crate) fn pass_answered_tasks(&mut self, lane: LaneIndex) -> Result<(), Fault> {
        let plan = self.plan.clone();
        for agent in 0..plan.lane(lane).agents.len() {
            let state = self.lane(lane);
            let task = state.asks(plan.lane(lane), agent).cloned();
            if task.is_some_and(|task| state.approved(&HumanGate::Task(task))) {
                self.advance(lane, agent, AgentPhase::Validating)?;
                self.advance(lane, agent, AgentPhase::Checkpointing)?;
                self.task_passed(lane, agent)?;
            }
        }
        Ok(())
    }

    /// An agent came to a person's task, which is executed from now on.
    pub(crate) fn person_asked(&mut self, lane: LaneIndex, agent: usize) -> Result<(), Fault> {
        self.advance(lane, agent, AgentPhase::Planned)?;
        self.advance(lane, agent, AgentPhase::Executing)?;
        self.lanes[lane.at()].agents[agent].step = AgentStep::Asking;
        Ok(())
    }
}
