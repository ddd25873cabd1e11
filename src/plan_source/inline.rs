//! Text within a paragraph: code spans, parentheses, lists of words. All positions are bytes of the given text.

use std::collections::HashMap;
use std::ops::Range;

/// A code span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan_source) struct Code {
    /// With its backticks.
    pub(in crate::plan_source) outer: Range<usize>,
    /// Without them.
    pub(in crate::plan_source) inner: Range<usize>,
}

/// The code spans of `text`; backticks that nothing closes are text.
pub(in crate::plan_source) fn codes(text: &str) -> Vec<Code> {
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
pub(in crate::plan_source) fn without_code(text: &str) -> String {
    blank(text, codes(text).into_iter().map(|code| code.outer))
}

/// `text` with spaces where parentheses and what they hold are; as long as before. Parentheses in code do not count,
/// and one that nothing closes is text.
pub(in crate::plan_source) fn without_parentheses(text: &str) -> String {
    blank(text, parentheses(text).into_iter())
}

/// The outermost parentheses of `text` that are no part of code.
fn parentheses(text: &str) -> Vec<Range<usize>> {
    let visible = without_code(text);
    let mut open: Vec<usize> = Vec::new();
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, byte) in visible.bytes().enumerate() {
        match byte {
            b'(' => open.push(at),
            b')' => {
                if let Some(start) = open.pop() {
                    while found.last().is_some_and(|inner| inner.start > start) {
                        found.pop();
                    }
                    found.push(start..at + 1);
                }
            }
            _ => {}
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

/// The parts of `text` between `separators` that stand neither in code nor in parentheses.
pub(in crate::plan_source) fn parts(text: &str, separators: &[char]) -> Vec<Range<usize>> {
    let visible = blank(text, codes(text).into_iter().map(|code| code.outer));
    let visible = without_parentheses(&visible);
    let mut start = 0;
    let mut found = Vec::new();
    for (at, separator) in visible.match_indices(separators) {
        found.push(start..at);
        start = at + separator.len();
    }
    found.push(start..text.len());
    found
}

/// `text` without white space, emphasis and backticks at both ends.
pub(in crate::plan_source) fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '_'))
}

/// Whether `text` says that there is nothing: `none`, `(none - first lane)`, `—`, `n/a`.
pub(in crate::plan_source) fn is_nothing(text: &str) -> bool {
    let visible = without_parentheses(text);
    let word = visible.trim_matches(|c: char| c.is_whitespace() || "*`_.;:,-–—".contains(c)).to_lowercase();
    matches!(word.as_str(), "" | "none" | "n/a" | "na" | "nil" | "nothing" | "null" | "tbd" | "no" | "[]")
        || ["none ", "none;", "none,", "none."].iter().any(|start| word.starts_with(start))
}

/// `text` in one line, white space as single spaces.
pub(in crate::plan_source) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of `text` without the white space that all but the first begin with.
pub(in crate::plan_source) fn dedent(text: &str) -> String {
    let rest = || text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let white = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let margin = rest().map(white).min().unwrap_or(0);
    let lines =
        text.lines().enumerate().map(|(at, line)| if at == 0 { line } else { line.get(margin..).unwrap_or("") });
    lines.map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(text: &str) -> Vec<&str> {
        codes(text).into_iter().map(|code| &text[code.inner]).collect()
    }

    #[test]
    fn code_spans_close_with_as_many_backticks() {
        assert_eq!(inner("`a`, ``b`c``, `d"), ["a", "b`c"]);
        assert_eq!(inner("``` x ` y"), Vec::<&str>::new());
    }

    #[test]
    fn parentheses_go_with_what_they_hold_but_not_in_code() {
        assert_eq!(without_parentheses("a (b (c) d) e").split_whitespace().collect::<Vec<_>>(), ["a", "e"]);
        assert_eq!(without_parentheses("`f(x)` (y)").trim_end(), "`f(x)`");
        assert_eq!(without_parentheses("a (b"), "a (b");
        assert_eq!(without_parentheses("a) ((b)"), "a) (   ");
    }

    #[test]
    fn a_blanked_text_keeps_its_length() {
        for text in ["ä (ö) `ü` (", "(`)`)", "((((", "`(`)`"] {
            assert_eq!(without_parentheses(text).len(), text.len());
        }
    }

    #[test]
    fn separators_in_code_and_parentheses_separate_nothing() {
        let text = "a; `b;c` (d; e); f";
        let found: Vec<&str> = parts(text, &[';']).into_iter().map(|range| text[range].trim()).collect();
        assert_eq!(found, ["a", "`b;c` (d; e)", "f"]);
    }

    #[test]
    fn nothing_is_said_in_many_ways() {
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
