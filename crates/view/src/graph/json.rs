//! A graph for programs; `docs/schemas/graph.schema.json` describes it.

use std::collections::HashSet;

use lanewright_model::{LaneId, LaneIndex};
use serde_json::{Value, json};

use super::Graph;
use super::layers::without_implied;

impl Graph {
    /// The lanes, the edges between them with those that follow from others marked, the waves, and the critical path.
    pub fn json(&self) -> Value {
        let id = |lane: &LaneIndex| &self.node(*lane).id;
        let drawn: HashSet<(LaneIndex, LaneIndex)> = without_implied(self).into_iter().collect();
        let waves = self.dag.waves();
        let lanes = self.nodes.iter().zip(&waves).map(|(node, wave)| {
            json!({
                "lane": node.id,
                "name": node.title,
                "state": node.state.map(|state| state.word),
                "wave": wave,
                "critical": node.is_critical,
            })
        });
        let edges = self.edges().map(|edge| {
            let (from, to) = edge;
            json!({"from": id(&from), "to": id(&to), "implied": !drawn.contains(&edge)})
        });
        let wave = |number: u32| -> Vec<&LaneId> {
            self.nodes.iter().zip(&waves).filter(|(_, wave)| **wave == number).map(|(node, _)| &node.id).collect()
        };
        let last = waves.iter().copied().max().unwrap_or_default();
        json!({
            "lanes": lanes.collect::<Vec<_>>(),
            "edges": edges.collect::<Vec<_>>(),
            "apart": self.apart.iter().map(|(one, other)| [id(one), id(other)]).collect::<Vec<_>>(),
            "waves": (1..=last).map(wave).collect::<Vec<_>>(),
            "critical_path": self.critical_path().iter().map(id).collect::<Vec<_>>(),
        })
    }
}
