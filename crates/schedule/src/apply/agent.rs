//! Folding events into the agents of a lane.

use lanewright_model::event::{Event, Idle, SnapshotReason};
use lanewright_model::ownership::RUN_LOG_DIRECTORY;
use lanewright_model::plan::{OwnershipRule, RetryFrom};
use lanewright_model::text::listed;
use lanewright_model::{
    Agent, AgentPhase, CommitId, Failure, FailureKind, HumanGate, Lane, Plan, RetryLevel, Round, Runner, TaskId,
    Timestamp,
};

use crate::apply::Fault;
use crate::apply::judge::idle_failure;
use crate::state::agent::{AgentState, AgentStep, PastFailure, RestartFrom};
use crate::state::gate::Gate;
use crate::state::lane::LaneState;

/// One agent, with its lane, which some of its folds change.
pub(super) struct Worker<'a> {
    pub(super) plan: &'a Plan,
    pub(super) lane: &'a Lane,
    pub(super) state: &'a mut LaneState,
    pub(super) at: usize,
}

impl<'a> Worker<'a> {
    pub(super) fn agent(&mut self) -> &mut AgentState {
        &mut self.state.attempts.agents_mut()[self.at]
    }

    pub(super) fn agent_plan(&self) -> &'a Agent {
        &self.lane.agents[self.at]
    }

    /// The runner of the task that it is at, where one is described.
    pub(super) fn runner(&self) -> Option<&'a Runner> {
        let (plan, worker) = (self.agent_plan(), &self.state.agents()[self.at]);
        self.plan
            .runner_for(&self.plan.with_runner(plan, worker.fallback().map(String::as_str)), &plan.tasks[worker.task])
    }

    /// Whether another runner may make an attempt at the task that it is at.
    pub(super) fn has_fallback(&self) -> bool {
        let (plan, worker) = (self.agent_plan(), &self.state.agents()[self.at]);
        self.plan.fallback(plan, &plan.tasks[worker.task]).next().is_some()
    }

    pub(super) fn apply(&mut self, event: &Event) -> Result<(), Fault> {
        match event {
            Event::PersonAsked { .. } => return self.asked(),
            Event::WorkCommitted { head, changed, prohibited, idle, ignored, size, .. } => {
                self.agent().changed.clone_from(changed);
                self.agent().size = *size;
                return self.committed(head, prohibited, (*idle, ignored));
            }
            Event::SnapshotTaken { reason: SnapshotReason::External, .. } => self.keep_snapshots(),
            Event::SnapshotTaken { reason: SnapshotReason::Candidate, commit, reference, .. }
                if self.agent().is_unchosen() =>
            {
                self.agent().kept = Some((reference.clone(), commit.clone()));
            }
            Event::SnapshotFailed { reason: SnapshotReason::Candidate, error, .. } if self.agent().is_unchosen() => {
                self.agent().unkept = Some(error.clone());
            }
            Event::SnapshotTaken { reason, reference, context, .. } => {
                let decisions = context.iter().flat_map(|context| &context.decisions);
                self.agent().add_decisions(decisions);
                return self.snapshot_done(*reason, Ok(reference));
            }
            Event::SnapshotFailed { reason, error, .. } => return self.snapshot_done(*reason, Err(error)),
            Event::FailureNoted { task, failure, .. } => return self.failed(task.as_ref(), failure),
            Event::RetryPlanned { level, not_before, .. } => return self.retry_planned(*level, *not_before),
            Event::AgentMerged { head, .. } => {
                self.state.attempts.integrate(self.at, head, !self.plan.gates.checkpoint.is_empty());
            }
            Event::AgentReset { head, .. } => self.reset(head),
            Event::WorktreeOpened { worktree, .. } => self.agent().open(worktree),
            Event::WorktreeLost { .. } => {
                self.agent().session = None;
                self.keep_snapshots();
            }
            Event::WorktreeReleased { .. } => self.agent().release(),
            Event::AgentMoved { from, to, .. } => self.agent().phase.record(*from, *to),
            _ => {}
        }
        Ok(())
    }

    /// Takes the agent's work along an arrow of seed 000; standing where it should go is no step.
    pub(super) fn advance(&mut self, to: AgentPhase) -> Result<(), Fault> {
        let from = self.agent().phase.now();
        let is_planned_before =
            to == AgentPhase::Planned && !matches!(from, AgentPhase::Initialized | AgentPhase::Planning);
        if from == to || is_planned_before {
            return Ok(());
        }
        // A shared worktree opens nothing.
        if (from, to) == (AgentPhase::Initialized, AgentPhase::Planned) {
            self.advance(AgentPhase::Planning)?;
        }
        let (lane, agent) = (&self.lane.id, &self.agent_plan().name);
        let fault = |(from, to)| Fault::ImpossiblePhase { lane: lane.clone(), agent: agent.clone(), from, to };
        self.agent().phase.advance(to).map_err(fault)
    }

    /// The agent came to a person's task, which is executed from now on.
    fn asked(&mut self) -> Result<(), Fault> {
        self.advance(AgentPhase::Planned)?;
        self.advance(AgentPhase::Executing)?;
        self.agent().step = AgentStep::Asking;
        Ok(())
    }

    /// Goes past a task that a person approved.
    pub(super) fn pass_answered_task(&mut self) -> Result<(), Fault> {
        let task = self.state.asks(self.lane, self.at).cloned();
        if task.is_some_and(|task| self.state.approvals.approve(&HumanGate::Task(task))) {
            self.advance(AgentPhase::Validating)?;
            self.advance(AgentPhase::Checkpointing)?;
            self.task_passed()?;
        }
        Ok(())
    }

    fn committed(&mut self, head: &CommitId, prohibited: &[String], idle: (Idle, &[String])) -> Result<(), Fault> {
        self.advance(AgentPhase::Validating)?;
        if self.lane.shares_worktree(self.at) {
            self.state.work.set_head(head);
        }
        let worker = self.agent();
        (worker.head, worker.unkept) = (Some(head.clone()), None);
        let objection = self.objection(prohibited, idle);
        let task = &self.agent_plan().tasks[self.agent().task];
        self.agent().step = match objection {
            Some(objection) => objection,
            None if self.plan.is_gated(self.lane, self.at, task) => AgentStep::Verifying(Gate::Due),
            None => return self.start_snapshot(),
        };
        Ok(())
    }

    /// What comes next where the work fails before any gate runs.
    fn objection(&self, prohibited: &[String], (idle, ignored): (Idle, &[String])) -> Option<AgentStep> {
        let (worker, plan) = (&self.state.agents()[self.at], self.agent_plan());
        if !prohibited.is_empty() {
            return Some(AgentStep::Judging(prohibited_failure(prohibited)));
        }
        let writes = self.lane.ownership != OwnershipRule::Nothing;
        let is_last = worker.task == plan.last_own_task();
        // Gates, reviewers and people judge work again that is in the lane already: it may rightly stay as it is.
        let is_idle = idle == Idle::Agent && is_last && !self.state.attempts.integration().has(self.at);
        let unchanged = if writes && worker.claims_missing_work(plan.tasks.len()) {
            Failure::new(FailureKind::Report, "says COMPLETE, but changed and committed nothing")
        } else if is_idle {
            idle_failure(plan, (&worker.refusals, ignored), &worker.said)
        } else {
            return None;
        };
        // Another attempt would cost as much, and be refused as well.
        Some(worker.refusals.several().map_or(AgentStep::Judging(unchanged), AgentStep::Blocked))
    }

    pub(super) fn start_snapshot(&mut self) -> Result<(), Fault> {
        self.advance(AgentPhase::Checkpointing)?;
        self.agent().step = AgentStep::Snapshotting;
        Ok(())
    }

    fn snapshot_done(&mut self, reason: SnapshotReason, kept: Result<&String, &String>) -> Result<(), Fault> {
        let merges = self.agent_plan().round == Round::Implementation;
        let worker = self.agent();
        match worker.step.clone() {
            AgentStep::Snapshotting if reason == SnapshotReason::Task => return self.task_passed(),
            AgentStep::Salvaging(wanted, failure) if reason == wanted => {
                // Without a snapshot the work continues (SPEC §5), but never by discarding what is saved nowhere.
                worker.unkept = kept.err().cloned();
                if kept.is_err() && worker.restart != RestartFrom::Here {
                    return Ok(());
                }
                // What a specialist left is never merged: its next attempt starts without it.
                if kept.is_ok() && !merges {
                    worker.restart = RestartFrom::LaneHead;
                    worker.session = None;
                }
                worker.salvaged.extend(kept.ok().cloned());
                worker.step = failure.map_or(AgentStep::Ready, AgentStep::Failed);
            }
            _ => {}
        }
        Ok(())
    }

    fn task_passed(&mut self) -> Result<(), Fault> {
        let plan = self.agent_plan();
        let worker = self.agent();
        worker.pass_task();
        if worker.task < plan.last_own_task() {
            worker.session = None;
        }
        if worker.task + 1 < plan.tasks.len() {
            worker.task += 1;
            worker.step = AgentStep::Ready;
            return Ok(());
        }
        let merges = plan.round == Round::Implementation;
        worker.step = if merges { AgentStep::Merging } else { AgentStep::Done };
        self.advance(AgentPhase::Completed)
    }

    fn failed(&mut self, task: Option<&TaskId>, failure: &Failure) -> Result<(), Fault> {
        if let Some(task) = task {
            self.advance(AgentPhase::Failed)?;
            self.back_to_task(task);
        } else if failure.kind != FailureKind::Idle {
            self.state.merge.fail(self.state.stage, failure);
            self.state.attempts.leave_gate_to(self.at, failure);
        }
        let failure = &self.remember(task, failure);
        let keep = self.what_to_keep(task, failure);
        self.agent().restart = self.agent().restart.max(self.restart_after(task, failure));
        if task.is_none() {
            self.rework(failure);
            self.state.inform_reviewers(self.lane, failure);
        }
        self.state.ask_again(self.lane, self.at);
        self.agent().step = match keep {
            Some(reason) => AgentStep::Salvaging(reason, Some(failure.clone())),
            None => AgentStep::Failed(failure.clone()),
        };
        Ok(())
    }

    /// Remembers the failure as what it is taken for: one that the base has as well is the environment's once an attempt that
    /// knew of it has changed nothing about it, or no attempt is left. Before that, it may be what the lane is to change.
    fn remember(&mut self, task: Option<&TaskId>, failure: &Failure) -> Failure {
        let mut failure = failure.clone();
        let is_same = |past: &PastFailure| past.failure.is_of_base() && past.failure.command == failure.command;
        let again = self.agent().past.last().is_some_and(is_same);
        self.agent().remember(task, &failure);
        if failure.is_of_base() && (again || self.state.attempts.next_level(self.lane, self.at).is_none()) {
            failure.kind = FailureKind::Environment;
            if let Some(past) = self.agent().past.last_mut() {
                past.failure.kind = FailureKind::Environment;
            }
        }
        failure
    }

    /// Has the agent work on its tasks again after a failure of the whole of its work. If that is in the lane, the
    /// program still knows what it did, and its session continues.
    fn rework(&mut self, failure: &Failure) {
        let plan = self.agent_plan();
        let worker = self.agent();
        let session = worker.session.take();
        let (task, session) = match failure.kind {
            FailureKind::Conflict => (0, None),
            FailureKind::Idle => (plan.first_own_task(), None),
            _ => (plan.last_own_task(), session),
        };
        worker.restart_work(task);
        worker.session = session;
    }

    fn what_to_keep(&self, task: Option<&TaskId>, failure: &Failure) -> Option<SnapshotReason> {
        match (task, failure.kind) {
            (Some(_), FailureKind::Timeout) => Some(SnapshotReason::Timeout),
            (Some(_), _) => Some(SnapshotReason::Failure),
            (None, _) => (self.state.agents()[self.at].step == AgentStep::Merging).then_some(SnapshotReason::Reset),
        }
    }

    fn restart_after(&self, task: Option<&TaskId>, failure: &Failure) -> RestartFrom {
        let puts_back = self.state.attempts.next_level(self.lane, self.at) == Some(RetryLevel::Rollback);
        match (task, failure.kind) {
            (None, FailureKind::Idle) => RestartFrom::Here,
            (None, _) => RestartFrom::LaneHead,
            (Some(_), FailureKind::Ownership) => RestartFrom::LastGood,
            // Nothing is wrong with the work.
            (Some(_), FailureKind::Environment) => RestartFrom::Here,
            (Some(_), _) if puts_back || self.lane.resume == RetryFrom::Fresh => RestartFrom::LastGood,
            (Some(_), _) => RestartFrom::Here,
        }
    }

    /// What a worktree held that was lost, or that another program changed, is in snapshots only: they outlive the
    /// merge.
    fn keep_snapshots(&mut self) {
        let LaneState { attempts, work, .. } = &mut *self.state;
        work.forget_snapshots(|reference| attempts.agents()[self.at].salvaged.contains(reference));
    }

    /// Tasks that are done again because what passed cannot be read any more are looked at again, too.
    fn reset(&mut self, head: &CommitId) {
        let task = self.agent().task;
        self.agent().reset(head);
        if self.agent().task < task {
            self.state.ask_again(self.lane, self.at);
        }
    }

    /// A person's no to a task is about the one before, which is done again.
    fn back_to_task(&mut self, task: &TaskId) {
        let tasks = &self.agent_plan().tasks;
        let worker = self.agent();
        if let Some(at) = tasks[..worker.task].iter().position(|known| known.id == *task) {
            worker.passed.truncate(worker.passed.len().saturating_sub(worker.task - at));
            worker.task = at;
            worker.retries = 0;
            for later in &tasks[at..] {
                self.state.approvals.forget(&HumanGate::Task(later.id.clone()));
            }
        }
    }

    fn retry_planned(&mut self, level: RetryLevel, not_before: Timestamp) -> Result<(), Fault> {
        self.state.attempts.plan_retry(self.at, level);
        self.agent().step = AgentStep::Retrying(not_before);
        if self.agent().phase.now() == AgentPhase::Failed {
            self.advance(AgentPhase::RollingBack)?;
        }
        Ok(())
    }
}

/// What the agent may not leave behind: repositories, which git would store as links to commits that are nowhere else,
/// state files, and files that are not its own.
fn prohibited_failure(paths: &[String]) -> Failure {
    let (inner, files): (Vec<String>, Vec<String>) = paths.iter().cloned().partition(|path| path.ends_with("/.git"));
    let (state, foreign): (Vec<String>, Vec<String>) =
        files.into_iter().partition(|path| path.starts_with(RUN_LOG_DIRECTORY));
    let named = |what: &str, paths: &[String]| (!paths.is_empty()).then(|| format!("{what}: {}", listed(paths, NAMED)));
    let inner_what = if inner.len() == 1 { "a repository" } else { "repositories" };
    let parts = [
        named(&format!("{inner_what} inside the worktree"), &inner),
        named("state files of Lanewright", &state),
        (!foreign.is_empty()).then(|| "changed files outside `owns`".to_owned()),
    ];
    let message = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Failure { paths: foreign, ..Failure::new(FailureKind::Ownership, message) }
}

/// How many repositories or files are named.
const NAMED: usize = 5;

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
