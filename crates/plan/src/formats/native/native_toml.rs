//! A plan as native TOML: what `plan convert` prints.
//!
//! Whatever can be left out is left out; reading the text gives the same plan again.

use std::collections::HashSet;
use std::time::Duration;

use lanewright_model::plan::{AgentWorktrees, Interface, OwnershipRule, RetryFrom, SharedFiles};
use lanewright_model::safe_text::is_unsafe;
use lanewright_model::{
    Agent, CommandLine, Gates, Lane, LaneIndex, MustHaves, Plan, Task, TaskKind, Timeouts, UNSET_RUNNER,
};
use serde_json::{Map, Value, json};

use crate::dependencies::Dependencies;
use crate::overlap::{Owned, overlaps};
use crate::validate::{NAMELESS, NO_RUNNER, ONLY_TASK, RETRIES, Runners, own_task};

/// Writes `plan` as native TOML. `runners` is what it is to be read with: a command that it gives is left out.
pub fn write(plan: &Plan, runners: &dyn Fn(&str) -> Option<CommandLine>) -> String {
    const FITS: &str = "text, numbers, lists and tables are all that TOML asks for";
    let mut document = plan_table(plan, runners);
    let written = toml::to_string_pretty(&document).expect(FITS);
    if !written.contains(is_unsafe) {
        return written;
    }
    mark_unsafe(&mut document);
    toml::to_string_pretty(&document).expect(FITS).replace("\\u0000", "\\u")
}

/// Puts a NUL and its code in place of each character that is to be written as an escape. A NUL can only be written as one
/// itself (`\u0000`), in a kind of string that has escapes.
fn mark_unsafe(value: &mut Value) {
    match value {
        Value::String(text) => {
            let marked = |c: char| match c {
                // A backslash as well: none that the text has may be taken for one of an escape.
                c if is_unsafe(c) || c == '\\' => format!("\0{:04X}", u32::from(c)),
                c => c.to_string(),
            };
            *text = text.chars().map(marked).collect();
        }
        Value::Array(values) => values.iter_mut().for_each(mark_unsafe),
        Value::Object(values) => values.values_mut().for_each(mark_unsafe),
        _ => {}
    }
}

/// `table` without the keys that have no value: null, or an empty list or table.
fn given(table: Value) -> Value {
    let Value::Object(mut table) = table else { return table };
    table.retain(|key, value| match value {
        Value::Null => false,
        // Without any, those of the runner do not count.
        Value::Array(values) => !values.is_empty() || key == "fallback",
        Value::Object(values) => !values.is_empty(),
        _ => true,
    });
    table.into()
}

fn unless_default<T: PartialEq>(value: T, default: T) -> Option<T> {
    (value != default).then_some(value)
}

fn duration(time: Duration) -> String {
    humantime::format_duration(time).to_string()
}

fn plan_table(plan: &Plan, runners: &Runners<'_>) -> Value {
    let default = Timeouts::default();
    let timeouts = json!({
        "agent": plan.timeouts.agent.map(duration),
        "gate": unless_default(plan.timeouts.gate, default.gate).map(duration),
        "kill_after": unless_default(plan.timeouts.kill_after, default.kill_after).map(duration),
    });
    given(json!({
        "phase": plan.phase,
        "title": plan.title,
        "base_branch": plan.base_branch,
        "max_parallel": plan.max_parallel,
        "merge": plan.merge,
        "commit_message": plan.commit_message,
        "timeouts": given(timeouts),
        "pools": plan.pools,
        "require_gates": plan.require_gates,
        "shared_files": shares_files(plan).then_some(SharedFiles::Merge),
        "gates": unless_default(&plan.gates, &Gates::default()),
        "interface": plan.interfaces.iter().map(|interface| interface_table(plan, interface)).collect::<Vec<_>>(),
        "lane": plan.indices().map(|lane| lane_table(plan, lane, runners)).collect::<Vec<_>>(),
    }))
}

/// Whether lanes that may run at the same time own the same files, as a native plan allows only where it says so.
fn shares_files(plan: &Plan) -> bool {
    let of_lane = |lane: LaneIndex| plan.lane(lane).owns.iter().map(move |glob| Owned { lane: lane.at(), glob });
    let owned: Vec<Owned<'_>> = plan.indices().flat_map(of_lane).collect();
    let waits = |lane| plan.dag().dependencies(lane).iter().map(|on| on.at()).collect();
    let waits: Vec<Vec<usize>> = plan.indices().map(waits).collect();
    let order = Dependencies::new(&waits);
    let apart: HashSet<(usize, usize)> = plan.exclusions.iter().map(|(one, other)| (one.at(), other.at())).collect();
    let meets =
        |one: usize, other: usize| !order.ordered(one, other) && !apart.contains(&(one.min(other), one.max(other)));
    !overlaps(&owned, 1, meets).is_empty()
}

