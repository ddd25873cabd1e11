//! The prompts of tasks: each has all that its reader must know of the plan, for each task runs by itself.

use std::sync::LazyLock;

use regex::Regex;

use crate::markdown::inline::dedent;
use crate::markdown::{as_code, clean, paragraph, section};
use crate::source_text::File;

use super::task::ReadTask;
use super::tasks::{Child, RawTask, attributes};
use super::verify::without_tags;

/// The elements of a task in the order in which an agent reads them, with their headings, up to its action.
const UP_TO_ACTION: [(&str, &str); 7] = [
    ("read-first", "Read first"),
    ("context", "Context of the task"),
    ("what-built", "What was built"),
    ("decision", "Decision"),
    ("options", "Options"),
    ("behavior", "Behaviour"),
    ("action", "What to do"),
];

const AFTER_ACTION: [(&str, &str); 6] = [
    ("implementation", "Implementation"),
    ("instructions", "Instructions"),
    ("steps", "Steps"),
    ("notes", "Notes"),
    ("how-to-verify", "How to verify"),
    ("verification", "Verification of the task"),
];

/// The elements of a checkpoint in the order in which a person reads them, with their titles.
const CHECKPOINT: [(&str, &str); 16] = [
    ("what-built", "What was built"),
    ("decision", "Decide"),
    ("action", "What to do"),
    ("instructions", "How to do it"),
    ("steps", "Steps"),
    ("behavior", "Behaviour"),
    ("implementation", "Implementation"),
    ("context", "Context"),
    ("options", "Options"),
    ("notes", "Notes"),
    ("how-to-verify", "How to verify"),
    ("verify", "How to verify"),
    ("verification", "How it is checked"),
    ("resume-signal", "How to answer"),
    ("read-first", "Read first"),
    ("files", "Files"),
];

/// How much text all plans of a phase may repeat for their tasks, in bytes.
pub(super) const REPEATED_TEXT: usize = 8 * 1024 * 1024;

pub(super) struct TaskPosition<'a> {
    pub(super) lane: &'a str,
    /// From 0.
    pub(super) at: usize,
    pub(super) count: usize,
    /// The text between the task before and this one.
    pub(super) before: &'a str,
    /// The text about the plan as a whole in every prompt.
    pub(super) common: &'a str,
}

/// The prompt of a task of an agent, without the text for the last one.
pub(super) fn for_agent(file: &File<'_>, task: &RawTask<'_>, read: &ReadTask, place: &TaskPosition<'_>) -> String {
    let mut text = String::new();
    if place.count > 1 {
        paragraph(&mut text, &position(place));
    }
    paragraph(&mut text, place.common);
    paragraph(&mut text, &heading(read, place));
    paragraph(&mut text, &read.remarks.join("\n"));
    paragraph(&mut text, place.before);
    section(&mut text, "Files of the task", &read.files_prose);
    let loose: Vec<String> = task.loose.iter().map(|range| dedent(&file.text[range.clone()])).collect();
    let add = |text: &mut String, titles: &[(&str, &str)]| {
        task.titled(titles).for_each(|(title, child)| section(text, title, &clean(&file.text[child.content.clone()])));
    };
    if task.has("action") {
        add(&mut text, &UP_TO_ACTION);
    }
    loose.iter().for_each(|part| paragraph(&mut text, part));
    if !task.has("action") {
        add(&mut text, &UP_TO_ACTION);
    }
    add(&mut text, &AFTER_ACTION);
    let mut verify = read.verify.clone();
    if !read.commands.gates.is_empty() {
        let commands = as_code(&read.commands.gates);
        paragraph(&mut verify, &format!("These commands must succeed:\n\n{commands}"));
    }
    section(&mut text, "How it is verified", &verify);
    text
}

fn position(place: &TaskPosition<'_>) -> String {
    format!(
        "This is task {} of {} of the plan `{}`. Do this task only: each of the others is done by itself. What is said \
         about the plan as a whole is there for you to know.",
        place.at + 1,
        place.count,
        place.lane
    )
}

fn heading(read: &ReadTask, place: &TaskPosition<'_>) -> String {
    match read.name.as_ref().map(|name| &name.value) {
        Some(name) if name.to_lowercase().starts_with("task") => format!("# {name}"),
        Some(name) => format!("# Task: {name}"),
        None => format!("# Task {}", place.at + 1),
    }
}

