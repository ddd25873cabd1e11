//! What follows from the state of one agent.

use std::time::Duration;

use lanewright_model::event::{Event, SnapshotReason};
use lanewright_model::retry::backoff;
use lanewright_model::{
    Checkpoint, CheckpointStatus, Failure, FailureKind, HumanGate, JobRole, Lane, LaneIndex, RetryLevel, Stage, TaskId,
};

use crate::action::Action;
use crate::decide::deciding::{Deciding, run_gate, set_up, wait_for_jobs};
use crate::decide::failure_routing::checkpoint_failed;
use crate::state::agent::{AgentState, AgentStep, RestartFrom};
use crate::state::gate::Gate;
use crate::state::pauses::Pause;
use crate::state::runners::NextRunner;

pub(crate) fn decide_agent(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let (lane_state, plan) = deciding.lane(lane);
    let worker = &lane_state.agents()[agent];
    match &worker.step {
        AgentStep::Ready => begin_task(deciding, lane, agent),
        AgentStep::Asking => answered_no(deciding, lane, agent),
        AgentStep::Retrying(not_before) => {
            // After an outage its runner's pause decides.
            if worker.outage.is_some() || deciding.due(*not_before) {
                begin_task(deciding, lane, agent);
            }
        }
        AgentStep::Running(job) => deciding.want(Action::RunJob(job.clone())),
        AgentStep::Committing => deciding.want(Action::CommitWork(lane, agent)),
        AgentStep::Verifying(gate) => verify(deciding, lane, agent, gate),
        AgentStep::Snapshotting => deciding.want(Action::Snapshot { lane, agent, reason: SnapshotReason::Task }),
        AgentStep::Salvaging(..) if worker.unkept.is_some() => {
            // It may have run when the machine was started again; the lane ends when no job runs.
            if let Gate::Running(job) = &worker.setup {
                deciding.want(Action::RunJob(job.clone()));
            }
        }
        AgentStep::Salvaging(reason, _) => deciding.want(Action::Snapshot { lane, agent, reason: *reason }),
        AgentStep::Merging => merge(deciding, lane, agent),
        AgentStep::Gating(gate) => checkpoint_gate(deciding, lane, agent, gate),
        AgentStep::Judging(failure) => {
            // Several tasks that changed nothing together are done again together.
            let of_several = failure.kind == FailureKind::Idle && worker.task != plan.agents[agent].first_own_task();
            let task = Some(current_task(plan, worker, agent)).filter(|_| !of_several);
            deciding.note_failure(lane, Some(agent), task, failure.clone());
        }
        AgentStep::Failed(failure) => retry(deciding, lane, agent, failure),
        AgentStep::Done if worker.worktree.is_some() && !plan.shares_worktree(agent) => {
            deciding.want(Action::ReleaseAgent(lane, agent));
        }
        AgentStep::Unchosen { .. } => keep_candidate(deciding, lane, agent),
        AgentStep::Done | AgentStep::Blocked(_) | AgentStep::PermanentlyFailed(_) => {}
    }
}

/// The work of a candidate that was not chosen is kept, and its worktree returned.
fn keep_candidate(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let worker = &deciding.state.lane(lane).agents()[agent];
    if worker.is_to_be_kept() && worker.unkept.is_none() {
        deciding.want(Action::Snapshot { lane, agent, reason: SnapshotReason::Candidate });
    } else if worker.may_be_open {
        deciding.want(Action::OpenWorktree { lane, agent: Some(agent) });
    } else if worker.worktree.is_some() && worker.unkept.is_none() {
        deciding.want(Action::ReleaseAgent(lane, agent));
    }
}

/// The worktree and its base; then a person is asked, or an agent started.
fn begin_task(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let (lane_state, plan) = deciding.lane(lane);
    let worker = &lane_state.agents()[agent];
    if worker.worktree.is_none() && !plan.shares_worktree(agent) {
        return deciding.want(Action::OpenWorktree { lane, agent: Some(agent) });
    }
    if worker.restart != RestartFrom::Here {
        return deciding.want(Action::ResetAgent(lane, agent));
    }
    let agent_plan = &plan.agents[agent];
    let task = &agent_plan.tasks[worker.task];
    if task.kind.is_human() {
        // The lane waits, and takes no place.
        let (lane, agent) = (plan.id.clone(), agent_plan.name.clone());
        return deciding.note(Event::PersonAsked { lane, agent, task: task.id.clone() });
    }
    start_attempt(deciding, lane, agent);
}

