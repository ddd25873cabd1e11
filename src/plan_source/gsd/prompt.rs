//! What an agent is told: one task, with what it needs to know of the plan, for each task runs by itself.

use crate::plan_source::source_text::File;

use super::body::Surroundings;
use super::tasks::RawTask;
use super::text::{clean, paragraph, section};

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

/// A task on its way to a prompt.
pub(super) struct Told<'a> {
    pub(super) lane: &'a str,
    /// From 0.
    pub(super) at: usize,
    pub(super) count: usize,
    pub(super) name: Option<&'a str>,
    /// What the tag says that has no field of its own: `type="tdd"`.
    pub(super) remarks: &'a [String],
    /// Prose of `verify`, and of `files` where it says more than names.
    pub(super) verify: &'a str,
    pub(super) files: &'a str,
}

/// The prompt of a task of the agent's, without what the last one is told besides.
pub(super) fn prompt(
    file: &File<'_>,
    task: &RawTask<'_>,
    told: &Told<'_>,
    around: &Surroundings,
    common: bool,
) -> String {
    let mut text = String::new();
    if told.count > 1 {
        paragraph(&mut text, &place(told));
    }
    if common {
        paragraph(&mut text, &around.common);
    }
    paragraph(&mut text, &heading(told));
    paragraph(&mut text, &told.remarks.join("\n"));
    paragraph(&mut text, &around.before[told.at]);
    section(&mut text, "Files of the task", told.files);
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
    section(&mut text, "How it is verified", told.verify);
    text
}

fn place(told: &Told<'_>) -> String {
    format!(
        "This is task {} of {} of the plan `{}`. Do this task only: each of the others is done by itself. What is said \
         about the plan as a whole is there for you to know.",
        told.at + 1,
        told.count,
        told.lane
    )
}

fn heading(told: &Told<'_>) -> String {
    match told.name {
        Some(name) if name.to_lowercase().starts_with("task") => format!("# {name}"),
        Some(name) => format!("# Task: {name}"),
        None => format!("# Task {}", told.at + 1),
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
