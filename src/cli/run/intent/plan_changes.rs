//! What changed in a plan since a run pinned it.

use lanewright_model::{Agent, Lane, LaneIndex, Plan};
use serde::Serialize;
use serde_json::Value;

/// What changed between two plans; never empty for plans that differ. Retries are left out: a flag of the first call may
/// have set them.
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
    let listed = ["lanes", "gates", "interfaces", "exclusions", "sequences", "added_edges", "replaced"];
    let rest: Vec<&str> = parts.iter().map(String::as_str).filter(|key| !listed.contains(key)).collect();
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
    let listed = ["depends_on", "retries", "agents"];
    let mut rest: Vec<String> = keys.iter().filter(|key| !listed.contains(&key.as_str())).cloned().collect();
    rest.extend(agent_differences(before.1, after.1));
    if !rest.is_empty() {
        lines.push(format!("lane {id}: {}", rest.join(", ")));
    }
    lines
}

/// `task 2 (prompt)`, or `agents` where others work in the lane.
fn agent_differences(before: &Lane, after: &Lane) -> Vec<String> {
    let staff = |lane: &Lane| lane.agents.iter().map(|agent| Agent { tasks: Vec::new(), ..agent.clone() }).collect();
    let (old, new): (Vec<Agent>, Vec<Agent>) = (staff(before), staff(after));
    if old != new {
        return vec!["agents".to_owned()];
    }
    let tasks = |lane: &Lane| lane.agents.iter().flat_map(|agent| agent.tasks.clone()).collect::<Vec<_>>();
    let (old, new) = (tasks(before), tasks(after));
    if old.iter().map(|task| &task.id).ne(new.iter().map(|task| &task.id)) {
        return vec!["tasks".to_owned()];
    }
    let changed = old.iter().zip(&new).filter(|(old, new)| old != new);
    changed.map(|(old, new)| format!("task {} ({})", old.id, changed_keys(old, new).join(", "))).collect()
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
