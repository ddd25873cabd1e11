//! What follows from the state of one agent.

use lanewright_model::event::{Event, SnapshotReason};
use lanewright_model::retry::{LONGEST_BACKOFF, backoff};
use lanewright_model::{
    AgentName, Checkpoint, CheckpointStatus, Failure, FailureKind, HumanGate, JobRole, LaneIndex, RetryLevel, Stage,
};

use crate::action::Action;
use crate::decide::deciding::{Deciding, plan_job, run_gate, wait_for_jobs};
use crate::decide::failure_routing::checkpoint_failed;
use crate::state::agent::{AgentStep, RestartFrom};
use crate::state::gate::Gate;

pub(crate) fn decide_agent(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let state = deciding.state;
    let (worker, plan) = (&state.lane(lane).agents[agent], state.plan.lane(lane));
    match &worker.step {
        AgentStep::Ready => begin_task(deciding, lane, agent),
        AgentStep::Asking => answered_no(deciding, lane, agent),
        AgentStep::Retrying(not_before) => {
            if deciding.due(*not_before) {
                begin_task(deciding, lane, agent);
            }
        }
        AgentStep::Running(job) => deciding.want(Action::RunJob(job.clone())),
        AgentStep::Committing => deciding.want(Action::CommitWork(lane, agent)),
        AgentStep::Verifying(gate) => verify(deciding, lane, agent, gate),
        AgentStep::Snapshotting => deciding.want(Action::Snapshot { lane, agent, reason: SnapshotReason::Task }),
        AgentStep::Salvaging(..) if worker.unkept.is_some() => {}
        AgentStep::Salvaging(reason, _) => deciding.want(Action::Snapshot { lane, agent, reason: *reason }),
        AgentStep::Merging => merge(deciding, lane, agent),
        AgentStep::Gating(gate) => checkpoint_gate(deciding, lane, agent, gate),
        AgentStep::Judging(failure) => {
            // Several tasks that changed nothing together are done again together.
            let of_several = failure.kind == FailureKind::Idle && worker.task != plan.agents[agent].first_own_task();
            note_failure(deciding, lane, agent, !of_several, failure.clone());
        }
        AgentStep::Failed(failure) => retry(deciding, lane, agent, failure),
        AgentStep::Done if worker.worktree.is_some() && !plan.shares_worktree(agent) => {
            deciding.want(Action::ReleaseAgent(lane, agent));
        }
        AgentStep::Done | AgentStep::Blocked(_) | AgentStep::GaveUp(_) => {}
    }
}

/// The worktree and its base; then a person is asked, or an agent started.
fn begin_task(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let state = deciding.state;
    let (worker, plan) = (&state.lane(lane).agents[agent], state.plan.lane(lane));
    if worker.worktree.is_none() && !plan.shares_worktree(agent) {
        return deciding.want(Action::OpenWorktree { lane, agent: Some(agent) });
    }
    if worker.restart != RestartFrom::Here {
        return deciding.want(Action::ResetAgent(lane, agent));
    }
    let name = plan.agents[agent].name.clone();
    let task = &plan.agents[agent].tasks[worker.task];
    if task.kind.is_human() {
        // The lane waits, and takes no place.
        deciding.note(Event::PersonAsked { lane: plan.id.clone(), agent: name, task: task.id.clone() });
    } else {
        start_attempt(deciding, lane, agent, name);
    }
}

/// The setup, a place: then the attempt, under a name that was never used.
fn start_attempt(deciding: &mut Deciding, lane: LaneIndex, agent: usize, name: AgentName) {
    let state = deciding.state;
    let (worker, plan) = (&state.lane(lane).agents[agent], state.plan.lane(lane));
    let role = JobRole::Setup { agent: Some(name.clone()) };
    let no_setup = plan.setup.is_empty() || plan.shares_worktree(agent);
    if let Some(exhausted) = state.budget_exhausted() {
        return out_of_budget(deciding, lane, exhausted);
    }
    if !run_gate(deciding, lane, &worker.setup, role, no_setup) || deciding.places == 0 {
        return;
    }
    deciding.places -= 1;
    let task = plan.agents[agent].tasks[worker.task].id.clone();
    plan_job(deciding, lane, JobRole::Attempt { agent: name, task });
}

/// No more agents are started. What others of the lane have under way comes to its end first, so that nothing is
/// left half committed.
pub(crate) fn out_of_budget(deciding: &mut Deciding, lane: LaneIndex, exhausted: String) {
    let state = deciding.state;
    let plan = state.plan.lane(lane);
    if state.lane(lane).is_at_rest(plan) {
        let mut ends = (0..plan.agents.len()).filter_map(|agent| state.lane(lane).agent_end(plan, agent));
        // Without retries left a lane has failed, whatever the budget.
        let failed = ends.find(|end| matches!(end, Event::LaneFailed { .. }));
        let head = state.lane(lane).head.clone().filter(|_| state.is_lane_run());
        let lane = plan.id.clone();
        return deciding.note(failed.unwrap_or(match head {
            // The run that placed it knows what is left.
            Some(head) => Event::LaneReturned { lane, head },
            None => Event::LaneBlocked { lane, reason: exhausted },
        }));
    }
    wait_for_jobs(deciding, lane);
}

