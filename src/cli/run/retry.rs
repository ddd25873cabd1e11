//! What `retry` changes in the plan of a run: the runner or the prompt of the agent that is to fix what failed last.

use lanewright_engine::recover::resume::replay;
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, Record};
use lanewright_model::{Agent, AgentName, AgentPart, JobRole, Lane, LaneId, Plan, PlanParts, Replaced, TaskId};

use super::locked_run::LockedRun;
use super::pinned_plan::plan_text;
use super::request::{Adoption, Replacement, ResumeReach};
use crate::cli::repository_context::redactor;
use crate::cli::runs::unknown;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// The run with the changed plan, and the events that say so. `plan.json` is written, and its checksum recorded, when the
/// run is resumed.
pub(super) fn changed(
    within: &RepositoryContext<'_>,
    locked: LockedRun,
    adoption: &Adoption,
) -> Result<(LockedRun, Vec<Event>)> {
    let ResumeReach::Retry(lanes, replacement) = &adoption.reach else { return Ok((locked, Vec::new())) };
    if *replacement == Replacement::default() {
        return Ok((locked, Vec::new()));
    }
    let mut parts = PlanParts::from(Plan::clone(&locked.plan));
    let mut noted = Vec::new();
    for lane in lanes {
        let (agent, task) = failed_attempt(&locked.records, lane).ok_or_else(|| no_attempt(lane))?;
        let message = format!("{agent}: task {task} is retried {}", words(replacement));
        replace(within, &mut parts, (lane, &agent, task), replacement)?;
        noted.push(Event::Noted { lane: Some(lane.clone()), message });
    }
    let plan = std::sync::Arc::new(plan_of(parts)?);
    let state = replay(&locked.started.run_id, &plan, &locked.records)?;
    let plan_text = plan_text(&plan, &within.settings)?;
    let journal = locked.journal.redacting(redactor(&within.settings, &plan));
    Ok((LockedRun { plan, plan_text, state, journal, ..locked }, noted))
}

fn words(replacement: &Replacement) -> String {
    let runner = replacement.runner.as_ref().map(|runner| format!("by the runner {runner}"));
    let prompt = replacement.prompt.as_ref().map(|_| "with another prompt".to_owned());
    runner.into_iter().chain(prompt).collect::<Vec<_>>().join(" and ")
}

/// The agent that is to fix what failed last in the lane since it was rolled back, and the task in which it failed or worked
/// last; of the lane's last attempt if no agent is to.
fn failed_attempt(records: &[Record], lane: &LaneId) -> Option<(AgentName, TaskId)> {
    let of_lane = records.iter().rev().map(|record| &record.event).filter(|event| event.lane() == Some(lane));
    let since: Vec<&Event> = of_lane.take_while(|event| !matches!(event, Event::LaneRolledBack { .. })).collect();
    let attempts = since.iter().enumerate().filter_map(|(age, event)| Some((age, attempt(event)?)));
    let attempts: Vec<_> = attempts.collect();
    // A reviewer that rejected it worked after the agent, as may one beside it.
    let failed = since.iter().enumerate().find_map(|(age, event)| match event {
        Event::FailureNoted { agent: Some(agent), task, .. } => {
            let is_retried = attempts.iter().any(|(later, (name, _))| *later < age && *name == agent);
            (!is_retried).then_some((agent, task.as_ref()))
        }
        _ => None,
    });
    let mut attempts = attempts.into_iter().map(|(_, attempt)| attempt);
    let (agent, task) = match failed {
        Some((agent, Some(task))) => (agent, task),
        Some((agent, None)) => attempts.find(|(name, _)| *name == agent)?,
        None => attempts.next()?,
    };
    Some((agent.clone(), task.clone()))
}

fn attempt(event: &Event) -> Option<(&AgentName, &TaskId)> {
    match event {
        Event::JobPlanned { job } => match &job.role {
            JobRole::Attempt { agent, task } => Some((agent, task)),
            _ => None,
        },
        _ => None,
    }
}

fn no_attempt(lane: &LaneId) -> anyhow::Error {
    let message = format!("no agent of lane {lane} has worked yet, so there is no attempt to repeat in another way");
    ExitStatus::InvalidOperation.error(message).hint("change the plan, and resume with --accept-plan-change")
}

fn replace(
    within: &RepositoryContext<'_>,
    parts: &mut PlanParts,
    (lane, name, task): (&LaneId, &AgentName, TaskId),
    replacement: &Replacement,
) -> Result<()> {
    let PlanParts { lanes, runners, replaced, .. } = parts;
    let agent = find(lanes, lane, name).ok_or_else(|| no_attempt(lane))?;
    if let Some(prompt) = &replacement.prompt {
        remember(replaced, lane, agent, AgentPart::Prompt(task.clone()));
        set_prompt(agent, &task, prompt);
    }
    if let Some(name) = &replacement.runner {
        remember(replaced, lane, agent, AgentPart::Runner);
        let runner = runner_for(within, agent, name)?;
        runners.insert(name.clone(), runner);
    }
    Ok(())
}

