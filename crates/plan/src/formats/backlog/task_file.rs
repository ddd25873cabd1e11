//! A task in its file: front matter, and sections of Markdown.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::board::Board;
use crate::Source;
use crate::faults::{Faults, quoted};
use crate::formats::shared::boxes::{BoxState, CheckBox, boxes};
use crate::formats::shared::items::{Item, MIDDLE, Reference, Standing, rank_of, text_of};
use crate::formats::shared::paths_in_text::{NamedPath, paths_in_text};
use crate::front_matter::{self, FrontMatter, scalar};
use crate::ids::as_id;
use crate::markdown::inline::parts;
use crate::markdown::{Document, list_items, section_title, trim};
use crate::source_text::{At, File};
use crate::tree::{Node, Value};

/// Sections that list when a task counts as done.
const CRITERIA: [&str; 2] = ["acceptance criteria", "definition of done"];

/// Marks around sections, by which the program finds them.
static MARK: LazyLock<Regex> = pattern!(r"^\s*<!--\s*[A-Z_:]+\s*-->\s*$");

static NUMBER: LazyLock<Regex> = pattern!(r"^#[0-9]+\s+");

pub(super) struct TaskFile {
    pub(super) id: At<String>,
    pub(super) key: String,
    pub(super) title: String,
    pub(super) standing: Standing,
    pub(super) labels: Vec<String>,
    pub(super) milestone: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) paths: Vec<NamedPath>,
    pub(super) documents: Vec<String>,
    /// What must hold, and what of it holds already.
    pub(super) criteria: Vec<String>,
    pub(super) met: Vec<String>,
    /// The text without front matter, criteria and marks.
    pub(super) body: String,
    waits_for: Vec<Reference>,
    rank: u32,
}

