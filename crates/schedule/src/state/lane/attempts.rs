//! The agents of a lane: which jobs run, what became of the attempts, and how far their work is in the lane.

use std::collections::BTreeSet;

use lanewright_model::event::{Event, LanePoint};
use lanewright_model::{
    Agent, AgentName, AgentPhase, CommitId, Failure, FailureKind, JobId, Lane, LaneId, RetryLevel, Round, TaskId,
};

use crate::state::agent::phase_tracker::PhaseTracker;
use crate::state::agent::{AgentState, AgentStep, OutageWait, RestartFrom};
use crate::state::gate::{Gate, is_unknown};
use crate::state::lane::choice::Choice;
use crate::state::lane::integration::Integration;
use crate::state::lane::recovery::Recovery;

/// The agents of a lane, in the order of the plan, and its jobs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts {
    agents: Vec<AgentState>,
    /// Jobs that were started and have not ended, those of the lane as a whole included.
    running: BTreeSet<JobId>,
    integration: Integration,
    rework: Rework,
    pub(super) choice: Choice,
}

/// How often a lane was sent back to its agents.
#[derive(Debug, Clone, Default)]
struct Rework {
    rounds: u32,
    /// How often a gate failed on the lane as a whole and its output was not understood.
    misunderstood: u32,
    /// The agent that is to fix that, until its work is in the lane again.
    assignee: Option<usize>,
}

impl Attempts {
    pub(super) fn new(agents: usize) -> Self {
        Self { agents: vec![AgentState::default(); agents], ..Self::default() }
    }

    pub(crate) fn agents(&self) -> &[AgentState] {
        &self.agents
    }

    pub(crate) fn agents_mut(&mut self) -> &mut [AgentState] {
        &mut self.agents
    }

    /// In which phases the work of its agents is, and was.
    pub(super) fn take_phases(&mut self) -> Vec<PhaseTracker> {
        self.agents.iter_mut().map(|worker| std::mem::take(&mut worker.phase)).collect()
    }

    /// Nothing is left of its agents' work, which was in `phases`.
    pub(super) fn begin_again(&mut self, phases: Vec<PhaseTracker>) {
        for (worker, phase) in self.agents.iter_mut().zip(phases) {
            worker.phase = phase;
            worker.phase.begin_again(AgentPhase::Initialized);
        }
    }

    pub(crate) fn running(&self) -> &BTreeSet<JobId> {
        &self.running
    }

    /// Whether a job of the agent runs.
    pub(crate) fn has_job_of(&self, plan: &Lane, agent: usize) -> bool {
        self.running.iter().any(|job| job.agent() == Some(&plan.agents[agent].name))
    }

    /// How many attempts run, wherever that is.
    pub(super) fn running_attempts(&self) -> usize {
        self.running.iter().filter(|job| job.is_attempt()).count()
    }

    pub(crate) fn start_job(&mut self, job: &JobId) {
        self.running.insert(job.clone());
    }

    /// Records the end of a job; false: it was not waited for.
    pub(crate) fn end_job(&mut self, job: &JobId) -> bool {
        self.running.remove(job)
    }

    pub(crate) fn integration(&self) -> &Integration {
        &self.integration
    }

    pub(crate) fn integration_mut(&mut self) -> &mut Integration {
        &mut self.integration
    }

    /// Whether the output of a gate that failed on the lane as a whole was given to an agent without being understood.
    pub(crate) fn was_misunderstood(&self) -> bool {
        self.rework.misunderstood > 0
    }

    /// Whether an agent is to fix a gate whose output was not understood.
    pub(crate) fn has_assignee(&self) -> bool {
        self.rework.assignee.is_some()
    }

    /// Whether an agent is at a task in the worktree of `agent`, or of the lane.
    pub(super) fn is_worked_on(&self, plan: &Lane, agent: Option<usize>) -> bool {
        match agent {
            Some(agent) => plan.agents[agent].round != Round::Implementation || self.agents[agent].is_at_a_task(),
            None => plan.round(Round::Implementation).filter(|&agent| plan.shares_worktree(agent)).any(|agent| {
                let works_again = self.agents[agent].failure().is_some() && !self.has_all_of(agent);
                works_again || self.agents[agent].is_at_a_task()
            }),
        }
    }

