//! Front matter: its position, at the beginning, further down or in a fence, and its values as far as they can be
//! read.

use std::ops::Range;

use super::faults::Faults;
use super::markdown::{FenceMark, Line, lines, trim};
use super::source_text::{At, Span};
use super::tree::{Node, TableEntry, Value, last_entries};
use super::yaml;

pub(super) const KEYS: [&str; 9] =
    ["phase", "plan", "type", "wave", "depends_on", "files_modified", "autonomous", "must_haves", "requirements"];

/// How many lines are searched for front matter that is not at the beginning.
const MAX_LINES_BEFORE: usize = 200;

/// How many known keys distinguish late front matter from text between two rulers.
const MIN_KEYS: usize = 2;

/// How many lines of invalid YAML are read one by one.
const MAX_LINES: usize = 2_000;

/// Front matter, in bytes of its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrontMatter {
    /// With its marks.
    pub(super) outer: Range<usize>,
    /// Without them.
    pub(super) inner: Range<usize>,
    /// Whether its end is marked.
    pub(super) closed: bool,
}

/// The front matter of a plan, if it has any.
pub(super) fn locate(text: &str) -> Option<FrontMatter> {
    let (mut first, mut endless_fence) = (true, false);
    let mut skip_to = 0;
    for line in lines(text).take(MAX_LINES_BEFORE) {
        let trimmed = line.text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if line.start < skip_to || trimmed.is_empty() {
            continue;
        }
        if trimmed == "---" {
            let found = between_rulers(text, line, first);
            if found.is_some() {
                return found;
            }
        } else if let Some(mark) = FenceMark::of(trimmed).filter(|_| !endless_fence) {
            let closes = |line: &str| FenceMark::of(line).is_some_and(|own| own.closes(&mark));
            let Some(block) = block(text, line, closes) else {
                endless_fence = true;
                continue;
            };
            let is_yaml = ["yaml", "yml", ""].iter().any(|info| mark.info.eq_ignore_ascii_case(info));
            if is_yaml && known_keys(&text[block.inner.clone()]) >= MIN_KEYS {
                return Some(block);
            }
            skip_to = block.outer.end;
        } else if ["<objective", "<task", "<context"].iter().any(|tag| trimmed.starts_with(tag)) {
            return None;
        }
        first = false;
    }
    None
}

/// The block that a `---` opens. One that is not closed ends with its YAML.
fn between_rulers(text: &str, opening: Line<'_>, first: bool) -> Option<FrontMatter> {
    let enough = if first { 1 } else { MIN_KEYS };
    if let Some(block) = block(text, opening, |line| matches!(line.trim(), "---" | "...")) {
        let body = &text[block.inner.clone()];
        let plausible = known_keys(body) >= enough || (first && (begins_with_key(body) || body.trim().is_empty()));
        return plausible.then_some(block);
    }
    let begin = after(text, opening);
    let end = begin + end_of_yaml(&text[begin..]);
    let unclosed = FrontMatter { outer: opening.start..end, inner: begin..end, closed: false };
    (known_keys(&text[begin..end]) >= enough).then_some(unclosed)
}

/// The text between `opening` and the first line that `closes`.
fn block(text: &str, opening: Line<'_>, closes: impl Fn(&str) -> bool) -> Option<FrontMatter> {
    let begin = after(text, opening);
    let close = lines(&text[begin..]).find(|line| closes(line.text))?;
    let end = begin + close.start;
    let outer = opening.start..after(text, Line { start: end, text: close.text });
    Some(FrontMatter { outer, inner: begin..end, closed: true })
}

/// Where front matter that nothing closes goes over into Markdown.
fn end_of_yaml(text: &str) -> usize {
    let mut after_blank = false;
    for line in lines(text) {
        let at_margin = !line.text.starts_with([' ', '\t']);
        let heading = line.text.starts_with('#') && after_blank;
        let foreign = line.text.starts_with('<') || FenceMark::of(line.text).is_some() || heading;
        let blank = line.text.trim().is_empty();
        let goes_on = blank || line.text.starts_with(['-', '#', ']', '}']) || key_of(line.text).is_some();
        if at_margin && (foreign || !goes_on) {
            return line.start;
        }
        after_blank = blank;
    }
    text.len()
}

/// Where the line after `line` begins.
fn after(text: &str, line: Line<'_>) -> usize {
    let end = line.range().end;
    text[end..].find('\n').map_or(text.len(), |at| end + at + 1)
}

fn begins_with_key(text: &str) -> bool {
    let says_something = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().find(says_something).is_some_and(|line| key_of(line).is_some())
}

/// How many of the keys of a plan's front matter begin a line.
fn known_keys(text: &str) -> usize {
    let keys: Vec<String> = text.lines().filter_map(key_of).map(normal).collect();
    KEYS.iter().filter(|known| keys.iter().any(|key| key == *known)).count()
}

