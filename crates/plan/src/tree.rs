//! Plan text as a tree with places, the same for TOML, YAML and JSON.

use super::faults::{Faults, quoted};
use super::source_text::{At, Span};

/// How deep lists and tables may be nested; a plan needs six levels.
pub(super) const MAX_DEPTH: usize = 32;

pub(super) type Node = At<Value>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Nothing, the same as an absent key.
    Null,
    Boolean(bool),
    Integer(i64),
    /// A scalar that no key of a plan takes, in words: `a date`.
    Other(&'static str),
    Text(String),
    List(Vec<Node>),
    /// Keys with values, in the order of the text; a repeated key is listed once, and already reported.
    Table(Vec<TableEntry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableEntry {
    pub(super) key: At<String>,
    pub(super) value: Node,
}

impl Node {
    /// The items of a list and of the lists in it, or the value itself; without those that are nothing.
    pub(super) fn items(self) -> Vec<Self> {
        match self.value {
            Value::List(items) => items.into_iter().flat_map(Self::items).collect(),
            Value::Null => Vec::new(),
            _ => vec![self],
        }
    }

    /// The value of a key, if it is a table that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key.value == key).map(|entry| &entry.value)
    }

    /// The items of a list; none of anything else.
    pub(super) fn list(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// A scalar as the text has it: numbers keep their zeros.
    pub(super) fn as_written(&self, faults: &Faults<'_>) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Integer(_) | Value::Boolean(_) | Value::Other(_) => {
                Some(faults.source.slice(self.span).trim().to_owned())
            }
            Value::Null | Value::List(_) | Value::Table(_) => None,
        }
    }
}

impl Value {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Boolean(_) => "true or false",
            Self::Integer(_) => "a number",
            Self::Other(kind) => kind,
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Keeps the last entry of each key and notes a repeated key as a fault.
pub(super) fn unique_entries(entries: Vec<TableEntry>, faults: &Faults<'_>) -> Value {
    last_entries(entries, |key| {
        let message = format!("duplicate key {}", quoted(&key.value));
        faults.error_with(key.span, message, "keep one of them");
    })
}

/// Keeps the last entry of each key; `note` is called with each duplicate.
pub(super) fn last_entries(mut entries: Vec<TableEntry>, mut note: impl FnMut(&At<String>)) -> Value {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&one, &other| entries[one].key.value.cmp(&entries[other].key.value));
    let mut replaced = vec![false; entries.len()];
    for pair in order.windows(2) {
        if entries[pair[0]].key.value == entries[pair[1]].key.value {
            replaced[pair[0]] = true;
            note(&entries[pair[1]].key);
        }
    }
    let mut replaced = replaced.into_iter();
    entries.retain(|_| !replaced.next().unwrap_or(false));
    Value::Table(entries)
}

/// Notes every text that holds a NUL character, which no argument, path or environment variable can hold.
pub(super) fn refuse_nul(node: &Node, faults: &Faults<'_>) {
    let check = |text: &str, span: Span| {
        if text.contains('\0') {
            faults.error_with(span, "this text holds a NUL character", "no command, path or prompt can hold one");
        }
    };
    match &node.value {
        Value::Text(text) => check(text, node.span),
        Value::List(items) => items.iter().for_each(|item| refuse_nul(item, faults)),
        Value::Table(entries) => entries.iter().for_each(|entry| {
            check(&entry.key.value, entry.key.span);
            refuse_nul(&entry.value, faults);
        }),
        _ => {}
    }
}