fn verify(deciding: &mut Deciding, lane: LaneIndex, agent: usize, gate: &Gate) {
    let state = deciding.state;
    let plan = &state.plan.lane(lane).agents[agent];
    let task = plan.tasks[state.lane(lane).agents[agent].task].id.clone();
    match gate {
        Gate::Due => plan_job(deciding, lane, JobRole::Verify { agent: plan.name.clone(), task }),
        Gate::Running(job) => deciding.want(Action::RunJob(job.clone())),
        Gate::Failed(gate) => note_failure(deciding, lane, agent, true, gate.failure("the task's gate failed")),
        Gate::Passed => {}
    }
}

/// Takes the agent's work into the lane; where they share a branch it is there already.
fn merge(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let state = deciding.state;
    let (lane_state, plan) = (state.lane(lane), state.plan.lane(lane));
    if !plan.shares_worktree(agent) {
        return deciding.want(Action::MergeAgent(lane, agent));
    }
    let head = lane_state.agents[agent].head.clone().or_else(|| lane_state.head.clone());
    if let Some(head) = head {
        deciding.note(Event::AgentMerged { lane: plan.id.clone(), agent: plan.agents[agent].name.clone(), head });
    }
}

fn checkpoint_gate(deciding: &mut Deciding, lane: LaneIndex, agent: usize, gate: &Gate) {
    let name = deciding.state.plan.lane(lane).agents[agent].name.clone();
    match gate {
        Gate::Due => plan_job(deciding, lane, JobRole::Checkpoint { agent: name }),
        Gate::Running(job) => deciding.want(Action::RunJob(job.clone())),
        Gate::Failed(gate) => checkpoint_failed(deciding, lane, agent, gate),
        Gate::Passed => {}
    }
}

/// Writes a failure down: of the task, or of the agent's work as a whole.
fn note_failure(deciding: &mut Deciding, lane: LaneIndex, agent: usize, in_task: bool, failure: Failure) {
    let state = deciding.state;
    let plan = state.plan.lane(lane);
    let task = plan.agents[agent].tasks[state.lane(lane).agents[agent].task].id.clone();
    deciding.note(Event::FailureNoted {
        lane: plan.id.clone(),
        agent: Some(plan.agents[agent].name.clone()),
        task: in_task.then_some(task),
        failure,
    });
}

/// Plans the next attempt, with everything that went wrong before, if one is left (seed 004, Automatic Retry Behavior;
/// the levels of seed 000, Recovery Protocol).
fn retry(deciding: &mut Deciding, lane: LaneIndex, agent: usize, failure: &Failure) {
    let state = deciding.state;
    let (lane_state, plan) = (state.lane(lane), state.plan.lane(lane));
    let worker = &lane_state.agents[agent];
    let Some(level) = lane_state.next_level(plan, agent) else { return };
    let used = if worker.failed_in_task() { worker.retries } else { lane_state.rework.rounds };
    let count = match level {
        RetryLevel::Retry => used + 1,
        RetryLevel::Rollback => plan.retries,
        RetryLevel::Wait => used,
    };
    let name = &plan.agents[agent].name;
    let task = &plan.agents[agent].tasks[worker.task].id;
    let first = state.started().map_or(std::time::Duration::ZERO, |started| started.options.backoff);
    let key = format!("{}/{}/{name}/{task}", state.plan.phase, plan.id);
    let checkpoint = Checkpoint {
        context: failure.message.clone(),
        head_sha: worker.head.clone(),
        command: failure.command.clone(),
        exit_code: failure.exit_code,
        retry_attempt: Some(count),
        max_retries: Some(plan.retries),
        failure_context: worker.failure_context(task),
        ..Checkpoint::new(Stage::RetryAttempt, CheckpointStatus::Retrying)
    };
    let delay = match worker.outage {
        Some(outage) if level == RetryLevel::Wait => {
            let asked = outage.retry_after.unwrap_or_default().min(LONGEST_BACKOFF);
            backoff(first, &format!("{key}/wait"), outage.waits + 1).max(asked)
        }
        _ => backoff(first, &key, count + u32::from(level == RetryLevel::Rollback)),
    };
    let not_before = deciding.now.plus(delay);
    deciding.note(Event::RetryPlanned { lane: plan.id.clone(), agent: name.clone(), level, not_before, checkpoint });
}

/// A person's no sends the agent back to the task before; without one nobody can act upon it.
pub(crate) fn answered_no(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let state = deciding.state;
    let (lane_state, plan) = (state.lane(lane), state.plan.lane(lane));
    let Some(task) = lane_state.asks(plan, agent) else { return };
    let Some(said) = lane_state.answers.rejection(&HumanGate::Task(task.clone())) else { return };
    let reason = format!("a person rejected task {task}: {said}");
    let tasks = &plan.agents[agent].tasks;
    let before = tasks[..lane_state.agents[agent].task].iter().rfind(|task| !task.kind.is_human());
    deciding.note(match before {
        None => Event::LaneBlocked { lane: plan.id.clone(), reason },
        Some(task) => Event::FailureNoted {
            lane: plan.id.clone(),
            agent: Some(plan.agents[agent].name.clone()),
            task: Some(task.id.clone()),
            failure: Failure::new(FailureKind::Rejected, reason),
        },
    });
}
