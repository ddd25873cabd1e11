//! `user_setup` of the front matter (SPEC §3.2): what a person sets up before the plan.

use lanewright_model::{SetupStep, SetupVariable, UserSetup};

use super::header::{field, sentence};
use crate::faults::Faults;
use crate::front_matter::normal;
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

/// `service`, `why` and `env_vars`; every other list of it is one of steps.
fn service(item: &Node, faults: &Faults<'_>) -> Option<UserSetup> {
    let is_list = |entry: &TableEntry| matches!(entry.value.value, Value::List(_));
    let entries = match &item.value {
        Value::Table(entries)
            if field(entries, &["service", "env_vars", "dashboard_config"]).is_some()
                || entries.iter().any(is_list) =>
        {
            entries
        }
        _ => {
            let dashboard_config = vec![step(item, faults)?];
            return Some(UserSetup { dashboard_config, ..UserSetup::default() });
        }
    };
    let mut setup = UserSetup::default();
    let mut remarks = Vec::new();
    for TableEntry { key, value } in entries {
        match (normal(&key.value).as_str(), &value.value) {
            ("service", _) => setup.service = text(value, faults).unwrap_or_default(),
            ("why", _) => remarks.extend(text(value, faults)),
            ("env_vars", _) => {
                for item in items(value) {
                    let found = variables(item, faults);
                    // Without a name it cannot be looked for.
                    let steps = if found.is_empty() { step(item, faults) } else { None };
                    setup.dashboard_config.extend(steps);
                    setup.env_vars.extend(found);
                }
            }
            ("dashboard_config", _) | (_, Value::List(_) | Value::Table(_)) => {
                setup.dashboard_config.extend(items(value).iter().filter_map(|item| step(item, faults)));
            }
            _ => remarks.extend(text(value, faults).map(|text| format!("{}: {text}", key.value))),
        }
    }
    setup.why = Some(remarks.join("; ")).filter(|why| !why.is_empty());
    if setup.env_vars.is_empty() && setup.dashboard_config.is_empty() {
        let said = [Some(setup.service.clone()), setup.why.clone()];
        let said: Vec<String> = said.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        let step = SetupStep { task: said.join(": "), location: None };
        setup.dashboard_config.extend(Some(step).filter(|step| !step.task.is_empty()));
    }
    Some(setup)
}

/// `name` and `source`, or the name alone; or names, each with its source. None, if one is not the name of a variable.
fn variables(item: &Node, faults: &Faults<'_>) -> Vec<SetupVariable> {
    let named = |name: &str, source: Option<String>| {
        let name = name.trim_matches('`').to_owned();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then_some(SetupVariable { name, source })
    };
    let found: Option<Vec<SetupVariable>> = match &item.value {
        Value::Table(entries) if field(entries, &["name"]).is_some() => {
            let said = |names: &[&str]| field(entries, names).and_then(|node| text(node, faults));
            let name = said(&["name"]).unwrap_or_default();
            named(&name, said(&["source", "where", "description"])).map(|variable| vec![variable])
        }
        Value::Table(entries) => {
            entries.iter().map(|TableEntry { key, value }| named(&key.value, text(value, faults))).collect()
        }
        _ => text(item, faults).and_then(|name| named(&name, None)).map(|variable| vec![variable]),
    };
    found.unwrap_or_default()
}

/// `task` and `location`; what else is said of it is part of the task.
fn step(item: &Node, faults: &Faults<'_>) -> Option<SetupStep> {
    let Value::Table(entries) = &item.value else {
        return Some(SetupStep { task: text(item, faults)?, location: None });
    };
    let location = field(entries, &["location"]).and_then(|node| text(node, faults));
    let others = || entries.iter().filter(|entry| normal(&entry.key.value) != "location");
    let task = match field(entries, &["task"]) {
        // `- Users: sign up` is a sentence to people.
        None if entries.len() == 1 => text(item, faults).into_iter().collect(),
        _ => others().filter_map(|entry| text(&entry.value, faults)).collect::<Vec<_>>(),
    };
    (!task.is_empty()).then(|| SetupStep { task: task.join(": "), location })
}

/// What a node says, in one line.
fn text(node: &Node, faults: &Faults<'_>) -> Option<String> {
    let all = |texts: Vec<String>| Some(texts.join(", "));
    let text = match (&node.value, sentence(node, faults)) {
        (_, Some(text)) => Some(text.value),
        (Value::List(items), _) => all(items.iter().filter_map(|item| text(item, faults)).collect()),
        (Value::Table(entries), _) => {
            let said = |entry: &TableEntry| Some(format!("{}: {}", entry.key.value, text(&entry.value, faults)?));
            all(entries.iter().filter_map(said).collect())
        }
        _ => None,
    };
    text.map(|text| clean(&text)).filter(|text| !text.trim().is_empty())
}
