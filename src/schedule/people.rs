//! Where lanes wait for people: approvals of the lane, and tasks that are a person's.

use super::agent_machine::AgentPhase;
use super::apply::Fault;
use super::decide::Deciding;
use super::decide_lane::current_round;
use super::state::{AgentStep, LaneState, RunState};
use crate::event::{Event, LaneStage};
use crate::model::{Approval, Failure, FailureKind, HumanGate, Lane, LaneIndex, Round, TaskId, TaskKind};

/// The approval that a lane may ask for at `stage`.
pub fn approval_at(stage: LaneStage) -> Option<Approval> {
    match stage {
        LaneStage::Synthesis => Some(Approval::Plan),
        LaneStage::AwaitingUserApproval => Some(Approval::Changes),
        _ => None,
    }
}

impl RunState {
    /// The round whose agents work in the lane now.
    pub fn round_at_work(&self, lane: LaneIndex) -> Option<Round> {
        let stage = self.lane(lane).stage;
        let works = matches!(stage, LaneStage::Requirements | LaneStage::Implementation | LaneStage::Review);
        current_round(self.plan().lane(lane), stage).filter(|_| works)
    }

    /// The gates at which the lane waits for a person, in the order of the plan.
    pub fn open_gates(&self, lane: LaneIndex) -> Vec<HumanGate> {
        let (plan, state) = (self.plan().lane(lane), self.lane(lane));
        if state.end.is_some() {
            return Vec::new();
        }
        let approval = approval_at(state.stage).filter(|gate| plan.needs(*gate)).map(HumanGate::from);
        let tasks = (0..plan.agents.len()).filter_map(|agent| state.asks(plan, agent)).cloned().map(HumanGate::Task);
        let mut gates: Vec<HumanGate> = approval.into_iter().chain(tasks).collect();
        gates.retain(|gate| !state.answers.contains_key(gate));
        gates.dedup();
        gates
    }

    /// Goes past the tasks to which people said yes.
    pub(super) fn pass_answered_tasks(&mut self, lane: LaneIndex) -> Result<(), Fault> {
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
    pub(super) fn person_asked(&mut self, lane: LaneIndex, agent: usize) -> Result<(), Fault> {
        self.advance(lane, agent, AgentPhase::Planned)?;
        self.advance(lane, agent, AgentPhase::Executing)?;
        self.lanes[lane.at()].agents[agent].step = AgentStep::Asking;
        Ok(())
    }
}

impl LaneState {
    /// The person's task that the agent waits for.
    pub fn asks<'p>(&self, plan: &'p Lane, agent: usize) -> Option<&'p TaskId> {
        let worker = &self.agents[agent];
        (worker.step == AgentStep::Asking).then(|| &plan.agents[agent].tasks[worker.task].id)
    }

    /// Whether the agents of the round have come as far as they can without a person's answer.
    pub(super) fn waits_for_people(&self, plan: &Lane) -> bool {
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

    /// Answers that have to be given anew when the agent does its work again: what it showed is no more.
    pub(super) fn ask_again(&mut self, plan: &Lane, agent: usize) {
        let from = self.agents[agent].task;
        for task in plan.agents[agent].tasks[from..].iter().filter(|task| task.kind == TaskKind::HumanVerify) {
            self.answers.remove(&HumanGate::Task(task.id.clone()));
        }
    }
}

/// A person's no sends the agent back to the task before; without one nobody can act upon it.
pub(super) fn answered_no(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let state = deciding.state;
    let (lane_state, plan) = (state.lane(lane), state.plan.lane(lane));
    let Some(task) = lane_state.asks(plan, agent) else { return };
    let Some(answer) = lane_state.answers.get(&HumanGate::Task(task.clone())).filter(|answer| !answer.approved) else {
        return;
    };
    let reason = format!("task {task} was rejected: {}", answer.message);
    let tasks = &plan.agents[agent].tasks;
    let before = tasks[..lane_state.agents[agent].task].iter().rfind(|task| !task.kind.is_human());
    deciding.note(match before {
        None => Event::LaneBlocked { lane: plan.id.clone(), reason },
        Some(mended) => Event::FailureNoted {
            lane: plan.id.clone(),
            agent: Some(plan.agents[agent].name.clone()),
            task: Some(mended.id.clone()),
            failure: Failure::new(FailureKind::Rejected, reason),
        },
    });
}
