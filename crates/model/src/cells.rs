//! Text in the cells of a terminal: measured and cut by display width.

use unicode_width::UnicodeWidthStr;

pub use super::safe_text::one_line as clean;

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

/// `text`, at most `cells` cells wide: its beginning and its end, which may be a question.
pub fn cut_middle(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let head = cut(text, cells / 2);
    let room = cells.saturating_sub(width(&head));
    let mut tail: Vec<char> = text.chars().rev().take(room).collect();
    tail.reverse();
    let fits = |from: &usize| width(&tail[*from..].iter().collect::<String>()) <= room;
    let from = (0..tail.len()).find(fits).unwrap_or(tail.len());
    format!("{head}{}", tail[from..].iter().collect::<String>())
}

/// `text`, cut or filled up with blanks to exactly `cells` cells.
pub fn pad(text: &str, cells: usize) -> String {
    let mut padded = cut(text, cells);
    padded.extend(std::iter::repeat_n(' ', cells.saturating_sub(width(&padded))));
    padded
}

/// The words of `text` on lines of at most `cells` cells, the second and later ones behind `indent`. At most `most` lines:
/// the last one has the rest.
pub fn wrapped(text: &str, cells: usize, indent: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words(text) {
        let count = lines.len();
        let last = &mut lines[count - 1];
        if last.is_empty() {
            *last = word;
        } else if width(last) + 1 + width(&word) <= cells || count == most {
            *last += &format!(" {word}");
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines
}

/// The words of `text`. What is in backticks is one: a command is there to be copied, so no line ends within it.
fn words(text: &str) -> Vec<String> {
    let is_open = |text: &str| text.matches('`').count() % 2 == 1;
    let is_paired = !is_open(text);
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut().filter(|last| is_paired && is_open(last)) {
            Some(open) => *open += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_in_backticks_are_not_broken() {
        assert_eq!(words("type `git log -1`, then  go"), ["type", "`git log -1`,", "then", "go"]);
        assert_eq!(words("one ` alone"), ["one", "`", "alone"]);
    }

    #[test]
    fn wide_characters_count_as_two_cells() {
        assert_eq!(cut("会計モジュール", 7), "会計モ…");
        assert_eq!(cut("会計モジュール", 8), "会計モ…");
        assert_eq!(pad("会計", 6), "会計  ");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn the_end_of_a_long_text_stays() {
        assert_eq!(cut_middle("changed no file; it said: Which database do you want?", 20), "changed n… you want?");
        assert_eq!(cut_middle("会計モジュール", 9), "会…ュール");
        assert_eq!(cut_middle("short", 9), "short");
    }

    proptest! {
        #[test]
        fn cut_and_padded_text_fits_cells(text in "\\PC{0,30}", cells in 0usize..20) {
            prop_assert!(width(&cut(&text, cells)) <= cells);
            prop_assert!(width(&cut_middle(&text, cells)) <= cells);
            prop_assert_eq!(width(&pad(&text, cells)), cells);
        }
    }
}