fn interface_table(plan: &Plan, interface: &Interface) -> Value {
    given(json!({
        "id": interface.id,
        "text": unless_default(interface.text.as_str(), ""),
        "closed": interface.closed.then_some(true),
        "provider": interface.provider.map(|lane| &plan.lane(lane).id),
    }))
}

fn lane_table(plan: &Plan, index: LaneIndex, runners: &Runners<'_>) -> Value {
    let lane = plan.lane(index);
    let id = |other: LaneIndex| &plan.lane(other).id;
    let excluded = plan.exclusions.iter().filter(|pair| pair.0 == index).map(|pair| id(pair.1));
    let lone = lone_agent(lane);
    let is_judged = !(lane.tests.is_empty() && plan.gates.checkpoint.is_empty());
    let without_tasks = has_only_task(lane);
    let only_task = workers(lane).next().filter(|_| without_tasks).map(|agent| &agent.tasks[0]);
    let prompt = only_task.filter(|_| lone.is_some()).map(|task| task.prompt.as_str());
    let mut table = json!({
        "id": lane.id,
        "name": lane.name,
        "depends_on": lane.depends_on.iter().map(|&other| id(other)).collect::<Vec<_>>(),
        "excludes": excluded.collect::<Vec<_>>(),
        "owns": lane.owns,
        "ownership": unless_default(lane.ownership, OwnershipRule::Enforced),
        "tests": lane.tests,
        "timeout": lane.timeout.map(duration),
        "closes": lane.closes,
        "max_cost": lane.budget.cost,
        "max_tokens": lane.budget.tokens,
        "retries": unless_default(lane.retries, RETRIES),
        "approval": lane.approval,
        "uses": lane.uses,
        "setup": lane.setup,
        "copy": lane.copy,
        "merge": lane.merge_style,
        "resume": unless_default(lane.resume, RetryFrom::Continue),
        "agent_worktrees": unless_default(lane.agent_worktrees, AgentWorktrees::unless_said(lane.agents.len(), is_judged)),
        "executor": lane.executor,
        "cpus": lane.resources.cpus,
        "memory_mib": lane.resources.memory_mib,
        "gpus": lane.resources.gpus,
        "image": lane.resources.image,
        "job_time": lane.resources.time.map(duration),
        "max_time": only_task.and_then(|task| task.max_time).map(duration),
        "allow_empty": may_be_empty(lane).then_some(true),
    });
    if let (Some(agent), Some(table)) = (lone, table.as_object_mut()) {
        write_program(agent, runners, table);
    }
    table["prompt"] = prompt.filter(|prompt| *prompt != default_prompt(lane)).into();
    table["env"] = json!(lane.env);
    table["criteria"] = json!(lane.criteria);
    table["user_setup"] = json!(lane.user_setup);
    table["must_haves"] = json!(unless_default(&lane.must_haves, &MustHaves::default()));
    if lone.is_none() {
        let of_own = lane.agents.iter().filter(|agent| agent.candidate.is_none_or(|number| number == 1));
        table["agent"] = of_own.map(|agent| agent_table(agent, lane, without_tasks, runners)).collect();
    }
    if !without_tasks {
        table["task"] = tasks(lane).into();
    }
    given(table)
}

/// The agents that do the lane's tasks.
fn workers(lane: &Lane) -> impl Iterator<Item = &Agent> {
    lane.agents.iter().filter(|agent| own_task(agent.round).is_none())
}

/// Whether the work of all agents that do the lane's tasks may change no file.
fn may_be_empty(lane: &Lane) -> bool {
    workers(lane).next().is_some() && workers(lane).all(|agent| agent.allow_empty)
}

/// The lane's agent, where the lane alone says everything about it.
fn lone_agent(lane: &Lane) -> Option<&Agent> {
    let [agent] = lane.agents.as_slice() else { return None };
    let implied = if [NO_RUNNER, UNSET_RUNNER].contains(&agent.runner.as_str()) { NAMELESS } else { &agent.runner };
    let plain = agent.env.is_empty() && agent.timeout.is_none() && own_task(agent.round).is_none();
    Some(agent).filter(|agent| plain && agent.name.as_str() == implied)
}

/// Whether a lane without tasks would have the tasks that this one has, but for the prompts.
fn has_only_task(lane: &Lane) -> bool {
    let max_time = workers(lane).next().and_then(|agent| agent.tasks[0].max_time);
    let plain = |task: &Task| {
        let lists = [&task.files, &task.interfaces, &task.acceptance_criteria];
        let nothing_else = task.name.is_none()
            && !task.kind.is_human()
            && task.command.is_none()
            && task.verify.is_empty()
            && !task.allow_empty
            && lists.iter().all(|list| list.is_empty());
        task.id.as_str() == ONLY_TASK && nothing_else && task.max_time == max_time
    };
    workers(lane).all(|agent| agent.tasks.len() == 1 && plain(&agent.tasks[0]))
}

