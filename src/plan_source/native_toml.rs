//! A plan as native TOML: what `plan convert` prints.
//!
//! Whatever can be left out is left out; reading the text gives the same plan again.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::lower::agents::NAMELESS;
use super::lower::lane::RETRIES;
use super::lower::program::NO_RUNNER;
use super::lower::tasks::{ONLY_TASK, own_task};
use crate::model::plan::{AgentWorktrees, Interface, OwnershipRule, RetryFrom};
use crate::model::safe_text::is_unsafe;
use crate::model::{
    Agent, CommandLine, Gates, Lane, LaneIndex, MustHaves, Plan, Task, TaskKind, Timeouts, UNSET_RUNNER,
};

/// Writes `plan` as native TOML. `runners` is what it is to be read with: a command that it gives is left out.
pub fn write(plan: &Plan, runners: &dyn Fn(&str) -> Option<CommandLine>) -> String {
    let text = PlanText {
        phase: plan.phase.as_str(),
        title: plan.title.as_deref(),
        base_branch: plan.base_branch.as_deref(),
        max_parallel: plan.max_parallel,
        merge: plan.merge.map(|mode| mode.word()),
        timeouts: TimeoutsText::of(&plan.timeouts),
        pools: &plan.pools,
        gates: &plan.gates,
        interface: plan.interfaces.iter().map(|interface| InterfaceText::of(plan, interface)).collect(),
        lane: plan.indices().map(|lane| LaneText::of(plan, lane, runners)).collect(),
    };
    const FITS: &str = "text, numbers, lists and tables are all that TOML asks for";
    let written = toml::to_string_pretty(&text).expect(FITS);
    if !written.contains(is_unsafe) {
        return written;
    }
    let mut value = toml::Value::try_from(&text).expect(FITS);
    mark_unsafe(&mut value);
    toml::to_string_pretty(&value).expect(FITS).replace("\\u0000", "\\u")
}

/// Puts a NUL and its code in place of each character that is to be written as an escape. A NUL can only be written as one
/// itself (`\u0000`), in a kind of string that has escapes.
fn mark_unsafe(value: &mut toml::Value) {
    match value {
        toml::Value::String(text) => {
            let marked = |c: char| match c {
                // A backslash as well: none that the text has may be taken for one of an escape.
                c if is_unsafe(c) || c == '\\' => format!("\0{:04X}", u32::from(c)),
                c => c.to_string(),
            };
            *text = text.chars().map(marked).collect();
        }
        toml::Value::Array(values) => values.iter_mut().for_each(mark_unsafe),
        toml::Value::Table(values) => values.iter_mut().for_each(|(_, value)| mark_unsafe(value)),
        _ => {}
    }
}

#[derive(Serialize)]
struct PlanText<'a> {
    phase: &'a str,
    title: Option<&'a str>,
    base_branch: Option<&'a str>,
    max_parallel: Option<u32>,
    merge: Option<&'a str>,
    #[serde(skip_serializing_if = "TimeoutsText::is_default")]
    timeouts: TimeoutsText,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pools: &'a BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "no_gates")]
    gates: &'a Gates,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interface: Vec<InterfaceText<'a>>,
    lane: Vec<LaneText<'a>>,
}

#[derive(Serialize)]
struct InterfaceText<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    closed: Option<bool>,
    provider: Option<&'a str>,
}

impl<'a> InterfaceText<'a> {
    fn of(plan: &'a Plan, interface: &'a Interface) -> Self {
        Self {
            id: &interface.id,
            text: &interface.text,
            closed: interface.closed.then_some(true),
            provider: interface.provider.map(|lane| plan.lane(lane).id.as_str()),
        }
    }
}

fn no_gates(gates: &&Gates) -> bool {
    **gates == Gates::default()
}

#[derive(Serialize)]
struct TimeoutsText {
    agent: Option<String>,
    gate: Option<String>,
    kill_after: Option<String>,
}

impl TimeoutsText {
    fn of(timeouts: &Timeouts) -> Self {
        let default = Timeouts::default();
        Self {
            agent: timeouts.agent.map(duration),
            gate: (timeouts.gate != default.gate).then(|| duration(timeouts.gate)),
            kill_after: (timeouts.kill_after != default.kill_after).then(|| duration(timeouts.kill_after)),
        }
    }

