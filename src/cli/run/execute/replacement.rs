//! What `retry` changes in the plan of a run: the runner or the prompt of the agent that is to fix what failed last.

use std::sync::Arc;

use lanewright_engine::at_resume::replay;
use lanewright_model::event::{Event, Record};
use lanewright_model::{Agent, AgentName, AgentPart, JobRole, LaneId, Plan, PlanParts, TaskId};

use crate::cli::run::intent::replaced_parts::{find, plan_of, remember, set_prompt};
use crate::cli::run::intent::{Adoption, Replacement, ResumeReach, plan_text};
use crate::cli::run::lock::LockedRun;
use crate::cli::runs::unknown;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// The run with the changed plan, and the events that say so. `plan.json` is written, and its checksum recorded, when the
/// run is resumed.
pub(crate) fn changed(
    within: &RepositoryContext,
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
    let plan = Arc::new(plan_of(parts)?);
    let state = replay(&locked.started.run_id, &plan, &locked.records)?;
    let text = plan_text(&plan, &within.settings)?;
    Ok((locked.with_plan(within, plan, state, text), noted))
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
        Event::JobPlanned { job, .. } => match &job.role {
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
    within: &RepositoryContext,
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
        if agent.tasks.iter().any(|known| known.id == task && known.command.is_some()) {
            let message = format!("task {task} of lane {lane} has a command of its own, so no runner is used for it");
            let hint = "change the command in the plan, and resume with --accept-plan-change";
            return Err(ExitStatus::InvalidOperation.error(message).hint(hint));
        }
        remember(replaced, lane, agent, AgentPart::Runner);
        let runner = runner_for(within, agent, name)?;
        runners.insert(name.clone(), runner);
    }
    Ok(())
}

/// Has the agent run by the runner of that name.
fn runner_for(within: &RepositoryContext, agent: &mut Agent, name: &str) -> Result<lanewright_model::Runner> {
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
    fn retry_selects_the_failed_agent_not_the_last_one() {
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
