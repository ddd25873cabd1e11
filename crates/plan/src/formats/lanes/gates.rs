//! Interface freeze gates: `- [ ] IF-0-P1-NAME: text`, the id bold, backticked or plain.

use std::collections::HashMap;
use std::ops::Range;

use super::names::{GATES, leading_name};
use crate::markdown::inline::dedent;
use crate::markdown::{Document, Fence, indent, list_item};
use crate::source_text::At;

#[derive(Debug)]
pub(super) struct Gate {
    pub(super) id: At<String>,
    pub(super) text: String,
    pub(super) closed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Gates {
    pub(super) list: Vec<Gate>,
    by_id: HashMap<String, usize>,
    /// Ids that stand there a second time.
    pub(super) repeated: Vec<At<String>>,
}

impl Gates {
    /// The gate that a name means: `IF-0-P1-2` also by `IF-0-P1-2a` or `IF-0-P1-2.1`, a part of it.
    pub(super) fn find(&self, mut name: &str) -> Option<usize> {
        loop {
            if let Some(&gate) = self.by_id.get(name) {
                return Some(gate);
            }
            let shorter = name.trim_end_matches(|c: char| c.is_ascii_lowercase());
            if shorter.len() < name.len() && shorter.ends_with(|c: char| c.is_ascii_digit()) {
                name = shorter;
                continue;
            }
            let (whole, part) = name.rsplit_once(['.', '-'])?;
            let is_part = name[whole.len()..].starts_with('.') || part.bytes().all(|byte| byte.is_ascii_lowercase());
            name = Some(whole).filter(|_| is_part)?;
        }
    }

    fn add(&mut self, gate: Gate) {
        if self.by_id.contains_key(&gate.id.value) {
            self.repeated.push(gate.id);
        } else {
            self.by_id.insert(gate.id.value.clone(), self.list.len());
            self.list.push(gate);
        }
    }
}

pub(super) fn gates(document: &Document<'_>) -> Gates {
    let mut gates = Gates::default();
    let is_wanted = |title: &str| {
        title.contains("freeze gates") || title.ends_with("interface gates") || title == "cross-repo gates"
    };
    // Acceptance criteria may list the gates once more.
    let repeated = document.sections(|title| title.contains("acceptance criteria"));
    let is_first = |lines: &Range<usize>| !repeated.iter().any(|other| other.contains(&lines.start));
    for lines in document.sections(is_wanted).into_iter().filter(is_first) {
        let mut at = lines.start;
        while at < lines.end {
            let end = item_end(document, at, lines.end);
            if let Some(gate) = gate(document, at, end) {
                gates.add(gate);
            }
            at = end;
        }
    }
    gates
}

/// The line after the list item at `at`, nested items that are no gates included.
fn item_end(document: &Document<'_>, at: usize, end: usize) -> usize {
    if id_at(document, at).is_none() {
        return at + 1;
    }
    let own = indent(document.line(at));
    let mut next = at + 1;
    let mut after_blank = false;
    while next < end && document.heading_at(next).is_none() {
        let line = document.line(next);
        let blank = document.is_blank(next);
        let other_item = indent(line) <= own && list_item(document.text, document.range(next)).is_some();
        let outside = after_blank && !blank && indent(line) <= own;
        if other_item || outside || id_at(document, next).is_some() {
            break;
        }
        after_blank = blank;
        next += 1;
    }
    next
}

/// The gate's id that the item begins with, its span, and whether its box is ticked.
fn id_at(document: &Document<'_>, at: usize) -> Option<(Range<usize>, bool)> {
    let (item, ticked) =
        list_item(document.text, document.range(at)).filter(|_| document.fence(at) == Fence::Outside)?;
    let (id, _) = leading_name(document.text, item, GATES)?;
    Some((id, ticked.unwrap_or(false)))
}

fn gate(document: &Document<'_>, at: usize, end: usize) -> Option<Gate> {
    let (id, closed) = id_at(document, at)?;
    let rest = &document.text[id.end..document.bytes(at..end).end];
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "*`_:-–—".contains(c));
    Some(Gate { id: At::new(document.text[id.clone()].to_owned(), id), text: dedent(rest), closed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(items: &str) -> Gates {
        gates(&Document::new(&format!("# P1: A\n## Interface Freeze Gates\n{items}\n## B\n- [ ] IF-0-P1-NO: no\n")))
    }

    #[test]
    fn interface_gates_are_read_in_all_forms() {
        let forms = [
            "- [ ] IF-0-P1-A: text",
            "- [ ] IF-0-P1-A - text",
            "- [ ] IF-0-P1-A — text",
            "- [ ] IF-0-P1-A -- text",
            "- [ ] **IF-0-P1-A**: text",
            "- [ ] `IF-0-P1-A` — text",
            "* [ ] IF-0-P1-A text",
            "### Core\n\n  - [ ] IF-0-P1-A: text\n",
        ];
        for form in forms {
            let gates = read(form);
            let found: Vec<_> =
                gates.list.iter().map(|gate| (gate.id.value.as_str(), gate.text.as_str(), gate.closed)).collect();
            assert_eq!(found, [("IF-0-P1-A", "text", false)], "{form}");
        }
    }

    #[test]
    fn test_gates_are_interface_gates() {
        let gates = read("- [ ] **TG-P1-0 — Tests first.** No lane writes it.");
        assert_eq!(gates.list[0].id.value, "TG-P1-0");
    }

    #[test]
    fn gate_text_includes_nested_lines() {
        let gates = read("- [x] IF-0-P1-A: one\n  two\n  - three\n- [ ] IF-0-P1-B: four\nfive\n\nsix");
        let texts: Vec<_> = gates.list.iter().map(|gate| (gate.text.as_str(), gate.closed)).collect();
        assert_eq!(texts, [("one\ntwo\n- three", true), ("four\nfive", false)]);
    }

    #[test]
    fn gate_part_resolves_to_its_gate() {
        let gates = read("- [ ] IF-0-P1: a\n- [ ] IF-0-P1-2: b\n- [ ] IF-0-P1: again");
        assert_eq!(gates.find("IF-0-P1-2a"), Some(1));
        assert_eq!(gates.find("IF-0-P1-2.1"), Some(1));
        assert_eq!(gates.find("IF-0-P1-TYPES"), None);
        assert_eq!(gates.find("IF-0-P1"), Some(0));
        assert_eq!(gates.repeated.len(), 1);
    }
}
