//! The section of a lane: its labelled fields, and its other text.

use std::ops::Range;

use super::lane_text::{Field, Label, LaneText, label, labelled};
use super::names::{LANES, leading_name};
use super::{table, tasks};
use crate::command::is_in;
use crate::markdown::inline::bare;
use crate::markdown::{Document, Fence, indent, list_item};

/// The sections of lanes: those below a heading for them, else all that describe something like a lane.
pub(super) fn bodies(document: &Document<'_>) -> Vec<LaneText> {
    let is_wanted = |title: &str| {
        let rest = title.strip_prefix("lane ").unwrap_or("");
        matches!(title, "swim lanes" | "swimlanes" | "lanes") || is_in("definitions details plans specifications", rest)
    };
    let sections = document.sections(is_wanted);
    let inside = found(document, |line| sections.iter().any(|section| section.contains(&line)));
    if !inside.is_empty() {
        return inside;
    }
    let mut anywhere = found(document, |_| true);
    anywhere.retain(|body| {
        body.fields.iter().any(|field| matches!(field.label, Label::Scope | Label::Owned | Label::Tasks))
    });
    anywhere
}

fn found(document: &Document<'_>, within: impl Fn(usize) -> bool) -> Vec<LaneText> {
    let (mut bodies, mut end) = (Vec::new(), 0);
    for (number, heading) in document.headings.iter().enumerate().filter(|(_, heading)| heading.level > 1) {
        // A lane's section may have headings that name its tasks.
        if heading.line < end || !within(heading.line) {
            continue;
        }
        let Some((at, name)) = lane_title(document.text, heading.at.clone()) else { continue };
        let lines = document.below(number);
        end = lines.end;
        let (fields, notes) = Reader::read(document, lines);
        let id = document.text[at.clone()].to_owned();
        bodies.push(LaneText { id, at, name, fields, notes, has_section: true, ..LaneText::default() });
    }
    bodies
}

/// `SL-1 — Name`, also behind `Lane`, bold or backticked.
fn lane_title(text: &str, title: Range<usize>) -> Option<(Range<usize>, String)> {
    let whole = &text[title.clone()];
    let plain = whole.trim_start_matches(['*', '`', '_', ' ']);
    let plain = plain.strip_prefix("Lane ").map_or(plain, |rest| rest.trim_start_matches([':', ' ']));
    let (id, rest) = leading_name(text, title.end - plain.len()..title.end, LANES)?;
    let said = rest.trim_start();
    let separated = ["—", "–", "-", ":", "("].iter().any(|separator| said.starts_with(separator));
    let name = bare(said.trim_start_matches(|c: char| "—–-: ".contains(c))).to_owned();
    (said.is_empty() || separated).then_some((id, name))
}

/// How a field began, which says where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// A list item: continues while lines are indented deeper.
    Bullet(usize),
    /// A paragraph: continues over lists and tables, until the next paragraph.
    Plain,
    /// A heading: continues until the next one.
    Heading,
}

struct Open {
    style: Style,
    tabled: bool,
    field: Field,
}

struct Reader<'a> {
    document: &'a Document<'a>,
    fields: Vec<Field>,
    notes: Vec<Range<usize>>,
    open: Option<Open>,
    after_blank: bool,
    /// The last line was a note, so that the next one continues it.
    noting: bool,
}

impl<'a> Reader<'a> {
    fn read(document: &'a Document<'a>, lines: Range<usize>) -> (Vec<Field>, Vec<Range<usize>>) {
        let (fields, notes) = (Vec::new(), Vec::new());
        let mut reader = Self { document, fields, notes, open: None, after_blank: true, noting: false };
        lines.for_each(|at| reader.take(at));
        reader.close();
        (reader.fields, reader.notes)
    }

    fn take(&mut self, at: usize) {
        let range = self.document.trimmed(at);
        if range.is_empty() {
            self.after_blank = true;
            return;
        }
        let text = &self.document.text[range.clone()];
        if self.document.fence(at) == Fence::Outside {
            if text.len() > 2 && text.bytes().all(|byte| byte == b'-') {
                self.close();
                self.noting = false;
                return;
            }
            if let Some(open) = self.start(at, range.clone()) {
                self.close();
                self.open = Some(open);
                (self.after_blank, self.noting) = (false, false);
                return;
            }
        }
        if self.goes_on(at, text) {
            if let Some(open) = &mut self.open {
                open.tabled |= text.starts_with('|');
                open.field.value.end = range.end;
            }
        } else {
            self.close();
            self.note(range);
        }
        self.after_blank = false;
    }

    fn note(&mut self, range: Range<usize>) {
        match self.notes.last_mut().filter(|_| self.noting) {
            Some(last) => last.end = range.end,
            None => self.notes.push(range),
        }
        self.noting = true;
    }

    fn close(&mut self) {
        self.fields.extend(self.open.take().map(|open| open.field));
    }

