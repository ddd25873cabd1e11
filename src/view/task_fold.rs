//! The lanes' `task.json` as it follows from events (SPEC §4, seed 003).

use std::collections::HashMap;

use crate::event::{AgentReport, Event, LaneStage, Record};
use crate::model::{
    Agent, AgentName, CommitId, ExitCause, FailureKind, JobExit, JobId, JobRole, LaneId, PhaseId, Plan, RetryLevel,
    TaskAgent, TaskCheckpoint, TaskFile, TaskId, Timestamp, Transition,
};

/// A fold over a run's events that says which `task.json` they change.
#[derive(Debug, Clone)]
pub struct TaskFold {
    phase: PhaseId,
    session_id: String,
    /// Each lane's agents in the order of the plan, each with its last task.
    agents: HashMap<LaneId, Vec<(AgentName, Option<TaskId>)>>,
    /// The lanes that were begun.
    lanes: HashMap<LaneId, TaskFile>,
}

const MISSING: &str = "MISSING";
const WORKING: &str = "WORKING";
const COMPLETE: &str = "COMPLETE";
const ERROR: &str = "ERROR";
const TIMEOUT: &str = "TIMEOUT";
const BLOCKED: &str = "BLOCKED";

impl TaskFold {
    /// Before the first event of a run of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let last = |agent: &Agent| (agent.name.clone(), agent.tasks.last().map(|task| task.id.clone()));
        let agents = plan.lanes.iter().map(|lane| (lane.id.clone(), lane.agents.iter().map(last).collect()));
        Self { phase: plan.phase.clone(), session_id: String::new(), agents: agents.collect(), lanes: HashMap::new() }
    }

    /// What `task.json` of `lane` says now; nothing before the lane was begun.
    pub fn lane(&self, lane: &LaneId) -> Option<&TaskFile> {
        self.lanes.get(lane)
    }

    /// Takes in one record; the lane whose `task.json` is to be written, if one changed. A change of the session
    /// changes them all, and is written with the next word of each lane.
    pub fn apply(&mut self, record: &Record) -> Option<&TaskFile> {
        if let Some(session) = session(&record.event) {
            session.clone_into(&mut self.session_id);
            for task in self.lanes.values_mut() {
                session.clone_into(&mut task.session_id);
            }
            return None;
        }
        let lane = record.event.lane()?;
        let agents = self.agents.get(lane)?;
        if matches!(record.event, Event::LaneMoved { .. }) && !self.lanes.contains_key(lane) {
            self.lanes.insert(lane.clone(), new_task(lane, &self.phase, &self.session_id, agents, record.at));
        }
        let is_last = |agent: &AgentName, task: &TaskId| {
            let known = agents.iter().find(|(name, _)| name == agent);
            known.and_then(|(_, last)| last.as_ref()).is_none_or(|last| last == task)
        };
        let task = self.lanes.get_mut(lane)?;
        let changed = apply(task, record, is_last);
        changed.then_some(&*task)
    }
}

fn session(event: &Event) -> Option<&str> {
    match event {
        Event::RunStarted(started) => Some(&started.owner.session_id),
        Event::RunResumed { owner, .. } => Some(&owner.session_id),
        _ => None,
    }
}

fn new_task(
    lane: &LaneId,
    phase: &PhaseId,
    session_id: &str,
    agents: &[(AgentName, Option<TaskId>)],
    created: Timestamp,
) -> TaskFile {
    let names: Vec<AgentName> = agents.iter().map(|(name, _)| name.clone()).collect();
    TaskFile {
        task_name: lane.to_string(),
        session_id: session_id.to_owned(),
        state: LaneStage::Waiting.to_string(),
        created,
        phase: phase.clone(),
        agents: names.iter().map(|name| (name.clone(), missing(0))).collect(),
        required_agents: names,
        checkpoint: TaskCheckpoint::default(),
        transition_log: Vec::new(),
        interruptions: Vec::new(),
    }
}

fn missing(retry_count: u32) -> TaskAgent {
    TaskAgent { status: MISSING.to_owned(), retry_count, ..TaskAgent::default() }
}

