//! The runners and prompts that retries replaced in the plan of a run.

use std::collections::BTreeSet;

use lanewright_model::digest::sha256;
use lanewright_model::{Agent, AgentName, AgentPart, Lane, LaneId, Plan, PlanParts, Replaced, TaskId};

use crate::cli::{ExitStatus, Result};

/// The `plan` of the plan file with what retries replaced in the `pinned` one, and what of that the plan file takes the
/// place of, because it changed there. Lanes that have `begun` keep their worktrees.
pub(super) fn carried_over(pinned: &Plan, plan: Plan, begun: &BTreeSet<LaneId>) -> Result<(Plan, Vec<String>)> {
    let mut before = PlanParts::from(pinned.clone());
    let mut parts = PlanParts::from(plan);
    keep_names(&before.lanes, &mut parts.lanes);
    for lane in parts.lanes.iter_mut().filter(|lane| begun.contains(&lane.id)) {
        if let Some(old) = before.lanes.iter().find(|old| old.id == lane.id) {
            lane.agent_worktrees = old.agent_worktrees;
        }
    }
    let mut superseded = Vec::new();
    for replaced in &pinned.replaced {
        let Replaced { lane, agent, part, planned_sha256 } = replaced;
        let Some(old) = find(&mut before.lanes, lane, agent) else { continue };
        let Some(retried) = value_of(old, part) else { continue };
        let found = find(&mut parts.lanes, lane, agent).and_then(|new| Some((value_of(new, part)?, new)));
        let Some((planned, new)) = found else {
            superseded.push(format!("lane {lane}: the {} that `retry` replaced is not in the plan file", named(part)));
            continue;
        };
        if planned == retried {
            // The plan file has it now: what it says there counts again.
            continue;
        }
        if sha256(&planned) != *planned_sha256 {
            superseded.push(format!("lane {lane}: the {} of the plan file replaces that of `retry`", named(part)));
            continue;
        }
        match part {
            AgentPart::Runner => {
                (new.runner, new.command) = (old.runner.clone(), old.command.clone());
                parts.runners.extend(before.runners.remove_entry(&old.runner));
            }
            AgentPart::Prompt(task) => set_prompt(new, task, &retried),
        }
        parts.replaced.push(replaced.clone());
    }
    Ok((plan_of(parts)?, superseded))
}

/// `plan` with the `merged` lanes as they are in the `pinned` one: where a plan records what is done, that is all it says of them.
/// And the tasks that it has for them besides, which this run does not do.
pub(super) fn with_merged(pinned: &Plan, plan: Plan, merged: &BTreeSet<LaneId>) -> Result<(Plan, Vec<String>)> {
    let mut parts = PlanParts::from(plan);
    let mut left = Vec::new();
    let tasks = |lane: &Lane| -> BTreeSet<TaskId> {
        lane.agents.iter().flat_map(|agent| &agent.tasks).map(|task| task.id.clone()).collect()
    };
    for lane in parts.lanes.iter_mut().filter(|lane| merged.contains(&lane.id)) {
        if let Some(old) = pinned.lanes.iter().find(|old| old.id == lane.id) {
            // All of a lane of which all is ticked; else only what is open.
            let new = tasks(lane);
            if new.is_disjoint(&tasks(old)) {
                let new: Vec<String> = new.iter().map(TaskId::to_string).collect();
                let new = new.join(", ");
                left.push(format!(
                    "lane {} is merged, so this run does not do {new}: run the plan again for that",
                    lane.id
                ));
            }
            let depends_on = std::mem::take(&mut lane.depends_on);
            *lane = Lane { depends_on, ..old.clone() };
        }
    }
    Ok((plan_of(parts)?, left))
}

/// What retries replaced in `plan`.
pub(crate) fn replaced_parts(plan: &Plan) -> impl Iterator<Item = String> {
    plan.replaced.iter().map(|Replaced { lane, part, .. }| format!("lane {lane}: the {}", named(part)))
}

/// Records that `part` is replaced; of several retries the first one replaces what the plan file has.
pub(crate) fn remember(replaced: &mut Vec<Replaced>, lane: &LaneId, agent: &Agent, part: AgentPart) {
    let is_same = |known: &Replaced| (&known.lane, &known.agent, &known.part) == (lane, &agent.name, &part);
    if let Some(planned) = value_of(agent, &part)
        && !replaced.iter().any(is_same)
    {
        let planned_sha256 = sha256(planned);
        replaced.push(Replaced { lane: lane.clone(), agent: agent.name.clone(), part, planned_sha256 });
    }
}

pub(crate) fn set_prompt(agent: &mut Agent, task: &TaskId, prompt: &str) {
    agent.tasks.iter_mut().filter(|it| it.id == *task).for_each(|task| prompt.clone_into(&mut task.prompt));
}

pub(crate) fn find<'a>(lanes: &'a mut [Lane], lane: &LaneId, agent: &AgentName) -> Option<&'a mut Agent> {
    lanes.iter_mut().filter(|it| it.id == *lane).flat_map(|lane| &mut lane.agents).find(|it| it.name == *agent)
}

pub(crate) fn plan_of(parts: PlanParts) -> Result<Plan> {
    Plan::new(parts).map_err(|_| ExitStatus::Corrupted.error("the lanes of the plan depend on each other"))
}

/// What the agent has there, for comparison; `None`: it has no such task.
fn value_of(agent: &Agent, part: &AgentPart) -> Option<String> {
    match part {
        AgentPart::Runner => Some(format!("{}: {:?}", agent.runner, agent.command)),
        AgentPart::Prompt(task) => agent.tasks.iter().find(|it| it.id == *task).map(|task| task.prompt.clone()),
    }
}

/// Agents without a name are called like their runner, and stay who they are when that is another one.
fn keep_names(before: &[Lane], lanes: &mut [Lane]) {
    for lane in lanes {
        let Some(old) = before.iter().find(|old| old.id == lane.id) else { continue };
        let names: Vec<AgentName> = lane.agents.iter().map(|agent| agent.name.clone()).collect();
        if old.agents.len() != names.len() {
            continue;
        }
        let is_new = |name: &AgentName| old.agents.iter().all(|known| known.name != *name);
        for (known, new) in old.agents.iter().zip(&mut lane.agents) {
            if new.name.as_str() == new.runner && is_new(&new.name) && !names.contains(&known.name) {
                new.name.clone_from(&known.name);
            }
        }
    }
}

fn named(part: &AgentPart) -> String {
    match part {
        AgentPart::Runner => "runner".to_owned(),
        AgentPart::Prompt(task) => format!("prompt of task {task}"),
    }
}
