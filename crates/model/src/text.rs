//! Small helpers on text that several modules share.

use serde_json::Value;

/// Joins arguments into a line that a POSIX shell splits back into the same arguments.
///
/// NUL bytes, which no shell line can hold, are left out.
pub fn shell_line<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> String {
    let quoted = arguments.into_iter().map(|argument| {
        let clean = argument.as_ref().replace('\0', "");
        shlex::try_quote(&clean).map(|text| text.into_owned()).unwrap_or_default()
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The first line of `text`, cut to at most `limit` characters with an ellipsis.
pub fn headline(text: &str, limit: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    if line.chars().count() <= limit {
        return line.to_owned();
    }
    let kept: String = line.chars().take(limit.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// The last `count` lines of `text` that are not blank, oldest first.
pub fn last_lines(text: &str, count: usize) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().rev().filter(|line| !line.trim().is_empty()).take(count).map(str::to_owned).collect();
    lines.reverse();
    lines
}

/// Changes every text in `value`; names of fields stay.
pub fn change_texts(value: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| change_texts(value, change)),
        Value::Object(fields) => fields.values_mut().for_each(|value| change_texts(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `a, b and 3 more`: at most `most` of `names`.
pub fn listed(names: &[String], most: usize) -> String {
    let (named, more) = names.split_at(names.len().min(most));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{}{more}", named.join(", "))
}

/// How a note begins that names what the work of a lane leaves out.
pub const LEFT_OUT: &str = "left out of the work: ";

/// How a note ends that names a file which a lane added beside one of the same number.
pub const SAME_NUMBER: &str = ", which has the same number";

/// `1 lane`, `2 lanes`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quoted_line_splits_back(arguments in proptest::collection::vec("[^\0]{0,12}", 1..5)) {
            prop_assert_eq!(shlex::split(&shell_line(&arguments)), Some(arguments));
        }
    }

    #[test]
    fn long_lines_are_cut_by_characters_not_bytes() {
        assert_eq!(headline("ääää", 3), "ää…");
        assert_eq!(headline("\n  one\ntwo", 10), "one");
    }

    #[test]
    fn last_lines_skip_blank_ones() {
        assert_eq!(last_lines("a\nb\n\nc\n\n", 2), ["b", "c"]);
    }
}
