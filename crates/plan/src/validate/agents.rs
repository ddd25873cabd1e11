//! Who works in a lane, with which command, and at which tasks.

use std::time::Duration;

use lanewright_model::text::listed;
use lanewright_model::{Agent, AgentName, CommandLine, Round, Task, TaskId, UNSET_RUNNER};

use super::candidates;
use super::lane::env;
use super::names::{id, unique, unknown};
use super::order::called;
use crate::Fallbacks;
use crate::draft::{AgentDraft, LaneDraft, PromptDraft, TaskDraft};
use crate::faults::{Faults, quoted};
use crate::source_text::{At, Span, value};
use crate::starter::is_starter_prompt;

pub(crate) type Load<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

pub(crate) type Runners<'a> = dyn Fn(&str) -> Option<CommandLine> + 'a;

/// What validation asks the outside for, and where it leaves faults.
pub(crate) struct Context<'a> {
    pub(crate) faults: &'a Faults<'a>,
    pub(crate) load: &'a Load<'a>,
    pub(crate) runners: &'a Runners<'a>,
    pub(crate) fallbacks: Fallbacks<'a>,
    /// Whether an agent without a command and a runner is no fault of the plan.
    pub(crate) runner_may_be_unset: bool,
    /// Whether its format is a task list of another program.
    pub(crate) is_list: bool,
}

/// A lane whose agents and tasks are validated.
pub(super) struct LaneContext<'a> {
    pub(super) lane: &'a LaneDraft,
    pub(super) context: &'a Context<'a>,
    /// The prompt of agents and tasks that have none of their own.
    prompt: String,
}

/// The name of an agent that has neither a name nor a runner.
pub(crate) const NAMELESS: &str = "agent";

struct Member<'a> {
    draft: &'a AgentDraft,
    name: AgentName,
    round: Round,
    written: At<String>,
    command: CommandLine,
    runner: String,
}

/// The agents of `lane` with their tasks. Empty where something about them is at fault.
pub(super) fn agents(lane: &LaneDraft, context: &Context<'_>) -> Vec<Agent> {
    let given = lane.agents.as_ref().filter(|agents| !agents.is_empty());
    let implied = [AgentDraft { span: lane.span, ..AgentDraft::default() }];
    let mut drafts = given.map_or(implied.to_vec(), Clone::clone);
    candidates::assign(&mut drafts, lane, context);
    let drafts = drafts.as_slice();
    let name = || value(&lane.name).or_else(|| value(&lane.id));
    let around = LaneContext { lane, context, prompt: prompt(&lane.prompt, context).or_else(name).unwrap_or_default() };
    let tasks = tasks(drafts, &around);
    let staff: Vec<Member<'_>> = drafts.iter().filter_map(|draft| member(draft, given.is_some(), &around)).collect();
    unique(staff.iter().map(|member| &member.written), "an agent", true, context.faults);
    if staff.len() < drafts.len() {
        return Vec::new();
    }
    check_tasks(&tasks, &staff, &around);
    let members = staff.into_iter().filter_map(|member| {
        let draft = member.draft;
        Some((draft, agent(member, &tasks, &around)?))
    });
    let members: Vec<(&AgentDraft, Agent)> = members.collect();
    candidates::expand(members, &around)
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
    let prompt_text = prompt(&member.draft.prompt, around.context);
    let tasks = match own_task(member.round) {
        Some(name) => vec![only_task(name, prompt_text, None, around)?],
        None if tasks.is_empty() => vec![only_task(ONLY_TASK, prompt_text, value(&around.lane.max_time), around)?],
        None => {
            refuse_prompt(member.draft, around);
            assigned(&member, tasks, around)
        }
    };
    let allow_empty = member.draft.allow_empty.or(around.lane.allow_empty).unwrap_or_default();
    Some(Agent {
        allow_empty: allow_empty && member.round == Round::Implementation,
        candidate: None,
        name: member.name,
        round: member.round,
        command: member.command,
        runner: member.runner,
        fallback: member.draft.fallback.as_ref().or(around.lane.fallback.as_ref()).map(|all| fallback(all, around)),
        options: member.draft.options.within(&around.lane.options),
        env: env(&member.draft.env),
        timeout: value(&member.draft.timeout),
        tasks,
    })
}

/// A prompt beside the lane's tasks would be repeated in each of them, or lost.
fn refuse_prompt(draft: &AgentDraft, around: &LaneContext<'_>) {
    if let Some(given) = draft.prompt.text.as_ref().or(draft.prompt.file.as_ref()) {
        let message = match own_tasks(draft) {
            [] => "an implementation agent gets its work from the lane's tasks and cannot have a prompt",
            _ => "an agent with tasks of its own gets its work from them and cannot have a prompt",
        };
        let help = "write it in the tasks, or leave the lane without tasks";
        around.context.faults.error_with(given.span, message, help);
    }
}

