//! Text in the cells of a terminal: measured and cut by display width, and cleaned of what would move the cursor.

use unicode_width::UnicodeWidthStr;

/// How many cells `text` takes.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text`, cut to at most `cells` cells; an ellipsis stands for what is missing.
pub fn cut(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let Some(room) = cells.checked_sub(1) else { return String::new() };
    // A sequence may be wider than its characters are one by one, so the whole is measured, from the end.
    let mut kept: String = text.chars().take(room).collect();
    while width(&kept) > room {
        kept.pop();
    }
    kept.push('…');
    kept
}

/// `text`, cut or filled up with blanks to exactly `cells` cells.
pub fn pad(text: &str, cells: usize) -> String {
    let mut padded = cut(text, cells);
    padded.extend(std::iter::repeat_n(' ', cells.saturating_sub(width(&padded))));
    padded
}

/// `text` on one line, without anything that could move the cursor, change colours or turn the writing direction:
/// what agents and plans say is data (SPEC §13).
pub fn clean(text: &str) -> String {
    let visible = anstream::adapter::strip_str(text).to_string();
    let kept = visible.chars().filter(|&c| !is_direction_mark(c));
    let spaced: String = kept.map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.trim().to_owned()
}

fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wide_characters_count_as_two_cells() {
        assert_eq!(cut("会計モジュール", 7), "会計モ…");
        assert_eq!(cut("会計モジュール", 8), "会計モ…");
        assert_eq!(pad("会計", 6), "会計  ");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn what_an_agent_prints_cannot_steer_the_terminal() {
        assert_eq!(clean("\u{1b}[2J\u{1b}[31mred\u{1b}[0m\r\nnext\u{7}\u{202e}gnp"), "red  nextgnp");
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_its_column(text in "\\PC{0,30}", cells in 0usize..20) {
            prop_assert!(width(&cut(&text, cells)) <= cells);
            prop_assert_eq!(width(&pad(&text, cells)), cells);
        }
    }
}