pub(super) fn key_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))?;
    let rest = line[end..].strip_prefix(':')?;
    let starts = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts && (rest.is_empty() || rest.starts_with([' ', '\t', '\r']))).then_some(&line[..end])
}

/// A key as all its spellings are: `files-modified` is `files_modified`.
pub(super) fn normal(key: &str) -> String {
    key.trim().to_ascii_lowercase().replace('-', "_")
}

/// Reads YAML that begins at byte `start` of the plan's text. Invalid YAML is a warning: every value that is invalid on
/// its line is taken as plain text.
pub(super) fn read(text: &str, start: usize, faults: &Faults<'_>) -> Option<Node> {
    if text.trim().is_empty() {
        return None;
    }
    let (span, message) = match yaml::parse_part(text, start, faults) {
        Ok(node) => return Some(node),
        Err(error) => error,
    };
    let message = format!("invalid YAML in the front matter: {message}");
    faults.warning(span, message, "fix this place; what can be read without it still counts");
    let repair = Repair { text, start, bad: bad_values(text, start, faults) };
    // Words of the same length keep everything else at its place.
    let mut masked = text.to_owned();
    repair.bad.iter().for_each(|range| masked.replace_range(range.clone(), &"x".repeat(range.len())));
    let mut node = yaml::parse_part(&masked, start, faults).unwrap_or_else(|_| repair.by_entries(&masked, faults));
    repair.restore(&mut node);
    Some(node)
}

/// The values that are no YAML on their own lines.
fn bad_values(text: &str, start: usize, faults: &Faults<'_>) -> Vec<Range<usize>> {
    let mut bad = Vec::new();
    for line in lines(text).take(MAX_LINES) {
        let mut value = trim(text, line.range());
        if yaml::parse_part(&text[value.clone()], start + value.start, faults).is_ok() {
            continue;
        }
        while text[value.clone()].starts_with("- ") {
            value = trim(text, value.start + 1..value.end);
        }
        let key = key_of(&text[value.clone()]).map_or(0, |key| key.len() + 1);
        value = trim(text, value.start + key..value.end);
        bad.extend(Some(value).filter(|value| !value.is_empty()));
    }
    bad
}

struct Repair<'a> {
    text: &'a str,
    /// Where the text begins in the plan's.
    start: usize,
    bad: Vec<Range<usize>>,
}

impl Repair<'_> {
    /// The entries of a table, each read by itself: one that is invalid is text.
    fn by_entries(&self, masked: &str, faults: &Faults<'_>) -> Node {
        let at_margin = |line: &Line<'_>| !line.text.starts_with([' ', '\t']) && key_of(line.text).is_some();
        let mut begins: Vec<usize> = lines(masked).filter(at_margin).map(|line| line.start).take(MAX_LINES).collect();
        begins.push(masked.len());
        let mut entries = Vec::new();
        for pair in begins.windows(2) {
            let (part, start) = (&masked[pair[0]..pair[1]], self.start + pair[0]);
            let key = key_of(part.lines().next().unwrap_or("")).unwrap_or("");
            let value = || At::new(Value::Text(unquoted(&part[key.len() + 1..]).to_owned()), Span::new(start, start));
            let key = || At::new(key.to_owned(), Span::new(start, start + key.len()));
            match yaml::parse_part(part, start, faults) {
                Ok(At { value: Value::Table(read), .. }) => entries.extend(read),
                _ => entries.push(TableEntry { key: key(), value: value() }),
            }
        }
        let span = Span::new(self.start, self.start + self.text.len());
        At::new(last_entries(entries, |key| yaml::repeated(key, faults)), span)
    }

    /// Replaces placeholders by the text that they mask.
    fn restore(&self, node: &mut Node) {
        match &mut node.value {
            Value::List(items) => items.iter_mut().for_each(|item| self.restore(item)),
            Value::Table(entries) => entries.iter_mut().for_each(|entry| self.restore(&mut entry.value)),
            _ => {
                let begins = node.span.start.wrapping_sub(self.start);
                if self.bad.binary_search_by_key(&begins, |range| range.start).is_ok() {
                    let end = node.span.end.saturating_sub(self.start).min(self.text.len());
                    node.value = self.written(begins..end);
                }
            }
        }
    }

    /// Text, or the list that `[a, b]` is.
    fn written(&self, range: Range<usize>) -> Value {
        let text = self.text.get(range.clone()).unwrap_or("").trim();
        let Some(inside) = text.strip_prefix('[') else { return Value::Text(unquoted(text).to_owned()) };
        let span = Span::new(self.start + range.start, self.start + range.end);
        let items = inside.trim_end_matches(']').split(',').map(unquoted).filter(|item| !item.is_empty());
        Value::List(items.map(|item| At::new(Value::Text(item.to_owned()), span)).collect())
    }
}