/// The setup, a place: then the attempt, under a name that was never used.
fn start_attempt(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let (lane_state, plan) = deciding.lane(lane);
    let worker = &lane_state.agents()[agent];
    let name = &plan.agents[agent].name;
    let state = deciding.state;
    if let Some(exhausted) = state.budget_exhausted().or_else(|| state.budget_exhausted_in(lane)) {
        return out_of_budget(deciding, lane, exhausted);
    }
    if !is_set_up(deciding, lane, agent) || deciding.places == 0 {
        return;
    }
    let Some(runner) = available_runner(deciding, lane, agent) else { return };
    if let Some(exhausted) = runner.exhausted {
        return out_of_budget(deciding, lane, exhausted);
    }
    deciding.places -= 1;
    let role = JobRole::Attempt { agent: name.clone(), task: current_task(plan, worker, agent).clone() };
    let job = deciding.state.next_job(Some(&plan.id), role);
    let agent = &plan.agents[agent];
    let made_with = state.plan.made_with(agent, &agent.tasks[worker.task], runner.name);
    deciding.note(Event::JobPlanned { job, made_with: made_with.map(Box::new) });
}

/// The runner with which the agent's next attempt may begin, or would if its budget were not used up. One whose pause is over
/// is asked by one attempt first.
fn available_runner<'a>(deciding: &mut Deciding<'a>, lane: LaneIndex, agent: usize) -> Option<NextRunner<'a>> {
    let (state, now) = (deciding.state, deciding.now);
    let mut runners = state.runners_up_to_next(lane, agent);
    if let Some(exhausted) = runners.pop_if(|next| next.exhausted.is_some()) {
        return Some(exhausted);
    }
    runners.into_iter().filter(|runner| runner.exhausted.is_none()).find(|runner| {
        let is_due = |pause: &Pause| pause.is_due(now, |job| state.runs(job));
        runner.pause.is_none_or(|pause| is_due(pause) && deciding.probed.insert(runner.account.clone()))
    })
}

/// Whether the set-up commands ran in the agent's own worktree; has them run.
fn is_set_up(deciding: &mut Deciding, lane: LaneIndex, agent: usize) -> bool {
    let (lane_state, plan) = deciding.lane(lane);
    let has_none = plan.setup.is_empty() || plan.shares_worktree(agent);
    has_none || set_up(deciding, lane, &lane_state.agents()[agent].setup, Some(&plan.agents[agent].name))
}

/// The task that the agent is at.
fn current_task<'a>(plan: &'a Lane, worker: &AgentState, agent: usize) -> &'a TaskId {
    &plan.agents[agent].tasks[worker.task].id
}

/// No more agents are started. What others of the lane have under way comes to its end first, so that nothing is
/// left half committed.
pub(crate) fn out_of_budget(deciding: &mut Deciding, lane: LaneIndex, exhausted: String) {
    let (lane_state, plan) = deciding.lane(lane);
    if !lane_state.is_at_rest(plan) {
        return wait_for_jobs(deciding, lane);
    }
    let mut ends = (0..plan.agents.len()).filter_map(|agent| lane_state.attempts.end_of(plan, agent));
    // Without retries left a lane has failed, whatever the budget; not beside a candidate that passed or may pass.
    let has_failed = |end: &Event| matches!(end, Event::LaneFailed { .. });
    let failed = ends.find(has_failed).filter(|_| !lane_state.attempts.may_choose(plan));
    let head = lane_state.head().cloned().filter(|_| deciding.state.is_lane_run());
    let lane = plan.id.clone();
    deciding.note(failed.unwrap_or(match head {
        // The run that placed it knows what is left.
        Some(head) => Event::LaneReturned { lane, head },
        None => Event::LaneBlocked { lane, reason: exhausted },
    }));
}

fn verify(deciding: &mut Deciding, lane: LaneIndex, agent: usize, gate: &Gate) {
    let (lane_state, plan) = deciding.lane(lane);
    let task = current_task(plan, &lane_state.agents()[agent], agent);
    let role = || JobRole::Verify { agent: plan.agents[agent].name.clone(), task: task.clone() };
    // A plan may have got a setup after the agent worked.
    if *gate == Gate::Due && !is_set_up(deciding, lane, agent) {
        return;
    }
    if let Some(Err(gate)) = run_gate(deciding, lane, gate, role) {
        deciding.note_failure(lane, Some(agent), Some(task), gate.failure("the task's gate failed"));
    }
}

/// Integrates the agent's work into the lane; where they share a branch it is there already.
fn merge(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let (lane_state, plan) = deciding.lane(lane);
    if !plan.shares_worktree(agent) {
        return deciding.want(Action::MergeAgent(lane, agent));
    }
    if let Some(head) = lane_state.agents()[agent].head.as_ref().or(lane_state.head()).cloned() {
        deciding.note(Event::AgentMerged { lane: plan.id.clone(), agent: plan.agents[agent].name.clone(), head });
    }
}

fn checkpoint_gate(deciding: &mut Deciding, lane: LaneIndex, agent: usize, gate: &Gate) {
    let (_, plan) = deciding.lane(lane);
    let role = || JobRole::Checkpoint { agent: plan.agents[agent].name.clone() };
    if let Some(Err(gate)) = run_gate(deciding, lane, gate, role) {
        checkpoint_failed(deciding, lane, agent, gate);
    }
}

