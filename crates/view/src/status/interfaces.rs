//! Interface freeze gates: each closes when the lane that provides it is merged (SPEC §3.3).

use lanewright_model::LaneId;

use crate::history::{InterfaceView, LaneState, RunHistory};

pub(crate) fn interfaces(history: &RunHistory) -> Vec<InterfaceView> {
    let merged = |lane: &LaneId| history.lane(lane).is_some_and(|lane| lane.state == LaneState::Merged);
    let state = |gate: &InterfaceView| {
        let closed = gate.closed || gate.provider.as_ref().is_some_and(merged);
        InterfaceView { closed, ..gate.clone() }
    };
    history.run.interfaces.iter().map(state).collect()
}

/// `interface gates: 1 of 3 closed; open: IF-0-P1-B (SL-2), IF-0-P1-C (nobody)`; `None` where there is none.
pub(crate) fn summary(gates: &[InterfaceView]) -> Option<String> {
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
        assert_eq!(summary(&[]), None);
        let gates = [gate("A", None, true), gate("B", Some("SL-2"), false), gate("C", None, false)];
        let expected = "interface gates: 1 of 3 closed; open: B (SL-2), C (no lane)";
        assert_eq!(summary(&gates).as_deref(), Some(expected));
        assert_eq!(summary(&gates[..1]).as_deref(), Some("interface gates: all 1 closed"));
    }
}
