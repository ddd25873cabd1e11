//! The tasks of a lane, and who does which.

use std::time::Duration;

use super::agents::Member;
use super::context::LaneContext;
use super::names::{id, unique, unknown};
use super::order::called;
use super::prompt::prompt;
use crate::model::{Round, Task, TaskId, TaskKind};
use crate::plan::draft::TaskDraft;
use crate::plan::faults::quoted;
use crate::plan::source_text::{At, value};

/// The id of the only task of a lane without tasks.
pub(in crate::plan) const ONLY_TASK: &str = "1";

/// The id of the task that agents of `round` have of their own; implementation agents do the lane's tasks.
pub(in crate::plan) fn own_task(round: Round) -> Option<&'static str> {
    match round {
        Round::Requirements => Some("report"),
        Round::Implementation => None,
        Round::Review => Some("review"),
    }
}

/// A task, and the draft that says who does it.
pub(super) struct Assigned<'a> {
    task: Task,
    draft: &'a TaskDraft,
}

/// The lane's tasks; none where the plan names none.
pub(super) fn tasks<'a>(around: &LaneContext<'a>) -> Vec<Assigned<'a>> {
    let drafts = around.lane.tasks.as_deref().unwrap_or_default();
    let by_position = |at: usize, draft: &TaskDraft| At::new((at + 1).to_string(), draft.span);
    let written = |(at, draft): (usize, &TaskDraft)| draft.id.clone().unwrap_or_else(|| by_position(at, draft));
    let ids: Vec<At<String>> = drafts.iter().enumerate().map(written).collect();
    unique(ids.iter(), "a task", false, around.context.faults);
    ids.iter().zip(drafts).filter_map(|(id, draft)| Some(Assigned { task: task(id, draft, around)?, draft })).collect()
}

fn task(written: &At<String>, draft: &TaskDraft, around: &LaneContext<'_>) -> Option<Task> {
    let name = value(&draft.name);
    let told = prompt(&draft.prompt, around.context).or_else(|| name.clone());
    let texts = |list: &[At<String>]| list.iter().map(|text| text.value.clone()).collect();
    Some(Task {
        id: id(written, TaskId::new, "a task", around.context.faults)?,
        name,
        kind: value(&draft.kind).unwrap_or_default(),
        prompt: told.unwrap_or_else(|| around.prompt.clone()),
        verify: draft.verify.clone(),
        max_time: value(&draft.max_time).or(around.max_time()),
        files: texts(&draft.files),
        interfaces: texts(&draft.interfaces),
        acceptance_criteria: texts(&draft.acceptance_criteria),
        allow_empty: draft.allow_empty,
    })
}

/// A task that the plan does not name.
pub(super) fn only_task(
    id: &str,
    told: Option<String>,
    max_time: Option<Duration>,
    around: &LaneContext<'_>,
) -> Option<Task> {
    Some(Task {
        id: TaskId::new(id).ok()?,
        name: None,
        kind: TaskKind::Auto,
        prompt: told.unwrap_or_else(|| around.prompt.clone()),
        verify: Vec::new(),
        max_time,
        files: Vec::new(),
        interfaces: Vec::new(),
        acceptance_criteria: Vec::new(),
        allow_empty: false,
    })
}

/// Checks that every task has an agent that does it, and an id that is not one of a specialist's task.
pub(super) fn check_tasks(tasks: &[Assigned<'_>], staff: &[Member<'_>], around: &LaneContext<'_>) {
    let faults = around.context.faults;
    let workers: Vec<&str> =
        staff.iter().filter(|member| own_task(member.round).is_none()).map(|member| member.name.as_str()).collect();
    if let Some(first) = tasks.first().filter(|_| workers.is_empty()) {
        let message = format!("lane {} has tasks, but no agent that does them", called(around.lane));
        faults.error_with(first.draft.span, message, "add an agent with `round = \"implementation\"`");
        return;
    }
    for Assigned { task, draft } in tasks {
        if let Some(agent) = draft.agent.as_ref().filter(|agent| !workers.contains(&agent.value.as_str())) {
            let (id, lane) = (quoted(task.id.as_str()), called(around.lane));
            let message = format!("task {id} is for {}, no implementation agent of lane {lane}", quoted(&agent.value));
            unknown(agent, &message, workers.iter().copied(), faults);
        }
        if task.kind.is_human() && !task.verify.is_empty() {
            let message = format!("task {} is a person's, so its `verify` would never run", quoted(task.id.as_str()));
            faults.error_with(draft.span, message, "give the commands to a task of the agent's that follows it");
        }
        if let Some(taken) = staff.iter().filter_map(|member| own_task(member.round)).find(|&id| id == task.id.as_str())
        {
            let span = draft.id.as_ref().map_or(draft.span, |id| id.span);
            let message = format!("the id `{taken}` belongs to the task of an agent of another round");
            faults.error_with(span, message, "choose another id");
        }
    }
}

/// The tasks that are for `member`, or for nobody in particular.
pub(super) fn assigned(member: &Member<'_>, tasks: &[Assigned<'_>], around: &LaneContext<'_>) -> Vec<Task> {
    let is_for = |agent: &At<String>| agent.value == member.name.as_str();
    let own = tasks.iter().filter(|task| task.draft.agent.as_ref().is_none_or(is_for));
    let own: Vec<Task> = own.map(|task| task.task.clone()).collect();
    if own.is_empty() {
        let message = format!("agent {} has no task: all are for other agents", quoted(member.name.as_str()));
        around.context.faults.error_with(member.draft.span, message, "leave the agent out, or give it a task");
    }
    own
}
