//! Interface freeze gates: each closes when the lane that provides it is merged (SPEC §3.3).

use serde::Serialize;

use super::lane_view::LaneState;
use super::run_view::RunView;
use crate::model::{LaneId, Plan};

/// An interface freeze gate of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterfaceView {
    /// For example `IF-0-P1-LEDGER`.
    pub id: String,
    /// The lane whose merge closes it; `None`: nothing of this plan does.
    pub provider: Option<LaneId>,
    /// Whether what it names can be relied upon.
    pub closed: bool,
}

/// The gates as the plan has them.
pub(super) fn of_plan(plan: &Plan) -> Vec<InterfaceView> {
    let gate = |interface: &crate::model::plan::Interface| InterfaceView {
        id: interface.id.clone(),
        provider: interface.provider.map(|lane| plan.lane(lane).id.clone()),
        closed: interface.closed,
    };
    plan.interfaces.iter().map(gate).collect()
}

/// The gates as they stand now.
pub(super) fn interfaces(view: &RunView) -> Vec<InterfaceView> {
    let merged = |lane: &LaneId| view.lane(lane).is_some_and(|lane| lane.state == LaneState::Merged);
    let stands = |gate: &InterfaceView| {
        let closed = gate.closed || gate.provider.as_ref().is_some_and(merged);
        InterfaceView { closed, ..gate.clone() }
    };
    view.run.interfaces.iter().map(stands).collect()
}

/// `interface gates: 1 of 3 closed; open: IF-0-P1-B (SL-2), IF-0-P1-C (nobody)`; `None` where there is none.
pub(super) fn told(gates: &[InterfaceView]) -> Option<String> {
    let open: Vec<String> = gates
        .iter()
        .filter(|gate| !gate.closed)
        .map(|gate| format!("{} ({})", gate.id, gate.provider.as_ref().map_or("no lane", LaneId::as_str)))
        .collect();
    let closed = gates.len() - open.len();
    match open.as_slice() {
        _ if gates.is_empty() => None,
        [] => Some(format!("interface gates: all {closed} closed")),
        open => Some(format!("interface gates: {closed} of {} closed; open: {}", gates.len(), open.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_ones_are_named_with_who_provides_them() {
        let gate = |id: &str, provider: Option<&str>, closed| InterfaceView {
            id: id.to_owned(),
            provider: provider.map(|lane| lane.parse().unwrap()),
            closed,
        };
        assert_eq!(told(&[]), None);
        let gates = [gate("A", None, true), gate("B", Some("SL-2"), false), gate("C", None, false)];
        let expected = "interface gates: 1 of 3 closed; open: B (SL-2), C (no lane)";
        assert_eq!(told(&gates).as_deref(), Some(expected));
        assert_eq!(told(&gates[..1]).as_deref(), Some("interface gates: all 1 closed"));
    }
}
