//! What rules find in an event.

use std::collections::BTreeMap;

use lanewright_model::runner::{EventRule, Expected};
use serde_json::Value;

/// The elements that a rule looks at, or the event itself.
pub(super) fn parts<'v>(rule: &EventRule, event: &'v Value) -> Vec<&'v Value> {
    match &rule.each {
        None => vec![event],
        Some(place) => event.pointer(place).and_then(Value::as_array).into_iter().flatten().collect(),
    }
}

pub(super) fn holds(conditions: &BTreeMap<String, Expected>, value: &Value) -> bool {
    conditions.iter().all(|(place, expected)| expected.is_met_by(value.pointer(place)))
}

/// The value at `place`, as text; a value that is not a string, as JSON.
pub(super) fn text_at(value: &Value, place: Option<&String>) -> Option<String> {
    match value.pointer(place?)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
