//! The JSON Schema of the native format, for editors.

use serde_json::{Map, Value, json};

use super::keys::{Key, PLAN, REQUIRED, Shape};

/// The schema (draft 2020-12) that every native plan follows which reads without a fault of a key.
pub fn json_schema() -> Value {
    let mut schema = table(PLAN, &[], &REQUIRED);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Lanekeeper plan".into();
    schema["properties"]["$schema"] = json!({ "type": "string" });
    schema["properties"]["lane"]["minItems"] = 1.into();
    schema
}

fn table(keys: &[Key], without: &[&str], required: &[&str]) -> Value {
    let known = keys.iter().filter(|key| !without.contains(&key.name));
    let properties: Map<String, Value> = known.map(|key| (key.name.to_owned(), property(key))).collect();
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
        Shape::Text => json!({ "type": "string" }),
        Shape::Texts => one_or_more(json!({ "type": "string" })),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Number(least, u32::MAX) => json!({ "type": "integer", "minimum": least }),
        Shape::Number(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Shape::Duration => json!({ "type": "string", "pattern": r"^\s*([0-9]+\s*[a-zA-Zµ]+\s*)+$" }),
        Shape::Word(words) => json!({ "enum": words() }),
        Shape::Words(words) => one_or_more(json!({ "enum": words() })),
        Shape::Command => command(),
        // A list is a list of commands; only within it a list is one command.
        Shape::Commands => json!({ "anyOf": [line(), { "type": "array", "items": command() }] }),
        Shape::Env => json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
        Shape::Pools => json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 1 } }),
        Shape::Table(keys, without) => table(keys, without, &[]),
        Shape::Tables(keys, required) => json!({ "type": "array", "items": table(keys, &[], required) }),
    }
}

/// An id (SPEC §13); a number is taken as it is written.
fn id() -> Value {
    let pattern = format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}$", crate::model::id::MAX_ID_LENGTH - 1);
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
    use super::super::keys::{AGENT, GATES, LANE, TASK, TIMEOUTS};
    use super::super::{Source, SourceFile, read};
    use super::*;

    /// The keys that the reader says it knows of the table that `text` gives an unknown key.
    fn known(text: &str) -> Vec<String> {
        let reading = read(
            &Source { files: &[SourceFile { path: "p", text }], ..Source::default() },
            &|_| Err(String::new()),
            &|_| None,
        );
        let mut helps =
            reading.diagnostics.iter().filter_map(|fault| fault.help.as_deref()?.strip_prefix("known keys: "));
        let known = helps.next_back().and_then(|help| help.split_once("; ")).unwrap().0;
        let mut keys: Vec<String> = known.split(", ").map(str::to_owned).collect();
        keys.sort();
        keys
    }

    #[test]
    fn the_schema_and_the_reader_know_the_same_keys() {
        let lane = "phase = 'P'\n[[lane]]\nid = 'A'\ncommand = 'x'\n";
        let tables = [
            (PLAN, "qqqqqqqq = 1".to_owned()),
            (TIMEOUTS, "[timeouts]\nqqqqqqqq = 1".to_owned()),
            (GATES, "[gates]\nqqqqqqqq = 1".to_owned()),
            (LANE, format!("{lane}qqqqqqqq = 1")),
            (TASK, format!("{lane}[[lane.task]]\nqqqqqqqq = 1")),
            (AGENT, format!("{lane}[[lane.agent]]\nqqqqqqqq = 1")),
        ];
        for (keys, text) in tables {
            let mut names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            names.sort_unstable();
            assert_eq!(known(&text), names);
        }
    }

    #[test]
    fn every_key_is_told_of_in_the_documentation() {
        let text = include_str!("../../docs/plans.md");
        for key in [PLAN, TIMEOUTS, GATES, LANE, TASK, AGENT].into_iter().flatten() {
            assert!(text.contains(&format!("`{}`", key.name)), "docs/plans.md does not tell of `{}`", key.name);
        }
    }
}