    fn is_default(&self) -> bool {
        self.agent.is_none() && self.gate.is_none() && self.kill_after.is_none()
    }
}

fn duration(time: Duration) -> String {
    humantime::format_duration(time).to_string()
}

#[derive(Serialize)]
struct LaneText<'a> {
    id: &'a str,
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excludes: Vec<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    owns: &'a [String],
    ownership: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tests: &'a [CommandLine],
    timeout: Option<String>,
    retries: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    approval: Vec<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    uses: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    setup: &'a [CommandLine],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    copy: &'a [String],
    resume: Option<&'a str>,
    agent_worktrees: Option<&'a str>,
    max_time: Option<String>,
    allow_empty: Option<bool>,
    #[serde(flatten)]
    program: ProgramText<'a>,
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "must_haves_are_empty")]
    must_haves: &'a MustHaves,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agent: Vec<AgentText<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    task: Vec<TaskText<'a>>,
}

impl<'a> LaneText<'a> {
    fn of(plan: &'a Plan, index: LaneIndex, runners: &dyn Fn(&str) -> Option<CommandLine>) -> Self {
        let lane = plan.lane(index);
        let id = |other: LaneIndex| plan.lane(other).id.as_str();
        let lone = lone_agent(lane);
        let without_tasks = has_only_task(lane);
        let only_task = workers(lane).next().filter(|_| without_tasks).map(|agent| &agent.tasks[0]);
        let told = |task: &'a Task| Some(task.prompt.as_str()).filter(|prompt| *prompt != default_prompt(lane));
        Self {
            id: lane.id.as_str(),
            name: lane.name.as_deref(),
            depends_on: lane.depends_on.iter().map(|&other| id(other)).collect(),
            excludes: plan.exclusions.iter().filter(|pair| pair.0 == index).map(|pair| id(pair.1)).collect(),
            owns: &lane.owns,
            ownership: Some(lane.ownership).filter(|&rule| rule != OwnershipRule::Enforced).map(OwnershipRule::word),
            tests: &lane.tests,
            timeout: lane.timeout.map(duration),
            retries: Some(lane.retries).filter(|&retries| retries != RETRIES),
            approval: lane.approval.iter().map(|gate| gate.word()).collect(),
            uses: &lane.uses,
            setup: &lane.setup,
            copy: &lane.copy,
            resume: Some(lane.resume).filter(|&resume| resume != RetryFrom::Continue).map(RetryFrom::word),
            agent_worktrees: Some(lane.agent_worktrees)
                .filter(|&which| which != AgentWorktrees::On)
                .map(AgentWorktrees::word),
            max_time: only_task.and_then(|task| task.max_time).map(duration),
            allow_empty: may_be_empty(lane).then_some(true),
            program: lone.map_or_else(ProgramText::default, |agent| ProgramText::of(agent, runners)),
            prompt: only_task.filter(|_| lone.is_some()).and_then(told),
            env: &lane.env,
            must_haves: &lane.must_haves,
            agent: match lone {
                Some(_) => Vec::new(),
                None => lane.agents.iter().map(|agent| AgentText::of(agent, lane, without_tasks, runners)).collect(),
            },
            task: if without_tasks { Vec::new() } else { tasks(lane) },
        }
    }
}

fn must_haves_are_empty(must_haves: &&MustHaves) -> bool {
    must_haves.is_empty()
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

/// Whether a lane without tasks would have the tasks that this one has, but for what the agents are told.
fn has_only_task(lane: &Lane) -> bool {
    let max_time = workers(lane).next().and_then(|agent| agent.tasks[0].max_time);
    let plain = |task: &Task| {
        let lists = [&task.files, &task.interfaces, &task.acceptance_criteria];
        let nothing_else = task.name.is_none()
            && !task.kind.is_human()
            && task.verify.is_empty()
            && !task.allow_empty
            && lists.iter().all(|list| list.is_empty());
        task.id.as_str() == ONLY_TASK && nothing_else && task.max_time == max_time
    };
    workers(lane).all(|agent| agent.tasks.len() == 1 && plain(&agent.tasks[0]))
}

/// What an agent is told where the plan says nothing.
fn default_prompt(lane: &Lane) -> &str {
    lane.name.as_deref().unwrap_or(lane.id.as_str())
}

#[derive(Serialize, Default)]
struct ProgramText<'a> {
    runner: Option<&'a str>,
    command: Option<&'a CommandLine>,
}

