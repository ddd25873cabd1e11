//! The items of a list: `- [ ] 2.1 (P) Title`, `- [ ]* 2.2 Title`, with the lines below them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::headings::{HeadingTask, heading_tasks};
use crate::formats::shared::boxes::{BoxState, CheckBox, boxes};
use crate::ids::{as_id, unique};
use crate::markdown::inline::bare;
use crate::markdown::{Document, list_item};

#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Its number, else its position; unique in the list.
    pub(super) id: String,
    /// The number is one that an earlier item has.
    pub(super) is_repeated: bool,
    /// Without number and marks.
    pub(super) title: Range<usize>,
    /// The bytes between the brackets of its box; a heading may have several, or none.
    pub(super) ticks: Vec<Range<usize>>,
    pub(super) state: BoxState,
    /// The title and everything that is nested below it.
    pub(super) body: Range<usize>,
    /// What of the body stands before the first item in it.
    pub(super) own: Range<usize>,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
    /// The innermost heading above it, by its place in the document's.
    pub(super) heading: Option<usize>,
    /// Marked with `*`, or part of an item that is.
    pub(super) is_optional: bool,
    /// Marked with `(P)`.
    pub(super) is_parallel: bool,
}

pub(super) struct List<'a> {
    pub(super) document: Document<'a>,
    pub(super) items: Vec<Item>,
}

/// Items that are done in one go, by their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// The one that it is named after.
    pub(super) item: usize,
    /// All of them.
    pub(super) members: Vec<usize>,
}

static MARKS: LazyLock<Regex> =
    pattern!(r"^(?:\*\*|(\*))?\s*(?:(?:Task|タスク|任务)\s+)?(\d+(?:\.\d+)*[a-z]?)[.):：]?(\*)?(?:\s+|$)(\(P\)\s*)?");
static UNNUMBERED: LazyLock<Regex> = pattern!(r"^(\*(?:\s|$))?\s*()()(\(P\)\s*)?");
static DEPENDS: LazyLock<Regex> = pattern!(r"(?mi)^\s*[-*]\s+_Depends(?: on)?\s*[:：]([^_\n]*)_");
static NUMBER: LazyLock<Regex> = pattern!(r"\d+(?:\.\d+)*[a-z]?");

/// The numbers and ids of a list's items.
#[derive(Default)]
struct Names {
    by_number: HashMap<String, usize>,
    known: HashSet<String>,
}

impl Names {
    /// The item that `2.1.3` is a part of by its number.
    fn prefix(&self, number: &str) -> Option<usize> {
        let prefixes = std::iter::successors(number.rsplit_once('.'), |(before, _)| before.rsplit_once('.'));
        prefixes.map(|(before, _)| before).find_map(|before| self.by_number.get(before).copied())
    }

    /// The id of item number `at`, and whether an earlier one has its number, which may be empty.
    fn name(&mut self, number: String, at: usize) -> (String, bool) {
        let wanted = as_id(&number).unwrap_or_else(|| (at + 1).to_string());
        let id = unique(wanted.clone(), &mut self.known);
        let is_repeated = id != wanted && !number.is_empty();
        if !number.is_empty() {
            self.by_number.entry(number).or_insert(at);
        }
        (id, is_repeated)
    }
}