/// The runner of agents whose command the plan gives.
pub(crate) const NO_RUNNER: &str = "command";

/// The command and the runner of an agent, from the nearest place that names one: the agent, its lane, the defaults.
/// Where none does, the runner is [`UNSET_RUNNER`] if the plan cannot name one or each task has a command. `declared` says that the plan names the agent.
fn program(draft: &AgentDraft, declared: bool, around: &LaneContext<'_>) -> Option<(CommandLine, At<String>)> {
    let program = if draft.program.is_given() { &draft.program } else { &around.lane.program };
    if program.faulty {
        return None;
    }
    let has_commands = tasks_have_commands(draft, around.lane);
    if has_commands && !program.is_given() {
        return Some((never_run(), At::new(UNSET_RUNNER.to_owned(), draft.span)));
    }
    if has_commands && draft.program.is_given() {
        let message = "the agent's own command is never run: each of its tasks has one";
        around.context.faults.warning(draft.span, message, "remove `command` and `runner` from the agent");
    }
    let fallbacks = &around.context.fallbacks;
    let fallback = fallbacks.runner.map(|runner| At::new(runner.to_owned(), draft.span));
    let (command, named) = (program.command.as_ref(), program.runner.clone());
    let runner = match command {
        Some(_) => named,
        None if fallbacks.runner_outranks_plan => fallback.or(named),
        None => named.or(fallback),
    };
    match (command, runner) {
        (Some(command), None) => Some((command.value.clone(), At::new(NO_RUNNER.to_owned(), command.span))),
        (command, Some(runner)) => Some((runner_command(command, &runner, around)?, runner)),
        (None, None) if around.context.runner_may_be_unset => {
            Some((never_run(), At::new(UNSET_RUNNER.to_owned(), draft.span)))
        }
        (None, None) => {
            nothing_to_run(draft, declared, around);
            None
        }
    }
}

/// The command of an agent whose runner is not set: no run starts with it, or each of its tasks has a command.
fn never_run() -> CommandLine {
    CommandLine::Shell("false".to_owned())
}

pub(super) fn runner_command(
    command: Option<&At<CommandLine>>,
    runner: &At<String>,
    around: &LaneContext<'_>,
) -> Option<CommandLine> {
    let faults = around.context.faults;
    let known = (around.context.runners)(&runner.value);
    let message = format!("there is no runner {}", quoted(&runner.value));
    match command {
        Some(_) if known.is_none() && runner.value != NO_RUNNER => {
            let message = format!("{message}; only the command beside it is used");
            faults.warning(runner.span, message, "describe the runner, or leave `runner` out");
        }
        None if known.is_none() => {
            faults.error_with(runner.span, message, "name a runner that is described, or write a `command`");
        }
        _ => {}
    }
    command.map(|command| command.value.clone()).or(known)
}

fn fallback(names: &[At<String>], around: &LaneContext<'_>) -> Vec<String> {
    for name in names.iter().filter(|name| (around.context.runners)(&name.value).is_none()) {
        let message = format!("there is no runner {}", quoted(&name.value));
        around.context.faults.error_with(name.span, message, "name runners that are described");
    }
    names.iter().map(|name| name.value.clone()).collect()
}

fn nothing_to_run(draft: &AgentDraft, declared: bool, around: &LaneContext<'_>) {
    let lane = called(around.lane);
    let message = match &draft.name {
        Some(name) => format!("agent {} of lane {lane} has nothing to run", quoted(&name.value)),
        None if declared => format!("an agent of lane {lane} has nothing to run"),
        None => format!("lane {lane} has nothing to run"),
    };
    let help = "set `command` or `runner` in the agent, in the lane or in `[defaults]`";
    around.context.faults.error_with(draft.span, message, help);
}

/// The text of a prompt, given inline or in a file; `None` if there is none, or it is not valid.
fn prompt(draft: &PromptDraft, context: &Context<'_>) -> Option<String> {
    match (&draft.text, &draft.file) {
        (Some(_), Some(file)) => {
            context.faults.error_with(file.span, "`prompt` and `prompt_file` exclude each other", "keep one of them");
            None
        }
        (Some(text), None) => Some(written(text.value.clone(), text.span, context)),
        (None, Some(file)) => load_prompt(file, context).map(|text| written(text, file.span, context)),
        (None, None) => None,
    }
}

