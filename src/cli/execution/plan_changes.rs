//! What changed in a plan since a run pinned it.

use serde::Serialize;
use serde_json::Value;

use crate::model::{Lane, LaneIndex, Plan};

/// What a person would say changed between two plans; never empty for plans that differ.
pub(super) fn differences(before: &Plan, after: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for lane in &before.lanes {
        match after.lanes.iter().find(|other| other.id == lane.id) {
            None => lines.push(format!("lane {} is gone", lane.id)),
            Some(other) => lines.extend(lane_differences((before, lane), (after, other))),
        }
    }
    let new = after.lanes.iter().filter(|lane| before.lanes.iter().all(|other| other.id != lane.id));
    lines.extend(new.map(|lane| format!("lane {} is new", lane.id)));
    let gates = changed_keys(&before.gates, &after.gates);
    lines.extend(gates.iter().map(|gate| format!("the {gate} gate is another")));
    if before.interfaces != after.interfaces {
        lines.push("the interface gates are others".to_owned());
    }
    let parts = changed_keys(before, after);
    let told = ["lanes", "gates", "interfaces", "exclusions", "sequences", "added_edges"];
    let rest: Vec<&str> = parts.iter().map(String::as_str).filter(|key| !told.contains(key)).collect();
    if !rest.is_empty() {
        lines.push(format!("settings of the phase are others: {}", rest.join(", ")));
    }
    if lines.is_empty() {
        lines.push("which lanes may run beside each other is another".to_owned());
    }
    lines
}

fn lane_differences(before: (&Plan, &Lane), after: (&Plan, &Lane)) -> Vec<String> {
    let edges = |(plan, lane): (&Plan, &Lane)| {
        let name = |on: &LaneIndex| plan.lane(*on).id.to_string();
        lane.depends_on.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let (id, old, new) = (&before.1.id, edges(before), edges(after));
    let mut lines = Vec::new();
    if old != new {
        lines.push(format!("lane {id} depended on [{old}] and depends on [{new}]"));
    }
    let keys = changed_keys(before.1, after.1);
    let rest: Vec<&str> = keys.iter().map(String::as_str).filter(|key| *key != "depends_on").collect();
    if !rest.is_empty() {
        lines.push(format!("lane {id} says something else: {}", rest.join(", ")));
    }
    lines
}

/// The names of the parts in which two values of one kind differ.
fn changed_keys<T: Serialize>(before: &T, after: &T) -> Vec<String> {
    let table = |value: &T| match serde_json::to_value(value) {
        Ok(Value::Object(table)) => table,
        _ => serde_json::Map::new(),
    };
    let (before, after) = (table(before), table(after));
    let mut keys: Vec<String> =
        before.iter().filter(|(key, value)| after.get(*key) != Some(value)).map(|it| it.0.clone()).collect();
    keys.extend(after.keys().filter(|key| !before.contains_key(*key)).cloned());
    keys
}
