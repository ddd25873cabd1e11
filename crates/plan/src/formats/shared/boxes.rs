//! The check boxes of a Markdown text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::markdown::inline::{bare, without_parentheses};
use crate::markdown::{Document, Fence, indent, trim};

/// An item of a list with a check box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckBox {
    /// Its line in the document.
    pub(crate) line: usize,
    /// The columns of white space before its bullet.
    pub(crate) indent: usize,
    /// The box that it is nested below, by its place in the list of all boxes.
    pub(crate) parent: Option<usize>,
    /// The headings that it is below, from the outermost, by their place in the document's.
    pub(crate) headings: Vec<usize>,
    /// The bytes between the brackets; empty for `[]`.
    pub(crate) tick: Range<usize>,
    pub(crate) state: BoxState,
    /// The text behind the box on its line. In Kiro's `[ ]* text` the asterisk is a part of it.
    pub(crate) title: Range<usize>,
    /// The title and the deeper lines below it, with the boxes nested in them.
    pub(crate) body: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoxState {
    Open,
    /// Work on it has begun: `[-]`, `[~]`, `[/]`.
    Started,
    Ticked,
    /// Nothing is to be done, whether the box is ticked or not: `~~struck~~`, `(skipped …)`, `(deferred …)`.
    Dropped,
}

impl BoxState {
    pub(crate) fn is_done(self) -> bool {
        matches!(self, Self::Ticked | Self::Dropped)
    }
}

static BOX: LazyLock<Regex> = pattern!(r"^(?:[-*+•]|[0-9]{1,9}[.)])[ \t]\s*\[([ \txX~/✓✔-]?)\]");

/// The check boxes of `document` outside of its front matter and of code, in the order of the text.
pub(crate) fn boxes(document: &Document<'_>) -> Vec<CheckBox> {
    let mut found: Vec<CheckBox> = Vec::new();
    // The boxes that the next line may belong to, and the headings above it.
    let mut open: Vec<usize> = Vec::new();
    let mut headings: Vec<usize> = Vec::new();
    let mut next_heading = 0;
    for line in document.front_matter..document.len() {
        if let Some(heading) = document.headings.get(next_heading).filter(|heading| heading.line == line) {
            headings.retain(|&above| document.headings[above].level < heading.level);
            headings.push(next_heading);
            next_heading += 1;
            open.clear();
            continue;
        }
        if document.is_blank(line) {
            continue;
        }
        let is_text = document.fence(line) == Fence::Outside;
        let columns = indent(document.line(line));
        // The lines of a block of code may stand at the margin.
        if document.fence(line) != Fence::Inside {
            open.retain(|&above| found[above].indent < columns);
        }
        let end = document.trimmed(line).end;
        open.iter().for_each(|&above| found[above].body.end = end);
        if let Some(part) = is_text.then(|| check_box(document, line)).flatten() {
            let parent = open.last().copied();
            open.push(found.len());
            found.push(CheckBox { indent: columns, parent, headings: headings.clone(), ..part });
        }
    }
    found
}

fn check_box(document: &Document<'_>, line: usize) -> Option<CheckBox> {
    let range = document.trimmed(line);
    let text = &document.text[range.clone()];
    let marks = BOX.captures(text)?;
    let behind = &text[marks[0].len()..];
    // `[x](address)` and `[x][1]` are links.
    if behind.starts_with(['(', '[', ':']) {
        return None;
    }
    let tick = marks.get(1).map(|tick| range.start + tick.start()..range.start + tick.end())?;
    let title = trim(document.text, range.start + marks[0].len()..range.end);
    let state = match &document.text[tick.clone()] {
        _ if is_dropped(&document.text[title.clone()]) => BoxState::Dropped,
        "" | " " | "\t" => BoxState::Open,
        "-" | "~" | "/" => BoxState::Started,
        _ => BoxState::Ticked,
    };
    let body = title.clone();
    Some(CheckBox { line, indent: 0, parent: None, headings: Vec::new(), tick, state, title, body })
}

static STRUCK: LazyLock<Regex> = pattern!("~~[^~]+~~");
static DROPPED: LazyLock<Regex> = pattern!(
    r"(?i)[(（]\s*(?:(?:skip(?:ped)?|deferred|cancell?ed|descoped|obsolete|won'?t do)\b|跳过|推迟|延后|取消|スキップ|延期|中止)[^()（）]*[)）]\s*[.。]?$"
);
/// What may stand before the text of a task: `T012`, `2.1`, `[P]`, `[US1]`.
static LABELS: LazyLock<Regex> = pattern!(r"^\s*(?:(?:[A-Za-z]{0,4}[0-9][0-9.]*[a-z]?|\[[^\]]*\])(?:[.:)]|\s|$)\s*)*");

