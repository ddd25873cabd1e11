//! JSON files that people write: reading their objects, and printing them in the file's own indentation. Pure.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::store::json::Object;

/// Reads an object. Blank text is an empty one.
pub(super) fn read_object(text: &str) -> Result<Object, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(Object::default());
    }
    let read: Object = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let names = || read.members.iter().map(|(name, _)| name);
    // Programs do not agree upon which of two counts.
    match names().enumerate().find(|(at, name)| names().skip(at + 1).any(|later| later == *name)) {
        Some((_, name)) => Err(format!("the key `{name}` is there twice; keep one of them")),
        None => Ok(read),
    }
}

/// `object` as text, indented by `depth` steps of `indent`, one member a line.
pub(super) fn object_text(object: &Object, indent: &str, depth: usize) -> Result<String, serde_json::Error> {
    let mut lines = Vec::new();
    for (name, value) in &object.members {
        lines.push(format!("{}{}: {}", indent.repeat(depth + 1), serde_json::to_string(name)?, value.get()));
    }
    Ok(match lines.as_slice() {
        [] => "{}".to_owned(),
        lines => format!("{{\n{}\n{}}}", lines.join(",\n"), indent.repeat(depth)),
    })
}

/// What one step of indentation is in `text`: that of its first indented line, else two blanks.
pub(super) fn indent_of(text: &str) -> String {
    let blanks = |line: &str| line.chars().take_while(|sign| matches!(sign, ' ' | '\t')).collect::<String>();
    let indented = text.lines().filter(|line| !line.trim().is_empty()).map(blanks).find(|blanks| !blanks.is_empty());
    indented.unwrap_or_else(|| "  ".to_owned())
}

/// `value` as text, indented by `depth` steps of `indent`.
pub(super) fn pretty(value: &Value, indent: &str, depth: usize) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(indent.as_bytes())))?;
    let text = String::from_utf8_lossy(&bytes);
    // No text in JSON holds a line break, so each one is between values.
    Ok(text.replace('\n', &format!("\n{}", indent.repeat(depth))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_touched_stays_byte_for_byte() {
        let text =
            "{\n    \"a\": [1.0, 1e5,\n        2],\n    \"b\": {\"x\":   1},\n    \"c\": 12345678901234567890123\n}";
        let mut object = read_object(text).unwrap();
        assert_eq!(object_text(&object, "    ", 0).unwrap(), text);
        object.set("b", "true".into()).unwrap();
        assert_eq!(object_text(&object, "    ", 0).unwrap(), text.replace("{\"x\":   1}", "true"));
    }

    #[test]
    fn indentation_is_what_the_file_has() {
        assert_eq!(indent_of("{\n\t\"a\": 1\n}"), "\t");
        assert_eq!(indent_of("{\n\n    \"a\": 1\n}"), "    ");
        assert_eq!(indent_of("{}"), "  ");
        assert_eq!(pretty(&json!({"a": [1]}), "\t", 1).unwrap(), "{\n\t\t\"a\": [\n\t\t\t1\n\t\t]\n\t}");
    }

    #[test]
    fn faults_have_their_place() {
        assert!(read_object("{\n  \"a\": 1,\n}").unwrap_err().contains("line 3 column 1"));
        assert!(read_object("{\"a\": 1, \"b\": 2, \"a\": 3}").is_err_and(|error| error.contains("`a` is there twice")));
        assert!(read_object("[1]").unwrap_err().contains("an object"));
        assert!(read_object(" \n").unwrap().members.is_empty());
    }
}
