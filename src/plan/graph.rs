//! The lanes of a plan as a graph to draw.

use lanewright_model::Plan;

use super::explain::critical_path;
use crate::graph::{Graph, Node};

/// The lanes of `plan` with what they wait for. The critical path is the one with the longest time limits.
pub fn graph(plan: &Plan) -> Graph {
    let critical = critical_path(plan);
    let node = |lane| Node {
        id: plan.lane(lane).id.clone(),
        title: plan.lane(lane).name.clone(),
        state: None,
        depends_on: plan.dag().dependencies(lane).to_vec(),
        is_critical: critical.contains(&lane),
        link: None,
    };
    Graph::new(plan.indices().map(node).collect()).with_lanes_apart(plan.exclusions.clone())
}
