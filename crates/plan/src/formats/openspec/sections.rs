//! The tasks of a list: its sections, or its boxes where it has no sections.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::formats::shared::boxes::{CheckBox, boxes};
use crate::formats::shared::commands_in_text::is_tested_by_hand;
use crate::ids::{as_id, unique};
use crate::markdown::Document;
use crate::markdown::inline::bare;

/// A section of a list, or a part of one: what agents do, or what a person does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// Unique in the list, and the same whatever is ticked: the section's number, else its position.
    pub(super) id: String,
    /// Its heading, by its place in the document's.
    pub(super) heading: Option<usize>,
    /// Its boxes, by their places in the list of all.
    pub(super) boxes: Vec<usize>,
    /// Whether it is only a part of what is below its heading.
    pub(super) is_part: bool,
    /// Whether a person does all of it.
    pub(super) is_manual: bool,
}

/// A list with its boxes and sections.
pub(super) struct List<'a> {
    pub(super) document: Document<'a>,
    pub(super) boxes: Vec<CheckBox>,
    pub(super) sections: Vec<Section>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Heading(usize),
    Box(usize),
}

impl<'a> List<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let document = Document::new(text);
        let boxes = boxes(&document);
        let mut list = Self { document, boxes, sections: Vec::new() };
        list.sections = list.divide();
        list
    }

    /// Whether all boxes of a section are ticked or dropped.
    pub(super) fn is_done(&self, section: &Section) -> bool {
        section.boxes.iter().all(|at| self.boxes[*at].state.is_done())
    }

    pub(super) fn title(&self, section: &Section) -> &'a str {
        match (section.heading, section.boxes.first()) {
            (Some(heading), _) => self.document.headings[heading].title,
            (None, Some(first)) => &self.document.text[self.boxes[*first].title.clone()],
            (None, None) => "",
        }
    }

    /// Where the section begins.
    pub(super) fn place(&self, section: &Section) -> Range<usize> {
        match section.heading {
            Some(heading) if !section.is_part => self.document.headings[heading].at.clone(),
            _ => section.boxes.first().map(|first| self.boxes[*first].title.clone()).unwrap_or_default(),
        }
    }

    /// What the list says of the section.
    pub(super) fn text(&self, section: &Section) -> String {
        match section.heading {
            Some(heading) if !section.is_part => {
                self.document.text[self.document.bytes(self.document.below(heading))].to_owned()
            }
            _ => {
                let outermost = section
                    .boxes
                    .iter()
                    .filter(|at| self.boxes[**at].parent.is_none_or(|it| !section.boxes.contains(&it)));
                let items = outermost.map(|at| {
                    let found = &self.boxes[*at];
                    let mark = if found.state.is_done() { "x" } else { " " };
                    format!("- [{mark}] {}", &self.document.text[found.body.clone()])
                });
                items.collect::<Vec<_>>().join("\n")
            }
        }
    }

    fn divide(&self) -> Vec<Section> {
        let places = self.places();
        let mut order: Vec<Place> = Vec::new();
        let mut members: HashMap<Place, Vec<usize>> = HashMap::new();
        for (at, place) in places.into_iter().enumerate() {
            let list = members.entry(place).or_default();
            if list.is_empty() {
                order.push(place);
            }
            list.push(at);
        }
        let mut known = HashSet::new();
        let mut sections = Vec::new();
        for (position, place) in order.into_iter().enumerate() {
            let boxes = members.remove(&place).unwrap_or_default();
            let heading = if let Place::Heading(heading) = place { Some(heading) } else { None };
            let section = Section { id: String::new(), heading, boxes, is_part: heading.is_none(), is_manual: false };
            let number = number(self.title(&section)).unwrap_or_else(|| (position + 1).to_string());
            let id = unique(number, &mut known);
            sections.extend(self.by_who_does_it(Section { id, ..section }, &mut known));
        }
        sections
    }

    /// The section that each box belongs to: the heading of level 2 above it if that has boxes of its own, else that of
    /// level 3; without such headings its outermost box.
    fn places(&self) -> Vec<Place> {
        let level = |heading: usize| self.document.headings[heading].level;
        let top: HashSet<usize> = self
            .boxes
            .iter()
            .filter_map(|found| found.headings.first().copied().filter(|&it| level(it) == 1))
            .collect();
        let from = if top.len() > 1 { 1 } else { 2 };
        let path = |found: &CheckBox| -> Vec<usize> {
            found.headings.iter().copied().filter(|heading| level(*heading) >= from).collect()
        };
        let paths: Vec<Vec<usize>> = self.boxes.iter().map(path).collect();
        let direct: HashSet<usize> =
            paths.iter().filter_map(|path| if let [only] = path.as_slice() { Some(*only) } else { None }).collect();
        let mut outermost: Vec<usize> = Vec::with_capacity(self.boxes.len());
        for (at, found) in self.boxes.iter().enumerate() {
            outermost.push(found.parent.map_or(at, |parent| outermost[parent]));
        }
        let place = |(at, path): (usize, &Vec<usize>)| match path.as_slice() {
            [] => Place::Box(outermost[at]),
            [first, second, ..] if !direct.contains(first) => Place::Heading(*second),
            [first, ..] => Place::Heading(*first),
        };
        paths.iter().enumerate().map(place).collect()
    }

    /// The part of a section that agents do, and behind it what only a person can: `manual`, `手动`.
    fn by_who_does_it(&self, section: Section, known: &mut HashSet<String>) -> Vec<Section> {
        let mut manual: HashSet<usize> = HashSet::new();
        for &at in &section.boxes {
            let found = &self.boxes[at];
            let inherits = found.parent.is_some_and(|parent| manual.contains(&parent));
            if inherits || is_tested_by_hand(without_number(&self.document.text[found.title.clone()])) {
                manual.insert(at);
            }
        }
        if manual.len() == section.boxes.len() || manual.is_empty() {
            return vec![Section { is_manual: !manual.is_empty(), ..section }];
        }
        let (by_person, by_agents): (Vec<usize>, Vec<usize>) = section.boxes.iter().partition(|at| manual.contains(at));
        let id = unique(format!("{}-manual", section.id), known);
        let person = Section { id, boxes: by_person, is_part: true, is_manual: true, ..section.clone() };
        vec![Section { boxes: by_agents, is_part: true, ..section }, person]
    }
}

