//! The lanes' `task.json` as it follows from events (SPEC §4, seed 003).

use std::collections::HashMap;
use std::path::PathBuf;

use crate::event::{AgentReport, Event, LaneStage, Record};
use crate::model::{
    Agent, AgentName, CommitId, ExitCause, FailureKind, JobExit, JobId, JobRole, Lane, LaneId, PhaseId, Plan,
    RetryLevel, TaskAgent, TaskCheckpoint, TaskFile, TaskId, Timestamp, Transition,
};

/// A fold over a run's events that says which `task.json` they change.
#[derive(Debug, Clone)]
pub struct TaskFold {
    phase: PhaseId,
    session_id: String,
    lanes: HashMap<LaneId, LaneTask>,
}

/// What the `task.json` of a lane is made of when somebody wants it: there may be thousands of lanes.
#[derive(Debug, Clone)]
struct LaneTask {
    /// When the lane was begun, if it was.
    created: Option<Timestamp>,
    state: LaneStage,
    /// In the order of the plan.
    agents: Vec<AgentTask>,
    head: Option<CommitId>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
struct AgentTask {
    name: AgentName,
    /// The last of its tasks.
    last: Option<TaskId>,
    status: &'static str,
    retries: u32,
    branch: Option<String>,
    worktree: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    from: LaneStage,
    to: LaneStage,
    at: Timestamp,
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
        let lanes = plan.lanes.iter().map(|lane| (lane.id.clone(), LaneTask::new(lane))).collect();
        Self { phase: plan.phase.clone(), session_id: String::new(), lanes }
    }

    /// What `task.json` of `lane` says now; nothing before the lane was begun.
    pub fn lane(&self, lane: &LaneId) -> Option<TaskFile> {
        let task = self.lanes.get(lane)?;
        Some(TaskFile {
            task_name: lane.to_string(),
            session_id: self.session_id.clone(),
            state: task.state.to_string(),
            created: task.created?,
            phase: self.phase.clone(),
            required_agents: task.agents.iter().map(|agent| agent.name.clone()).collect(),
            agents: task.agents.iter().map(|agent| (agent.name.clone(), agent.told())).collect(),
            checkpoint: TaskCheckpoint { commit_sha: task.head.clone() },
            transition_log: task.steps.iter().copied().map(Step::told).collect(),
            interruptions: Vec::new(),
        })
    }

    /// Takes in one record; whether the `task.json` of its lane is to be written. A change of the session changes them
    /// all, and is written with the next word of each lane.
    pub fn apply(&mut self, record: &Record) -> bool {
        if let Some(session) = session(&record.event) {
            session.clone_into(&mut self.session_id);
            return false;
        }
        let Some(task) = record.event.lane().and_then(|lane| self.lanes.get_mut(lane)) else { return false };
        if matches!(record.event, Event::LaneMoved { .. }) {
            task.created.get_or_insert(record.at);
        }
        task.created.is_some() && apply(task, record)
    }
}

impl LaneTask {
    fn new(lane: &Lane) -> Self {
        let agents = lane.agents.iter().map(AgentTask::new).collect();
        Self { created: None, state: LaneStage::Waiting, agents, head: None, steps: Vec::new() }
    }
}

impl AgentTask {
    fn new(agent: &Agent) -> Self {
        Self {
            name: agent.name.clone(),
            last: agent.tasks.last().map(|task| task.id.clone()),
            status: MISSING,
            retries: 0,
            branch: None,
            worktree: None,
        }
    }

    fn told(&self) -> TaskAgent {
        TaskAgent {
            status: self.status.to_owned(),
            retry_count: self.retries,
            branch: self.branch.clone(),
            worktree: self.worktree.clone(),
        }
    }
}

impl Step {
    fn told(self) -> Transition {
        Transition { from: self.from.to_string(), to: self.to.to_string(), timestamp: self.at }
    }
}

fn session(event: &Event) -> Option<&str> {
    match event {
        Event::RunStarted(started) => Some(&started.owner.session_id),
        Event::RunResumed { owner, .. } => Some(&owner.session_id),
        _ => None,
    }
}