pub(super) fn for_person(file: &File<'_>, task: &RawTask<'_>, read: &ReadTask, place: &TaskPosition<'_>) -> String {
    let mut text = read.name.as_ref().map_or(String::new(), |name| name.value.clone());
    task.loose.iter().for_each(|range| paragraph(&mut text, &dedent(&file.text[range.clone()])));
    for (title, Child { name, content }) in task.titled(&CHECKPOINT) {
        let content = &file.text[content.clone()];
        let body = match *name {
            "options" => options(content),
            "verify" => dedent(&without_tags(content)),
            _ => dedent(content),
        };
        if !body.is_empty() {
            paragraph(&mut text, &format!("{title}:\n\n{body}"));
        }
    }
    paragraph(&mut text, place.before);
    paragraph(&mut text, place.common);
    text
}

/// An option of a decision: its attributes, and what it holds.
static OPTION: LazyLock<Regex> = pattern!(r"(?s)<option([^>]*)>(.*?)(?:</option>|\z)");

/// `<option>` elements as a list; anything else stays as it is.
fn options(content: &str) -> String {
    let (mut text, mut end) = (String::new(), 0);
    for found in OPTION.captures_iter(content) {
        let begin = end;
        end = found.get_match().end();
        paragraph(&mut text, &dedent(&content[begin..found.get_match().start()]));
        paragraph(&mut text, &option(&found[1], &found[2]));
    }
    paragraph(&mut text, &dedent(&content[end..]));
    text
}

fn option(attributes_of: &str, content: &str) -> String {
    let id = attributes(attributes_of).into_iter().find(|(name, _)| name == "id").map(|(_, id)| id);
    let mut rest = content.to_owned();
    let mut part = |name: &str| {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let begin = rest.find(&open)?;
        let end = begin + rest[begin..].find(&close)?;
        let inside = dedent(&rest[begin + open.len()..end]);
        rest.replace_range(begin..end + close.len(), "");
        Some(inside)
    };
    let (name, pros, cons) = (part("name"), part("pros"), part("cons"));
    let mut text = match (id, name) {
        (Some(id), Some(name)) if !name.starts_with(&id) => format!("- {id}: {name}"),
        (id, name) => format!("- {}", name.or(id).as_deref().unwrap_or("option")),
    };
    for (title, body) in [("For", pros), ("Against", cons), ("", Some(dedent(&rest)))] {
        let Some(body) = body.filter(|body| !body.trim().is_empty()) else { continue };
        let lines: Vec<&str> = body.lines().collect();
        match (title, lines.as_slice()) {
            ("", _) => text.push_str(&indented(&body, "  ")),
            (title, [line]) => text.push_str(&format!("\n  {title}: {line}")),
            (title, _) => text.push_str(&format!("\n  {title}:{}", indented(&body, "    "))),
        }
    }
    text
}

fn indented(body: &str, by: &str) -> String {
    body.lines().map(|line| format!("\n{by}{line}")).collect()
}

/// The text about the plan as a whole in the last prompt.
pub(super) fn add_closing(text: &mut String, closing: &str, truths: &[String]) {
    paragraph(text, closing);
    let truths: Vec<String> = truths.iter().map(|truth| format!("- {truth}")).collect();
    section(text, "What must be true once the plan is done", &truths.join("\n"));
}

/// The instructions for any plan, behind those of the task, which they may contradict.
pub(super) fn add_reference(text: &mut String, reference: &str) {
    if !reference.is_empty() {
        let rule = "It describes how plans are carried out in general. Where it differs from this task's instructions, \
                    these take precedence.";
        paragraph(text, &format!("{reference}\n\n{rule}"));
    }
}

/// Says who keeps the files that track the project's state, where the prompt speaks of them.
pub(super) fn add_tracking(text: &mut String) {
    if text.contains("STATE.md") || text.contains("ROADMAP.md") {
        let rule = "Do not change `.planning/STATE.md` or `.planning/ROADMAP.md`: Lanewright keeps them.";
        paragraph(text, rule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decision_options_become_a_list() {
        let text = "\n <option id=\"a\">\n  <name>Left</name>\n  <pros>Fast</pros>\n  <cons>- Dear\n  - Loud</cons>\n </option>\n <option id=\"b\"><name>b: right</name></option>\n";
        assert_eq!(options(text), "- a: Left\n  For: Fast\n  Against:\n    - Dear\n    - Loud\n\n- b: right");
        assert_eq!(options("left or right"), "left or right");
        assert_eq!(options("<option never closed"), "<option never closed");
    }
}
