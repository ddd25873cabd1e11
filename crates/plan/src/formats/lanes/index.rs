//! The lane index in its three forms: nested bullets, stanzas with indented keys, and one line with semicolons.

use std::collections::HashSet;
use std::iter;
use std::ops::Range;

use super::lane_text::{Field, LaneText, labelled};
use super::names::{LANES, leading_name};
use crate::markdown::inline::{bare, parts};
use crate::markdown::{Document, Fence, indent, list_item, trim};

/// The lanes of the index, in its order; empty where there is none.
pub(super) fn index(document: &Document<'_>) -> Vec<LaneText> {
    let is_wanted = |title: &str| {
        title.starts_with("lane index")
            || matches!(title, "lanes index" | "index of lanes" | "lane dependencies" | "swim lane index")
    };
    let sections = document.sections(is_wanted);
    let lines = |fenced: bool| {
        let mut drawing = false;
        let mut lines = Vec::new();
        for at in sections.iter().cloned().flatten() {
            match document.fence(at) {
                Fence::Mark => drawing = is_drawing(document.line(at)),
                Fence::Inside if fenced && !drawing => lines.push(at),
                Fence::Outside if !fenced => lines.push(at),
                _ => {}
            }
        }
        lines
    };
    let found = entries(document, &lines(false));
    if found.is_empty() { entries(document, &lines(true)) } else { found }
}

fn is_drawing(mark: &str) -> bool {
    let language = mark.trim().trim_matches(['`', '~']).trim().to_lowercase();
    matches!(language.as_str(), "mermaid" | "dot" | "graphviz" | "plantuml" | "d2")
}

/// The lines of a lane before they are taken apart: the one with its id, and each one with a key of its own.
struct Block {
    id: Range<usize>,
    /// The first begins behind the id.
    chunks: Vec<Range<usize>>,
    indent: usize,
}

fn entries(document: &Document<'_>, lines: &[usize]) -> Vec<LaneText> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut after_blank = true;
    for &at in lines {
        let range = document.trimmed(at);
        if range.is_empty() {
            after_blank = true;
            continue;
        }
        let white = indent(document.line(at));
        // A line that is indented deeper continues a value, even if it begins with a lane.
        let nested = blocks.last().is_some_and(|block| white > block.indent);
        if let Some((id, rest)) = lane_line(document.text, range.clone()).filter(|_| !nested) {
            blocks.push(Block { id, chunks: iter::once(rest..range.end).collect(), indent: white });
        } else if let Some(block) = blocks.last_mut() {
            if field(document.text, range.clone()).is_some() {
                block.chunks.push(range);
            } else if let Some(chunk) = block.chunks.last_mut().filter(|_| !after_blank && white > block.indent) {
                chunk.end = range.end;
            }
        }
        after_blank = false;
    }
    let mut entries: Vec<LaneText> = blocks.iter().map(|block| entry(document.text, block)).collect();
    // A second line on a lane that says nothing of it only mentions it.
    let mut seen = HashSet::new();
    entries.retain(|entry| seen.insert(entry.id.clone()) || !entry.fields.is_empty());
    entries
}

/// The id that a line of the index begins with, and where the rest begins; drawings begin with ids as well.
fn lane_line(text: &str, range: Range<usize>) -> Option<(Range<usize>, usize)> {
    let (id, rest) = leading_name(text, content(text, range.clone()), LANES)?;
    let said = rest.trim_start();
    let separator = ["—", "–", "--", "-", ":", ";"].iter().find(|separator| said.starts_with(**separator));
    let behind = separator.map_or(said, |separator| said[separator.len()..].trim_start());
    let drawn = behind.starts_with(['>', '─', '-', '+', '|'])
        || (separator.is_none() && !said.is_empty() && !said.starts_with('('));
    let chain = behind.trim_start_matches(['*', '`']).starts_with("SL-");
    (!drawn && !chain).then(|| (id, range.end - behind.len()))
}