impl<'a> ProgramText<'a> {
    fn of(agent: &'a Agent, runners: &dyn Fn(&str) -> Option<CommandLine>) -> Self {
        if agent.runner == UNSET_RUNNER {
            return Self::default();
        }
        let runner = Some(agent.runner.as_str()).filter(|&name| name != NO_RUNNER);
        let known = runner.and_then(runners).as_ref() == Some(&agent.command);
        Self { runner, command: Some(&agent.command).filter(|_| !known) }
    }
}

#[derive(Serialize)]
struct AgentText<'a> {
    name: &'a str,
    round: &'a str,
    #[serde(flatten)]
    program: ProgramText<'a>,
    timeout: Option<String>,
    allow_empty: Option<bool>,
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: &'a BTreeMap<String, String>,
}

impl<'a> AgentText<'a> {
    fn of(agent: &'a Agent, lane: &Lane, without_tasks: bool, runners: &dyn Fn(&str) -> Option<CommandLine>) -> Self {
        let told = without_tasks || own_task(agent.round).is_some();
        let prompt = Some(agent.tasks[0].prompt.as_str()).filter(|prompt| told && *prompt != default_prompt(lane));
        Self {
            name: agent.name.as_str(),
            round: agent.round.word(),
            program: ProgramText::of(agent, runners),
            timeout: agent.timeout.map(duration),
            allow_empty: Some(true).filter(|_| agent.allow_empty && !may_be_empty(lane)),
            prompt,
            env: &agent.env,
        }
    }
}

#[derive(Serialize)]
struct TaskText<'a> {
    id: &'a str,
    name: Option<&'a str>,
    #[serde(rename = "type")]
    kind: Option<&'static str>,
    prompt: Option<&'a str>,
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    verify: &'a [CommandLine],
    max_time: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    files: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    interfaces: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    acceptance_criteria: &'a [String],
    allow_empty: Option<bool>,
}

impl<'a> TaskText<'a> {
    fn of(task: &'a Task, agent: Option<&'a str>) -> Self {
        Self {
            id: task.id.as_str(),
            name: task.name.as_deref(),
            kind: Some(task.kind).filter(|kind| kind.is_human()).map(TaskKind::word),
            prompt: Some(task.prompt.as_str()).filter(|&prompt| task.name.as_deref() != Some(prompt)),
            agent,
            verify: &task.verify,
            max_time: task.max_time.map(duration),
            files: &task.files,
            interfaces: &task.interfaces,
            acceptance_criteria: &task.acceptance_criteria,
            allow_empty: task.allow_empty.then_some(true),
        }
    }
}

/// The lane's tasks in an order that each agent's own agrees with: every agent's own tasks up to the next common one,
/// then that.
fn tasks(lane: &Lane) -> Vec<TaskText<'_>> {
    let staff: Vec<&Agent> = workers(lane).collect();
    let has = |agent: &Agent, task: &Task| agent.tasks.iter().any(|other| other.id == task.id);
    let is_common = |task: &Task| staff.iter().all(|agent| has(agent, task));
    let mut left: Vec<&[Task]> = staff.iter().map(|agent| agent.tasks.as_slice()).collect();
    let mut list = Vec::new();
    loop {
        for (agent, left) in staff.iter().zip(&mut left) {
            let own = left.iter().position(is_common).unwrap_or(left.len());
            list.extend(left[..own].iter().map(|task| TaskText::of(task, Some(agent.name.as_str()))));
            *left = &left[own..];
        }
        let Some(common) = left.first().and_then(|tasks| tasks.first()) else { return list };
        list.push(TaskText::of(common, None));
        left.iter_mut().for_each(|tasks| *tasks = tasks.get(1..).unwrap_or_default());
    }
}
