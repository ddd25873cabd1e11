//! The lists of a file: one for each tag, of which one is a plan.

use serde::Deserialize;

use crate::Source;
use crate::faults::{Faults, nearest, quoted};
use crate::formats::shared::companions::companion;
use crate::formats::shared::items::text_of;
use crate::source_text::Span;
use crate::tree::{Node, Value};

/// The tag that counts where nothing says which.
const DEFAULT: &str = "master";

/// The list of a tag.
pub(super) struct List<'n> {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) tasks: &'n [Node],
    pub(super) span: Span,
}

#[derive(Deserialize)]
struct State {
    #[serde(rename = "currentTag")]
    current_tag: Option<String>,
}

/// All lists of a file, each with the table that holds its tasks: of older files the only one, of others one for each
/// tag. Lists below a key `tags` are none that the program reads; they are called `tags.NAME`.
pub(super) fn lists(root: &Node) -> Vec<(String, &Node)> {
    let Value::Table(entries) = &root.value else { return Vec::new() };
    if root.get("tasks").is_some_and(is_list) {
        return vec![(DEFAULT.to_owned(), root)];
    }
    let mut found = Vec::new();
    for entry in entries {
        let name = &entry.key.value;
        if entry.value.get("tasks").is_some_and(is_list) {
            found.push((name.clone(), &entry.value));
        } else if let (Value::Table(inner), "tags") = (&entry.value.value, name.as_str()) {
            let inner = inner.iter().filter(|inner| inner.value.get("tasks").is_some_and(is_list));
            found.extend(inner.map(|inner| (format!("tags.{}", inner.key.value), &inner.value)));
        }
    }
    found
}

fn is_list(node: &Node) -> bool {
    matches!(node.value, Value::List(_))
}

/// The list that is asked for, else that of the program's current tag, else `master`, else the only one.
pub(super) fn chosen<'n>(root: &'n Node, source: &Source<'_>, faults: &Faults<'_>) -> Option<List<'n>> {
    let lists = lists(root);
    let names: Vec<&str> = lists.iter().map(|(name, _)| name.as_str()).collect();
    let all = || format!("name one with --tag: {}", names.join(", "));
    if names.is_empty() {
        let help = "a list of Task Master is written `{\"master\": {\"tasks\": [ … ]}}`";
        faults.error_with(root.span, "this file has no list of tasks", help);
        return None;
    }
    let state = companion(source, "state.json").and_then(|file| serde_json::from_str::<State>(file.text).ok());
    let current = state.and_then(|state| state.current_tag);
    let name = match (source.options.tag, current.as_deref()) {
        (Some(asked), _) => asked,
        (None, Some(current)) => current,
        (None, None) if names.contains(&DEFAULT) => DEFAULT,
        (None, None) if names.len() == 1 => names[0],
        (None, None) => {
            faults.error_with(root.span, format!("this file has {} lists of tasks", names.len()), all());
            return None;
        }
    };
    let Some((_, table)) = lists.iter().find(|(own, _)| own == name) else {
        let origin = if source.options.tag.is_some() { "" } else { ", which `.taskmaster/state.json` names," };
        let near = nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`? Otherwise, "));
        let message = format!("the tag {}{origin} is not in this file", quoted(name));
        faults.error_with(root.span, message, near.unwrap_or_default() + &all());
        return None;
    };
    let described = text_of(table.get("metadata").and_then(|metadata| metadata.get("description")), faults);
    // The program's own description of a tag repeats its name.
    let described = if described.starts_with("Tasks for ") { String::new() } else { described };
    Some(List {
        name: name.to_owned(),
        title: if described.is_empty() { format!("Task Master: {name}") } else { described },
        tasks: table.get("tasks").map_or(&[], Node::list),
        span: table.span,
    })
}
