//! Text of plans, agents, files and remotes, made safe to show (SPEC §13): it says what it says, and does nothing.
//!
//! Unsafe are the characters that a terminal, an editor or a reader obeys instead of showing: control characters (an
//! escape clears a screen, a lone carriage return overwrites a line), and the marks that turn the direction of writing or
//! end a line unseen. Everything that is printed passes through [`for_terminal`] or [`json`] at the edge, whatever was done
//! before; renderers use the others for the layout.

use std::borrow::Cow;

use anstream::adapter::strip_str;

/// Whether `c` is obeyed rather than shown. Line breaks and tabs are layout.
pub fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // No characters at all; XML cannot hold them.
        '\u{fffe}' | '\u{ffff}' => true,
        c => c.is_control(),
    }
}

/// `text` with every unsafe character spelt out: `␛` for an escape, `⟨U+202E⟩` for what has no picture.
pub fn visible(text: &str) -> Cow<'_, str> {
    where_unsafe(text, |shown| text.chars().for_each(|c| push_visible(shown, c)))
}

/// `text`, or what `write` makes of it if it has an unsafe character.
fn where_unsafe(text: &str, write: impl FnOnce(&mut String)) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    write(&mut shown);
    Cow::Owned(shown)
}

fn push_visible(shown: &mut String, c: char) {
    match c {
        c if !is_unsafe(c) => shown.push(c),
        '\0'..='\x1f' => shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER)),
        '\x7f' => shown.push('\u{2421}'),
        c => shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
    }
}

/// The same on one line.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\u{240a}")
}

/// `text` on one line, trimmed, without escape sequences and unsafe characters; for cells and sentences.
pub fn one_line(text: &str) -> String {
    let plain = strip_str(text).to_string();
    let kept = plain.chars().filter(|&c| c.is_control() || !is_unsafe(c));
    let spaced: String = kept.map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.trim().to_owned()
}

/// What a terminal would show of a line of output in the end: no escape sequences or unsafe characters, and after a
/// carriage return only what was written last.
pub fn last_shown(line: &str) -> String {
    let plain = strip_str(line).to_string();
    let shown = plain.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
    shown.chars().filter(|&c| !is_unsafe(c)).collect()
}

/// `text` for a terminal: what [`visible`] makes of it, except for the colours of Lanewright's own output.
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    where_unsafe(text, |shown| {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let length = style(rest).unwrap_or(0);
            if length > 0 {
                shown.push_str(&rest[..length]);
                rest = &rest[length..];
            } else {
                push_visible(shown, c);
                rest = &rest[c.len_utf8()..];
            }
        }
    })
}

/// The length of the style that `text` begins with. Only what Lanewright writes is one: bold, dimmed, italic, underlined
/// and the six colours that are seen on black and on white; nothing that hides text, turns it or moves the cursor.
fn style(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let known = |number: &str| matches!(number, "" | "0" | "1" | "2" | "3" | "4") || is_colour(number);
    (parameters[end..].starts_with('m') && parameters[..end].split(';').all(known)).then_some("\x1b[".len() + end + 1)
}

fn is_colour(number: &str) -> bool {
    matches!(number, "31" | "32" | "33" | "34" | "35" | "36")
}

/// A JSON text that means the same and holds no unsafe character: JSON allows those above U+007E as they are.
pub fn json(text: &str) -> Cow<'_, str> {
    where_unsafe(text, |escaped| {
        for c in text.chars() {
            // All of them are in the basic plane, so one escape is enough; outside of strings JSON has none.
            if is_unsafe(c) { escaped.push_str(&format!("\\u{:04x}", u32::from(c))) } else { escaped.push(c) }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOSTILE: &str = "a\x1b[31m\0\r\n\tb\u{9b}2J\u{7f}\u{202e}c\u{2066}\u{61c}\u{2028}\u{ffff}";

    #[test]
    fn unsafe_characters_are_seen_and_not_obeyed() {
        let shown = "a␛[31m␀␍\n\tb⟨U+009B⟩2J␡⟨U+202E⟩c⟨U+2066⟩⟨U+061C⟩⟨U+2028⟩⟨U+FFFF⟩";
        assert_eq!(visible(HOSTILE), shown);
        assert_eq!(visible_line(HOSTILE), shown.replace('\n', "␊"));
        assert!(matches!(visible("会計 é\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn agent_output_cannot_control_terminal() {
        assert_eq!(one_line("\x1b[2J\x1b[31mred\x1b[0m\r\nnext\u{7}\u{202e}gnp\u{2069}"), "red  nextgnp");
        assert_eq!(last_shown("10%\r\x1b[1m99%\x1b[0m\u{202e}\r"), "99%");
    }

    #[test]
    fn only_styles_of_our_own_pass() {
        for own in ["\x1b[1m\x1b[31mred\x1b[0m", "\x1b[1;33mx\x1b[m", "\x1b[4mhelp\x1b[0m"] {
            assert_eq!(for_terminal(own), own);
        }
        for (foreign, shown) in [
            ("\x1b[8mhidden", "␛[8mhidden"),
            ("\x1b[38;5;0mx", "␛[38;5;0mx"),
            ("\x1b[2J", "␛[2J"),
            ("\x1b]0;t\x07", "␛]0;t␇"),
            ("\x1b[1", "␛[1"),
            ("a\rb", "a␍b"),
        ] {
            assert_eq!(for_terminal(foreign), shown);
        }
    }

    proptest! {
        #[test]
        fn safe_text_has_no_unsafe_characters(text in "[\\PC\\x00-\\x1f\\x7f-\\u{9f}\u{202a}-\u{202e}\u{2066}m;0-9\\[]{0,40}") {
            prop_assert!(!visible(&text).contains(is_unsafe));
            prop_assert!(!one_line(&text).contains(|c| is_unsafe(c) || c == '\n'));
            prop_assert!(!last_shown(&text).contains(is_unsafe));
            let left = for_terminal(&text).replace("\x1b[", "");
            prop_assert!(!left.contains(is_unsafe));
            let value = serde_json::Value::from(text.clone());
            let escaped = json(&value.to_string()).into_owned();
            prop_assert!(!escaped.contains(is_unsafe));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }
    }
}
