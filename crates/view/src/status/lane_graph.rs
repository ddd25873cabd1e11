//! The lanes of a run as a graph to draw, with their states.

use std::collections::{HashMap, HashSet};

use lanewright_model::{LaneId, LaneIndex};

use crate::graph::{Graph, Node, NodeState};
use crate::history::{LaneHistory, RunHistory, StateGroup};
use crate::status::lane_row::{INTERRUPTED, is_cut_off, shown};

/// The lanes of `history` with what they wait for and their states. `held`: whether a live process works on the run.
/// `critical` are those on the critical path; `link` says where a click on a lane leads.
pub fn lane_graph(
    history: &RunHistory,
    held: bool,
    critical: &[LaneId],
    link: impl Fn(&LaneId) -> Option<String>,
) -> Graph {
    let lanes = history.lanes();
    let positions: HashMap<&LaneId, LaneIndex> =
        lanes.iter().map(|lane| &lane.id).zip(LaneIndex::first(lanes.len())).collect();
    let critical: HashSet<&LaneId> = critical.iter().collect();
    let node = |lane: &LaneHistory| Node {
        id: lane.id.clone(),
        title: lane.name.clone(),
        state: Some(match is_cut_off(history, lane, held) {
            true => NodeState { group: StateGroup::Stopped, word: INTERRUPTED, brief: INTERRUPTED },
            false => {
                NodeState { group: lane.state.group(), word: lane.state.word(), brief: shown(history, lane, held).0 }
            }
        }),
        depends_on: lane.depends_on.iter().filter_map(|id| positions.get(id).copied()).collect(),
        is_critical: critical.contains(&lane.id),
        link: link(&lane.id),
    };
    Graph::new(lanes.iter().map(node).collect())
}
