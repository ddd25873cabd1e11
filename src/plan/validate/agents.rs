//! Who works in a lane.

use super::context::{Context, LaneContext};
use super::lane::env;
use super::names::{id, unique};
use super::program::{NO_RUNNER, program};
use super::prompt::prompt;
use super::tasks::{Assigned, ONLY_TASK, assigned, check_tasks, only_task, own_task, tasks};
use crate::model::{Agent, AgentName, CommandLine, Round, UNSET_RUNNER};
use crate::plan::draft::{AgentDraft, LaneDraft};
use crate::plan::source_text::{At, value};

/// The name of an agent that has neither a name nor a runner.
pub(in crate::plan) const NAMELESS: &str = "agent";

/// An agent before it has tasks.
pub(super) struct Member<'a> {
    pub(super) draft: &'a AgentDraft,
    pub(super) name: AgentName,
    pub(super) round: Round,
    written: At<String>,
    command: CommandLine,
    runner: String,
}

/// The agents of `lane` with their tasks. Empty where something about them is at fault.
pub(super) fn agents(lane: &LaneDraft, context: &Context<'_>) -> Vec<Agent> {
    let given = lane.agents.as_ref().filter(|agents| !agents.is_empty());
    let implied = [AgentDraft { span: lane.span, ..AgentDraft::default() }];
    let drafts = given.map_or(implied.as_slice(), Vec::as_slice);
    let around = LaneContext::new(lane, context);
    let tasks = tasks(&around);
    let staff: Vec<Member<'_>> = drafts.iter().filter_map(|draft| member(draft, given.is_some(), &around)).collect();
    unique(staff.iter().map(|member| &member.written), "an agent", true, context.faults);
    if staff.len() < drafts.len() {
        return Vec::new();
    }
    check_tasks(&tasks, &staff, &around);
    staff.into_iter().filter_map(|member| agent(member, &tasks, &around)).collect()
}

fn member<'a>(draft: &'a AgentDraft, declared: bool, around: &LaneContext<'_>) -> Option<Member<'a>> {
    let (command, runner) = program(draft, declared, around)?;
    let implied = if [NO_RUNNER, UNSET_RUNNER].contains(&runner.value.as_str()) { NAMELESS } else { &runner.value };
    let written = draft.name.clone().unwrap_or_else(|| At::new(implied.to_owned(), runner.span));
    let name = id(&written, AgentName::new, "an agent", around.context.faults)?;
    let round = value(&draft.round).unwrap_or(Round::Implementation);
    Some(Member { draft, name, round, written, command, runner: runner.value })
}

fn agent(member: Member<'_>, tasks: &[Assigned<'_>], around: &LaneContext<'_>) -> Option<Agent> {
    let told = prompt(&member.draft.prompt, around.context);
    let tasks = match own_task(member.round) {
        Some(name) => vec![only_task(name, told, None, around)?],
        None if tasks.is_empty() => vec![only_task(ONLY_TASK, told, around.max_time(), around)?],
        None => {
            refuse_prompt(member.draft, around);
            assigned(&member, tasks, around)
        }
    };
    let allow_empty = member.draft.allow_empty.or(around.lane.allow_empty).unwrap_or_default();
    Some(Agent {
        allow_empty: allow_empty && member.round == Round::Implementation,
        name: member.name,
        round: member.round,
        command: member.command,
        runner: member.runner,
        env: env(&member.draft.env),
        timeout: value(&member.draft.timeout),
        tasks,
    })
}

/// A prompt beside the lane's tasks would have to be told in each of them, or lost.
fn refuse_prompt(draft: &AgentDraft, around: &LaneContext<'_>) {
    if let Some(given) = draft.prompt.text.as_ref().or(draft.prompt.file.as_ref()) {
        let message = "an implementation agent is told what to do by the lane's tasks, not by a prompt of its own";
        let help = "write it in the tasks, or leave the lane without tasks";
        around.context.faults.error_with(given.span, message, help);
    }
}
