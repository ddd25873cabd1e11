//! Stretches of Markdown as prompts take them.

use std::fmt::Display;

use lanewright_model::text::headline;

use super::{Fence, fenced_lines, without_marker};
use crate::markdown::inline::dedent;

/// `text` with plain line ends and without NUL characters, which no prompt can hold.
pub(crate) fn clean(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\0', "")
}

/// The items of a list, each with the lines that belong to it; text without bullets is one item.
pub(crate) fn list_items(text: &str) -> Vec<String> {
    let text = dedent(text);
    let mut items: Vec<String> = Vec::new();
    for (line, fence) in fenced_lines(&text, 0) {
        let bullet = super::list_item(line.text, 0..line.text.len());
        let begins = fence == Fence::Outside && !line.text.starts_with([' ', '\t']) && bullet.is_some();
        match items.last_mut() {
            Some(item) if !begins => *item += &format!("\n{}", line.text),
            _ => items.push(without_marker(line.text).to_owned()),
        }
    }
    items.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// The first line that says something, without the marks of Markdown.
pub(crate) fn first_words(text: &str, limit: usize) -> Option<String> {
    let says_something = |line: &&str| line.chars().any(char::is_alphanumeric) && !line.starts_with("<!--");
    let line = text.lines().map(str::trim).find(says_something)?;
    let plain: String = line.trim_start_matches(['#', '>', '-', ' ']).replace("**", "").replace(['`', '\0'], "");
    Some(headline(&plain, limit)).filter(|words| !words.is_empty())
}

pub(crate) fn as_code<T: Display>(commands: &[T]) -> String {
    let lines: Vec<String> = commands.iter().map(|command| format!("    {command}").replace('\n', "\n    ")).collect();
    lines.join("\n")
}

/// Adds a section below a heading of level 2 unless `body` is blank.
pub(crate) fn section(text: &mut String, title: &str, body: &str) {
    let body = body.trim();
    if !body.is_empty() {
        paragraph(text, &format!("## {title}\n\n{body}"));
    }
}

/// Adds a paragraph unless `body` is blank.
pub(crate) fn paragraph(text: &mut String, body: &str) {
    if !body.trim().is_empty() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(body.trim_matches('\n').trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_items_include_continuation_lines() {
        assert_eq!(list_items("  - a\n    more\n  - [ ] b\n  1. c"), ["a\n  more", "b", "c"]);
        assert_eq!(list_items("It works.\nReally."), ["It works.\nReally."]);
        assert_eq!(list_items("- a\n  ```\n- no\n  ```\n- b"), ["a\n  ```\n- no\n  ```", "b"]);
        assert_eq!(list_items(" \n"), Vec::<String>::new());
    }
}
