//! The prompts of a plan's agents before a run.

use lanewright_model::{AgentName, Lane, LaneId, Plan, Task, TaskId};
use serde::Serialize;

use super::{PromptError, Templates, Values};

/// A prompt, and whose it is.
#[derive(Debug, Clone, Serialize)]
pub struct Prompt<'p> {
    pub lane: &'p LaneId,
    pub agent: &'p AgentName,
    pub task: &'p TaskId,
    pub text: String,
}

/// The first prompt of each agent for each of its tasks, with `BASE` and `HEAD` in place of commits.
///
/// # Errors
/// What is wrong with a template.
pub fn preview<'p>(plan: &'p Plan) -> Result<Vec<Prompt<'p>>, PromptError> {
    let templates = Templates::new(&plan.prompts)?;
    let prompt = |(lane, at, task): (&'p Lane, usize, &'p Task)| {
        let agent = &lane.agents[at];
        let text = templates.render(agent.round, &Values::planned(plan, lane, at, task))?;
        Ok(Prompt { lane: &lane.id, agent: &agent.name, task: &task.id, text })
    };
    tasks(plan).map(prompt).collect()
}

/// Every task that is an agent's, with its lane and the place of its agent in it.
pub(super) fn tasks<'p>(plan: &'p Plan) -> impl Iterator<Item = (&'p Lane, usize, &'p Task)> {
    let of_agent = |lane: &'p Lane, agent: usize| {
        let tasks = lane.agents[agent].tasks.iter().filter(|task| !task.kind.is_human());
        tasks.map(move |task| (lane, agent, task))
    };
    plan.lanes.iter().flat_map(move |lane| (0..lane.agents.len()).flat_map(move |agent| of_agent(lane, agent)))
}
