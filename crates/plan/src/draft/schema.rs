//! The JSON Schema of the native format, for editors.

use serde_json::{Map, Value, json};

use super::keys::{Key, Shape, Table};
use super::{MAX_CANDIDATES, PlanDraft};

/// The schema (draft 2020-12) that every native plan follows which reads without a fault of a key.
pub fn json_schema() -> Value {
    let mut schema = table(PlanDraft::keys(), &[]);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Lanewright plan".into();
    schema["properties"]["$schema"] = json!({ "type": "string" });
    schema["properties"]["lane"]["minItems"] = 1.into();
    schema
}

fn table(keys: &[Key], without: &[&str]) -> Value {
    let known = || keys.iter().filter(|key| !without.contains(&key.name));
    let required: Vec<&str> = known().filter(|key| !key.required.is_empty()).map(|key| key.name).collect();
    let properties: Map<String, Value> = known().map(|key| (key.name.to_owned(), property(key))).collect();
    json!({
        "type": "object",
        "properties": properties,
        "patternProperties": { "^x-": true },
        "required": required,
        "additionalProperties": false,
    })
}

fn property(key: &Key) -> Value {
    let mut schema = shape(&key.shape);
    schema["description"] = key.about.into();
    schema
}

fn shape(shape: &Shape) -> Value {
    match shape {
        Shape::Id => id(),
        Shape::Ids => one_or_more(id()),
        Shape::Text | Shape::FullText => json!({ "type": "string" }),
        Shape::Texts => one_or_more(json!({ "type": "string" })),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Number(least, u32::MAX) => json!({ "type": "integer", "minimum": least }),
        Shape::Number(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Shape::Dollars => json!({ "type": ["number", "string"], "exclusiveMinimum": 0 }),
        Shape::Duration => json!({ "type": "string", "pattern": r"^\s*([0-9]+\s*[a-zA-Zµ]+\s*)+$" }),
        Shape::Word(words) => json!({ "enum": words() }),
        Shape::Words(words) => one_or_more(json!({ "enum": words() })),
        Shape::Command => command(),
        // A list is a list of commands; only within it a list is one command.
        Shape::Commands => json!({ "anyOf": [line(), { "type": "array", "items": command() }] }),
        Shape::Candidates => {
            let runners = json!({ "type": "array", "items": line(), "minItems": 1, "maxItems": MAX_CANDIDATES });
            json!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": MAX_CANDIDATES }, line(), runners] })
        }
        Shape::Env => json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
        Shape::Matrix => {
            let value = json!({ "type": ["string", "number", "boolean"] });
            let values = json!({ "anyOf": [value.clone(), { "type": "array", "items": value, "minItems": 1, "uniqueItems": true }] });
            json!({ "type": "object", "additionalProperties": values, "minProperties": 1 })
        }
        Shape::Pools => json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 1 } }),
        Shape::Table(keys, without) => table(keys(), without),
        Shape::Tables(keys) => json!({ "type": "array", "items": table(keys(), &[]) }),
    }
}

/// An id (SPEC §13); a number is taken as it is written.
fn id() -> Value {
    let pattern = format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}$", lanewright_model::id::MAX_ID_LENGTH - 1);
    json!({ "type": ["string", "integer"], "pattern": pattern, "not": { "type": "string", "pattern": r"\.\.|\.$|\.lock$" } })
}

fn one_or_more(item: Value) -> Value {
    json!({ "anyOf": [item.clone(), { "type": "array", "items": item }] })
}

fn line() -> Value {
    json!({ "type": "string", "pattern": r"\S" })
}

fn command() -> Value {
    json!({ "anyOf": [line(), { "type": "array", "items": { "type": "string" }, "minItems": 1 }] })
}

#[cfg(test)]
mod tests {
    use super::super::{AgentDraft, LaneDraft, TaskDraft, TimeoutsDraft};
    use super::*;
    use lanewright_model::Gates;

    #[test]
    fn every_plan_key_is_documented() {
        let text = include_str!("../../../../docs/plans.md");
        let tables = [
            PlanDraft::keys(),
            TimeoutsDraft::keys(),
            Gates::keys(),
            LaneDraft::keys(),
            TaskDraft::keys(),
            AgentDraft::keys(),
        ];
        for key in tables.into_iter().flatten() {
            assert!(text.contains(&format!("`{}`", key.name)), "docs/plans.md does not tell of `{}`", key.name);
        }
    }
}
