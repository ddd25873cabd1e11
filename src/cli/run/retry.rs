//! What `retry` changes in the plan of a run: the runner or the prompt of the attempt that failed last.

use super::locked_run::LockedRun;
use super::pinned_plan::plan_text;
use super::request::{Adoption, Replacement, ResumeReach};
use crate::cli::repository_context::redactor;
use crate::cli::runs::unknown;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};
use crate::event::{Event, Record};
use crate::model::{Agent, AgentName, JobRole, LaneId, Plan, PlanParts, TaskId};
use crate::recover::resume::replay;

/// The run with the changed plan, and the event that says so. `plan.json` is written, and its checksum recorded, when the
/// run is resumed.
pub(super) fn changed(
    within: &RepositoryContext<'_>,
    locked: LockedRun,
    adoption: &Adoption,
) -> Result<(LockedRun, Option<Event>)> {
    let ResumeReach::Retry(lane, replacement) = &adoption.reach else { return Ok((locked, None)) };
    if *replacement == Replacement::default() {
        return Ok((locked, None));
    }
    let (agent, task) = last_attempt(&locked.records, lane).ok_or_else(|| no_attempt(lane))?;
    let plan = replaced(within, &locked.plan, lane, (&agent, &task), replacement)?;
    let state = replay(&locked.started.run_id, &plan, &locked.records)?;
    let plan_text = plan_text(&plan, &within.settings)?;
    let journal = locked.journal.redacting(redactor(&within.settings, &plan));
    let message = format!("{agent}: task {task} is retried {}", words(replacement));
    let noted = Event::Noted { lane: Some(lane.clone()), message };
    Ok((LockedRun { plan, plan_text, state, journal, ..locked }, Some(noted)))
}

fn words(replacement: &Replacement) -> String {
    let runner = replacement.runner.as_ref().map(|runner| format!("by the runner {runner}"));
    let prompt = replacement.prompt.as_ref().map(|_| "with another prompt".to_owned());
    runner.into_iter().chain(prompt).collect::<Vec<_>>().join(" and ")
}

/// The agent and the task of the lane's last attempt since it was rolled back.
fn last_attempt(records: &[Record], lane: &LaneId) -> Option<(AgentName, TaskId)> {
    let of_lane = records.iter().rev().filter(|record| record.event.lane() == Some(lane));
    let since = of_lane.take_while(|record| !matches!(record.event, Event::LaneRolledBack { .. }));
    since.into_iter().find_map(|record| match &record.event {
        Event::JobPlanned { job } => match &job.role {
            JobRole::Attempt { agent, task } => Some((agent.clone(), task.clone())),
            _ => None,
        },
        _ => None,
    })
}

fn no_attempt(lane: &LaneId) -> anyhow::Error {
    let message = format!("no agent of lane {lane} has worked yet, so there is no attempt to repeat in another way");
    ExitStatus::InvalidOperation.error(message).hint("change the plan, and resume with --accept-plan-change")
}

fn replaced(
    within: &RepositoryContext<'_>,
    plan: &Plan,
    lane: &LaneId,
    (agent, task): (&AgentName, &TaskId),
    replacement: &Replacement,
) -> Result<std::sync::Arc<Plan>> {
    let mut parts = PlanParts::from(plan.clone());
    let lanes = parts.lanes.iter_mut().filter(|it| it.id == *lane);
    let Some(found) = lanes.flat_map(|lane| &mut lane.agents).find(|it| it.name == *agent) else {
        return Err(no_attempt(lane));
    };
    if let Some(prompt) = &replacement.prompt {
        found.tasks.iter_mut().filter(|it| it.id == *task).for_each(|task| task.prompt.clone_from(prompt));
    }
    if let Some(name) = &replacement.runner {
        let runner = runner_for(within, found, name)?;
        parts.runners.insert(name.clone(), runner);
    }
    let plan =
        Plan::new(parts).map_err(|_| ExitStatus::Corrupted.error("the lanes of the plan depend on each other"))?;
    Ok(plan.into())
}

/// Has the agent run by the runner of that name.
fn runner_for(within: &RepositoryContext<'_>, agent: &mut Agent, name: &str) -> Result<crate::model::Runner> {
    let catalogue = within.settings.catalogue();
    let runner = catalogue.get(name);
    let runner = runner.ok_or_else(|| unknown("the configuration", "runner", name, &catalogue.names()))?;
    agent.command = runner.command.clone();
    agent.runner = name.to_owned();
    Ok(runner)
}