/// Whether the record changed anything.
fn apply(task: &mut TaskFile, record: &Record, is_last: impl Fn(&AgentName, &TaskId) -> bool) -> bool {
    match &record.event {
        Event::LaneMoved { from, to, .. } => step(task, from.word(), *to, record.at),
        Event::LaneBased { base: head, .. } | Event::LaneReset { base: head, .. } => checkpoint_at(task, head),
        Event::LaneMerged { commit, .. } => checkpoint_at(task, commit),
        Event::WorktreeOpened { agent: None, worktree, .. } => checkpoint_at(task, &worktree.head),
        Event::WorktreeOpened { agent: Some(agent), worktree, .. } => change(task, agent, |agent| {
            agent.branch = Some(worktree.branch.clone());
            agent.worktree = Some(worktree.path.clone());
        }),
        Event::WorktreeReleased { agent, .. } => change(task, agent, |agent| agent.worktree = None),
        Event::JobPlanned { job } => work(task, job),
        Event::JobExited { job, exit, report, .. } => exited(task, job, exit, report.as_ref(), is_last),
        Event::AgentMerged { agent, head, .. } => {
            checkpoint_at(task, head);
            stand(task, agent, COMPLETE);
            true
        }
        Event::FailureNoted { agent: Some(agent), failure, .. } => {
            stand(task, agent, if failure.kind == FailureKind::Timeout { TIMEOUT } else { ERROR })
        }
        Event::RetryPlanned { level: RetryLevel::Wait, .. } => false,
        Event::RetryPlanned { agent, .. } => change(task, agent, |agent| agent.retry_count += 1),
        Event::LaneRolledBack { .. } => roll_back(task, record.at),
        _ => false,
    }
}

fn step(task: &mut TaskFile, from: &str, to: LaneStage, at: Timestamp) -> bool {
    task.state = to.to_string();
    task.transition_log.push(Transition { from: from.to_owned(), to: to.to_string(), timestamp: at });
    true
}

fn checkpoint_at(task: &mut TaskFile, commit: &CommitId) -> bool {
    task.checkpoint.commit_sha = Some(commit.clone());
    true
}

fn change(task: &mut TaskFile, agent: &AgentName, change: impl FnOnce(&mut TaskAgent)) -> bool {
    task.agents.get_mut(agent).map(change).is_some()
}

fn stand(task: &mut TaskFile, agent: &AgentName, status: &str) -> bool {
    change(task, agent, |agent| status.clone_into(&mut agent.status))
}

fn work(task: &mut TaskFile, job: &JobId) -> bool {
    let working = matches!(job.role, JobRole::Attempt { .. } | JobRole::Verify { .. });
    job.agent().filter(|_| working).is_some_and(|agent| stand(task, agent, WORKING))
}

fn exited(
    task: &mut TaskFile,
    job: &JobId,
    exit: &JobExit,
    report: Option<&AgentReport>,
    is_last: impl Fn(&AgentName, &TaskId) -> bool,
) -> bool {
    let (JobRole::Attempt { agent, task: at } | JobRole::Verify { agent, task: at }) = &job.role else { return false };
    let status = match (exit.cause, report.map(|report| report.status.as_str())) {
        // Not the agent's failure: it is as far as it was.
        (ExitCause::Stopped | ExitCause::Lost, _) => WORKING,
        (ExitCause::TimedOut, _) => TIMEOUT,
        (_, Some("BLOCKED")) => BLOCKED,
        (_, Some("ERROR")) => ERROR,
        _ if !exit.passed() => ERROR,
        _ if is_last(agent, at) => COMPLETE,
        _ => WORKING,
    };
    stand(task, agent, status)
}

fn roll_back(task: &mut TaskFile, at: Timestamp) -> bool {
    if task.state != LaneStage::Waiting.word() {
        let from = task.state.clone();
        step(task, &from, LaneStage::Waiting, at);
    }
    task.checkpoint = TaskCheckpoint::default();
    for agent in task.agents.values_mut() {
        // The count of retries outlives a rollback: one that forgets it may go round for ever.
        *agent = missing(agent.retry_count);
    }
    true
}

#[cfg(test)]
mod tests;
