//! What a plan would do, for people and programs: what `plan show` prints. Nothing is run to find out.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::diagnostic::printable;
use super::overlap::{Owned, overlaps};
use crate::model::plan::SPECIALIST_TIME_LIMIT;
use crate::model::text::counted;
use crate::model::time::{millis, short};
use crate::model::{Agent, CommandLine, Gates, Lane, LaneId, LaneIndex, MergeMode, Plan, Round, TaskId, Timeouts};

/// How many pairs of lanes that share files are named.
const MAX_SHARED: usize = 50;

/// A plan with everything that follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The phase's id.
    pub phase: String,
    /// What the phase is called.
    pub title: Option<String>,
    /// The integration branch that the plan asks for.
    pub base_branch: Option<String>,
    /// How many agents may run at once, where the plan says so.
    pub max_parallel: Option<u32>,
    /// How lanes reach the integration branch, where the plan says so.
    pub merge: Option<MergeMode>,
    /// The lanes in the order of the plan.
    pub lanes: Vec<LaneExplanation>,
    /// The longest way through the lanes, first lane first.
    pub critical_path: Vec<LaneId>,
    /// The time limits along that way; no run takes longer that is never retried and never waits for a place.
    #[serde(with = "millis", rename = "critical_path_ms")]
    pub critical_time: Duration,
    /// Lanes without an edge between them that never run at the same time.
    pub exclusions: Vec<(LaneId, LaneId)>,
    /// Lanes that own the same files, one after the other.
    pub shared: Vec<Shared>,
    /// Commands that must pass.
    pub gates: Gates,
}

/// A lane of an [`Explanation`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneExplanation {
    /// Its wave, from 1: one more than the latest lane that it waits for.
    pub wave: u32,
    /// The lanes that it waits for.
    pub waits_for: Vec<LaneId>,
    /// The time limits of all its tasks together.
    #[serde(with = "millis", rename = "time_ms")]
    pub time: Duration,
    /// The time limit of each task of each agent, in milliseconds, in the order of `lane`.
    pub task_limits_ms: Vec<Vec<u64>>,
    /// The lane itself.
    pub lane: Lane,
}

/// Two lanes that own the same files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shared {
    /// The two, in the order of the plan.
    pub lanes: (LaneId, LaneId),
    /// The glob of each.
    pub globs: (String, String),
    /// A path that both globs match; `None` where only a long search could tell.
    pub example: Option<String>,
}

/// Works out what follows from `plan`.
pub fn explain(plan: &Plan) -> Explanation {
    let id = |lane: LaneIndex| plan.lane(lane).id.clone();
    let weight = |lane: LaneIndex| milliseconds(lane_time(plan.lane(lane), &plan.timeouts));
    let waves = plan.dag().waves();
    let critical = plan.dag().critical_path(weight);
    Explanation {
        phase: plan.phase.to_string(),
        title: plan.title.clone(),
        base_branch: plan.base_branch.clone(),
        max_parallel: plan.max_parallel,
        merge: plan.merge,
        lanes: plan.indices().map(|lane| explain_lane(plan, lane, waves[lane.at()])).collect(),
        critical_time: Duration::from_millis(critical.iter().map(|&lane| weight(lane)).sum()),
        critical_path: critical.into_iter().map(id).collect(),
        exclusions: plan.exclusions.iter().map(|&(one, other)| (id(one), id(other))).collect(),
        shared: shared(plan),
        gates: plan.gates.clone(),
    }
}

fn explain_lane(plan: &Plan, index: LaneIndex, wave: u32) -> LaneExplanation {
    let lane = plan.lane(index);
    let limits = |agent: &Agent| task_limits(agent, &plan.timeouts).map(milliseconds).collect();
    LaneExplanation {
        wave,
        waits_for: plan.dag().dependencies(index).iter().map(|&other| plan.lane(other).id.clone()).collect(),
        time: lane_time(lane, &plan.timeouts),
        task_limits_ms: lane.agents.iter().map(limits).collect(),
        lane: lane.clone(),
    }
}

fn task_limits<'a>(agent: &'a Agent, timeouts: &'a Timeouts) -> impl Iterator<Item = Duration> + 'a {
    (0..agent.tasks.len()).map(|task| agent.time_limit(task, timeouts, SPECIALIST_TIME_LIMIT))
}

