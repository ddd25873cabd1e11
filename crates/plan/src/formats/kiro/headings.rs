//! Lists whose tasks are headings: `### Task 2: Title`, `## 2. Title`, with boxes or points below.
//!
//! Only a list without any numbered box is read so: in another one such headings are sections.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::formats::shared::boxes::CheckBox;
use crate::markdown::{Document, Fence, trim};

/// A heading that is a task.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeadingTask {
    /// Its place among the document's.
    pub(super) heading: usize,
    pub(super) line: usize,
    pub(super) number: String,
    /// Without number and marks.
    pub(super) title: Range<usize>,
    /// The title and all that is below it.
    pub(super) body: Range<usize>,
    /// The boxes below it that are below no deeper task, by their place in the list of all.
    pub(super) boxes: Vec<usize>,
    pub(super) is_optional: bool,
    pub(super) is_parallel: bool,
    /// Whether it says that it is done.
    pub(super) says_done: bool,
}

static NUMBERED_BOX: LazyLock<Regex> =
    pattern!(r"^(?:\*\*|\*)?\s*(?:(?:Task|タスク|任务)\s+\d|\d{1,4}\.\d|\d{1,4}[.):：])");

/// A heading that calls itself a task. Points below it say what to do, too.
static TASK: LazyLock<Regex> = pattern!(
    r"(?i)^(?:✅\s*)?\*{0,2}(?:task|タスク|任务|任務|tarefa|tarea|tâche|aufgabe|задача)\s*[#-]?\s*(\d{1,4}(?:\.\d{1,4})*)\b[.:：)\s–—-]*"
);
/// A heading with a number, which is a task where it has boxes.
static NUMBERED: LazyLock<Regex> = pattern!(r"^(?:✅\s*)?\*{0,2}(\d{1,4}(?:\.\d{1,4})*)(?:[.):：]\s*|\s+)");

/// What a title may end with that is not a part of it.
static ENDS: LazyLock<Regex> = pattern!(
    r"(?i)\s*(?:\((P)\)|(\*|\((?:optional|opcional|任意|可选|可選)\))|(✅|✔️?|☑️?|\((?:done|completed?|完了|完成)\)))\s*$"
);

static STATUS: LazyLock<Regex> = pattern!(
    r"(?im)^\W*(?:status|状态|狀態|ステータス|状態)\W*(?:[:：]\W*)(?:done|completed?|implemented|finished|完了|完成|已完成)\s*(?:\([^)\n]*\))?[\s\p{P}\p{S}]*$"
);

/// The tasks of a list that are headings, in the order of the text.
pub(super) fn heading_tasks(document: &Document<'_>, boxes: &[CheckBox]) -> Vec<HeadingTask> {
    if boxes.iter().any(|found| NUMBERED_BOX.is_match(&document.text[found.title.clone()])) {
        return Vec::new();
    }
    let places = (0..document.headings.len()).filter(|at| document.headings[*at].level > 1);
    // Below headings that call themselves tasks, numbers are of their steps.
    let are_called = places.clone().any(|at| TASK.is_match(document.headings[at].title));
    let pattern = if are_called { &TASK } else { &NUMBERED };
    let mut tasks: Vec<HeadingTask> = places.filter_map(|heading| heading_task(document, heading, pattern)).collect();
    for (at, found) in boxes.iter().enumerate() {
        let innermost = found.headings.iter().rev();
        let task = innermost.filter_map(|heading| tasks.binary_search_by_key(heading, |task| task.heading).ok()).next();
        if let Some(task) = task {
            tasks[task].boxes.push(at);
        }
    }
    tasks.retain(|task| !task.boxes.is_empty() || are_called && says_more(document, task));
    tasks
}

fn heading_task(document: &Document<'_>, at: usize, pattern: &Regex) -> Option<HeadingTask> {
    let heading = &document.headings[at];
    let marks = pattern.captures(heading.title)?;
    let mut title = heading.at.start + marks[0].len()..heading.at.end;
    let (mut is_optional, mut is_parallel) = (false, false);
    let mut says_done = heading.title.starts_with('✅');
    while let Some(end) = ENDS.captures(&document.text[title.clone()]) {
        is_parallel |= end.get(1).is_some();
        is_optional |= end.get(2).is_some();
        says_done |= end.get(3).is_some();
        title.end -= end[0].len();
    }
    let below = trim(document.text, document.bytes(document.below(at)));
    let text = document.text[below.clone()].trim_end_matches(['-', '*', '_']).trim_end();
    says_done |= STATUS.is_match(text);
    let end = if text.is_empty() { heading.at.end } else { below.start + text.len() };
    Some(HeadingTask {
        heading: at,
        line: heading.line,
        number: marks[1].to_owned(),
        body: title.start..end,
        title,
        boxes: Vec::new(),
        is_optional,
        is_parallel,
        says_done,
    })
}

/// Whether there is text below the heading.
fn says_more(document: &Document<'_>, task: &HeadingTask) -> bool {
    let mut lines = document.below(task.heading);
    lines.any(|line| {
        let is_text = document.fence(line) != Fence::Outside || document.heading_at(line).is_none();
        is_text && document.line(line).contains(char::is_alphanumeric)
    })
}
