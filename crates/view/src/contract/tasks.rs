//! The lanes' `task.json` (SPEC §4, seed 003).

use lanewright_model::event::LaneStage;
use lanewright_model::{AgentName, LaneId, Plan, TaskAgent, TaskCheckpoint, TaskFile, Timestamp, Transition};

use crate::history::{AgentMove, LaneHistory, RunHistory};

/// The current `task.json` of a lane of `plan`; `None` before the lane was begun.
pub fn task_file(history: &RunHistory, plan: &Plan, lane: &LaneId) -> Option<TaskFile> {
    let (planned, lane) = (plan.lane(plan.find(lane)?), history.lane(lane)?);
    let session = history.run.owner.as_ref().map(|owner| owner.session_id.clone());
    let transition = |(from, to, at): &(LaneStage, LaneStage, Timestamp)| Transition {
        from: from.to_string(),
        to: to.to_string(),
        timestamp: *at,
    };
    Some(TaskFile {
        task_name: lane.id.to_string(),
        session_id: session.unwrap_or_default(),
        state: lane.stage.to_string(),
        created: lane.started?,
        phase: plan.phase.clone(),
        required_agents: planned.agents.iter().map(|agent| agent.name.clone()).collect(),
        agents: planned.agents.iter().map(|agent| (agent.name.clone(), task_agent(lane, &agent.name))).collect(),
        checkpoint: TaskCheckpoint { commit_sha: lane.merge_commit.clone().or(lane.workplace.head.clone()) },
        transition_log: lane.transitions.iter().map(transition).collect(),
        interruptions: Vec::new(),
    })
}

fn moved(step: &AgentMove) -> Transition {
    Transition { from: step.from.to_string(), to: step.to.to_string(), timestamp: step.at }
}

fn task_agent(lane: &LaneHistory, name: &AgentName) -> TaskAgent {
    let agent = lane.agent(name);
    let worktree = agent.and_then(|agent| agent.workplace.worktree.as_ref());
    TaskAgent {
        status: lane.status_of(name).to_string(),
        state: lane.phase_of(name).map(|phase| phase.to_string()).unwrap_or_default(),
        transition_log: lane.agent_moves.iter().filter(|step| step.agent == *name).map(moved).collect(),
        retry_count: lane.retries_of(name),
        branch: agent.and_then(|agent| agent.branch.clone()),
        worktree: worktree.map(|worktree| worktree.path.clone()),
    }
}

#[cfg(test)]
mod tests;
