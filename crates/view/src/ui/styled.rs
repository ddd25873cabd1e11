//! Text with its colours, and without all else that a terminal obeys.

use lanewright_model::safe_text::is_unsafe;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar;

/// The characters of a line, each with its style.
pub(super) type Cells = Vec<(char, Style)>;

const TAB: &str = "    ";

/// What a terminal shows of a line in the end: after a carriage return only what was written last. Of escape sequences
/// only styles have an effect, and of these none that hides text: no background, and a colour that is seen on black and
/// on white.
pub(super) fn cells(line: &str) -> Cells {
    let (mut shown, mut before, mut style) = (Cells::new(), Cells::new(), Style::default());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => style = escaped(&mut chars, style),
            '\r' if is_blank(&shown) => shown.clear(),
            '\r' => before = std::mem::take(&mut shown),
            '\t' => shown.extend(TAB.chars().map(|blank| (blank, style))),
            c if is_unsafe(c) || c == '\n' => {}
            c => shown.push((c, style)),
        }
    }
    if is_blank(&shown) && !before.is_empty() { before } else { shown }
}

fn is_blank(cells: &Cells) -> bool {
    cells.iter().all(|(c, _)| c.is_whitespace())
}

/// Reads the rest of an escape sequence; the style after it.
fn escaped(chars: &mut std::str::Chars<'_>, style: Style) -> Style {
    match chars.next() {
        Some('[') => {
            let mut parameters = String::new();
            for c in chars.by_ref() {
                match c {
                    ' '..='?' => parameters.push(c),
                    'm' => return restyled(style, &parameters),
                    _ => break,
                }
            }
        }
        // Strings such as a title, up to their terminator.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let mut last = ' ';
            for c in chars.by_ref() {
                if c == '\u{7}' || (last == '\u{1b}' && c == '\\') {
                    break;
                }
                last = c;
            }
        }
        _ => {}
    }
    style
}

fn restyled(mut style: Style, parameters: &str) -> Style {
    let mut codes = parameters.split([';', ':']).map(|code| if code.is_empty() { Some(0) } else { code.parse().ok() });
    while let Some(code) = codes.next() {
        style = match code {
            Some(0) => Style::default(),
            Some(1) => style.add_modifier(Modifier::BOLD),
            Some(2) => style.add_modifier(Modifier::DIM),
            Some(3) => style.add_modifier(Modifier::ITALIC),
            Some(4) => style.add_modifier(Modifier::UNDERLINED),
            Some(22) => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            Some(23) => style.remove_modifier(Modifier::ITALIC),
            Some(24) => style.remove_modifier(Modifier::UNDERLINED),
            Some(code @ (30..=37 | 90..=97)) => coloured(style, basic_colour(code % 10)),
            Some(38) => {
                let colour = extended_colour(&mut codes);
                coloured(style, colour)
            }
            Some(48) => {
                extended_colour(&mut codes);
                style
            }
            Some(39) => coloured(style, None),
            _ => style,
        };
    }
    style
}

fn coloured(style: Style, colour: Option<Color>) -> Style {
    Style { fg: colour, ..style }
}

/// Black and white are what the terminal has for text.
fn basic_colour(number: u16) -> Option<Color> {
    let colours = [Color::Red, Color::Green, Color::Yellow, Color::Blue, Color::Magenta, Color::Cyan];
    colours.get(usize::from(number).checked_sub(1)?).copied()
}

/// The colour that is like `5;NUMBER` or `2;RED;GREEN;BLUE`.
fn extended_colour(codes: &mut impl Iterator<Item = Option<u16>>) -> Option<Color> {
    match codes.next()?? {
        5 => match codes.next()?? {
            number @ 0..=15 => basic_colour(number % 8),
            number @ 16..=231 => {
                let level = |place: u16| (number - 16) / place % 6 * 51;
                nearest_basic_colour(level(36), level(6), level(1))
            }
            _ => None,
        },
        2 => {
            let mut next = || codes.next().flatten();
            let (red, green, blue) = (next()?, next()?, next()?);
            nearest_basic_colour(red, green, blue)
        }
        _ => None,
    }
}

