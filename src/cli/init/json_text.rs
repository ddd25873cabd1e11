//! Changing one member of a JSON text that people write, and no other byte of its value. Pure.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::RawValue;

/// An object whose members keep their order and, each by itself, the text that somebody wrote.
#[derive(Debug, Default)]
pub(super) struct Object {
    members: Vec<(String, Box<RawValue>)>,
}

impl Object {
    /// Reads an object. Blank text is an empty one.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let read: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let names = || read.members.iter().map(|(name, _)| name);
        // Which of two counts, programs do not agree upon.
        match names().enumerate().find(|(at, name)| names().skip(at + 1).any(|later| later == *name)) {
            Some((_, name)) => Err(format!("the key `{name}` stands there twice; keep one of them")),
            None => Ok(read),
        }
    }

    /// The text of a member's value.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())
    }

    /// Gives the member `name` the value that `text` says, in the place where it stands, else at the end.
    pub(super) fn set(&mut self, name: &str, text: String) -> Result<(), serde_json::Error> {
        let value = RawValue::from_string(text)?;
        match self.members.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.members.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// The object as text that stands `depth` steps of `indent` deep.
    pub(super) fn text(&self, indent: &str, depth: usize) -> Result<String, serde_json::Error> {
        let mut lines = Vec::new();
        for (name, value) in &self.members {
            lines.push(format!("{}{}: {}", indent.repeat(depth + 1), serde_json::to_string(name)?, value.get()));
        }
        Ok(match lines.as_slice() {
            [] => "{}".to_owned(),
            lines => format!("{{\n{}\n{}}}", lines.join(",\n"), indent.repeat(depth)),
        })
    }
}

/// What one step of indentation is in `text`: that of its first indented line, else two blanks.
pub(super) fn indent_of(text: &str) -> String {
    let blanks = |line: &str| line.chars().take_while(|sign| matches!(sign, ' ' | '\t')).collect::<String>();
    let indented = text.lines().filter(|line| !line.trim().is_empty()).map(blanks).find(|blanks| !blanks.is_empty());
    indented.unwrap_or_else(|| "  ".to_owned())
}

/// `value` as text that stands `depth` steps of `indent` deep.
pub(super) fn pretty(value: &Value, indent: &str, depth: usize) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(indent.as_bytes())))?;
    let text = String::from_utf8_lossy(&bytes);
    // No text in JSON holds a line break, so each one is between values.
    Ok(text.replace('\n', &format!("\n{}", indent.repeat(depth))))
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Object { members })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_touched_stays_byte_for_byte() {
        let text =
            "{\n    \"a\": [1.0, 1e5,\n        2],\n    \"b\": {\"x\":   1},\n    \"c\": 12345678901234567890123\n}";
        let mut object = Object::read(text).unwrap();
        assert_eq!(object.text("    ", 0).unwrap(), text);
        object.set("b", "true".into()).unwrap();
        assert_eq!(object.text("    ", 0).unwrap(), text.replace("{\"x\":   1}", "true"));
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
        assert!(Object::read("{\n  \"a\": 1,\n}").unwrap_err().contains("line 3 column 1"));
        assert!(
            Object::read("{\"a\": 1, \"b\": 2, \"a\": 3}").is_err_and(|error| error.contains("`a` stands there twice"))
        );
        assert!(Object::read("[1]").unwrap_err().contains("an object"));
        assert!(Object::read(" \n").unwrap().members.is_empty());
    }
}