fn lane_time(lane: &Lane, timeouts: &Timeouts) -> Duration {
    lane.agents.iter().flat_map(|agent| task_limits(agent, timeouts)).sum()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn shared(plan: &Plan) -> Vec<Shared> {
    let of_lane = |lane: LaneIndex| plan.lane(lane).owns.iter().map(move |glob| Owned { lane: lane.at(), glob });
    let owned: Vec<Owned<'_>> = plan.indices().flat_map(of_lane).collect();
    let id = |at: usize| plan.lanes[owned[at].lane].id.clone();
    let overlaps = overlaps(&owned, MAX_SHARED, |_, _| true).into_iter();
    let shared = overlaps.map(|overlap| Shared {
        lanes: (id(overlap.one), id(overlap.other)),
        globs: (owned[overlap.one].glob.to_owned(), owned[overlap.other].glob.to_owned()),
        example: overlap.example,
    });
    shared.collect()
}

/// The explanation as text for people.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.phase)?;
        self.title.iter().try_for_each(|title| write!(f, ": {}", printable(title)))?;
        writeln!(f, "\n{}", self.summary())?;
        self.lanes.iter().try_for_each(|lane| write!(f, "\n{lane}"))?;
        writeln!(f, "\ncritical path  {} ({})", joined(&self.critical_path, " -> "), short(self.critical_time))?;
        for (one, other) in &self.exclusions {
            writeln!(f, "kept apart     {one}, {other}")?;
        }
        for shared in &self.shared {
            writeln!(f, "shared files   {shared}")?;
        }
        write_commands(f, "", "after a task ", &self.gates.atomic)?;
        write_commands(f, "", "after a merge", &self.gates.checkpoint)?;
        write_commands(f, "", "at the end   ", &self.gates.last)
    }
}

impl Explanation {
    fn summary(&self) -> String {
        let mut parts = vec![counted(self.lanes.len(), "lane")];
        let waves = self.lanes.iter().map(|lane| lane.wave).max().unwrap_or(0);
        parts.push(counted(waves as usize, "wave"));
        parts.extend(self.base_branch.iter().map(|branch| format!("onto {}", printable(branch))));
        parts.extend(self.merge.iter().map(|mode| format!("merge {mode}")));
        parts.extend(
            self.max_parallel.iter().map(|number| format!("at most {} at once", counted(*number as usize, "agent"))),
        );
        parts.join(", ")
    }
}

impl fmt::Display for LaneExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = &self.lane;
        write!(f, "{}", lane.id)?;
        lane.name.iter().try_for_each(|name| write!(f, "  {}", printable(name)))?;
        writeln!(f)?;
        writeln!(f, "  wave {}, at most {}{}", self.wave, short(self.time), self.after())?;
        write_list(f, "owns", &lane.owns)?;
        write_list(f, "uses", &lane.uses)?;
        write_list(f, "approval", &lane.approval)?;
        write_list(f, "copy", &lane.copy)?;
        write_commands(f, "  ", "setup", &lane.setup)?;
        for (agent, limits) in lane.agents.iter().zip(&self.task_limits_ms) {
            write_agent(f, agent, limits)?;
        }
        write_commands(f, "  ", "tests", &lane.tests)
    }
}

impl LaneExplanation {
    fn after(&self) -> String {
        if self.waits_for.is_empty() { String::new() } else { format!(", after {}", joined(&self.waits_for, ", ")) }
    }
}

fn write_agent(f: &mut fmt::Formatter<'_>, agent: &Agent, limits_ms: &[u64]) -> fmt::Result {
    let round = if agent.round == Round::Implementation { String::new() } else { format!(" ({})", agent.round) };
    writeln!(f, "  agent {}{round}  $ {}", agent.name, printable(&agent.command.to_string()))?;
    for (task, limit) in agent.tasks.iter().zip(limits_ms) {
        write!(f, "    task {}", task_title(&task.id, task.name.as_deref()))?;
        writeln!(f, ", at most {}", short(Duration::from_millis(*limit)))?;
        write_commands(f, "    ", "  verify", &task.verify)?;
    }
    Ok(())
}

fn task_title(id: &TaskId, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_string(), |name| format!("{id}: {}", printable(name)))
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, label: &str, list: &[T]) -> fmt::Result {
    if list.is_empty() { Ok(()) } else { writeln!(f, "  {label} {}", printable(&joined(list, ", "))) }
}

fn write_commands(f: &mut fmt::Formatter<'_>, indent: &str, label: &str, commands: &[CommandLine]) -> fmt::Result {
    commands.iter().try_for_each(|command| writeln!(f, "{indent}{label}  $ {}", printable(&command.to_string())))
}

fn joined<T: fmt::Display>(list: &[T], between: &str) -> String {
    list.iter().map(T::to_string).collect::<Vec<_>>().join(between)
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((one, other), (left, right)) = (&self.lanes, &self.globs);
        write!(f, "{one} ({}), {other} ({})", printable(left), printable(right))?;
        self.example.iter().try_for_each(|path| write!(f, ", for example {}", printable(path)))
    }
}
