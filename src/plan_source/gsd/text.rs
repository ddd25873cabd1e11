//! Stretches of Markdown as prompts take them.

use std::borrow::Cow;

/// `text` with plain line ends and without NUL characters, which no prompt can hold.
pub(super) fn clean(text: &str) -> String {
    clean_part(text).into_owned()
}

fn clean_part(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\0']) { text.replace("\r\n", "\n").replace('\0', "").into() } else { text.into() }
}

/// `text` cleaned, without the indent that all of its lines share, and without blank lines around it.
pub(super) fn dedented(text: &str) -> String {
    let text = clean_part(text);
    let blank = |line: &&str| line.trim().is_empty();
    let first_at_margin = !text.starts_with(['\n', ' ', '\t']);
    let indented = text.lines().skip(usize::from(first_at_margin)).filter(|line| !blank(line));
    let indent = indented.map(|line| line.len() - line.trim_start_matches([' ', '\t']).len()).min().unwrap_or(0);
    let strip = |line: &str| {
        let own = line.len() - line.trim_start_matches([' ', '\t']).len();
        line[own.min(indent)..].trim_end().to_owned()
    };
    text.lines().map(strip).collect::<Vec<_>>().join("\n").trim_matches('\n').trim_end().to_owned()
}

/// The items of a list, each with the lines that belong to it; text without bullets is one item.
pub(super) fn list_items(text: &str) -> Vec<String> {
    let text = dedented(text);
    let mut items: Vec<String> = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        let bullet = Some(line).filter(|_| !fenced).and_then(without_bullet);
        fenced ^= line.trim_start().starts_with("```");
        match (bullet, items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, None) => items.push(line.to_owned()),
            (None, Some(item)) => {
                item.push('\n');
                item.push_str(line);
            }
        }
    }
    items.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

fn without_bullet(line: &str) -> Option<&str> {
    let rest = ["- [ ] ", "- [x] ", "- ", "* ", "+ ", "• "].iter().find_map(|bullet| line.strip_prefix(bullet));
    rest.or_else(|| {
        let digits = line.find(|c: char| !c.is_ascii_digit()).filter(|&digits| digits > 0)?;
        line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") "))
    })
}

/// The first line that says something, without the marks of Markdown.
pub(super) fn first_words(text: &str, limit: usize) -> Option<String> {
    let says_something = |line: &&str| line.chars().any(char::is_alphanumeric) && !line.starts_with("<!--");
    let line = text.lines().map(str::trim).find(says_something)?;
    let plain: String = line.trim_start_matches(['#', '>', '-', ' ']).replace("**", "").replace(['`', '\0'], "");
    Some(crate::model::text::headline(&plain, limit)).filter(|words| !words.is_empty())
}

/// Adds a Markdown section with a body that says something.
pub(super) fn section(text: &mut String, title: &str, body: &str) {
    let body = body.trim();
    if !body.is_empty() {
        paragraph(text, &format!("## {title}\n\n{body}"));
    }
}

/// Adds a paragraph of its own.
pub(super) fn paragraph(text: &mut String, body: &str) {
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
    fn the_common_indent_goes_and_the_rest_stays() {
        assert_eq!(dedented("\n    a\n      b\n\n    c\n  "), "a\n  b\n\nc");
        assert_eq!(dedented("a\n    b\r\n    c"), "a\nb\nc");
        assert_eq!(dedented("  \n \n"), "");
    }

    #[test]
    fn list_items_keep_the_lines_that_belong_to_them() {
        assert_eq!(list_items("  - a\n    more\n  - [ ] b\n  1. c"), ["a\n  more", "b", "c"]);
        assert_eq!(list_items("It works.\nReally."), ["It works.\nReally."]);
        assert_eq!(list_items(" \n"), Vec::<String>::new());
    }
}
