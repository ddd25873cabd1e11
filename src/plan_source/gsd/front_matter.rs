//! Where the front matter of a plan stands: at the beginning, further down, or in a fence.

use std::ops::Range;

/// Keys that front matter is known by.
pub(super) const KEYS: [&str; 9] =
    ["phase", "plan", "type", "wave", "depends_on", "files_modified", "autonomous", "must_haves", "requirements"];

/// How many lines are looked at for front matter that does not stand at the beginning.
const MAX_LINES_BEFORE: usize = 200;

/// How many known keys tell late front matter from a stretch of text between two rulers.
const ENOUGH_KEYS: usize = 2;

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

/// A line without its end, and where it begins.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) start: usize,
    pub(super) text: &'a str,
}

/// The lines of `text`; line ends are no part of them.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let here = start;
        start += line.len();
        Line { start: here, text: line.trim_end_matches(['\n', '\r']) }
    })
}

/// The front matter of a plan, if it has any.
pub(super) fn locate(text: &str) -> Option<FrontMatter> {
    let mut first = true;
    let mut skip_to = 0;
    let mut endless_fence = false;
    for line in lines(text).take(MAX_LINES_BEFORE) {
        let trimmed = line.text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if line.start < skip_to || trimmed.is_empty() {
            continue;
        }
        if trimmed == "---" {
            let found = between_rulers(text, line, if first { 1 } else { ENOUGH_KEYS }, first);
            if found.is_some() {
                return found;
            }
        } else if is_fence(trimmed) && !endless_fence {
            let Some(block) = fenced(text, line, trimmed) else {
                endless_fence = true;
                continue;
            };
            let info = trimmed.trim_start_matches(['`', '~']).trim().to_ascii_lowercase();
            if matches!(info.as_str(), "yaml" | "yml" | "") && known_keys(&text[block.inner.clone()]) >= ENOUGH_KEYS {
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

/// The block that a `---` opens. One that is not closed ends where no YAML goes on.
fn between_rulers(text: &str, opening: Line<'_>, enough: usize, first: bool) -> Option<FrontMatter> {
    let begin = after(text, opening);
    let close = lines(&text[begin..]).find(|line| matches!(line.text.trim(), "---" | "..."));
    if let Some(close) = close {
        let inner = begin..begin + close.start;
        let body = &text[inner.clone()];
        let plausible = known_keys(body) >= enough || (first && begins_with_key(body));
        if plausible {
            let outer = opening.start..after(text, Line { start: begin + close.start, text: close.text });
            return Some(FrontMatter { outer, inner, closed: true });
        }
        // Two rulers at the very beginning are front matter that says nothing.
        if first && body.trim().is_empty() {
            let outer = opening.start..after(text, Line { start: begin + close.start, text: close.text });
            return Some(FrontMatter { outer, inner, closed: true });
        }
    }
    let end = begin + end_of_yaml(&text[begin..]);
    let found = known_keys(&text[begin..end]);
    let unclosed = FrontMatter { outer: opening.start..end, inner: begin..end, closed: false };
    (close.is_none() && found >= enough).then_some(unclosed)
}

/// Where front matter that nothing closes goes over into Markdown.
fn end_of_yaml(text: &str) -> usize {
    let mut after_blank = false;
    for line in lines(text) {
        let at_margin = !line.text.starts_with([' ', '\t']);
        let heading = line.text.starts_with('#') && after_blank;
        let foreign = line.text.starts_with('<') || is_fence(line.text) || heading;
        let goes_on =
            line.text.trim().is_empty() || line.text.starts_with(['-', '#', ']', '}']) || key_of(line.text).is_some();
        if at_margin && (foreign || !goes_on) {
            return line.start;
        }
        after_blank = line.text.trim().is_empty();
    }
    text.len()
}

/// The block of a code fence that `opening` begins.
fn fenced(text: &str, opening: Line<'_>, mark: &str) -> Option<FrontMatter> {
    let begin = after(text, opening);
    let tick = mark.chars().next()?;
    let is_close = |line: &str| line.len() >= 3 && line.chars().all(|c| c == tick);
    let close = lines(&text[begin..]).find(|line| is_close(line.text.trim()))?;
    let outer = opening.start..after(text, Line { start: begin + close.start, text: close.text });
    Some(FrontMatter { outer, inner: begin..begin + close.start, closed: true })
}

fn is_fence(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~")
}

/// Where the line after `line` begins.
fn after(text: &str, line: Line<'_>) -> usize {
    let end = line.start + line.text.len();
    text[end..].find('\n').map_or(text.len(), |at| end + at + 1)
}

fn begins_with_key(text: &str) -> bool {
    let says_something = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().find(says_something).is_some_and(|line| key_of(line).is_some())
}

/// How many of the keys of a plan's front matter begin a line.
pub(super) fn known_keys(text: &str) -> usize {
    let mut found = [false; KEYS.len()];
    for key in text.lines().filter_map(key_of) {
        if let Some(at) = KEYS.iter().position(|known| *known == normal(key)) {
            found[at] = true;
        }
    }
    found.into_iter().filter(|found| *found).count()
}

/// The key that begins a line of YAML.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(text: &str) -> Option<&str> {
        locate(text).map(|found| &text[found.inner])
    }

    #[test]
    fn front_matter_is_found_where_people_put_it() {
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
    fn rulers_and_code_are_no_front_matter() {
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
}