    /// Whether the lane's branch has what the agent will bring, as long as it does not work again.
    fn has_all_of(&self, agent: usize) -> bool {
        let is_idle = |failure: &Failure| failure.kind == FailureKind::Idle;
        self.integration.has(agent) || self.agents[agent].failure().is_some_and(is_idle)
    }

    /// Whether a step that changes a worktree or a branch was wanted of an agent and is not recorded as done.
    pub(super) fn has_unrecorded_step(&self, plan: &Lane) -> bool {
        let is_unrecorded = |(at, agent): (usize, &AgentState)| match agent.step {
            AgentStep::Merging => !self.awaits_choice(plan, at),
            AgentStep::Committing => true,
            AgentStep::Unchosen { .. } => !agent.is_over(false),
            AgentStep::Done => agent.worktree.is_some() && !plan.shares_worktree(at),
            _ => agent.restart != RestartFrom::Here,
        };
        self.agents.iter().enumerate().any(is_unrecorded)
    }

    /// Whether no job runs, and nothing that an agent of `round` did waits to be judged, committed, saved or merged. An
    /// agent that ends the lane once the others rest does nothing more either.
    pub(super) fn is_at_rest(&self, plan: &Lane, round: Option<Round>) -> bool {
        let waits = |agent: usize| match self.agents[agent].step {
            AgentStep::Ready | AgentStep::Asking | AgentStep::Retrying(_) | AgentStep::Done => true,
            AgentStep::Unchosen { .. } => true,
            AgentStep::Merging if self.awaits_choice(plan, agent) => true,
            _ => self.end_of(plan, agent).is_some(),
        };
        self.running.is_empty() && round.is_none_or(|round| self.in_turn(plan, round).all(waits))
    }

    /// The agents of a round that may move now: those that share a worktree take turns.
    pub(crate) fn in_turn(&self, plan: &Lane, round: Round) -> impl Iterator<Item = usize> {
        let has_turn = |agent: &usize| plan.shares_worktree(*agent) && self.agents[*agent].step != AgentStep::Done;
        let last = plan.round(round).find(has_turn).unwrap_or(usize::MAX);
        plan.round(round).take_while(move |agent| *agent <= last)
    }

    /// Whether no job runs and nothing that a job left waits to be saved.
    pub(super) fn is_quiet(&self) -> bool {
        let salvaging = |agent: &AgentState| matches!(agent.step, AgentStep::Salvaging(..)) && agent.unkept.is_none();
        !self.has_jobs() && !self.agents.iter().any(salvaging)
    }

    /// Whether a job runs.
    pub(super) fn has_jobs(&self) -> bool {
        !self.running.is_empty()
    }

