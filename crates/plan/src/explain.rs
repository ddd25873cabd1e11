//! What a plan would do, for people and programs: what `plan show` prints. Nothing is run to find out.

mod text;

use std::time::Duration;

use lanewright_agents::shell::has_gate;
use lanewright_model::plan::{EdgeOrigin, Interface, SPECIALIST_TIME_LIMIT, Skipped};
use lanewright_model::time::millis;
use lanewright_model::{Agent, Gates, Lane, LaneId, LaneIndex, MergeChoice, Plan, Timeouts};
use serde::Serialize;

use super::overlap::{Owned, overlaps};
use super::sharing::Sharing;

/// How many pairs of lanes that share files are named.
const MAX_SHARED: usize = 50;

/// A plan with everything that follows from it, as `plan show` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    phase: String,
    title: Option<String>,
    base_branch: Option<String>,
    max_parallel: Option<u32>,
    merge: Option<MergeChoice>,
    commit_message: Option<String>,
    lanes: Vec<LaneExplanation>,
    critical_path: Vec<LaneId>,
    /// The time limits along that way; no run takes longer that is never retried and never waits for a place.
    #[serde(with = "millis", rename = "critical_path_ms")]
    critical_time: Duration,
    /// Lanes without an edge between them that never run at the same time.
    exclusions: Vec<(LaneId, LaneId)>,
    /// Those of them that keep an order, as (first, second).
    sequences: Vec<(LaneId, LaneId)>,
    shared: Vec<Shared>,
    interfaces: Vec<InterfaceExplanation>,
    skipped: Vec<Skipped>,
    gates: Gates,
    /// What becomes of lanes that share files; absent where only the plan is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing: Option<Sharing>,
}

impl Explanation {
    /// The same with what became of lanes that share files when the plan was read.
    pub fn with_sharing(self, sharing: Sharing) -> Self {
        Self { sharing: Some(sharing), ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct LaneExplanation {
    /// From 1: one more than the latest lane that it waits for.
    wave: u32,
    waits_for: Vec<LaneId>,
    /// Those of them that it does not name itself, and why it waits for them.
    because: Vec<(LaneId, EdgeOrigin)>,
    /// The time limits of all its tasks together.
    #[serde(with = "millis", rename = "time_ms")]
    time: Duration,
    /// The time limit of each task of each agent, in milliseconds, in the order of `lane`.
    task_limits_ms: Vec<Vec<u64>>,
    /// Whether a command judges its work before it is merged, one that can fail.
    has_gate: bool,
    /// The lanes that it names itself.
    depends_on: Vec<LaneId>,
    #[serde(serialize_with = "without_indices")]
    lane: Lane,
}

/// Indices of lanes mean nothing to a reader.
fn without_indices<S: serde::Serializer>(lane: &Lane, serializer: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(lane).map_err(serde::ser::Error::custom)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("depends_on");
    }
    value.serialize(serializer)
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct InterfaceExplanation {
    id: String,
    text: String,
    closed: bool,
    provider: Option<LaneId>,
}

/// Two lanes that own the same files, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Shared {
    lanes: (LaneId, LaneId),
    globs: (String, String),
    /// A path that both globs match; `None` where the search for one was given up.
    example: Option<String>,
}

/// Works out what follows from `plan`.
pub fn explain(plan: &Plan) -> Explanation {
    let id = |lane: LaneIndex| plan.lane(lane).id.clone();
    let weight = |lane: LaneIndex| milliseconds(lane_time(plan.lane(lane), &plan.timeouts));
    let waves = plan.dag().waves();
    let critical = critical_path(plan);
    Explanation {
        phase: plan.phase.to_string(),
        title: plan.title.clone(),
        base_branch: plan.base_branch.clone(),
        max_parallel: plan.max_parallel,
        merge: plan.merge,
        commit_message: plan.commit_message.clone(),
        lanes: plan.indices().map(|lane| explain_lane(plan, lane, waves[lane.at()])).collect(),
        critical_time: Duration::from_millis(critical.iter().map(|&lane| weight(lane)).sum()),
        critical_path: critical.into_iter().map(id).collect(),
        exclusions: plan.exclusions.iter().map(|&(one, other)| (id(one), id(other))).collect(),
        sequences: plan.sequences.iter().map(|&(first, then)| (id(first), id(then))).collect(),
        shared: shared(plan),
        interfaces: plan.interfaces.iter().map(|interface| explain_interface(plan, interface)).collect(),
        skipped: plan.skipped.clone(),
        gates: plan.gates.clone(),
        sharing: None,
    }
}

/// The lanes that take longest one after the other, going by their time limits.
pub fn critical_path(plan: &Plan) -> Vec<LaneIndex> {
    plan.dag().critical_path(|lane| milliseconds(lane_time(plan.lane(lane), &plan.timeouts)))
}

fn explain_lane(plan: &Plan, index: LaneIndex, wave: u32) -> LaneExplanation {
    let lane = plan.lane(index);
    let ids = |lanes: &[LaneIndex]| lanes.iter().map(|&other| plan.lane(other).id.clone()).collect();
    let added = plan.added_edges.iter().filter(|edge| edge.lane == index);
    let limits = |agent: &Agent| task_limits(agent, &plan.timeouts).map(milliseconds).collect();
    LaneExplanation {
        wave,
        waits_for: ids(plan.dag().dependencies(index)),
        because: added.map(|edge| (plan.lane(edge.on).id.clone(), edge.origin.clone())).collect(),
        time: lane_time(lane, &plan.timeouts),
        task_limits_ms: lane.agents.iter().map(limits).collect(),
        has_gate: has_gate(plan, lane),
        depends_on: ids(&lane.depends_on),
        lane: lane.clone(),
    }
}

/// The lanes whose work no command judges before it is merged.
pub fn without_gate(plan: &Plan) -> Vec<LaneId> {
    plan.lanes.iter().filter(|lane| !has_gate(plan, lane)).map(|lane| lane.id.clone()).collect()
}

fn explain_interface(plan: &Plan, interface: &Interface) -> InterfaceExplanation {
    InterfaceExplanation {
        id: interface.id.clone(),
        text: interface.text.clone(),
        closed: interface.closed,
        provider: interface.provider.map(|lane| plan.lane(lane).id.clone()),
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
