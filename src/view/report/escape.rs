//! Text of others inside of a document: it stays what it says and can never become a part of the document's own markup.

/// `text` with a picture in place of each control character but line breaks and tabs, which neither XML nor a reader
/// could take: `␛` for an escape. What has no picture becomes U+FFFD.
pub(super) fn visible(text: &str) -> String {
    let picture = |c: char| match c {
        '\n' | '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        _ => c,
    };
    text.chars().map(picture).collect()
}

/// `text` as Markdown that shows it, on one line, also in a cell of a table; breaks become `<br>`.
///
/// Marks that turn the writing direction are spelt out: what a report says must not read as something else.
pub(super) fn inline(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text.trim()).chars() {
        match c {
            '\n' => escaped.push_str("<br>"),
            '\t' => escaped.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                escaped.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
            }
            c if MARKUP.contains(c) => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The characters that mean something in Markdown as CommonMark and GitHub read it. A full stop, a dash and a plus do so at
/// the beginning of a line only, where no text of others ever stands.
const MARKUP: &str = "\\`*_{}[]<>()#!|~&$:@=";

/// `text` as HTML that shows it, on one line.
pub(super) fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text.trim()).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' => escaped.push_str("<br>"),
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

    #[test]
    fn control_characters_are_seen_and_not_obeyed() {
        assert_eq!(visible("a\x1b[31m\0\r\n\tb\u{9b}\u{ffff}"), "a␛[31m␀␍\n\tb\u{fffd}\u{fffd}");
    }
}
