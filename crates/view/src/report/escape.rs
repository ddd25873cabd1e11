//! External text in a document: shown as it is, never interpreted as markup of the document.

pub(super) use lanewright_model::safe_text::visible;

/// `text` as Markdown that shows it, on one line, also in a cell of a table; breaks become `<br>`.
pub(super) fn inline(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text.trim()).chars() {
        match c {
            '\n' => escaped.push_str("<br>"),
            '\t' => escaped.push(' '),
            c if MARKUP.contains(c) => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The characters that mean something in Markdown as CommonMark and GitHub read it. A full stop, a dash and a plus do so at
/// the beginning of a line only, where external text never is.
const MARKUP: &str = "\\`*_{}[]<>()#!|~&$:@=";

/// `text` as HTML that shows it, on one line.
pub(super) fn html(text: &str) -> String {
    visible(text.trim()).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\n', "<br>")
}

/// `text` as it stands in HTML, in a text or in a quoted attribute, with its line breaks.
pub(super) fn markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// `text` as a block of code, behind a fence that it does not hold.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let text = visible(text.trim_end());
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("a ````` b\n``", "sh"), "``````sh\na ````` b\n``\n``````\n");
        assert_eq!(fenced("plain\n\n", ""), "```\nplain\n```\n");
    }
}
