//! The order between lanes: known, acyclic, and in agreement with declared waves.

use lanewright_model::dag::Cycle;
use lanewright_model::plan::AddedEdge;
use lanewright_model::{Dag, LaneIndex};

use super::names::{LaneIds, unknown};
use crate::draft::LaneDraft;
use crate::faults::{Faults, quoted};
use crate::source_text::At;

/// How many cycles are named before the rest must be fixed first.
const MAX_CYCLES: usize = 20;

pub(crate) const IN_ORDER: &str = "or run the lanes one after the other, in the order of the list, with `--order file`";

/// How many places of a cycle are named.
const MAX_PLACES: usize = 8;

/// The lanes that each lane waits for, in the order of the plan text, and those edges that no lane declares for itself.
pub(super) fn edges(
    lanes: &[LaneDraft],
    ids: &LaneIds<'_>,
    faults: &Faults<'_>,
) -> (Vec<Vec<LaneIndex>>, Vec<AddedEdge>) {
    let mut added = Vec::new();
    let mut edges = Vec::with_capacity(lanes.len());
    for (index, lane) in LaneIndex::first(lanes.len()).zip(lanes) {
        let mut waits_for = references(lane, index, &lane.depends_on, "depends on", ids, faults);
        for (name, origin) in &lane.also_after {
            let found = references(lane, index, std::slice::from_ref(name), "comes after", ids, faults);
            for on in found {
                added.push(AddedEdge { lane: index, on, origin: origin.clone() });
                if !waits_for.contains(&on) {
                    waits_for.push(on);
                }
            }
        }
        edges.push(waits_for);
    }
    (edges, added)
}

/// The lanes that `names` name, each once; what is unknown or `lane` itself is a fault.
pub(super) fn references(
    lane: &LaneDraft,
    index: LaneIndex,
    names: &[At<String>],
    verb: &str,
    ids: &LaneIds<'_>,
    faults: &Faults<'_>,
) -> Vec<LaneIndex> {
    let mut found = Vec::new();
    for name in names {
        let own = called(lane);
        match ids.at.get(name.value.as_str()) {
            Some(&other) if other == index || lane.id.as_ref().is_some_and(|id| id.value == name.value) => {
                faults.error_with(name.span, format!("lane {own} {verb} itself"), "leave it out");
            }
            Some(other) if found.contains(other) => {
                let message = format!("lane {own} {verb} {} twice", quoted(&name.value));
                faults.warning(name.span, message, "once is enough");
            }
            Some(&other) => found.push(other),
            None => {
                let message = format!("lane {own} {verb} {}, but this plan has no such lane", quoted(&name.value));
                let others = ids.at.keys().copied().filter(|&id| lane.id.as_ref().is_none_or(|own| own.value != id));
                let mut others: Vec<&str> = others.collect();
                others.sort_unstable();
                unknown(name, &message, others, faults);
            }
        }
    }
    found
}

/// The graph of `edges`. Each cycle is a fault; it is cut open to find the next. `None` after too many. `is_list`: the lanes
/// may as well run in the order of their list.
pub(super) fn acyclic(
    lanes: &[LaneDraft],
    mut edges: Vec<Vec<LaneIndex>>,
    is_list: bool,
    faults: &Faults<'_>,
) -> Option<Dag> {
    for _ in 0..MAX_CYCLES {
        match Dag::new(edges.clone()) {
            Ok(dag) => return Some(dag),
            Err(Cycle(cycle)) => {
                report_cycle(lanes, &cycle, is_list, faults);
                let (first, next) = (cycle[0], cycle[1 % cycle.len()]);
                edges[first.at()].retain(|&lane| lane != next);
            }
        }
    }
    None
}

fn report_cycle(lanes: &[LaneDraft], cycle: &[LaneIndex], is_list: bool, faults: &Faults<'_>) {
    let name = |lane: &LaneIndex| lanes[lane.at()].id.as_ref().map_or("?", |id| id.value.as_str());
    let names: Vec<&str> = cycle.iter().chain(cycle.first()).map(name).collect();
    let edge = |at: usize| {
        let lane = &lanes[cycle[at].at()];
        let also = lane.also_after.iter().map(|(other, _)| other);
        let edge = lane.depends_on.iter().chain(also).find(|other| names[at + 1] == other.value);
        edge.map_or(lane.span, |edge| edge.span)
    };
    let message = format!("these lanes wait for each other: {}", names.join(" -> "));
    let mut places: Vec<String> = (0..cycle.len()).map(|at| faults.source.place(edge(at))).collect();
    places.dedup();
    let help = match places.as_slice() {
        places if (2..=MAX_PLACES).contains(&places.len()) => {
            format!("remove one of these dependencies: {}", places.join(", "))
        }
        _ => "remove one of these dependencies".to_owned(),
    };
    let help = if is_list { format!("{help}; {IN_ORDER}") } else { help };
    faults.error_with(edge(0), message, help);
}

/// A declared wave orders nothing; one that the edges contradict is probably a forgotten edge. Where any lane is
/// declared to be in wave 0, all count from there.
pub(super) fn check_waves(lanes: &[LaneDraft], dag: &Dag, faults: &Faults<'_>) {
    let from_zero = lanes.iter().any(|lane| lane.wave.as_ref().is_some_and(|wave| wave.value == 0));
    for (lane, wave) in lanes.iter().zip(dag.waves()) {
        let wave = wave - u32::from(from_zero);
        if let Some(declared) = lane.wave.as_ref().filter(|declared| declared.value != wave) {
            let own = called(lane);
            let message = format!("lane {own} is in wave {wave} by its dependencies, not in wave {}", declared.value);
            let help = "waves order nothing: add the missing `depends_on`, or leave it out";
            faults.warning(declared.span, message, help);
        }
    }
}

pub(super) fn called(lane: &LaneDraft) -> String {
    lane.id.as_ref().map_or_else(|| "without id".to_owned(), |id| quoted(&id.value))
}
