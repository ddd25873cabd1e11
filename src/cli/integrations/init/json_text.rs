//! JSON files that people write, changed by inserting text: everything else stays byte for byte. Pure.

use std::ops::Range;

use lanewright_store::json::Object;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The value at `path` as it is written. Blank text is an empty object.
pub(crate) fn get<'a>(text: &'a str, path: &[&str]) -> Result<Option<&'a str>, String> {
    let mut value = trimmed(text);
    for (depth, name) in path.iter().enumerate() {
        let object = read_object(value).map_err(|fault| within(&path[..depth], &fault))?;
        match object.members.into_iter().find(|(known, _)| known == name) {
            Some((_, found)) => value = found.get(),
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// `text` with `value` at `path`: in place of the value there, else as the last member of its object.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let Some((name, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    if trimmed(text).is_empty() {
        return set("{}\n", path, value);
    }
    match (get(text, path)?, get(text, parents)?) {
        (Some(old), _) => {
            let range = range_of(text, old);
            let new = laid_out(text, value, old.contains('\n').then(|| indentation_at(text, range.start)));
            Ok(replaced(text, range, &new))
        }
        (None, Some(object)) => Ok(appended(text, object, &format!("{}: ", json!(name)), value)),
        (None, None) => set(text, parents, &json!({ *name: value })),
    }
}

/// `text` with `value` as the last element of the list at `path`, which must be there.
pub(crate) fn push(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let list = get(text, path)?.ok_or_else(|| within(path, "it is missing"))?;
    Ok(appended(text, list, "", value))
}

pub(crate) fn within(path: &[&str], fault: &str) -> String {
    if path.is_empty() { fault.to_owned() } else { format!("`{}`: {fault}", path.join(".")) }
}

/// `added` with the line ends of `text`.
pub(super) fn with_line_ends_of(text: &str, added: &str) -> String {
    if text.contains("\r\n") { added.replace('\n', "\r\n") } else { added.to_owned() }
}

fn trimmed(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim()
}

fn read_object(text: &str) -> Result<Object<&RawValue>, String> {
    if text.is_empty() {
        return Ok(Object::default());
    }
    let read: Object<&RawValue> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let names = || read.members.iter().map(|(name, _)| name);
    // Programs do not agree upon which of two counts.
    match names().enumerate().find(|(at, name)| names().skip(at + 1).any(|later| later == *name)) {
        Some((_, name)) => Err(format!("the key `{name}` is there twice; keep one of them")),
        None => Ok(read),
    }
}

/// `text` with one more value at the end of `container`, an object or a list in it, laid out as those before it.
fn appended(text: &str, container: &str, name: &str, value: &Value) -> String {
    let inner = &container[1..container.len() - 1];
    let start = range_of(text, container).start + 1;
    let Some(first) = inner.find(|sign: char| !sign.is_whitespace()) else {
        let outer = indentation_at(text, start);
        let indentation = format!("{outer}{}", indent_of(text));
        let value = laid_out(text, value, Some(&indentation));
        let new = with_line_ends_of(text, &format!("\n{indentation}{name}"));
        return replaced(
            text,
            start..start + inner.len(),
            &format!("{new}{value}{}", with_line_ends_of(text, &format!("\n{outer}"))),
        );
    };
    let gap = &inner[..first];
    let value = laid_out(text, value, gap.rsplit_once('\n').map(|(_, indentation)| indentation));
    let end = start + inner.trim_end().len();
    replaced(text, end..end, &format!(",{gap}{name}{value}"))
}

/// Where `part`, a slice of `text`, is in it.
fn range_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

fn replaced(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// What one step of indentation is in `text`: that of its first indented line, else two blanks.
fn indent_of(text: &str) -> &str {
    text.lines().filter(|line| !line.trim().is_empty()).map(blanks).find(|blanks| !blanks.is_empty()).unwrap_or("  ")
}

/// The indentation of the line at `position`.
fn indentation_at(text: &str, position: usize) -> &str {
    blanks(&text[text[..position].rfind('\n').map_or(0, |end| end + 1)..])
}

fn blanks(line: &str) -> &str {
    let end = line.find(|sign| !matches!(sign, ' ' | '\t')).unwrap_or(line.len());
    &line[..end]
}

/// `value` as it is written in `text`, in lines indented by `indentation`; `None`: on one line.
fn laid_out(text: &str, value: &Value, indentation: Option<&str>) -> String {
    let Some(indentation) = indentation else { return value.to_string() };
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent_of(text).as_bytes());
    if value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)).is_err() {
        return value.to_string();
    }
    // No text in JSON holds a line break, so each one is between values.
    let lines = String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{indentation}"));
    with_line_ends_of(text, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_added_text_differs() {
        for (text, path, new) in [
            ("{\"a\":[1.0, 1e5]}", &["b"][..], "{\"a\":[1.0, 1e5],\"b\": [1]}"),
            ("{ \"a\": 1 }", &["b"], "{ \"a\": 1, \"b\": [1] }"),
            ("{\n\t\"a\": {}\n}", &["a", "b"], "{\n\t\"a\": {\n\t\t\"b\": [\n\t\t\t1\n\t\t]\n\t}\n}"),
            ("{\r\n    \"a\": 1\r\n}\r\n", &["b"], "{\r\n    \"a\": 1,\r\n    \"b\": [\r\n        1\r\n    ]\r\n}\r\n"),
            ("\u{feff}{\n \"a\": {\"x\":   1}, \"c\": 2}", &["a"], "\u{feff}{\n \"a\": [1], \"c\": 2}"),
            (" \n", &["b"], "{\n  \"b\": [\n    1\n  ]\n}\n"),
            ("{\"a\": {\"x\": 1}}", &["a", "b", "c"], "{\"a\": {\"x\": 1,\"b\": {\"c\":[1]}}}"),
        ] {
            assert_eq!(set(text, path, &json!([1])).unwrap(), new, "{text}");
        }
        let list = "{\n  \"a\": [\n    {\"x\":  1}\n  ]\n}";
        assert_eq!(push(list, &["a"], &json!(2)).unwrap(), list.replace("1}", "1},\n    2"));
    }

    #[test]
    fn json_errors_name_the_path() {
        assert!(get("{\n  \"a\": 1,\n}", &["a"]).unwrap_err().contains("line 3 column 1"));
        assert!(get("{\"a\": 1, \"b\": 2, \"a\": 3}", &["c"]).is_err_and(|error| error.contains("`a` is there twice")));
        assert!(get("{\"a\": [1]}", &["a", "b"]).unwrap_err().starts_with("`a`: "));
        assert!(get("[1]", &["a"]).unwrap_err().contains("an object"));
    }
}
