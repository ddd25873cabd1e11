//! A type's JSON Schema as it is published: as strict as the JSON that is written.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Columns of a line that an event may have as well.
const COLUMNS: [&str; 4] = ["run_id", "phase", "lane", "task"];

pub(super) fn schema_of<T: JsonSchema>(title: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["title"] = title.into();
    make_strict(&mut schema, false);
    if let Some(Value::Array(events)) = schema.get_mut("oneOf") {
        events.iter_mut().for_each(write_columns_once);
    }
    schema
}

/// Refuses other properties, and null where a value is left out instead. Removes what concerns readers of old files, or
/// Rust: defaults, and the widths of numbers. What it is comes first. `is_part`: another schema describes the same object as well.
fn make_strict(schema: &mut Value, is_part: bool) {
    let Value::Object(members) = schema else { return };
    for unwanted in ["default", "format"] {
        members.shift_remove(unwanted);
    }
    for first in ["description", "title", "$schema"] {
        members.shift_remove(first).map(|text| members.shift_insert(0, first.to_owned(), text));
    }
    assert!(!members.get("description").is_some_and(|text| text.to_string().contains("[`")), "a link: {members:?}");
    let required = members.get("required").cloned().unwrap_or_default();
    let is_required = |name: &String| required.as_array().is_some_and(|names| names.iter().any(|it| it == name));
    let is_object = members.contains_key("properties");
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.iter_mut().filter(|(name, _)| !is_required(name)).for_each(|(_, property)| forbid_null(property));
    }
    if is_object && !is_part {
        let others = if members.contains_key("oneOf") { "unevaluatedProperties" } else { "additionalProperties" };
        members.entry(others).or_insert(false.into());
    }
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => named.values_mut().for_each(|it| make_strict(it, false)),
            ("oneOf" | "anyOf", Value::Array(parts)) => parts.iter_mut().for_each(|it| make_strict(it, is_object)),
            ("prefixItems", Value::Array(items)) => items.iter_mut().for_each(|it| make_strict(it, false)),
            ("items", items) => make_strict(items, false),
            _ => {}
        }
    }
}

fn forbid_null(property: &mut Value) {
    if let Some([something, _]) = property["anyOf"].as_array().map(Vec::as_slice) {
        let something: Map<String, Value> = something.as_object().cloned().unwrap_or_default();
        let Value::Object(property) = property else { return };
        property.shift_remove("anyOf");
        property.extend(something);
    } else if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            property["type"] = name.clone();
        }
    }
}

/// The column of a line holds `-` where the event has no value, so it is the line that describes it.
fn write_columns_once(event: &mut Value) {
    let required = event["required"].as_array().cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = event.get_mut("properties") {
        properties.retain(|name, _| required.iter().any(|it| it == name) || !COLUMNS.contains(&name.as_str()));
    }
}