    /// The person's task that the agent waits for.
    pub(crate) fn asks<'p>(&self, plan: &'p Lane, agent: usize) -> Option<&'p TaskId> {
        let worker = &self.agents[agent];
        (worker.step == AgentStep::Asking).then(|| &plan.agents[agent].tasks[worker.task].id)
    }

    /// Whether the agents of the round have come as far as they can without an answer to a task that is `unanswered`.
    pub(super) fn wait_for_people(&self, plan: &Lane, round: Round, unanswered: impl Fn(&TaskId) -> bool) -> bool {
        let mut asks = false;
        for agent in plan.round(round) {
            match &self.agents[agent].step {
                AgentStep::Asking if self.asks(plan, agent).is_some_and(&unanswered) => asks = true,
                AgentStep::Done if self.agents[agent].is_over(plan.shares_worktree(agent)) => {}
                _ => return false,
            }
            // Those that share the worktree take turns.
            if asks && plan.shares_worktree(agent) {
                return true;
            }
        }
        asks
    }

    /// How many retries of the plan's number the agent's last failure has used before it.
    pub(crate) fn retries_used(&self, agent: usize) -> u32 {
        let worker = &self.agents[agent];
        if worker.failed_in_task() { worker.retries } else { self.rework.rounds }
    }

    /// What a further attempt of the agent would be for; `None`: only a person can help now. Its task is retried, then
    /// rolled back once; the lane as a whole is only retried, because only a task has a last state that passed.
    pub(crate) fn next_level(&self, plan: &Lane, agent: usize) -> Option<RetryLevel> {
        let worker = &self.agents[agent];
        let may_roll_back = worker.failed_in_task() && plan.retries > 0;
        if worker.lacked_environment() {
            return None;
        }
        match worker.outage {
            Some(OutageWait::GivenUp) => None,
            Some(OutageWait::Waits) => Some(RetryLevel::Wait),
            None if worker.excused => Some(RetryLevel::Wait),
            None if worker.rolled_back => None,
            None if self.retries_used(agent) < plan.retries && !worker.fails_alike() => Some(RetryLevel::Retry),
            None => may_roll_back.then_some(RetryLevel::Rollback),
        }
    }

    /// Records that the agent's next attempt was planned.
    pub(crate) fn plan_retry(&mut self, agent: usize, level: RetryLevel) {
        let in_task = self.agents[agent].failed_in_task();
        if in_task {
            self.agents[agent].excused = false;
        } else {
            // What the agents brought together was judged again once for all of them.
            self.excuse_all(false);
        }
        let worker = &mut self.agents[agent];
        match level {
            RetryLevel::Rollback => {
                worker.rolled_back = true;
                worker.session = None;
            }
            RetryLevel::Wait => {}
            RetryLevel::Retry if in_task => worker.retries += 1,
            RetryLevel::Retry => self.rework.rounds += 1,
        }
    }

    /// The agents that ended the lane with a failure in one of their tasks.
    pub(crate) fn failed_in_task(&self) -> Vec<usize> {
        let failed = |agent: &usize| self.agents[*agent].failure().is_some() && self.agents[*agent].failed_in_task();
        (0..self.agents.len()).filter(failed).collect()
    }

    /// Has the next attempt of each of `agents` be the last of its task, from its last state that passed.
    pub(crate) fn roll_back(&mut self, agents: &[usize]) {
        for &agent in agents {
            let worker = &mut self.agents[agent];
            worker.rolled_back = true;
            worker.restart_from(RestartFrom::LastGood);
        }
    }

    /// Which level of recovery is next in a lane that ended, after `by_hand` retries that users asked for since its last
    /// progress.
    pub(crate) fn recovery(&self, plan: &Lane, by_hand: u32) -> Recovery {
        let ended = |agent: &&AgentState| agent.failure().is_some() || matches!(agent.step, AgentStep::Blocked(_));
        let Some(worker) = self.agents.iter().find(ended) else {
            return Recovery::Escalate("no agent can fix what ended the lane".to_owned());
        };
        let most = plan.retries.max(1);
        let used = if worker.failed_in_task() { worker.retries } else { self.rework.rounds }.max(by_hand);
        let tried = format!("{used} of {most} retries used");
        match worker.failure() {
            Some(failure) if failure.kind.is_outage() => Recovery::Retry("a service was unavailable".to_owned()),
            Some(failure) if failure.kind == FailureKind::Environment => Recovery::Escalate(match failure.in_base() {
                None => "a program is missing, which no agent can fix".to_owned(),
                Some(_) => "the gate fails in the same way without the lane's changes".to_owned(),
            }),
            _ if worker.rolled_back => {
                Recovery::Escalate("an attempt with a different approach failed as well".to_owned())
            }
            _ if used < most && !worker.fails_alike() => Recovery::Retry(tried),
            Some(_) if worker.failed_in_task() && worker.fails_alike() => {
                Recovery::Rollback("it failed in the same way again and again".to_owned())
            }
            Some(_) if worker.failed_in_task() => Recovery::Rollback(tried),
            Some(_) => Recovery::Escalate(format!("{tried}, and the lane as a whole has no last state that passed")),
            None => Recovery::Escalate(format!("{tried}, and its agent reports that it is blocked")),
        }
    }

    /// Whether another agent is being merged into the lane, or it is not decided whether this one is.
    pub(crate) fn waits_for_its_turn(&self, plan: &Lane, agent: usize) -> bool {
        let has_turn = self.integration.is_turn_of(agent) && !self.awaits_choice(plan, agent);
        self.agents[agent].step == AgentStep::Merging && !has_turn
    }

    /// Whether nothing more will come of the agent in this life of the run.
    pub(crate) fn is_final(&self, plan: &Lane, agent: usize) -> bool {
        let waits = self.asks(plan, agent).is_some();
        let is_done = self.agents[agent].step == AgentStep::Done || self.agents[agent].is_over(false);
        waits || is_done || self.end_of(plan, agent).is_some()
    }

    /// How the agent ends its lane, if no retry is left or something outside must come first.
    pub(crate) fn end_of(&self, plan: &Lane, agent: usize) -> Option<Event> {
        let lane = plan.id.clone();
        let name = &plan.agents[agent].name;
        match &self.agents[agent].step {
            AgentStep::Failed(_) if self.next_level(plan, agent).is_some() => None,
            AgentStep::Failed(failure) | AgentStep::PermanentlyFailed(failure) => Some(end_with(lane, failure)),
            AgentStep::Salvaging(..) | AgentStep::Unchosen { .. } => self.agents[agent].unkept.as_ref().map(|error| {
                let reason = format!("what {name} left cannot be kept, so it is not touched: {error}");
                Event::LaneBlocked { lane, reason }
            }),
            AgentStep::Blocked(reason) => {
                Some(Event::LaneBlocked { lane, reason: blocked_reason(&plan.agents, name, reason) })
            }
            _ => None,
        }
    }

    /// The agent's work is in the lane, whose head is `head` now.
    pub(crate) fn integrate(&mut self, agent: usize, head: &CommitId, has_gate: bool) {
        self.integration.merged(agent, head);
        self.rework.assignee.take_if(|assignee| *assignee == agent);
        let step = &mut self.agents[agent].step;
        if *step == AgentStep::Merging {
            *step = if has_gate { AgentStep::Gating(Gate::Due) } else { AgentStep::Done };
        }
    }

    /// Queues the agents whose work waits to be integrated.
    pub(crate) fn line_up(&mut self) {
        self.integration.line_up(&self.agents);
    }

    /// Other people's commits are in the lane now; an agent works on top of them next.
    pub(super) fn start_from(&mut self, head: &CommitId, plan: &Lane) {
        self.integration.set_head(head);
        for agent in plan.round(Round::Implementation).filter(|&agent| plan.shares_worktree(agent)) {
            self.agents[agent].head = Some(head.clone());
        }
    }

    /// A person's commits are in the lane now, and are judged as what its last agent brought.
    pub(super) fn set_head(&mut self, head: &CommitId, plan: &Lane, has_checkpoint_gate: bool) {
        self.start_from(head, plan);
        for agent in plan.round(Round::Implementation) {
            let is_there = self.has_all_of(agent) && (plan.shares_worktree(agent) || self.integration.has(agent));
            let worker = &mut self.agents[agent];
            if is_there && worker.failure().is_some() {
                worker.integrate(None, false);
            }
        }
        let shared = plan.round(Round::Implementation).rfind(|&agent| plan.shares_worktree(agent));
        let last = shared.or_else(|| self.integration.agents().last().copied());
        if let Some(last) = last.filter(|&last| self.agents[last].step == AgentStep::Done) {
            self.agents[last].integrate(shared.map(|_| head), has_checkpoint_gate);
        }
    }

    /// Has the reviewers judge the lane's work again, from its head.
    pub(super) fn reopen_review(&mut self, plan: &Lane) {
        for reviewer in plan.round(Round::Review) {
            let reviewer = &mut self.agents[reviewer];
            // What one left is saved first; then it starts again from the lane's head, too.
            if !matches!(reviewer.step, AgentStep::Salvaging(..)) {
                reviewer.restart_work(0);
                reviewer.restart_from(RestartFrom::LaneHead);
            }
        }
    }

    /// A gate that failed on the work of one agent and is given to another is judged again with that one's work.
    pub(crate) fn leave_gate_to(&mut self, assignee: usize, failure: &Failure) {
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
        for reviewer in plan.round(Round::Review) {
            if self.agents[reviewer].attempt > 0 {
                self.agents[reviewer].remember(None, failure);
            }
        }
    }

    pub(crate) fn excuse_all(&mut self, excused: bool) {
        let free = self.agents.iter_mut().filter(|worker| !worker.waits_for_retry_in_task());
        free.for_each(|worker| worker.excused = excused);
    }

    /// Gives a lane that had ended its rounds of rework again.
    pub(super) fn reset_rework(&mut self) {
        self.rework = Rework::default();
    }

    /// The lane is back at a point of its own: nothing runs, and what had failed by then is tried again with a fresh count.
    pub(super) fn return_to(&mut self, point: &LanePoint, plan: &Lane, phases: Vec<PhaseTracker>) {
        self.running.clear();
        self.reset_rework();
        self.integration.return_to(point);
        for ((at, worker), phase) in self.agents.iter_mut().enumerate().zip(phases) {
            let holder = (!plan.shares_worktree(at)).then_some(&plan.agents[at].name);
            let opened = point.worktrees.iter().find(|opened| opened.agent.as_ref() == holder);
            worker.return_to(point, opened, phase);
        }
    }

    /// Another life of the run. `agent_first`: also where a gate failed, which a resume runs again before an agent works.
    pub(super) fn revive(&mut self, has_checkpoint_gate: bool, agent_first: bool) {
        for (agent, worker) in self.agents.iter_mut().enumerate() {
            let failed_gate = worker.ended_at_gate();
            worker.revive();
            if failed_gate && !agent_first {
                worker.judge_again(has_checkpoint_gate, self.integration.has(agent));
            }
        }
        // The tests judge what all agents brought: the agent that is to fix that is excused.
        if self.agents.iter().any(|worker| worker.excused && !worker.failed_in_task()) {
            self.excuse_all(true);
        }
    }
}