/// An id in the one spelling that the program compares: `TASK-07.2` is 7.2, `task-epic-3.1` is itself.
pub(super) fn key(id: &str) -> String {
    let lower = id.trim().to_lowercase();
    let number = lower.rsplit_once('-').filter(|(prefix, _)| prefix.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let number = number.map_or(lower.as_str(), |(_, number)| number);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_number {
        return lower;
    }
    let plain =
        |part: &str| Some(part.trim_start_matches('0')).filter(|part| !part.is_empty()).unwrap_or("0").to_owned();
    number.split('.').map(plain).collect::<Vec<_>>().join(".")
}

/// The front matter of a task's file.
pub(super) fn header(text: &str) -> Option<FrontMatter> {
    front_matter::locate(text).filter(|front| front.closed && text[..front.outer.start].trim().is_empty())
}

/// The check boxes that say when the task counts as done.
pub(super) fn criteria_boxes(document: &Document<'_>) -> Vec<CheckBox> {
    let of_criteria = |found: &CheckBox| {
        found.headings.iter().any(|&at| CRITERIA.contains(&section_title(document.headings[at].title).as_str()))
    };
    boxes(document).into_iter().filter(of_criteria).collect()
}

/// `None` where the file is no task.
pub(super) fn read(file: File<'_>, board: &Board, faults: &Faults<'_>) -> Option<TaskFile> {
    let front = header(file.text);
    let node = front
        .and_then(|front| front_matter::read(&file.text[front.inner.clone()], file.start + front.inner.start, faults));
    let node = node?;
    let id = scalar(node.get("id")?, faults)?;
    let document = Document::new(file.text);
    let (open, met) = criteria(&document);
    let list = |key: &str| node.get(key).map(|list| texts(list, faults)).unwrap_or_default();
    let values = |key: &str| list(key).into_iter().map(|text| text.value).collect::<Vec<String>>();
    let text = |key: &str| Some(text_of(node.get(key), faults)).filter(|text| !text.is_empty());
    let body = body(&document);
    let mut paths = paths_in_text(&body);
    paths.extend(paths_in_text(&values("modified_files").iter().map(|path| format!("`{path}`\n")).collect::<String>()));
    let reference = |written: At<String>| Reference { key: key(&written.value), written };
    Some(TaskFile {
        key: key(&id.value),
        title: text("title").unwrap_or_default(),
        standing: standing(&node, &file, &id, board, faults),
        labels: values("labels"),
        milestone: text("milestone"),
        parent: text("parent_task_id").map(|parent| key(&parent)),
        documents: [values("documentation"), values("references")].concat(),
        waits_for: list("dependencies").into_iter().map(reference).collect(),
        rank: text("priority").and_then(|priority| rank_of(&priority)).unwrap_or(MIDDLE),
        criteria: open,
        met,
        paths,
        body,
        id,
    })
}

/// The texts of a list; a single text may list several.
fn texts(node: &Node, faults: &Faults<'_>) -> Vec<At<String>> {
    match &node.value {
        Value::List(items) => items.iter().filter_map(|item| scalar(item, faults)).collect(),
        _ => scalar(node, faults).map_or(Vec::new(), |text| {
            let parts = parts(&text.value, &[',']).into_iter().map(|range| text.value[range].trim().to_owned());
            parts.filter(|part| !part.is_empty()).map(|part| At::new(part, text.span)).collect()
        }),
    }
}

fn standing(node: &Node, file: &File<'_>, id: &At<String>, board: &Board, faults: &Faults<'_>) -> Standing {
    let path = file.path.replace('\\', "/");
    if path.contains("/completed/") {
        return Standing::Done("it is in `completed`".to_owned());
    }
    if let Some(place) = ["archive", "drafts"].into_iter().find(|place| path.contains(&format!("/{place}/"))) {
        return Standing::Aside(format!("it is in `{place}`"));
    }
    let Some(status) = node.get("status").and_then(|status| scalar(status, faults)) else { return Standing::Open };
    board.standing(&status.value).unwrap_or_else(|| {
        let message = format!(
            "the status {} of task {} is not known; the task is left out",
            quoted(&status.value),
            quoted(&id.value)
        );
        faults.warning(status.span, message, format!("one of: {}", board.statuses.join(", ")));
        Standing::Aside(format!("its status is `{}`", status.value))
    })
}

/// What must hold, and what of it holds already, as the boxes say; a section without boxes is a list.
fn criteria(document: &Document<'_>) -> (Vec<String>, Vec<String>) {
    let boxes = criteria_boxes(document);
    if boxes.is_empty() {
        let sections = document.sections(|title| CRITERIA.contains(&title));
        let texts = sections.into_iter().flat_map(|lines| list_items(&without_marks(document, lines)));
        return (texts.collect(), Vec::new());
    }
    let title = |found: &CheckBox| {
        let text = &document.text[found.title.clone()];
        NUMBER.replace(text, "").trim().to_owned()
    };
    let (met, open): (Vec<&CheckBox>, Vec<&CheckBox>) = boxes.iter().partition(|found| found.state.is_done());
    let texts =
        |boxes: Vec<&CheckBox>| boxes.into_iter().filter(|found| found.state != BoxState::Dropped).map(title).collect();
    (texts(open), texts(met))
}

fn without_marks(document: &Document<'_>, lines: Range<usize>) -> String {
    let lines = lines.map(|line| document.line(line)).filter(|line| !MARK.is_match(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The text below the front matter without the sections of criteria.
fn body(document: &Document<'_>) -> String {
    let mut text = String::new();
    let mut from = document.front_matter;
    for (at, heading) in document.headings.iter().enumerate() {
        if heading.line >= from && CRITERIA.contains(&section_title(heading.title).as_str()) {
            text.push_str(&without_marks(document, from..heading.line));
            text.push('\n');
            from = document.below(at).end;
        }
    }
    text.push_str(&without_marks(document, from..document.len()));
    text[trim(&text, 0..text.len())].to_owned()
}

impl TaskFile {
    pub(super) fn item(&self, asked: bool, source: &Source<'_>) -> Item {
        let id = as_id(&self.id.value).unwrap_or_else(|| self.id.value.clone());
        let standing = match self.standing.clone().unless_redone(&id, &source.options) {
            Standing::Done(_) | Standing::Dropped(_) if !asked => Standing::Gone,
            _ if !asked => Standing::NotAsked,
            standing => standing,
        };
        Item {
            id: At::new(id, self.id.span),
            name: self.title.clone(),
            key: self.key.clone(),
            is_again: standing.is_open() && !self.standing.is_open(),
            standing,
            waits_for: self.waits_for.clone(),
            rank: self.rank,
        }
    }
}