impl<'a> List<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let document = Document::new(text);
        let boxes = boxes(&document);
        let mut list = Self { document, items: Vec::new() };
        list.read(&boxes);
        list
    }

    pub(super) fn text(&self, range: &Range<usize>) -> &'a str {
        &self.document.text[range.clone()]
    }

    pub(super) fn title(&self, item: usize) -> &'a str {
        bare(self.text(&self.items[item].title))
    }

    fn read(&mut self, boxes: &[CheckBox]) {
        let mut item_of: Vec<Option<usize>> = Vec::with_capacity(boxes.len());
        let mut names = Names::default();
        let tasks = heading_tasks(&self.document, boxes);
        let in_heading: HashSet<usize> = tasks.iter().flat_map(|task| &task.boxes).copied().collect();
        let mut tasks = tasks.iter().peekable();
        for (at, found) in boxes.iter().enumerate() {
            while let Some(task) = tasks.next_if(|task| task.line < found.line) {
                self.push(self.heading_item(task, boxes, &mut names), task.line);
            }
            // Boxes without a number of their own in an item are its text.
            let above = found.parent.and_then(|parent| item_of[parent]);
            let item = if in_heading.contains(&at) { None } else { self.item(found, above, &mut names) };
            item_of.push(if item.is_some() { Some(self.items.len()) } else { above });
            if let Some(item) = item {
                self.push(item, found.line);
            }
        }
        for task in tasks {
            self.push(self.heading_item(task, boxes, &mut names), task.line);
        }
    }

    /// Adds an item, which begins in `line`.
    fn push(&mut self, item: Item, line: usize) {
        let at = self.items.len();
        if let Some(parent) = item.parent {
            self.items[parent].children.push(at);
            let parent = &mut self.items[parent];
            if item.body.start < parent.body.end {
                let line = self.document.range(line).start;
                parent.own.end = parent.own.end.min(line.max(parent.own.start));
            }
        }
        self.items.push(item);
    }

    fn heading_item(&self, task: &HeadingTask, boxes: &[CheckBox], names: &mut Names) -> Item {
        let parent = names.prefix(&task.number);
        let (id, is_repeated) = names.name(task.number.clone(), self.items.len());
        let mut own = task.boxes.iter().map(|at| &boxes[*at]);
        let is_done = if task.boxes.is_empty() { task.says_done } else { own.all(|found| found.state.is_done()) };
        let headings = &self.document.headings;
        let level = headings[task.heading].level;
        Item {
            id,
            is_repeated,
            title: task.title.clone(),
            ticks: task.boxes.iter().map(|at| boxes[*at].tick.clone()).collect(),
            state: if is_done { BoxState::Ticked } else { BoxState::Open },
            body: task.body.clone(),
            own: task.body.clone(),
            parent,
            children: Vec::new(),
            heading: headings[..task.heading].iter().rposition(|above| above.level < level),
            is_optional: task.is_optional || parent.is_some_and(|parent| self.items[parent].is_optional),
            is_parallel: task.is_parallel,
        }
    }

    fn item(&self, found: &CheckBox, above: Option<usize>, names: &mut Names) -> Option<Item> {
        let text = self.text(&found.title);
        let numbered =
            MARKS.captures(text).filter(|marks| above.is_none_or(|above| is_part_of(&marks[2], &self.items[above].id)));
        let marks = match (numbered, above) {
            (Some(marks), _) => marks,
            (None, None) => UNNUMBERED.captures(text)?,
            (None, Some(_)) => return None,
        };
        let parent = above.or_else(|| names.prefix(&marks[2]));
        let (id, is_repeated) = names.name(marks[2].to_owned(), self.items.len());
        let in_optional = parent.is_some_and(|parent| self.items[parent].is_optional);
        let is_optional = in_optional || marks.get(1).is_some() || marks.get(3).is_some_and(|mark| !mark.is_empty());
        let start = found.title.start + marks.get(0).map_or(0, |whole| whole.end()).min(text.len());
        let body = found.body.clone();
        Some(Item {
            id,
            is_repeated,
            title: start..found.title.end,
            ticks: vec![found.tick.clone()],
            state: found.state,
            own: body.clone(),
            body,
            parent,
            children: Vec::new(),
            heading: found.headings.last().copied(),
            is_optional,
            is_parallel: marks.get(4).is_some(),
        })
    }

    /// The numbers in an item's line `_Depends: 1.1, 2.3_`.
    pub(super) fn depends(&self, item: &Item) -> Vec<&'a str> {
        let lines = DEPENDS.captures_iter(self.text(&item.own));
        let numbers = lines.filter_map(|line| line.get(1)).flat_map(|part| NUMBER.find_iter(part.as_str()));
        numbers.map(|number| number.as_str()).collect()
    }

    /// Whether an item says more than its title and the numbers of requirements.
    fn has_details(&self, item: &Item) -> bool {
        let own = self.text(&item.own);
        own.lines().skip(1).any(|line| {
            let said = list_item(line, 0..line.len()).map_or(line.trim(), |(range, _)| &line[range]);
            !said.is_empty() && !said.starts_with(['_', '#'])
        })
    }

    pub(super) fn required<'l>(&'l self, item: &'l Item) -> impl Iterator<Item = usize> + 'l {
        item.children.iter().copied().filter(|child| !self.items[*child].is_optional)
    }

    /// The tasks in the order of the list: items without parts, and, unless it says what may be done at the same time, items
    /// that say what to do themselves, with their parts. Those of `named` are tasks by themselves.
    pub(super) fn tasks(&self, is_split: bool, named: &HashSet<&str>) -> Vec<Task> {
        // Whether a part of the item may be done at the same time as others, or is named.
        let mut is_divided = vec![false; self.items.len()];
        for (at, item) in self.items.iter().enumerate().rev() {
            let own = item.is_parallel || named.contains(item.id.as_str()) || is_divided[at];
            if let Some(parent) = item.parent.filter(|_| own) {
                is_divided[parent] = true;
            }
        }
        let mut tasks: Vec<Task> = Vec::new();
        let mut task_of: Vec<Option<usize>> = Vec::with_capacity(self.items.len());
        for (at, item) in self.items.iter().enumerate() {
            let above = item.parent.and_then(|parent| task_of[parent]);
            if item.is_optional {
                task_of.push(None);
                continue;
            }
            if let Some(task) = above {
                tasks[task].members.push(at);
                task_of.push(above);
                continue;
            }
            let has_parts = self.required(item).next().is_some();
            let whole = !is_divided[at] && (named.contains(item.id.as_str()) || !is_split && self.has_details(item));
            if has_parts && !whole {
                task_of.push(None);
                continue;
            }
            task_of.push(Some(tasks.len()));
            tasks.push(Task { item: at, members: vec![at] });
        }
        tasks
    }

    /// The open items that nothing in the list can record as done: headings without boxes and parts.
    pub(super) fn without_boxes(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.ticks.is_empty() && item.children.is_empty() && !item.state.is_done())
    }

    pub(super) fn is_done(&self, task: &Task) -> bool {
        task.members.iter().all(|member| self.items[*member].state.is_done())
    }
}