/// A scalar as it is written, unless it is blank.
pub(super) fn scalar(node: &Node, faults: &Faults<'_>) -> Option<At<String>> {
    let text = node.as_written(faults)?.trim().to_owned();
    (!text.is_empty()).then(|| At::new(text, node.span))
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    ['"', '\''].into_iter().find_map(inside).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_text::SourceText;

    fn inner(text: &str) -> Option<&str> {
        locate(text).map(|found| &text[found.inner])
    }

    #[test]
    fn front_matter_is_found_in_usual_positions() {
        let cases = [
            ("---\nphase: 1\n---\nx", Some("phase: 1\n")),
            ("---\r\nphase: 1\r\n---\r\nx", Some("phase: 1\r\n")),
            ("\n\n  ---\n  wave: 1\n  ---\n", Some("  wave: 1\n")),
            ("# Plan\n\n---\nphase: 1\nplan: 2\n---\n", Some("phase: 1\nplan: 2\n")),
            ("# Plan\n\n```yaml\nphase: 1\nwave: 2\n```\n", Some("phase: 1\nwave: 2\n")),
            ("---\ncolour: red\n---\n", Some("colour: red\n")),
            ("---\n---\n", Some("")),
            ("---\nphase: 1\nwave: 1\n\n# Plan\n\ntext: x\n", Some("phase: 1\nwave: 1\n\n")),
            ("---\nphase: 1\ndepends_on:\n- 01-01\n<objective>\n", Some("phase: 1\ndepends_on:\n- 01-01\n")),
        ];
        for (text, expected) in cases {
            assert_eq!(inner(text), expected, "{text:?}");
        }
    }

    #[test]
    fn rulers_and_code_are_not_front_matter() {
        let cases = [
            "# Plan\n\n---\n\nSome text: with a colon\n\n---\n",
            "# Plan\n\n```yaml\nservices: 1\nports: 2\n```\n",
            "<objective>\nx\n</objective>\n---\nphase: 1\nplan: 1\n---\n",
            "text\n",
            "",
            "```\nnever closed",
        ];
        for text in cases {
            assert_eq!(inner(text), None, "{text:?}");
        }
    }

    /// What is read, without places, and how many warnings there are.
    fn shown(text: &str) -> (String, usize) {
        let faults = Faults::new(SourceText::new("p", text));
        let root = read(text, 0, &faults).map_or_else(String::new, |root| show(&root, &faults));
        (root, faults.into_diagnostics().len())
    }

    fn show(node: &Node, faults: &Faults<'_>) -> String {
        let list = |parts: Vec<String>| parts.join(", ");
        match &node.value {
            Value::List(items) => format!("[{}]", list(items.iter().map(|item| show(item, faults)).collect())),
            Value::Table(entries) => {
                let entry = |entry: &TableEntry| format!("{}: {}", entry.key.value, show(&entry.value, faults));
                format!("{{{}}}", list(entries.iter().map(entry).collect()))
            }
            Value::Text(text) => text.clone(),
            _ => faults.source.slice(node.span).trim().to_owned(),
        }
    }

    #[test]
    fn invalid_yaml_value_keeps_other_values() {
        let cases = [
            ("plan: 01\nwave: 2\n", "{plan: 01, wave: 2}", 0),
            (
                "plan: 01\nfiles: [a.rs, \"b\\|c\", d.rs]\nwave: 2\n",
                "{plan: 01, files: [a.rs, b\\|c, d.rs], wave: 2}",
                1,
            ),
            (
                "m:\n  truths:\n    - \"x\"\n  links:\n    - f() -> g(a: { b, c }, d)\n    - h\nwave: 2\n",
                "{m: {truths: [x], links: [f() -> g(a: { b, c }, d), h]}, wave: 2}",
                1,
            ),
            (
                "l:\n  - from: a.rs\n    pattern: \"a\\|b\"\n  - from: c.rs\n",
                "{l: [{from: a.rs, pattern: a\\|b}, {from: c.rs}]}",
                1,
            ),
            ("wave: 1\nwave: 2\n", "{wave: 2}", 1),
            ("a: \"never closed\nwave: 2\n", "{a: \"never closed, wave: 2}", 1),
            ("\twave: 2\n", "{wave: 2}", 0),
            ("a: {\n  b\nc: [x: {]\nwave: 2\n", "{a: {\n  b, c: [x: {], wave: 2}", 1),
        ];
        for (text, expected, warnings) in cases {
            assert_eq!(shown(text), (expected.to_owned(), warnings), "{text:?}");
        }
    }

    #[test]
    fn invalid_front_matter_is_read_in_bounded_time() {
        let broken = format!("{}x: [\n", "a: \"\n".repeat(50_000));
        assert!(shown(&broken).1 > 0);
        let deep = (0..2_000).map(|depth| format!("{}- \"\n", " ".repeat(depth))).collect::<String>();
        assert!(shown(&deep).1 > 0);
    }
}
