//! What an agent is told: one task, with what it needs to know of the plan, for each task runs by itself.

use crate::plan::markdown::{as_code, clean, paragraph, section};
use crate::plan::source_text::File;

use super::task::ReadTask;
use super::tasks::RawTask;

/// The elements of a task in the order in which an agent reads them, with their headings.
const SECTIONS: [(&str, &str); 13] = [
    ("read-first", "Read first"),
    ("context", "Context of the task"),
    ("what-built", "What was built"),
    ("decision", "Decision"),
    ("options", "Options"),
    ("behavior", "Behaviour"),
    ("action", "What to do"),
    ("implementation", "Implementation"),
    ("instructions", "Instructions"),
    ("steps", "Steps"),
    ("notes", "Notes"),
    ("how-to-verify", "How to verify"),
    ("verification", "Verification of the task"),
];

/// How much text all plans of a phase may repeat for their tasks, in bytes.
pub(super) const REPEATED_TEXT: usize = 8 * 1024 * 1024;

/// Where a task stands in its plan.
pub(super) struct Place<'a> {
    pub(super) lane: &'a str,
    /// From 0.
    pub(super) at: usize,
    pub(super) count: usize,
    /// What stands right before it.
    pub(super) before: &'a str,
    /// What tasks are told of the plan as a whole.
    pub(super) common: &'a str,
}

/// The prompt of a task of an agent, without what the last one is told besides.
pub(super) fn prompt(file: &File<'_>, task: &RawTask<'_>, read: &ReadTask, place: &Place<'_>) -> String {
    let mut text = String::new();
    if place.count > 1 {
        paragraph(&mut text, &position(place));
    }
    paragraph(&mut text, place.common);
    paragraph(&mut text, &heading(read, place));
    paragraph(&mut text, &read.remarks.join("\n"));
    paragraph(&mut text, place.before);
    section(&mut text, "Files of the task", &read.files_prose);
    let loose: Vec<String> = task.loose.iter().map(|range| clean(&file.text[range.clone()])).collect();
    if task.is_heading || !task.children.iter().any(|child| child.name == "action") {
        loose.iter().for_each(|part| paragraph(&mut text, part));
    }
    for (element, title) in SECTIONS {
        for child in task.children.iter().filter(|child| child.name == element) {
            section(&mut text, title, &clean(&file.text[child.content.clone()]));
        }
        if element == "action" && !task.is_heading && task.children.iter().any(|child| child.name == "action") {
            loose.iter().for_each(|part| paragraph(&mut text, part.trim()));
        }
    }
    let mut verify = read.verify.clone();
    if !read.commands.is_empty() {
        paragraph(&mut verify, &format!("These commands must succeed:\n\n{}", as_code(&read.commands)));
    }
    section(&mut text, "How it is verified", &verify);
    text
}

fn position(place: &Place<'_>) -> String {
    format!(
        "This is task {} of {} of the plan `{}`. Do this task only: each of the others is done by itself. What is said \
         about the plan as a whole is there for you to know.",
        place.at + 1,
        place.count,
        place.lane
    )
}

fn heading(read: &ReadTask, place: &Place<'_>) -> String {
    match read.name.as_ref().map(|name| &name.value) {
        Some(name) if name.to_lowercase().starts_with("task") => format!("# {name}"),
        Some(name) => format!("# Task: {name}"),
        None => format!("# Task {}", place.at + 1),
    }
}

/// What the last task is told of the plan as a whole.
pub(super) fn add_closing(text: &mut String, closing: &str, truths: &[String]) {
    paragraph(text, closing);
    let truths: Vec<String> = truths.iter().map(|truth| format!("- {truth}")).collect();
    section(text, "What must be true once the plan is done", &truths.join("\n"));
}

/// Says who keeps the files that track the project's state, where the prompt speaks of them.
pub(super) fn add_tracking(text: &mut String) {
    if text.contains("STATE.md") || text.contains("ROADMAP.md") {
        let rule = "Do not change `.planning/STATE.md` or `.planning/ROADMAP.md`: Lanekeeper keeps them.";
        paragraph(text, rule);
    }
}
