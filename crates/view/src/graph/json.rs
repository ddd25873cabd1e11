//! A graph for programs.

use std::collections::HashSet;

use lanewright_model::{LaneId, LaneIndex};
use serde::Serialize;

use super::Graph;
use super::layers::without_implied;

/// What `lanewright plan graph --format json` writes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphJson<'a> {
    /// In the order of the plan.
    lanes: Vec<NodeJson<'a>>,
    edges: Vec<EdgeJson<'a>>,
    /// Lanes without an edge between them that never run at the same time.
    apart: Vec<[&'a LaneId; 2]>,
    /// The lanes of each wave.
    waves: Vec<Vec<&'a LaneId>>,
    /// The lanes that take longest one after the other, going by their time limits; the first one first.
    critical_path: Vec<&'a LaneId>,
}

/// A lane.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NodeJson<'a> {
    lane: &'a LaneId,
    name: Option<&'a str>,
    /// The state in the run that `--run` names, in the words of `status`; null without one.
    state: Option<&'static str>,
    /// 1 for a lane that waits for no other, else one more than the latest lane that it waits for.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    wave: u32,
    /// Whether it is on the critical path.
    critical: bool,
}

/// An order between two lanes: `to` waits for `from`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EdgeJson<'a> {
    from: &'a LaneId,
    to: &'a LaneId,
    /// Whether it follows from other edges; `svg` and `text` leave these out.
    implied: bool,
}

impl Graph {
    /// The lanes, the edges between them with those that follow from others marked, the waves, and the critical path.
    pub fn json(&self) -> GraphJson<'_> {
        let id = |lane: &LaneIndex| &self.node(*lane).id;
        let drawn: HashSet<(LaneIndex, LaneIndex)> = without_implied(self).into_iter().collect();
        let waves = self.dag.waves();
        let lanes = self.nodes.iter().zip(&waves).map(|(node, wave)| NodeJson {
            lane: &node.id,
            name: node.title.as_deref(),
            state: node.state.map(|state| state.word),
            wave: *wave,
            critical: node.is_critical,
        });
        let edges = self.edges().map(|edge| {
            let (from, to) = edge;
            EdgeJson { from: id(&from), to: id(&to), implied: !drawn.contains(&edge) }
        });
        let wave = |number: u32| -> Vec<&LaneId> {
            self.nodes.iter().zip(&waves).filter(|(_, wave)| **wave == number).map(|(node, _)| &node.id).collect()
        };
        let last = waves.iter().copied().max().unwrap_or_default();
        GraphJson {
            lanes: lanes.collect(),
            edges: edges.collect(),
            apart: self.apart.iter().map(|(one, other)| [id(one), id(other)]).collect(),
            waves: (1..=last).map(wave).collect(),
            critical_path: self.critical_path().iter().map(id).collect(),
        }
    }
}
