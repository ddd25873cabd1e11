//! What a person is told who has to verify, decide or do something.

use crate::plan::markdown::inline::dedent;
use crate::plan::markdown::paragraph;
use crate::plan::source_text::File;

use super::prompt::Place;
use super::task::ReadTask;
use super::tasks::{Child, RawTask};
use super::verify::without_tags;

/// The elements of a checkpoint in the order in which a person reads them, with what they are called.
const SECTIONS: [(&str, &str); 16] = [
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

/// What a person reads at a checkpoint.
pub(super) fn prompt(file: &File<'_>, task: &RawTask<'_>, read: &ReadTask, place: &Place<'_>) -> String {
    let mut text = read.name.as_ref().map_or(String::new(), |name| name.value.clone());
    for range in &task.loose {
        paragraph(&mut text, &dedent(&file.text[range.clone()]));
    }
    for (element, title) in SECTIONS {
        for child in task.children.iter().filter(|child| child.name == element) {
            let body = body(file, child);
            if !body.is_empty() {
                paragraph(&mut text, &format!("{title}:\n\n{body}"));
            }
        }
    }
    paragraph(&mut text, place.before);
    paragraph(&mut text, place.common);
    text
}

fn body(file: &File<'_>, child: &Child) -> String {
    let content = &file.text[child.content.clone()];
    match child.name {
        "options" => options(content),
        "verify" => dedent(&without_tags(content)),
        _ => dedent(content),
    }
}

/// `<option>` elements as a list; anything else stays as it is.
fn options(content: &str) -> String {
    let mut text = String::new();
    let mut rest = content;
    while let Some(at) = rest.find("<option") {
        paragraph(&mut text, &dedent(&rest[..at]));
        let Some(tag) = rest[at..].find('>') else { break };
        let begin = at + tag + 1;
        let end = rest[begin..].find("</option>").map_or(rest.len(), |close| begin + close);
        paragraph(&mut text, &option(&rest[at..begin], &rest[begin..end]));
        rest = rest[end..].strip_prefix("</option>").unwrap_or("");
    }
    paragraph(&mut text, &dedent(rest));
    text
}

fn option(tag: &str, content: &str) -> String {
    let attributes = super::tasks::attributes(tag.trim_start_matches("<option").trim_end_matches('>'));
    let id = attributes.iter().find(|(name, _)| name == "id").map(|(_, id)| id.as_str());
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
        (Some(id), Some(name)) if !name.starts_with(id) => format!("- {id}: {name}"),
        (id, name) => format!("- {}", name.as_deref().or(id).unwrap_or("option")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_laid_out_as_a_list() {
        let text = "\n <option id=\"a\">\n  <name>Left</name>\n  <pros>Fast</pros>\n  <cons>- Dear\n  - Loud</cons>\n </option>\n <option id=\"b\"><name>b: right</name></option>\n";
        assert_eq!(options(text), "- a: Left\n  For: Fast\n  Against:\n    - Dear\n    - Loud\n\n- b: right");
        assert_eq!(options("left or right"), "left or right");
        assert_eq!(options("<option never closed"), "<option never closed");
    }
}