    fn start(&self, at: usize, range: Range<usize>) -> Option<Open> {
        let text = self.document.text;
        let opened = |style, field| Some(Open { style, tabled: false, field });
        if let Some(heading) = self.document.heading_at(at) {
            return opened(Style::Heading, Field { label: label(heading.title)?, value: range.end..range.end });
        }
        let in_tasks = self.open.as_ref().is_some_and(|open| open.field.label == Label::Tasks);
        if !in_tasks && table::is_task_header(&text[range.clone()]) {
            return Some(Open {
                style: Style::Plain,
                tabled: true,
                field: Field { label: Label::Tasks, value: range },
            });
        }
        let white = indent(self.document.line(at));
        let nested = match self.open.as_ref().map(|open| open.style) {
            Some(Style::Bullet(own)) => white > own,
            _ => white > 3,
        };
        if nested {
            return None;
        }
        match list_item(text, range.clone()) {
            Some((item, _)) => opened(Style::Bullet(white), labelled(text, item)?),
            None => opened(Style::Plain, labelled(text, range)?),
        }
    }

    fn goes_on(&self, at: usize, text: &str) -> bool {
        let Some(open) = &self.open else { return false };
        let white = indent(self.document.line(at));
        let is_table = text.starts_with('|');
        let item = list_item(self.document.text, self.document.trimmed(at));
        let Field { label, value } = &open.field;
        let is_task = *label == Label::Tasks
            && (is_table
                || item.as_ref().is_some_and(|(item, _)| tasks::begins_task(&self.document.text[item.clone()])));
        match open.style {
            _ if self.document.heading_at(at).is_some() => false,
            Style::Heading => true,
            Style::Bullet(own) => {
                let lazy = !self.after_blank && item.is_none() && !is_table && !text.starts_with("**");
                white > own || lazy || is_task || (item.is_some() && value.is_empty() && *label != Label::Scope)
            }
            Style::Plain if text.starts_with("**") && white == 0 => false,
            Style::Plain if is_table || is_task => true,
            Style::Plain if open.tabled => white > 0 && !self.after_blank,
            Style::Plain => item.is_some() || white > 1 || !self.after_blank || value.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> (Vec<(Label, String)>, Vec<String>) {
        let text = format!("# P1: A\n## Lanes\n### SL-1 — One\n{body}\n## B\n");
        let bodies = bodies(&Document::new(&text));
        assert_eq!((bodies.len(), bodies[0].id.as_str(), bodies[0].name.as_str()), (1, "SL-1", "One"));
        let fields = bodies[0].fields.iter().map(|field| (field.label, text[field.value.clone()].to_owned())).collect();
        (fields, bodies[0].notes.iter().map(|note| text[note.clone()].to_owned()).collect())
    }

    #[test]
    fn labels_may_be_bold_or_plain() {
        for form in [
            "**Scope**: x",
            "**Scope:** x",
            "- **Scope**: x",
            "- Scope: x",
            "**Scope**\nx",
            "#### Scope\nx",
            "**Scope**\n\nx",
        ] {
            assert_eq!(
                read(form).0.iter().map(|(label, text)| (*label, text.trim())).collect::<Vec<_>>(),
                [(Label::Scope, "x")],
                "{form}"
            );
        }
    }

    #[test]
    fn field_ends_with_its_paragraph_or_list() {
        let (fields, notes) = read(
            "- **Scope**: one\n  two\n- **Owned files**: `a`,\n  `b`\n\nWhy so.\n\n- **Tasks**:\n\n| Task ID | Type |\n|---|---|\n| 1 | test |\n\nBecause.\n1. of\n2. that",
        );
        assert_eq!(fields[..2], [(Label::Scope, "one\n  two".to_owned()), (Label::Owned, "`a`,\n  `b`".to_owned())]);
        assert!(fields[2].1.ends_with("| 1 | test |"), "{fields:?}");
        assert_eq!(notes, ["Why so.", "Because.\n1. of\n2. that"]);
    }

    #[test]
    fn list_after_label_is_its_value() {
        let (fields, notes) = read(
            "**Owned files**:\n- a.rs\n- b.rs\n\n**Interfaces provided**: f\n\n**Tasks**:\n- [ ] P1-SL-1-01 (test) - text\n  more\n\n---",
        );
        assert_eq!(fields[0].1.trim(), "- a.rs\n- b.rs");
        assert_eq!(fields[2].1.trim(), "- [ ] P1-SL-1-01 (test) - text\n  more");
        assert!(notes.is_empty());
    }

    #[test]
    fn task_table_needs_no_label() {
        let (fields, _) = read("- **Parallel-safe**: no\n\n| Task ID | Type |\n| --- | --- |\n| SL-1-T1 | test |");
        assert_eq!(fields[1].0, Label::Tasks);
    }

    #[test]
    fn labels_in_a_fence_are_ignored() {
        let (fields, notes) = read("- **Scope**: x\n\n```md\n- **Owned files**: `a`\n# SL-2 — no\n```\n");
        assert_eq!(fields.len(), 1);
        assert_eq!(notes.len(), 1);
    }
}
