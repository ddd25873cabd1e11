//! `user_setup` of the front matter (SPEC §3.2): what a person sets up before the plan.

use lanewright_model::{SetupStep, SetupVariable, UserSetup};

use super::header::{field, sentence};
use crate::faults::Faults;
use crate::front_matter::{normal, scalar};
use crate::markdown::clean;
use crate::tree::{Node, TableEntry, Value};

/// Reads the services. An item in words is a step.
pub(super) fn read(node: &Node, faults: &Faults<'_>) -> Vec<UserSetup> {
    items(node).iter().filter_map(|item| service(item, faults)).collect()
}

fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        Value::Null => &[],
        _ => std::slice::from_ref(node),
    }
}

fn service(item: &Node, faults: &Faults<'_>) -> Option<UserSetup> {
    let entries = match &item.value {
        Value::Table(entries) if field(entries, &["service", "env_vars", "dashboard_config"]).is_some() => entries,
        _ => {
            let dashboard_config = vec![SetupStep { task: text(item, faults)?, location: None }];
            return Some(UserSetup { dashboard_config, ..UserSetup::default() });
        }
    };
    let said = |names: &[&str]| field(entries, names).and_then(|node| text(node, faults));
    let all = |name: &str| field(entries, &[name]).map(items).unwrap_or_default();
    let mut setup =
        UserSetup { service: said(&["service"]).unwrap_or_default(), why: said(&["why"]), ..UserSetup::default() };
    for item in all("env_vars") {
        match variable(item, faults) {
            Some(variable) => setup.env_vars.push(variable),
            // Without a name it cannot be looked for.
            None => setup.dashboard_config.extend(step(item, faults)),
        }
    }
    setup.dashboard_config.extend(all("dashboard_config").iter().filter_map(|item| step(item, faults)));
    Some(setup)
}

/// `name` and `source`, or the name alone.
fn variable(item: &Node, faults: &Faults<'_>) -> Option<SetupVariable> {
    let (name, source) = match &item.value {
        Value::Table(entries) if field(entries, &["name"]).is_some() => {
            let said = |names: &[&str]| field(entries, names).and_then(|node| text(node, faults));
            (said(&["name"])?, said(&["source", "where", "description"]))
        }
        Value::Table(entries) => {
            let [TableEntry { key, value }] = entries.as_slice() else { return None };
            (key.value.clone(), text(value, faults))
        }
        _ => (text(item, faults)?, None),
    };
    let name = name.trim_matches('`').to_owned();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(SetupVariable { name, source })
}

/// `task` and `location`; what else is said of it is part of the task.
fn step(item: &Node, faults: &Faults<'_>) -> Option<SetupStep> {
    let Value::Table(entries) = &item.value else {
        return Some(SetupStep { task: text(item, faults)?, location: None });
    };
    let location = field(entries, &["location"]).and_then(|node| text(node, faults));
    let others = entries.iter().filter(|entry| normal(&entry.key.value) != "location");
    let task: Vec<String> = others.filter_map(|entry| text(&entry.value, faults)).collect();
    (!task.is_empty()).then(|| SetupStep { task: task.join(": "), location })
}

fn text(node: &Node, faults: &Faults<'_>) -> Option<String> {
    let text = scalar(node, faults).or_else(|| sentence(node, faults))?;
    Some(clean(&text.value)).filter(|text| !text.trim().is_empty())
}