/// Plans the next attempt, with everything that went wrong before, if one is left (seed 004, Automatic Retry Behavior;
/// the levels of seed 000, Recovery Protocol).
fn retry(deciding: &mut Deciding, lane: LaneIndex, agent: usize, failure: &Failure) {
    let (lane_state, plan) = deciding.lane(lane);
    let worker = &lane_state.agents()[agent];
    let Some(level) = lane_state.attempts.next_level(plan, agent) else { return };
    let used = lane_state.attempts.retries_used(agent);
    let count = match level {
        RetryLevel::Retry => used + 1,
        RetryLevel::Rollback => plan.retries,
        // Not counted: the next one is.
        RetryLevel::Wait => (used + 1).min(plan.retries).max(1),
    };
    let name = &plan.agents[agent].name;
    let task = &plan.agents[agent].tasks[worker.task].id;
    let first = deciding.state.first_backoff();
    let key = format!("{}/{}/{name}/{task}", deciding.state.plan.phase, plan.id);
    let checkpoint = Checkpoint {
        context: failure.headline().to_owned(),
        head_sha: worker.head.clone(),
        command: failure.command.clone(),
        exit_code: failure.exit_code,
        retry_attempt: Some(count),
        max_retries: Some(plan.retries),
        failure_context: worker.failure_context(task),
        ..Checkpoint::new(Stage::RetryAttempt, CheckpointStatus::Retrying)
    };
    let delay = match worker.outage {
        // As soon as its runner continues.
        Some(_) => Duration::ZERO,
        None => backoff(first, &key, used + u32::from(level != RetryLevel::Wait)),
    };
    let not_before = deciding.now.plus(delay);
    deciding.note(Event::RetryPlanned { lane: plan.id.clone(), agent: name.clone(), level, not_before, checkpoint });
}

/// A rejection sends the agent back to the task before; without one no agent can act upon it.
pub(crate) fn answered_no(deciding: &mut Deciding, lane: LaneIndex, agent: usize) {
    let (lane_state, plan) = deciding.lane(lane);
    let Some(task) = lane_state.asks(plan, agent) else { return };
    let Some(said) = lane_state.approvals.rejection(&HumanGate::Task(task.clone())) else { return };
    let reason = format!("a person rejected task {task}: {said}");
    let tasks = &plan.agents[agent].tasks;
    match tasks[..lane_state.agents()[agent].task].iter().rfind(|task| !task.kind.is_human()) {
        None => deciding.block(lane, reason),
        Some(task) => {
            let failure = Failure::new(FailureKind::Rejected, reason);
            deciding.note_failure(lane, Some(agent), Some(&task.id), failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lanewright_model::testing::run_started;

    use super::*;
    use crate::sample_plans::{lane, moment, plan};
    use crate::state::RunState;
    use crate::state::agent::{OutageWait, PastFailure};

    /// The level and the delay of the retry after the agent failed `failures` times in the same way.
    fn planned_after(failures: u32, retries: u32) -> (RetryLevel, Duration) {
        let mut state = RunState::new(Arc::new(plan(vec![Lane { retries, ..lane("A", &[], 1, &[]) }], &[])));
        state.started = Some(Box::new(run_started()));
        let failure = Failure::new(FailureKind::Crash, "why");
        let task = Some(state.plan.lanes[0].agents[0].tasks[0].id.clone());
        let worker = &mut state.lanes[0].attempts.agents_mut()[0];
        worker.past = (1..=failures)
            .map(|attempt| PastFailure { task: task.clone(), attempt, failure: failure.clone(), signature: "x".into() })
            .collect();
        worker.retries = failures - 1;
        let mut deciding = Deciding::new(&state, moment(0), 1);
        retry(&mut deciding, LaneIndex(0), 0, &failure);
        match &deciding.out.events[..] {
            [Event::RetryPlanned { level, not_before, .. }] => (*level, not_before.since(moment(0))),
            events => panic!("{events:?}"),
        }
    }

    #[test]
    fn wait_for_network_has_number_of_next_retry() {
        let number = |retries| {
            let mut state = RunState::new(Arc::new(plan(vec![Lane { retries, ..lane("A", &[], 1, &[]) }], &[])));
            state.started = Some(Box::new(run_started()));
            state.lanes[0].attempts.agents_mut()[0].outage = Some(OutageWait::Waits);
            let failure = Failure::new(FailureKind::Network, "no network");
            let mut deciding = Deciding::new(&state, moment(0), 1);
            retry(&mut deciding, LaneIndex(0), 0, &failure);
            match &deciding.out.events[..] {
                [Event::RetryPlanned { level: RetryLevel::Wait, checkpoint, .. }] => checkpoint.retry_attempt,
                events => panic!("{events:?}"),
            }
        };
        assert_eq!([number(3), number(0)], [Some(1), Some(1)]);
    }

    #[test]
    fn delay_before_last_attempt_follows_attempts_made() {
        let first = run_started().options.backoff;
        let (level, delay) = planned_after(3, 30);
        assert_eq!(level, RetryLevel::Rollback, "the same failure again and again");
        assert!(delay <= 4 * first, "{delay:?}");
        assert_eq!(planned_after(3, 2), (level, delay));
        assert_eq!(planned_after(1, 30).0, RetryLevel::Retry);
    }
}