fn entry(text: &str, block: &Block) -> LaneText {
    let mut name = String::new();
    let mut fields: Vec<Field> = Vec::new();
    for (at, chunk) in block.chunks.iter().enumerate() {
        for (number, part) in parts(&text[chunk.clone()], &[';']).into_iter().enumerate() {
            let part = trim(text, chunk.start + part.start..chunk.start + part.end);
            match (field(text, part.clone()), fields.last_mut()) {
                (Some(field), _) => fields.push(field),
                (None, None) if at == 0 && number == 0 => name = bare(&text[part]).to_owned(),
                // `Depends on: SL-1; SL-2`
                (None, Some(last)) if !part.is_empty() && number > 0 => last.value.end = part.end,
                _ => {}
            }
        }
    }
    LaneText { id: text[block.id.clone()].to_owned(), at: block.id.clone(), name, fields, ..LaneText::default() }
}

/// What a line or a part of one says of its lane.
fn field(text: &str, range: Range<usize>) -> Option<Field> {
    labelled(text, content(text, range)).filter(|field| field.label.is_of_index())
}

/// A line without the marker of a list.
fn content(text: &str, range: Range<usize>) -> Range<usize> {
    list_item(text, range.clone()).map_or(range, |(item, _)| item)
}

#[cfg(test)]
mod tests {
    use super::super::lane_text::Label;
    use super::*;

    /// Id, name and fields of a lane.
    type Said = (String, String, Vec<(Label, String)>);

    fn read(section: &str) -> Vec<Said> {
        let text = format!("# P1: A\n## Lane Index & Dependencies\n{section}\n## B\n- SL-9 - no; Blocks: SL-1\n");
        let keys = |entry: &LaneText| {
            entry.fields.iter().map(|field| (field.label, text[field.value.clone()].to_owned())).collect()
        };
        index(&Document::new(&text)).iter().map(|entry| (entry.id.clone(), entry.name.clone(), keys(entry))).collect()
    }

    fn two_lanes() -> Vec<Said> {
        let keys = |depends: &str, blocks: &str, safe: &str| {
            vec![
                (Label::DependsOn, depends.to_owned()),
                (Label::Blocks, blocks.to_owned()),
                (Label::ParallelSafe, safe.to_owned()),
            ]
        };
        vec![
            ("SL-A".to_owned(), "one - a".to_owned(), keys("(none)", "SL-2", "yes")),
            ("SL-2".to_owned(), "two".to_owned(), keys("SL-A", "none", "no (why; why)")),
        ]
    }

    #[test]
    fn three_index_forms_give_the_same_lanes() {
        let forms = [
            "- SL-A -- one - a\n  - Depends on: (none)\n  - Blocks: SL-2\n  - Parallel-safe: yes\n\n- SL-2 -- two\n  - Depends on: SL-A\n  - Blocks: none\n  - Parallel-safe: no (why; why)",
            "SL-A — one - a\n  Depends on: (none)\n  Blocks: SL-2\n  Parallel-safe: yes\n\nSL-2 — two\n  Depends on: SL-A\n  Blocks: none\n  Parallel-safe: no (why; why)",
            "- SL-A - one - a; Depends on: (none); Blocks: SL-2; Parallel-safe: yes\n- **SL-2** - two; **Depends on:** SL-A; Blocks: none;\n  Parallel-safe: no (why; why)",
        ];
        for form in forms {
            assert_eq!(read(form), two_lanes(), "{form}");
            assert_eq!(read(&format!("```\n{form}\n```")), two_lanes(), "{form}");
        }
    }

    #[test]
    fn diagrams_are_not_a_lane_index() {
        for drawing in ["SL-A -> SL-2", "SL-A --> SL-2", "SL-A ──> SL-2", "SL-A — SL-2", "SL-A → SL-2", "  └─> SL-2"]
        {
            let found = read(&format!(
                "- SL-A - one; Blocks: SL-2\n- SL-2 - two; Blocks: none\n\nLane DAG:\n\n```text\n{drawing}\n```"
            ));
            assert_eq!(found.len(), 2, "{drawing}");
            assert!(read(drawing).is_empty(), "{drawing}");
        }
    }

    #[test]
    fn index_values_may_wrap() {
        let found = read("SL-A — one\n  Depends on: SL-1,\n    SL-2\n  Blocks: SL-3; SL-4");
        assert_eq!(
            found[0].2,
            [(Label::DependsOn, "SL-1,\n    SL-2".to_owned()), (Label::Blocks, "SL-3; SL-4".to_owned())]
        );
    }
}