/// The basic colour with the same hue; greys have none.
fn nearest_basic_colour(red: u16, green: u16, blue: u16) -> Option<Color> {
    const GREY: u16 = 40;
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let is_on = |part: u16| u16::from(part > (most + least) / 2);
    if most.saturating_sub(least) < GREY {
        None
    } else {
        basic_colour(is_on(red) | is_on(green) << 1 | is_on(blue) << 2)
    }
}

/// `text`, lines with Lanewright's own styles, in rows of at most `width` cells.
pub(super) fn rows(text: &str, width: usize) -> Vec<Line<'static>> {
    text.lines().flat_map(|line| wrapped(&cells(line), width)).collect()
}

/// Rows of at most `width` cells, broken after a blank where a row has one.
pub(super) fn wrapped(cells: &[(char, Style)], width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let mut rest = cells;
    while !rest.is_empty() && width > 0 {
        let fits = fitting(rest, width);
        let blank = rest[..fits].iter().rposition(|(c, _)| *c == ' ').map(|at| at + 1);
        let end = if fits == rest.len() { fits } else { blank.filter(|end| *end > fits / 2).unwrap_or(fits) };
        rows.push(line(&rest[..end]));
        rest = &rest[end..];
    }
    if rows.is_empty() { vec![Line::default()] } else { rows }
}

/// How many of `cells` fit into `width`, one at least.
fn fitting(cells: &[(char, Style)], width: usize) -> usize {
    let mut used = 0;
    let too_wide = |(c, _): &(char, Style)| {
        used += c.width().unwrap_or_default();
        used > width
    };
    cells.iter().position(too_wide).unwrap_or(cells.len()).max(1)
}

pub(super) fn line(cells: &[(char, Style)]) -> Line<'static> {
    let same = cells.chunk_by(|(_, one), (_, other)| one == other);
    Line::from_iter(same.map(|run| Span::styled(run.iter().map(|(c, _)| *c).collect::<String>(), run[0].1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(line: &str) -> String {
        cells(line).iter().map(|(c, _)| *c).collect()
    }

    #[test]
    fn colours_are_kept_and_all_else_has_no_effect() {
        let hostile =
            "\x1b[2J\x1b[31mred\x1b[0m\x1b]0;title\x07 \x1b[8mseen\x1b[1;1H\x1bc\x1b]52;c;eA==\x1b\\\u{202e}x\u{9b}J";
        assert_eq!(shown(hostile), "red seenxJ");
        assert_eq!(cells(hostile)[0].1.fg, Some(Color::Red));
        assert_eq!(cells(hostile)[3].1, Style::default());
        assert_eq!(shown("10%\r 50%\r100%\r\n"), "100%");
        assert_eq!(shown("a\tb\u{7}\x1b[3"), "a    b");
    }

    #[test]
    fn no_style_hides_text() {
        let colour = |codes: &str| cells(&format!("\x1b[{codes}mx"))[0].1;
        for invisible in ["30", "97", "38;5;0", "38;5;15", "38;5;232", "38;2;0;0;0", "40", "48;2;9;9;9", "8", "7", "5"]
        {
            assert_eq!(colour(invisible), Style::default(), "{invisible}");
        }
        assert_eq!(colour("38;5;196").fg, Some(Color::Red));
        assert_eq!(colour("38;2;80;250;123").fg, Some(Color::Green));
        assert_eq!(colour("48;5;1;34").fg, Some(Color::Blue), "what follows a background counts");
        assert_eq!(colour("1;92"), Style::new().fg(Color::Green).add_modifier(Modifier::BOLD));
    }

    #[test]
    fn rows_wrap_at_blanks_by_display_width() {
        let text = |text: &str, width| rows(text, width).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(text("one two three", 8), ["one two ", "three"]);
        assert_eq!(text("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(text("会計モ", 4), ["会計", "モ"]);
        assert_eq!(text("a\n\nb", 4), ["a", "", "b"]);
    }

    proptest! {
        #[test]
        fn rows_are_safe_and_fit_width(
            text in "[\\PC\\x00-\\x1f\\x7f-\\u{9f}\u{202a}-\u{202e}m;0-9\\[]{0,40}", width in 2usize..12
        ) {
            prop_assert!(!shown(&text).contains(|c| is_unsafe(c) || c == '\n'));
            for row in wrapped(&cells(&text), width) {
                prop_assert!(row.to_string().chars().map(|c| c.width().unwrap_or_default()).sum::<usize>() <= width);
            }
        }
    }
}
