//! Text within a paragraph: code spans, parentheses, lists of words. All positions are bytes of the given text.

use std::collections::HashMap;
use std::ops::Range;

use super::clean;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code {
    /// With its backticks.
    pub(crate) outer: Range<usize>,
    /// Without them.
    pub(crate) inner: Range<usize>,
}

/// The code spans of `text`; backticks that nothing closes are text.
pub(crate) fn codes(text: &str) -> Vec<Code> {
    let runs = backtick_runs(text);
    let mut later: HashMap<usize, usize> = HashMap::new();
    let mut partner = vec![None; runs.len()];
    for (at, run) in runs.iter().enumerate().rev() {
        partner[at] = later.insert(run.len(), at);
    }
    let (mut found, mut at) = (Vec::new(), 0);
    while at < runs.len() {
        let Some(close) = partner[at] else {
            at += 1;
            continue;
        };
        found.push(Code { outer: runs[at].start..runs[close].end, inner: runs[at].end..runs[close].start });
        at = close + 1;
    }
    found
}

fn backtick_runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.bytes().enumerate().filter(|(_, byte)| *byte == b'`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// `text` with spaces where code spans are; as long as before.
pub(crate) fn without_code(text: &str) -> String {
    blank(text, codes(text).into_iter().map(|code| code.outer))
}

/// `text` with spaces where parentheses and what they hold are; as long as before. Parentheses in code do not count,
/// and one that nothing closes is text.
pub(crate) fn without_parentheses(text: &str) -> String {
    blank(text, enclosed(text, "(").into_iter())
}

/// The outermost stretches of `text` outside of code between brackets that are among `opening`, with these.
fn enclosed(text: &str, opening: &str) -> Vec<Range<usize>> {
    let visible = without_code(text);
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, c) in visible.char_indices() {
        let wanted = match c {
            ')' => '(',
            ']' => '[',
            '}' => '{',
            _ if opening.contains(c) => {
                open.push((at, c));
                continue;
            }
            _ => continue,
        };
        if let Some((start, _)) = open.pop_if(|(_, own)| *own == wanted) {
            while found.last().is_some_and(|inner| inner.start > start) {
                found.pop();
            }
            found.push(start..at + 1);
        }
    }
    found
}

/// `text` with a space for every byte of `ranges`.
fn blank(text: &str, ranges: impl Iterator<Item = Range<usize>>) -> String {
    let mut blanked = String::with_capacity(text.len());
    for range in ranges {
        blanked.push_str(&text[blanked.len()..range.start]);
        let white = text[range].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' });
        blanked.extend(white);
    }
    blanked.push_str(&text[blanked.len()..]);
    blanked
}

/// The parts of `text` between `separators` that stand neither in code nor in brackets.
pub(crate) fn parts(text: &str, separators: &[char]) -> Vec<Range<usize>> {
    let visible = without_code(text);
    let visible = blank(&visible, enclosed(&visible, "([{").into_iter());
    let mut start = 0;
    let mut found = Vec::new();
    for (at, separator) in visible.match_indices(separators) {
        found.push(start..at);
        start = at + separator.len();
    }
    found.push(start..text.len());
    found
}

/// The sentences of `text`: they end at `;`, at a full stop, and where an item of a list begins. Code is part of one.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let hidden = without_code(text);
    let mut start = 0;
    let mut found = Vec::new();
    for (at, byte) in hidden.bytes().enumerate() {
        let behind = &hidden.as_bytes()[at + 1..];
        let ends = match byte {
            b';' => true,
            b'.' => behind.first().is_none_or(u8::is_ascii_whitespace),
            b'\n' => hidden[at + 1..].trim_start_matches([' ', '\t']).starts_with(['-', '*', '+']),
            _ => false,
        };
        if ends {
            found.push(start..at);
            start = at + 1;
        }
    }
    found.push(start..text.len());
    found
}

/// `text` without white space, emphasis and backticks at both ends.
pub(crate) fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '_'))
}

/// Whether `text` says that there is nothing: `none`, `(none - first lane)`, `—`, `n/a`.
pub(crate) fn is_nothing(text: &str) -> bool {
    let visible = without_parentheses(text);
    let word = visible.trim_matches(|c: char| c.is_whitespace() || "*`_.;:,-–—".contains(c)).to_lowercase();
    matches!(word.as_str(), "" | "none" | "n/a" | "na" | "nil" | "nothing" | "null" | "tbd" | "no" | "[]" | "~")
        || ["none ", "none;", "none,", "none."].iter().any(|start| word.starts_with(start))
}

/// `text` in one line, white space as single spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `text` without the white space that all its lines begin with, and without blank lines around it. A first line at the
/// margin does not count: it may be the text after a label.
pub(crate) fn dedent(text: &str) -> String {
    let text = clean(text);
    let white = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let first_at_margin = !text.starts_with(['\n', ' ', '\t']);
    let indented = text.lines().skip(usize::from(first_at_margin)).filter(|line| !line.trim().is_empty());
    let margin = indented.map(white).min().unwrap_or(0);
    let lines = text.lines().map(|line| line[white(line).min(margin)..].trim_end());
    lines.collect::<Vec<_>>().join("\n").trim_matches('\n').trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(text: &str) -> Vec<&str> {
        codes(text).into_iter().map(|code| &text[code.inner]).collect()
    }

    #[test]
    fn dedent_removes_common_indent() {
        assert_eq!(dedent("\n    a\n      b\n\n    c\n  "), "a\n  b\n\nc");
        assert_eq!(dedent("a\n    b\r\n    c"), "a\nb\nc");
        assert_eq!(dedent("  \n \n"), "");
    }

    #[test]
    fn code_spans_close_with_as_many_backticks() {
        assert_eq!(inner("`a`, ``b`c``, `d"), ["a", "b`c"]);
        assert_eq!(inner("``` x ` y"), Vec::<&str>::new());
    }

    #[test]
    fn parentheses_in_code_are_kept() {
        assert_eq!(without_parentheses("a (b (c) d) e").split_whitespace().collect::<Vec<_>>(), ["a", "e"]);
        assert_eq!(without_parentheses("`f(x)` (y)").trim_end(), "`f(x)`");
        assert_eq!(without_parentheses("a (b"), "a (b");
        assert_eq!(without_parentheses("a) ((b)"), "a) (   ");
    }

    #[test]
    fn blanked_text_keeps_its_length() {
        for text in ["ä (ö) `ü` (", "(`)`)", "((((", "`(`)`"] {
            assert_eq!(without_parentheses(text).len(), text.len());
        }
    }

    #[test]
    fn separators_in_code_or_parentheses_do_not_split() {
        let text = "a; `b;c` (d; e); f";
        let found: Vec<&str> = parts(text, &[';']).into_iter().map(|range| text[range].trim()).collect();
        assert_eq!(found, ["a", "`b;c` (d; e)", "f"]);
    }

    #[test]
    fn is_nothing_accepts_all_spellings() {
        for text in [
            "",
            "none",
            "(none)",
            "(none — disjoint from SL-2's files)",
            "None (Phase 3)",
            "—",
            "-",
            "n/a",
            "none; read-only survey of `a`",
        ] {
            assert!(is_nothing(text), "{text}");
        }
        for text in ["SL-1", "`a`", "nonexistent", "nothing else than SL-1"] {
            assert!(!is_nothing(text), "{text}");
        }
    }
}