/// Records that `part` is replaced; of several retries the first one replaces what the plan file has.
fn remember(replaced: &mut Vec<Replaced>, lane: &LaneId, agent: &Agent, part: AgentPart) {
    let is_same = |known: &Replaced| (&known.lane, &known.agent, &known.part) == (lane, &agent.name, &part);
    if let Some(planned) = value_of(agent, &part)
        && !replaced.iter().any(is_same)
    {
        let planned_sha256 = sha256(planned);
        replaced.push(Replaced { lane: lane.clone(), agent: agent.name.clone(), part, planned_sha256 });
    }
}

fn set_prompt(agent: &mut Agent, task: &TaskId, prompt: &str) {
    agent.tasks.iter_mut().filter(|it| it.id == *task).for_each(|task| prompt.clone_into(&mut task.prompt));
}

fn find<'a>(lanes: &'a mut [Lane], lane: &LaneId, agent: &AgentName) -> Option<&'a mut Agent> {
    lanes.iter_mut().filter(|it| it.id == *lane).flat_map(|lane| &mut lane.agents).find(|it| it.name == *agent)
}

fn plan_of(parts: PlanParts) -> Result<Plan> {
    Plan::new(parts).map_err(|_| ExitStatus::Corrupted.error("the lanes of the plan depend on each other"))
}

/// What the agent has there, for comparison; `None`: it has no such task.
fn value_of(agent: &Agent, part: &AgentPart) -> Option<String> {
    match part {
        AgentPart::Runner => Some(format!("{}: {:?}", agent.runner, agent.command)),
        AgentPart::Prompt(task) => agent.tasks.iter().find(|it| it.id == *task).map(|task| task.prompt.clone()),
    }
}

/// The `plan` of the plan file with what retries replaced in the `pinned` one, and what of that the plan file takes the
/// place of, because it changed there.
pub(super) fn carried_over(pinned: &Plan, plan: Plan) -> Result<(Plan, Vec<String>)> {
    let mut before = PlanParts::from(pinned.clone());
    let mut parts = PlanParts::from(plan);
    keep_names(&before.lanes, &mut parts.lanes);
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

/// What retries replaced in `plan`.
pub(super) fn replaced_parts(plan: &Plan) -> impl Iterator<Item = String> {
    plan.replaced.iter().map(|Replaced { lane, part, .. }| format!("lane {lane}: the {}", named(part)))
}

fn named(part: &AgentPart) -> String {
    match part {
        AgentPart::Runner => "runner".to_owned(),
        AgentPart::Prompt(task) => format!("prompt of task {task}"),
    }
}

/// Has the agent run by the runner of that name.
fn runner_for(within: &RepositoryContext<'_>, agent: &mut Agent, name: &str) -> Result<lanewright_model::Runner> {
    let catalogue = within.settings.catalogue();
    let runner = catalogue.get(name);
    let runner = runner.ok_or_else(|| unknown("the configuration", "runner", name, &catalogue.names()))?;
    agent.command = runner.command.clone();
    agent.runner = name.to_owned();
    Ok(runner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::testing::{Story, agent, attempt, lane};
    use lanewright_model::{Failure, FailureKind};

    /// The agent whose attempt `retry` repeats in another way.
    fn retried(story: &Story) -> String {
        let (agent, task) = failed_attempt(&story.records, &lane("SL-1")).unwrap();
        format!("{agent} {task}")
    }

    fn failed(story: Story, name: &str, task: Option<&str>) -> Story {
        story.then(Event::FailureNoted {
            lane: lane("SL-1"),
            agent: Some(agent(name)),
            task: task.map(|task| TaskId::new(task).unwrap()),
            failure: Failure::new(FailureKind::Crash, "exited with code 1"),
        })
    }

    #[test]
    fn the_agent_that_failed_is_retried_and_not_the_one_that_worked_last() {
        let story = Story::begun().job(&attempt("SL-1", "engineer", 1));
        assert_eq!(retried(&story), "engineer 1");
        let rejected = failed(story.job(&attempt("SL-1", "reviewer", 1)), "engineer", None);
        assert_eq!(retried(&rejected), "engineer 1");
        let beside = failed(rejected, "engineer", Some("1")).job(&attempt("SL-1", "tester", 1));
        assert_eq!(retried(&beside), "engineer 1");
        // What was retried since is not what failed last.
        let again = beside.job(&attempt("SL-1", "engineer", 2));
        assert_eq!(retried(&again), "engineer 1");
        let reviewed = again.job(&attempt("SL-1", "reviewer", 2));
        assert_eq!(retried(&reviewed), "reviewer 1");
        assert_eq!(retried(&failed(reviewed, "reviewer", Some("1"))), "reviewer 1");
    }
}
