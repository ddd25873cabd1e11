//! JSON text into the tree.
//!
//! Each level is read as raw slices of the text, so that a value's place is where its slice begins.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::faults::Faults;
use crate::source_text::{At, Span};
use crate::tree::{Entry, MAX_DEPTH, Node, Value, unique_entries};

/// Reads `text`. A syntax error, which ends reading, and repeated keys are faults.
pub(crate) fn parse(text: &str, faults: &Faults<'_>) -> Option<Node> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(root) => convert(root, 0, faults),
        Err(error) => {
            let start = faults.source.offset(error.line(), error.column());
            not_json(&error, Span::new(start, start), faults)
        }
    }
}

fn not_json(error: &serde_json::Error, span: Span, faults: &Faults<'_>) -> Option<Node> {
    let text = error.to_string();
    let message = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
    faults.error(span, format!("invalid JSON: {message}"));
    None
}

fn convert(raw: &RawValue, depth: usize, faults: &Faults<'_>) -> Option<Node> {
    let span = span_of(raw.get(), faults);
    if depth > MAX_DEPTH {
        faults.error(span, format!("a plan is at most {MAX_DEPTH} levels deep"));
        return None;
    }
    read_level(raw, depth, faults)
        .map_or_else(|error| not_json(&error, span, faults), |value| Some(At::new(value?, span)))
}

fn read_level(raw: &RawValue, depth: usize, faults: &Faults<'_>) -> serde_json::Result<Option<Value>> {
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let members: Members<'_> = serde_json::from_str(text)?;
            let mut entries = Vec::new();
            for (key, value) in members.0 {
                let span = span_of(key.get(), faults);
                let key = At::new(serde_json::from_str(key.get())?, Span::new(span.start + 1, span.end - 1));
                let Some(value) = convert(value, depth + 1, faults) else { return Ok(None) };
                entries.push(Entry { key, value });
            }
            Some(unique_entries(entries, faults))
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            let items = items.into_iter().map(|item| convert(item, depth + 1, faults)).collect::<Option<_>>();
            items.map(Value::List)
        }
        Some(b'"') => Some(Value::Text(serde_json::from_str(text)?)),
        Some(b'n') => Some(Value::Null),
        Some(b't' | b'f') => Some(Value::Boolean(text == "true")),
        _ => Some(number(text)),
    })
}

fn number(text: &str) -> Value {
    match text.parse() {
        Ok(number) => Value::Integer(number),
        Err(_) if text.contains(['.', 'e', 'E']) => Value::Other("a fraction"),
        Err(_) => Value::Other("a number out of range"),
    }
}

/// The span of `part`, a slice of the text.
fn span_of(part: &str, faults: &Faults<'_>) -> Span {
    let start = (part.as_ptr() as usize).saturating_sub(faults.source.text.as_ptr() as usize);
    Span::new(start, start + part.len())
}

/// An object's members in order, repeated ones too.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Members<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(member) = members.next_entry()? {
            list.push(member);
        }
        Ok(Members(list))
    }
}
