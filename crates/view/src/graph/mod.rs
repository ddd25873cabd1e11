//! The lanes of a plan or of a run as a picture: laid out in layers, drawn as SVG and as text, and in DOT and Mermaid.
//!
//! Titles are data: they are escaped, so that they cannot say anything in any of these languages.

mod json;
mod languages;
mod layers;
mod layout;
mod placing;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashMap;

use lanewright_model::{Dag, LaneId, LaneIndex, Plan};

use crate::history::StateGroup;
pub use json::GraphJson;
pub use svg::{STYLE, SvgStyle};
pub use text::TextForm;

/// The state of a lane: what is said of it, and the group that decides its look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeState {
    pub group: StateGroup,
    /// The words of `state` in JSON, such as `waiting for approval (plan)`.
    pub word: &'static str,
    /// The words of `status`, such as `needs approval`.
    pub brief: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: LaneId,
    pub title: Option<String>,
    /// None in a picture of a plan that does not run.
    pub state: Option<NodeState>,
    /// The lanes that it waits for, as positions in the list of nodes; others are ignored.
    pub depends_on: Vec<LaneIndex>,
    pub is_critical: bool,
    /// Where a click on it leads, such as `#lane-API`; SVG only.
    pub link: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    apart: Vec<(LaneIndex, LaneIndex)>,
    dag: Dag,
    /// For each lane of the critical path, the next one.
    next_critical: HashMap<LaneIndex, LaneIndex>,
}

impl Graph {
    /// The graph of `nodes`. No valid plan has a cycle; if there is one, the nodes stay and the edges do not.
    pub fn new(nodes: Vec<Node>) -> Self {
        let count = nodes.len();
        let known = |node: &Node| node.depends_on.iter().copied().filter(|on| on.at() < count).collect();
        let dag = Dag::new(nodes.iter().map(known).collect()).or_else(|_| Dag::new(vec![Vec::new(); count]));
        let mut graph = Self { dag: dag.unwrap_or_default(), nodes, ..Self::default() };
        let path = graph.critical_path();
        graph.next_critical = path.windows(2).map(|step| (step[0], step[1])).collect();
        graph
    }

    /// The lanes of `plan` with what they wait for; `critical`: those of the critical path.
    pub fn of_plan(plan: &Plan, critical: &[LaneIndex]) -> Self {
        let node = |lane| Node {
            id: plan.lane(lane).id.clone(),
            title: plan.lane(lane).name.clone(),
            state: None,
            depends_on: plan.dag().dependencies(lane).to_vec(),
            is_critical: critical.contains(&lane),
            link: None,
        };
        Self::new(plan.indices().map(node).collect()).with_lanes_apart(plan.exclusions.clone())
    }

    /// With lanes that never run at the same time, although neither waits for the other; DOT and Mermaid draw them.
    #[must_use]
    pub fn with_lanes_apart(mut self, apart: Vec<(LaneIndex, LaneIndex)>) -> Self {
        self.apart = apart;
        self
    }

    /// With each lane's state and critical path taken from `run`; a lane that `run` does not have gets neither.
    #[must_use]
    pub fn as_in(mut self, run: &Self) -> Self {
        for node in &mut self.nodes {
            let there = run.nodes.iter().find(|there| there.id == node.id);
            (node.state, node.is_critical) = there.map_or((None, false), |there| (there.state, there.is_critical));
        }
        self
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn node(&self, lane: LaneIndex) -> &Node {
        &self.nodes[lane.at()]
    }

    fn indices(&self) -> impl DoubleEndedIterator<Item = LaneIndex> + use<> {
        LaneIndex::first(self.nodes.len())
    }

    /// Every edge, as (waited for, waits), in the order of the lanes that wait.
    fn edges(&self) -> impl Iterator<Item = (LaneIndex, LaneIndex)> {
        self.indices().flat_map(|to| self.dag.dependencies(to).iter().map(move |&from| (from, to)))
    }

    fn critical_path(&self) -> Vec<LaneIndex> {
        self.dag.order().iter().copied().filter(|lane| self.node(*lane).is_critical).collect()
    }

    fn is_critical(&self, from: LaneIndex, to: LaneIndex) -> bool {
        self.next_critical.get(&from) == Some(&to)
    }
}