/// The prompt, which the user has written: an agent that gets the one of `plan new` costs money for nothing.
fn written(prompt: String, span: Span, context: &Context<'_>) -> String {
    if is_starter_prompt(&prompt) {
        let help = "write what the agent is to do, and how it can see that it is done";
        context.faults.error_with(span, "this is still the prompt that `lanewright plan new` wrote", help);
    }
    if prompt.trim().is_empty() {
        let help = "write what the agent is to do, or remove the key";
        context.faults.error_with(span, "the prompt is empty", help);
    }
    prompt
}

fn load_prompt(file: &At<String>, context: &Context<'_>) -> Option<String> {
    let fault = match (context.load)(&file.value) {
        Ok(text) if text.contains('\0') => "it holds a NUL character".to_owned(),
        Ok(text) => return Some(text),
        Err(error) => error,
    };
    let message = format!("the prompt file {} cannot be read: {fault}", quoted(&file.value));
    context.faults.error_with(file.span, message, "name a text file that is there");
    None
}

/// The id of the only task of a lane without tasks.
pub(crate) const ONLY_TASK: &str = "1";

/// The id of the task that agents of `round` have of their own; implementation agents do the lane's tasks.
pub(crate) fn own_task(round: Round) -> Option<&'static str> {
    match round {
        Round::Requirements => Some("report"),
        Round::Implementation => None,
        Round::Judge => Some("judge"),
        Round::Review => Some("review"),
    }
}

/// A task, and the drafts that say who does it.
struct Assigned<'a> {
    task: Task,
    draft: &'a TaskDraft,
    /// The agent that lists it; `None`: the lane does.
    owner: Option<&'a AgentDraft>,
}

impl Assigned<'_> {
    fn is_of(&self, agent: &AgentDraft) -> bool {
        self.owner.is_some_and(|owner| std::ptr::eq(owner, agent))
    }
}

/// The tasks that the agent lists itself.
fn own_tasks(draft: &AgentDraft) -> &[TaskDraft] {
    draft.tasks.as_deref().unwrap_or_default()
}

/// Whether the agent works in the round of the tasks.
pub(super) fn does_tasks(draft: &AgentDraft) -> bool {
    value(&draft.round).is_none_or(|round| own_task(round).is_none())
}

/// The tasks of the lane, and those of each agent that does tasks; none where the plan names none.
fn tasks<'a>(agents: &'a [AgentDraft], around: &LaneContext<'a>) -> Vec<Assigned<'a>> {
    let common = around.lane.tasks.iter().flatten().map(|draft| (draft, None));
    let workers = agents.iter().filter(|agent| does_tasks(agent));
    let own = workers.flat_map(|agent| own_tasks(agent).iter().map(move |draft| (draft, Some(agent))));
    let drafts: Vec<(&TaskDraft, Option<&AgentDraft>)> = common.chain(own).collect();
    let by_position = |at: usize, draft: &TaskDraft| At::new((at + 1).to_string(), draft.span);
    let written =
        |(at, (draft, _)): (usize, &(&TaskDraft, _))| draft.id.clone().unwrap_or_else(|| by_position(at, draft));
    let ids: Vec<At<String>> = drafts.iter().enumerate().map(written).collect();
    unique(ids.iter(), "a task", false, around.context.faults);
    let assigned = |(id, (draft, owner))| Some(Assigned { task: task(id, draft, around)?, draft, owner });
    ids.iter().zip(drafts).filter_map(assigned).collect()
}

/// Whether each task of the agent that is not a person's has a command, and there is one.
fn tasks_have_commands(draft: &AgentDraft, lane: &LaneDraft) -> bool {
    let name = draft.name.as_ref().map_or(NAMELESS, |name| &name.value);
    let is_for = |task: &&TaskDraft| task.agent.as_ref().is_none_or(|agent| agent.value == name);
    let tasks: Vec<&TaskDraft> = match own_tasks(draft) {
        [] => lane.tasks.iter().flatten().filter(is_for).collect(),
        own => own.iter().collect(),
    };
    let mut of_agent =
        tasks.into_iter().filter(|task| value(&task.kind).is_none_or(|kind| !kind.is_human())).peekable();
    does_tasks(draft) && of_agent.peek().is_some() && of_agent.all(|task| task.command.is_some())
}

fn task(written: &At<String>, draft: &TaskDraft, around: &LaneContext<'_>) -> Option<Task> {
    let name = value(&draft.name);
    let prompt_text = prompt(&draft.prompt, around.context).or_else(|| name.clone());
    let texts = |list: &[At<String>]| list.iter().map(|text| text.value.clone()).collect();
    Some(Task {
        id: id(written, TaskId::new, "a task", around.context.faults)?,
        name,
        kind: value(&draft.kind).unwrap_or_default(),
        prompt: prompt_text.unwrap_or_else(|| around.prompt.clone()),
        command: value(&draft.command),
        verify: draft.verify.clone(),
        max_time: value(&draft.max_time).or(value(&around.lane.max_time)),
        files: texts(&draft.files),
        interfaces: texts(&draft.interfaces),
        acceptance_criteria: texts(&draft.acceptance_criteria),
        allow_empty: draft.allow_empty,
    })
}

