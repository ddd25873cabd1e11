//! JSON text into the tree.
//!
//! Each level is read as raw slices of the text, so that a value's place is where its slice begins.

use serde_json::value::RawValue;

use crate::faults::Faults;
use crate::raw::Raw;
use crate::source_text::{At, Span};
use crate::tree::{MAX_DEPTH, Node, TableEntry, Value, unique_entries};

/// Reads `text`. A syntax error, which ends reading, and repeated keys are faults.
pub(crate) fn parse(text: &str, faults: &Faults<'_>) -> Option<Node> {
    parse_part(text, faults).unwrap_or_else(|(span, message)| {
        faults.error(span, message);
        None
    })
}

/// Reads `part`, a slice of the plan's text. `None`: it is JSON with a fault, which is noted.
///
/// # Errors
/// Where and why it is no JSON.
pub(crate) fn parse_part(part: &str, faults: &Faults<'_>) -> Result<Option<Node>, (Span, String)> {
    let root = serde_json::from_str::<&RawValue>(part).map_err(|error| {
        let before: usize = part.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let within = (before + error.column().saturating_sub(1)).min(part.len());
        let start = span_of(part, faults).start + within;
        (Span::new(start, start), not_json(&error))
    })?;
    Ok(convert(root, 0, faults))
}

fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
    format!("invalid JSON: {message}")
}

fn convert(raw: &RawValue, depth: usize, faults: &Faults<'_>) -> Option<Node> {
    let span = span_of(raw.get(), faults);
    if depth > MAX_DEPTH {
        faults.error(span, format!("a plan is at most {MAX_DEPTH} levels deep"));
        return None;
    }
    let value = read_level(raw, depth, faults);
    let value = value.unwrap_or_else(|error| {
        faults.error(span, not_json(&error));
        None
    });
    Some(At::new(value?, span))
}

fn read_level(raw: &RawValue, depth: usize, faults: &Faults<'_>) -> serde_json::Result<Option<Value>> {
    if raw.get().starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return Ok(Some(number(raw.get())));
    }
    let below = |value: &RawValue| convert(value, depth + 1, faults);
    Ok(match serde_json::from_str::<Raw<&RawValue, &RawValue>>(raw.get())? {
        Raw::Scalar(value) => Some(value),
        Raw::List(items) => items.into_iter().map(below).collect::<Option<_>>().map(Value::List),
        Raw::Table(members) => {
            let mut entries = Vec::new();
            for (key, value) in members {
                let span = span_of(key.get(), faults);
                let key = At::new(serde_json::from_str(key.get())?, Span::new(span.start + 1, span.end - 1));
                let Some(value) = below(value) else { return Ok(None) };
                entries.push(TableEntry { key, value });
            }
            Some(unique_entries(entries, faults))
        }
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
