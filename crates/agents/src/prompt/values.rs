//! What templates of prompts are filled with.

use lanewright_model::plan::Gates;
use lanewright_model::{Agent, AgentName, CommandLine, Lane, LaneId, PhaseId, Plan, Round, Task, TaskId};
use serde::Serialize;

/// What a template can show. `docs/prompts.md` describes each value.
#[derive(Debug, Clone, Serialize)]
pub struct Values<'a> {
    pub phase: &'a PhaseId,
    pub lane: &'a LaneId,
    pub lane_name: Option<&'a str>,
    pub agent: &'a AgentName,
    pub round: Round,
    pub task: TaskValues<'a>,
    pub files: &'a [String],
    pub interfaces: &'a [String],
    pub acceptance_criteria: &'a [String],
    pub must_haves: Vec<String>,
    pub criteria: Option<&'a str>,
    pub owns: &'a [String],
    pub ownership: &'static str,
    pub must_change_files: bool,
    pub gates: GateValues,
    pub asked: Vec<TaskValues<'a>>,
    pub base: &'a str,
    pub head: &'a str,
    pub branch: &'a str,
    pub reports: &'a [ReportValues],
    pub candidates: &'a [CandidateValues<'a>],
    pub remarks: &'a [String],
    pub done: Vec<&'a str>,
    pub changed: &'a [String],
    pub decisions: &'a [String],
    pub last_words: &'a [String],
    pub refusals: &'a [String],
    pub complaints: &'a [String],
    pub left_out: &'a [String],
    pub same_numbers: &'a [String],
    pub attempt: u32,
    pub max_retries: u32,
    pub failures: &'a [String],
    pub last_chance: bool,
    pub salvaged: Option<&'a str>,
}

#[derive(Debug, Clone, Serialize)]
pub struct TaskValues<'a> {
    pub agent: &'a AgentName,
    pub id: &'a TaskId,
    pub name: Option<&'a str>,
    pub prompt: &'a str,
}

/// What an agent of the requirements round found out.
#[derive(Debug, Clone, Serialize)]
pub struct ReportValues {
    pub agent: String,
    pub text: String,
}

/// A candidate that a judge can choose.
#[derive(Debug, Clone, Serialize)]
pub struct CandidateValues<'a> {
    pub number: u32,
    pub runner: &'a str,
    pub model: Option<&'a str>,
    pub base: &'a str,
    pub head: &'a str,
    /// How much it changed, in words.
    pub size: String,
}

/// The commands that judge the work.
#[derive(Debug, Clone, Serialize)]
pub struct GateValues {
    pub task: Vec<String>,
    pub checkpoint: Vec<String>,
    pub tests: Vec<String>,
}

impl<'a> Values<'a> {
    /// Those of the first attempt at a task, as far as the plan knows them.
    pub fn planned(plan: &'a Plan, lane: &'a Lane, agent: usize, task: &'a Task) -> Self {
        let who = &lane.agents[agent];
        Self {
            phase: &plan.phase,
            lane: &lane.id,
            lane_name: lane.name.as_deref(),
            agent: &who.name,
            round: who.round,
            task: TaskValues::of(who, task),
            files: &task.files,
            interfaces: &task.interfaces,
            acceptance_criteria: &task.acceptance_criteria,
            must_haves: must_haves(lane, who, task),
            criteria: lane.criteria.as_deref().filter(|_| matches!(who.round, Round::Review | Round::Judge)),
            owns: &lane.owns,
            ownership: lane.ownership.word(),
            must_change_files: lane.must_change_files(agent),
            gates: GateValues::of(&plan.gates, lane, task),
            asked: asked(lane),
            base: "BASE",
            head: "HEAD",
            branch: "",
            reports: &[],
            candidates: &[],
            remarks: &[],
            done: Vec::new(),
            changed: &[],
            decisions: &[],
            last_words: &[],
            refusals: &[],
            complaints: &[],
            left_out: &[],
            same_numbers: &[],
            attempt: 1,
            max_retries: lane.retries,
            failures: &[],
            last_chance: false,
            salvaged: None,
        }
    }
}

/// What the lane must have, for the last task of an agent that implements or reviews it, unless the prompt contains it.
fn must_haves(lane: &Lane, agent: &Agent, task: &Task) -> Vec<String> {
    let is_last = agent.tasks.last().is_none_or(|last| last.id == task.id);
    if !is_last || agent.round == Round::Requirements {
        return Vec::new();
    }
    let requirements = lane.must_haves.descriptions().into_iter();
    requirements.filter(|line| !task.prompt.contains(line.as_str())).collect()
}

/// The tasks of the lane's implementation round, those of candidates once.
fn asked(lane: &Lane) -> Vec<TaskValues<'_>> {
    let agents = lane.round(Round::Implementation).map(|agent| &lane.agents[agent]);
    let agents = agents.filter(|agent| agent.candidate.is_none_or(|number| number == 1));
    agents.flat_map(|agent| agent.tasks.iter().map(|task| TaskValues::of(agent, task))).collect()
}

impl<'a> TaskValues<'a> {
    fn of(agent: &'a Agent, task: &'a Task) -> Self {
        Self { agent: &agent.name, id: &task.id, name: task.name.as_deref(), prompt: task.prompt.trim_end() }
    }
}

impl GateValues {
    fn of(gates: &Gates, lane: &Lane, task: &Task) -> Self {
        let lines = |commands: &[CommandLine]| commands.iter().map(ToString::to_string).collect();
        let own: Vec<CommandLine> = task.verify.iter().chain(&gates.atomic).cloned().collect();
        Self { task: lines(&own), checkpoint: lines(&gates.checkpoint), tests: lines(&lane.tests) }
    }
}