/// Whether a title says that nothing is to be done: all of it is struck out, or it ends with `(skipped …)`.
fn is_dropped(title: &str) -> bool {
    if DROPPED.is_match(title.trim_end_matches(['*', '_', ' '])) {
        return true;
    }
    if !title.contains("~~") {
        return false;
    }
    let kept = STRUCK.replace_all(title, " ").into_owned();
    let kept = without_parentheses(&kept);
    STRUCK.is_match(title) && !bare(&LABELS.replace(&kept, "")).contains(char::is_alphanumeric)
}

/// `text` with the boxes of `ticks`, each the bytes between its brackets, ticked or open; no other byte differs. A box
/// that says so already is left as it is written.
pub(crate) fn with_ticks(text: &str, mut ticks: Vec<Range<usize>>, done: bool) -> String {
    ticks.sort_unstable_by_key(|tick| tick.start);
    ticks.dedup();
    let mut changed = String::with_capacity(text.len() + ticks.len());
    let mut end = 0;
    for tick in ticks {
        let own = &text[tick.clone()];
        let is_done = matches!(own, "x" | "X" | "✓" | "✔");
        changed.push_str(&text[end..tick.start]);
        changed.push_str(if is_done == done {
            own
        } else if done {
            "x"
        } else {
            " "
        });
        end = tick.end;
    }
    changed + &text[end..]
}

/// `text` with nothing between the brackets of its boxes.
pub(crate) fn without_ticks(text: &str) -> String {
    let document = Document::new(text);
    let mut kept = String::with_capacity(text.len());
    let mut end = 0;
    for found in boxes(&document) {
        kept.push_str(&text[end..found.tick.start]);
        end = found.tick.end;
    }
    kept + &text[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, BoxState, Option<usize>)> {
        let document = Document::new(text);
        let all = boxes(&document).into_iter();
        all.map(|found| (text[found.title].to_owned(), found.state, found.parent)).collect()
    }

    #[test]
    fn boxes_have_states_of_every_spelling() {
        let text = "- [ ] a\r\n* [x] b\n+ [X] c\n1. [-] d\n- [~] e\n- [] f\n- [ ]* g\n- [✓] h\n";
        use BoxState::{Open, Started, Ticked};
        let expected = [
            ("a", Open),
            ("b", Ticked),
            ("c", Ticked),
            ("d", Started),
            ("e", Started),
            ("f", Open),
            ("* g", Open),
            ("h", Ticked),
        ];
        assert_eq!(shown(text), expected.map(|(title, state)| (title.to_owned(), state, None)));
    }

    #[test]
    fn links_and_code_are_no_boxes() {
        assert_eq!(shown("- [x](https://a) b\n- [x][1] b\n```md\n- [ ] c\n```\n- [a] d\n[ ] e\n"), []);
        assert_eq!(shown("---\nx: |\n  - [ ] a\n---\n- [ ] b\n").len(), 1);
    }

    #[test]
    fn struck_or_skipped_titles_are_dropped() {
        let dropped = [
            "~~a b~~",
            "T012 [P] ~~a~~",
            "3.2.1 ~~a~~ (replaced, see b)",
            "a (skipped: no need)",
            "a (Deferred)",
            "**a** (deferred - later).",
            "删除 （跳过）",
        ];
        for title in dropped {
            assert_eq!(shown(&format!("- [ ] {title}"))[0].1, BoxState::Dropped, "{title}");
        }
        for title in ["~~a~~ b", "a (skipped) b", "count skipped rows", "a ~~b", "T1 a (not deferred)"] {
            assert_eq!(shown(&format!("- [ ] {title}"))[0].1, BoxState::Open, "{title}");
        }
    }

    #[test]
    fn body_holds_deeper_lines_and_nested_boxes() {
        let text = "## 見出し\n### B\n- [ ] a\n  more\n\n  - [x] b\n    ```\n# code\n    ```\n- [ ] c\nprose\n  far\n## D\n  x\n";
        let document = Document::new(text);
        let found = boxes(&document);
        let bodies: Vec<&str> = found.iter().map(|found| &text[found.body.clone()]).collect();
        assert_eq!(bodies, ["a\n  more\n\n  - [x] b\n    ```\n# code\n    ```", "b\n    ```\n# code\n    ```", "c"]);
        assert_eq!(found.iter().map(|found| found.parent).collect::<Vec<_>>(), [None, Some(0), None]);
        assert!(found.iter().all(|found| found.headings == [0, 1]));
    }

    #[test]
    fn ticks_change_their_bytes_only() {
        let text = "- [ ] ä\r\n- [X] b\r\n- [] c\r\n- [✓] d";
        let document = Document::new(text);
        let all = || boxes(&document).into_iter().map(|found| found.tick).collect::<Vec<_>>();
        assert_eq!(with_ticks(text, all(), true), "- [x] ä\r\n- [X] b\r\n- [x] c\r\n- [✓] d");
        assert_eq!(with_ticks(text, all(), false), "- [ ] ä\r\n- [ ] b\r\n- [] c\r\n- [ ] d");
        assert_eq!(with_ticks(text, Vec::new(), true), text);
    }
}
