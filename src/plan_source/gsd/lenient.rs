//! Front matter that may be no valid YAML: what can be read entry by entry still counts.

use crate::plan_source::faults::Faults;
use crate::plan_source::source_text::{At, Span};
use crate::plan_source::tree::{Entry, Node, Value, last_entries};
use crate::plan_source::yaml;

use super::front_matter::{Line, key_of, lines};

/// How deep broken parts are taken apart.
const MAX_DEPTH: usize = 5;

/// How many parts of broken front matter are looked at.
const MAX_PARTS: usize = 2_000;

/// Reads YAML that begins at byte `start` of the plan's text. What is at fault is a warning.
pub(super) fn read(text: &str, start: usize, faults: &Faults<'_>) -> Option<Node> {
    if text.trim().is_empty() {
        return None;
    }
    match yaml::parse_part(text, start, faults) {
        Ok(node) => Some(node),
        Err((span, message)) => {
            let message = format!("invalid YAML in the front matter: {message}");
            faults.warning(span, message, "fix this place; what can be read without it still counts");
            let mut reader = Reader { faults, parts: MAX_PARTS };
            Some(reader.block(text, start, MAX_DEPTH))
        }
    }
}

struct Reader<'a, 'f> {
    faults: &'a Faults<'f>,
    /// How many more parts may be parsed.
    parts: usize,
}

impl Reader<'_, '_> {
    /// A part that begins at a line's beginning, whole where it is YAML, else taken apart.
    fn part(&mut self, text: &str, start: usize, depth: usize) -> Node {
        if self.parts > 0 {
            self.parts -= 1;
            if let Ok(node) = yaml::parse_part(text, start, self.faults) {
                return node;
            }
        }
        self.block(text, start, depth)
    }

    /// A list or a table, taken apart by its first line's indent; anything else is text.
    fn block(&mut self, text: &str, start: usize, depth: usize) -> Node {
        let span = Span::new(start, start + text.len());
        let says_something = |line: &Line<'_>| {
            let trimmed = line.text.trim();
            !trimmed.is_empty() && !trimmed.starts_with('#')
        };
        let Some(first) = lines(text).find(says_something).filter(|_| depth > 0 && self.parts > 0) else {
            return At::new(Value::Text(plain(text)), span);
        };
        let indent = indent(first.text);
        if first.text[indent..].starts_with("- ") {
            let items = split(text, |line| line[..] == *"-" || line.starts_with("- "), indent);
            let items = items.into_iter().map(|item| self.item(&text[item.clone()], start + item.start, depth));
            return At::new(Value::List(items.collect()), span);
        }
        if key_of(first.text).is_none() {
            return At::new(Value::Text(plain(text)), span);
        }
        let entries = split(text, |line| key_of(line).is_some(), indent);
        let entries =
            entries.into_iter().filter_map(|entry| self.entry(&text[entry.clone()], start + entry.start, depth));
        let entries: Vec<Entry> = entries.collect();
        At::new(last_entries(entries, |key| yaml::repeated(key, self.faults)), span)
    }

    /// `- …` with the lines that belong to it.
    fn item(&mut self, text: &str, start: usize, depth: usize) -> Node {
        if self.parts > 0 {
            self.parts -= 1;
            if let Ok(At { value: Value::List(mut items), .. }) = yaml::parse_part(text, start, self.faults)
                && items.len() == 1
            {
                return items.remove(0);
            }
        }
        // Without its dash the item is a block of its own, at the same places.
        let without_dash = text.replacen('-', " ", 1);
        self.block(&without_dash, start, depth - 1)
    }

    /// `key: …` with the lines that belong to it.
    fn entry(&mut self, text: &str, start: usize, depth: usize) -> Option<Entry> {
        if self.parts > 0 {
            self.parts -= 1;
            if let Ok(At { value: Value::Table(mut entries), .. }) = yaml::parse_part(text, start, self.faults)
                && entries.len() == 1
            {
                return entries.pop();
            }
        }
        let key = key_of(text.lines().next()?)?;
        let key_start = indent(text);
        let colon = key_start + key.len() + 1;
        let key = At::new(key.to_owned(), Span::new(start + key_start, start + key_start + key.len()));
        let rest = &text[colon..];
        let first_line = rest.lines().next().unwrap_or("").trim();
        let value = if first_line.is_empty() {
            let next = rest.find('\n').map_or(rest.len(), |at| at + 1);
            self.part(&rest[next..], start + colon + next, depth - 1)
        } else {
            scalar_or_flow(rest, start + colon)
        };
        Some(Entry { key, value })
    }
}

/// `[a, b]` whose items are no valid YAML, or text.
fn scalar_or_flow(text: &str, start: usize) -> Node {
    let begin = start + indent(text);
    let trimmed = text.trim();
    let span = Span::new(begin, begin + trimmed.len());
    let Some(inside) = trimmed.strip_prefix('[') else { return At::new(Value::Text(plain(trimmed)), span) };
    let inside = inside.trim_end_matches(']');
    let mut at = begin + 1;
    let mut items = Vec::new();
    for item in inside.split(',') {
        let item_start = at + indent(item);
        at += item.len() + 1;
        let text = plain(item);
        if !text.is_empty() {
            items.push(At::new(Value::Text(text), Span::new(item_start, item_start + item.trim().len())));
        }
    }
    At::new(Value::List(items), span)
}

/// The stretches of `text` that begin at lines with this indent that `begins` likes.
fn split(text: &str, begins: impl Fn(&str) -> bool, wanted: usize) -> Vec<std::ops::Range<usize>> {
    let starts_here = |line: &Line<'_>| indent(line.text) == wanted && begins(&line.text[wanted..]);
    let mut starts: Vec<usize> = lines(text).filter(starts_here).map(|line| line.start).collect();
    starts.push(text.len());
    starts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// How many bytes of white space a line begins with.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// Text without the quotes around it.
fn plain(text: &str) -> String {
    let text = text.trim();
    let quotes = ['"', '\''];
    let unquoted = quotes.iter().find_map(|&quote| text.strip_prefix(quote)?.strip_suffix(quote));
    unquoted.unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_source::source_text::SourceText;

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
                let entry = |entry: &Entry| format!("{}: {}", entry.key.value, show(&entry.value, faults));
                format!("{{{}}}", list(entries.iter().map(entry).collect()))
            }
            Value::Text(text) => text.clone(),
            _ => faults.source.slice(node.span).trim().to_owned(),
        }
    }

    #[test]
    fn one_bad_place_spoils_nothing_else() {
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
        ];
        for (text, expected, warnings) in cases {
            assert_eq!(shown(text), (expected.to_owned(), warnings), "{text:?}");
        }
    }

    #[test]
    fn broken_front_matter_is_read_in_bounded_time() {
        let broken = format!("{}x: [\n", "a: \"\n".repeat(50_000));
        assert!(shown(&broken).1 > 0);
        let deep = (0..2_000).map(|depth| format!("{}- \"\n", " ".repeat(depth))).collect::<String>();
        assert!(shown(&deep).1 > 0);
    }
}