/// Whether `2.1.3` is a part of `2.1`.
fn is_part_of(number: &str, whole: &str) -> bool {
    number.strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, is_split: bool) -> Vec<String> {
        let list = List::new(text);
        let name = |at: &usize| list.items[*at].id.clone();
        let show = |task: &Task| {
            let members: Vec<String> = task.members.iter().map(name).collect();
            format!("{} {}{}", members.join("+"), list.title(task.item), if list.is_done(task) { " done" } else { "" })
        };
        list.tasks(is_split, &HashSet::new()).iter().map(show).collect()
    }

    #[test]
    fn parts_are_tasks_nested_or_flat() {
        let nested = "- [ ] 1. A\n  - [x] 1.1 a\n    - x\n  - [ ]* 1.2 b\n  - [-] 1.3 c\n- [ ] 2. B\n";
        assert_eq!(shown(nested, false), ["1.1 a done", "1.3 c", "2 B"]);
        let flat = "## 1. A\n- [x] 1. A\n- [x] 1.1 (P) a\n  - x\n- [ ]* 1.2 b\n- [~] 1.3 c\n### 2. B\n- [ ] 2.1 B\n";
        assert_eq!(shown(flat, false), ["1.1 a done", "1.3 c", "2.1 B"]);
    }

    #[test]
    fn item_with_details_is_done_with_its_parts() {
        let text = "- [ ] 1. A\n  - do it\n  - _Requirements: 1_\n- [ ] 1.1 test\n- [ ] 2. B\n  - _Requirements: 2_\n  - [ ] 2.1 b\n";
        assert_eq!(shown(text, false), ["1+1.1 A", "2.1 b"]);
        assert_eq!(shown(text, true), ["1.1 test", "2.1 b"]);
        assert_eq!(shown("- [ ] 3. C\n  - do it\n  - [ ]* 3.1 test\n", false), ["3 C"]);
    }

    #[test]
    fn boxes_without_number_are_text_or_tasks() {
        let text =
            "- [ ] 1. A\n  - [ ] check\n  - [ ] 3 times\n- [ ] B\n- [ ]* C\n- [ ] **Task 4: D**\n- [ ] 1. again\n";
        assert_eq!(shown(text, false), ["1 A", "2 B", "4 D", "1-2 again"]);
        assert!(List::new(text).items[4].is_repeated);
    }

    #[test]
    fn every_spelling_of_optional_is_read() {
        for text in ["- [ ]* 7.6 a", "- [ ] * 7.6 a", "- [ ] 7.6* a", "- [x]* 7.6. a"] {
            assert!(List::new(text).items[0].is_optional, "{text}");
        }
        let list = List::new("- [ ]* 2. A\n  - [ ] 2.1 a\n- [ ] **3. B**\n- [ ] *");
        assert_eq!(list.items.iter().map(|item| item.is_optional).collect::<Vec<_>>(), [true, true, false, true]);
    }
}