/// How a failure that no agent is to fix ends its lane: one that is not the lane's doing blocks it.
pub(crate) fn end_with(lane: LaneId, failure: &Failure) -> Event {
    if failure.kind == FailureKind::Refused {
        return Event::LaneBlocked { lane, reason: format!("{}; {REFUSED_REMEDY}", failure.message) };
    }
    if failure.kind != FailureKind::Environment && !failure.is_of_base() {
        return Event::LaneFailed { lane, failure: failure.clone() };
    }
    let remedy = match failure.in_base() {
        None => "have it in worktrees with `setup` or `copy`, or correct the command",
        Some(_) => "correct the gate, what it needs in worktrees (`setup`, `copy`), or the branch",
    };
    let reason = format!("{}; {remedy}, then resume: it runs again before an agent works", failure.message);
    Event::LaneBlocked { lane, reason }
}

/// What to do when a runner's program cannot work.
pub(crate) const REFUSED_REMEDY: &str = "correct that, then resume";

/// Why the lane is blocked, in the words of its agent, which is named where there are others.
fn blocked_reason(agents: &[Agent], name: &AgentName, reason: &str) -> String {
    match (agents.len() > 1, reason) {
        (false, "") => "the agent reported BLOCKED without a reason".to_owned(),
        (true, "") => format!("{name} reported BLOCKED without a reason"),
        (false, reason) => reason.to_owned(),
        (true, reason) => format!("{name}: {reason}"),
    }
}
