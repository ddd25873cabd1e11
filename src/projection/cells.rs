//! Text in the cells of a terminal: measured and cut by display width.

use unicode_width::UnicodeWidthStr;

pub use crate::model::safe_text::one_line as clean;

pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text`, cut to at most `cells` cells, with an ellipsis.
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

    proptest! {
        #[test]
        fn nothing_is_wider_than_its_column(text in "\\PC{0,30}", cells in 0usize..20) {
            prop_assert!(width(&cut(&text, cells)) <= cells);
            prop_assert_eq!(width(&pad(&text, cells)), cells);
        }
    }
}