fn only_task(
    id: &str,
    prompt_text: Option<String>,
    max_time: Option<Duration>,
    around: &LaneContext<'_>,
) -> Option<Task> {
    let plain = task(&At::new(id.to_owned(), around.lane.span), &TaskDraft::default(), around)?;
    Some(Task { prompt: prompt_text.unwrap_or_else(|| around.prompt.clone()), max_time, ..plain })
}

/// Checks that every task has an agent that does it, and an id that is not one of a specialist's task.
fn check_tasks(tasks: &[Assigned<'_>], staff: &[Member<'_>], around: &LaneContext<'_>) {
    let faults = around.context.faults;
    let lane = called(around.lane);
    let (workers, specialists): (Vec<&Member<'_>>, Vec<_>) =
        staff.iter().partition(|member| own_task(member.round).is_none());
    for (member, first) in specialists.iter().filter_map(|member| Some((member, own_tasks(member.draft).first()?))) {
        let message =
            format!("agent {} works in the round `{}`, which has one task", quoted(member.name.as_str()), member.round);
        faults.error_with(first.span, message, "write what it is to do as its `prompt`");
    }
    let (free, busy): (Vec<&Member<'_>>, Vec<_>) =
        workers.iter().partition(|member| own_tasks(member.draft).is_empty());
    let names = |members: &[&Member<'_>]| members.iter().map(|member| member.name.to_string()).collect::<Vec<_>>();
    let (free, busy) = (names(&free), names(&busy));
    if let Some(first) = tasks.iter().find(|task| task.owner.is_none()).filter(|_| free.is_empty()) {
        let (message, help) = match busy.as_slice() {
            [] => (
                format!("lane {lane} has tasks, but no agent that does them"),
                "add an agent with `round = \"implementation\"`",
            ),
            busy => (
                format!("no agent does the tasks of lane {lane}: each has tasks of its own ({})", listed(busy, NAMED)),
                "remove them, or write them among the tasks of an agent",
            ),
        };
        faults.error_with(first.draft.span, message, help);
        return;
    }
    for Assigned { task, draft, owner } in tasks {
        let other = |agent: &&At<String>| match owner {
            Some(owner) => owner.name.as_ref().is_none_or(|name| name.value != agent.value),
            None => !free.contains(&agent.value),
        };
        if let Some(agent) = draft.agent.as_ref().filter(other) {
            let id = quoted(task.id.as_str());
            if owner.is_some() {
                let message = format!("task {id} is in the list of one agent, and for {}", quoted(&agent.value));
                faults.error_with(agent.span, message, "move it to the agent that does it, or to the lane");
                continue;
            }
            if busy.contains(&agent.value) {
                let message = format!("task {id} is for {}, which has tasks of its own", quoted(&agent.value));
                faults.error_with(agent.span, message, "write it among the tasks of that agent");
                continue;
            }
            let message = format!("task {id} is for {}, no implementation agent of lane {lane}", quoted(&agent.value));
            unknown(agent, &message, free.iter().map(String::as_str), faults);
        }
        if let Some(command) = draft.command.as_ref().filter(|_| task.kind.is_human()) {
            let message = format!("task {} is a person's, so its `command` would never run", quoted(task.id.as_str()));
            faults.error_with(command.span, message, "remove it, or make it a task of the agent's");
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

/// How many agents are named.
const NAMED: usize = 8;

/// The tasks that `member` lists, else those of the lane for it or for no agent in particular.
fn assigned(member: &Member<'_>, tasks: &[Assigned<'_>], around: &LaneContext<'_>) -> Vec<Task> {
    let is_for = |agent: &At<String>| agent.value == member.name.as_str();
    let is_its = |task: &&Assigned<'_>| match own_tasks(member.draft) {
        [] => task.owner.is_none() && task.draft.agent.as_ref().is_none_or(is_for),
        _ => task.is_of(member.draft),
    };
    let own = tasks.iter().filter(is_its);
    let own: Vec<Task> = own.map(|task| task.task.clone()).collect();
    if own.is_empty() {
        let message = format!("agent {} has no task: all are for other agents", quoted(member.name.as_str()));
        around.context.faults.error_with(member.draft.span, message, "leave the agent out, or give it a task");
    }
    own
}