static NUMBER: LazyLock<Regex> =
    pattern!(r"(?i)^(?:(?:task|phase|step|section|part|stage|任务|阶段|步骤|第)\s*)?(\d+(?:\.\d+)*)(?:[^\d\w]|$)");

static LEADING_NUMBER: LazyLock<Regex> = pattern!(r"^\**\d+(?:\.\d+)*[.)]?\**\s+");

pub(super) fn without_number(title: &str) -> &str {
    LEADING_NUMBER.find(title).map_or(title, |found| &title[found.end()..])
}

fn number(title: &str) -> Option<String> {
    as_id(NUMBER.captures(bare(title))?.get(1)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let list = List::new(text);
        let done = |section: &Section| if list.is_done(section) { " done" } else { "" };
        let show = |section: &Section| {
            format!(
                "{}:{}{}{}",
                section.id,
                section.boxes.len(),
                if section.is_manual { " manual" } else { "" },
                done(section)
            )
        };
        list.sections.iter().map(show).collect()
    }

    #[test]
    fn sections_have_numbers_or_positions() {
        let text = "# Tasks\n## 1. A\n- [x] 1.1 a\n- [ ] 1.2 b\n  - [ ] c\n## Wrap up\n- [X] d\n## 2) B\n- [ ] e\n## 2. C\n- [ ] f\n";
        assert_eq!(shown(text), ["1:3", "2:1 done", "2-2:1", "2-3:1"]);
    }

    #[test]
    fn level_three_counts_where_level_two_has_no_boxes() {
        let text = "## Phase 1: A\n### 1.1 a\n- [ ] x\n### 1.2 b\n- [ ] y\n## Phase 2\n- [ ] z\n### 2.1\n- [ ] u\n";
        assert_eq!(shown(text), ["1.1:1", "1.2:1", "2:2"]);
        assert_eq!(shown("### 1. a\n- [ ] x\n### 2. b\n- [ ] y\n"), ["1:1", "2:1"]);
        assert_eq!(shown("# 1. a\n- [ ] x\n# 2. b\n- [ ] y\n"), ["1:1", "2:1"]);
    }

    #[test]
    fn boxes_are_tasks_without_sections() {
        let text = "# Tasks\n- [ ] **A**\n    - [ ] a\n- [x] 3.1 B\n- [ ] ~~C~~\n";
        assert_eq!(shown(text), ["1:2", "3.1:1 done", "3:1 done"]);
        let list = List::new(text);
        assert_eq!(list.text(&list.sections[0]), "- [ ] **A**\n    - [ ] a");
    }

    #[test]
    fn manual_boxes_are_apart() {
        let text =
            "## 1. Check\n- [ ] 1.1 Add a test\n- [x] 1.2 Manually look\n  - [ ] at it\n## 2. 手动\n- [ ] 手动测试\n";
        assert_eq!(shown(text), ["1:1", "1-manual:2 manual", "2:1 manual"]);
        let list = List::new(text);
        assert_eq!(
            list.text(&list.sections[1]),
            "- [x] Manually look\n  - [ ] at it".replace("Manually", "1.2 Manually")
        );
    }
}