/// Whether the record changed anything.
fn apply(task: &mut LaneTask, record: &Record) -> bool {
    match &record.event {
        Event::LaneMoved { from, to, .. } => step(task, *from, *to, record.at),
        Event::LaneBased { base: head, .. } | Event::LaneReset { base: head, .. } => checkpoint_at(task, head),
        Event::LaneMerged { commit, .. } => checkpoint_at(task, commit),
        Event::WorktreeOpened { agent: None, worktree, .. } => checkpoint_at(task, &worktree.head),
        Event::WorktreeOpened { agent: Some(agent), worktree, .. } => change(task, agent, |agent| {
            agent.branch = Some(worktree.branch.clone());
            agent.worktree = Some(worktree.path.clone());
        }),
        Event::WorktreeReleased { agent, .. } => change(task, agent, |agent| agent.worktree = None),
        Event::JobPlanned { job } => work(task, job),
        Event::JobExited { job, exit, report, .. } => exited(task, job, exit, report.as_ref()),
        Event::AgentMerged { agent, head, .. } => {
            checkpoint_at(task, head);
            stand(task, agent, COMPLETE);
            true
        }
        Event::FailureNoted { agent: Some(agent), failure, .. } => {
            stand(task, agent, if failure.kind == FailureKind::Timeout { TIMEOUT } else { ERROR })
        }
        Event::RetryPlanned { agent, level: RetryLevel::Retry, .. } => change(task, agent, |agent| agent.retries += 1),
        Event::LaneRolledBack { .. } => roll_back(task, record.at),
        _ => false,
    }
}

fn step(task: &mut LaneTask, from: LaneStage, to: LaneStage, at: Timestamp) -> bool {
    task.state = to;
    task.steps.push(Step { from, to, at });
    true
}

fn checkpoint_at(task: &mut LaneTask, commit: &CommitId) -> bool {
    task.head = Some(commit.clone());
    true
}

fn change(task: &mut LaneTask, agent: &AgentName, change: impl FnOnce(&mut AgentTask)) -> bool {
    task.agents.iter_mut().find(|known| known.name == *agent).map(change).is_some()
}

fn stand(task: &mut LaneTask, agent: &AgentName, status: &'static str) -> bool {
    change(task, agent, |agent| agent.status = status)
}

fn work(task: &mut LaneTask, job: &JobId) -> bool {
    let working = matches!(job.role, JobRole::Attempt { .. } | JobRole::Verify { .. });
    job.agent().filter(|_| working).is_some_and(|agent| stand(task, agent, WORKING))
}

fn exited(task: &mut LaneTask, job: &JobId, exit: &JobExit, report: Option<&AgentReport>) -> bool {
    let (JobRole::Attempt { agent, task: at } | JobRole::Verify { agent, task: at }) = &job.role else { return false };
    let status = match (exit.cause, report.map(|report| report.status.as_str())) {
        // Not the agent's failure: it is as far as it was.
        (ExitCause::Stopped | ExitCause::Lost, _) => WORKING,
        (ExitCause::TimedOut, _) => TIMEOUT,
        (_, Some("BLOCKED")) => BLOCKED,
        (_, Some("ERROR")) => ERROR,
        _ if !exit.passed() => ERROR,
        _ if is_last(task, agent, at) => COMPLETE,
        _ => WORKING,
    };
    stand(task, agent, status)
}

/// Whether the agent has nothing to do after that task.
fn is_last(task: &LaneTask, agent: &AgentName, at: &TaskId) -> bool {
    let known = task.agents.iter().find(|known| known.name == *agent);
    known.and_then(|agent| agent.last.as_ref()).is_none_or(|last| last == at)
}

fn roll_back(task: &mut LaneTask, at: Timestamp) -> bool {
    if task.state != LaneStage::Waiting {
        step(task, task.state, LaneStage::Waiting, at);
    }
    task.head = None;
    for agent in &mut task.agents {
        // The count of retries outlives a rollback: one that forgets it may go round for ever.
        (agent.status, agent.branch, agent.worktree) = (MISSING, None, None);
    }
    true
}

#[cfg(test)]
mod tests;