/// The prompt where the plan has none.
fn default_prompt(lane: &Lane) -> &str {
    lane.name.as_deref().unwrap_or(lane.id.as_str())
}

fn write_program(agent: &Agent, runners: &Runners<'_>, table: &mut Map<String, Value>) {
    table.insert("fallback".to_owned(), json!(agent.fallback));
    if agent.runner == UNSET_RUNNER {
        return;
    }
    let runner = unless_default(agent.runner.as_str(), NO_RUNNER);
    let known = runner.and_then(runners);
    table.insert("runner".to_owned(), runner.into());
    table.insert("command".to_owned(), json!(unless_default(Some(&agent.command), known.as_ref())));
    if let Ok(Value::Object(options)) = serde_json::to_value(&agent.options) {
        table.extend(options);
    }
}

fn agent_table(agent: &Agent, lane: &Lane, without_tasks: bool, runners: &Runners<'_>) -> Value {
    let has_prompt = without_tasks || own_task(agent.round).is_some();
    let prompt = Some(agent.tasks[0].prompt.as_str()).filter(|prompt| has_prompt && *prompt != default_prompt(lane));
    let mut table = Map::from_iter([("name".to_owned(), json!(agent.name)), ("round".to_owned(), json!(agent.round))]);
    write_program(agent, runners, &mut table);
    let mut table = Value::from(table);
    table["timeout"] = agent.timeout.map(duration).into();
    table["allow_empty"] = Some(true).filter(|_| agent.allow_empty && !may_be_empty(lane)).into();
    table["prompt"] = prompt.into();
    table["env"] = json!(agent.env);
    if agent.candidate.is_some() {
        write_candidates(lane, &mut table);
    }
    given(table)
}

/// Writes all candidates of the lane into the table of the first.
fn write_candidates(lane: &Lane, table: &mut Value) {
    let all: Vec<&Agent> = lane.candidates().map(|at| &lane.agents[at]).collect();
    let base = |agent: &Agent| agent.name.as_str().rsplit_once('-').map(|(base, _)| base.to_owned());
    let bases: HashSet<_> = all.iter().map(|agent| base(agent)).collect();
    table["name"] = base(all[0]).filter(|_| bases.len() == 1).into();
    let program = |agent: &Agent| (agent.runner.clone(), agent.options.model.clone());
    if all.iter().all(|agent| program(agent) == program(all[0])) {
        table["candidates"] = all.len().into();
        return;
    }
    for key in ["runner", "command", "model"] {
        table[key] = Value::Null;
    }
    let written = |agent: &&Agent| {
        let (runner, model) = program(agent);
        runner + &model.map(|model| format!(":{model}")).unwrap_or_default()
    };
    table["candidates"] = all.iter().map(written).collect();
}

fn task_table(task: &Task, agent: Option<&Agent>) -> Value {
    given(json!({
        "id": task.id,
        "name": task.name,
        "type": Some(task.kind).filter(|kind| kind.is_human()).map(TaskKind::word),
        "prompt": Some(&task.prompt).filter(|&prompt| task.name.as_ref() != Some(prompt)),
        "agent": agent.map(|agent| &agent.name),
        "command": task.command,
        "verify": task.verify,
        "max_time": task.max_time.map(duration),
        "files": task.files,
        "interfaces": task.interfaces,
        "acceptance_criteria": task.acceptance_criteria,
        "allow_empty": task.allow_empty.then_some(true),
    }))
}

/// The lane's tasks in an order that each agent's own agrees with: every agent's own tasks up to the next common one,
/// then that.
fn tasks(lane: &Lane) -> Vec<Value> {
    let staff: Vec<&Agent> = workers(lane).collect();
    let has = |agent: &Agent, task: &Task| agent.tasks.iter().any(|other| other.id == task.id);
    let is_common = |task: &Task| staff.iter().all(|agent| has(agent, task));
    let mut left: Vec<&[Task]> = staff.iter().map(|agent| agent.tasks.as_slice()).collect();
    let mut list = Vec::new();
    loop {
        for (agent, left) in staff.iter().zip(&mut left) {
            let own = left.iter().position(is_common).unwrap_or(left.len());
            list.extend(left[..own].iter().map(|task| task_table(task, Some(agent))));
            *left = &left[own..];
        }
        let Some(common) = left.first().and_then(|tasks| tasks.first()) else { return list };
        list.push(task_table(common, None));
        left.iter_mut().for_each(|tasks| *tasks = tasks.get(1..).unwrap_or_default());
    }
}
