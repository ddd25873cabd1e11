//! The diff of a lane, with the user's comments below their lines.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::comments::Comment;
use super::super::diff::{Diff, Kind, Row};
use super::super::material::{Change, Material};
use super::super::state::{DiffPlace, State};
use super::super::styled;
use super::line_at;
use crate::history::LaneHistory;

/// Draws what fits; how many rows the diff has.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &State, lane: &LaneHistory, material: &Material) -> usize {
    let diff = match material.diff_of(&lane.id) {
        Some(Change::Shown(diff)) if !diff.rows.is_empty() => diff,
        Some(Change::Shown(diff)) => {
            let count = draw_text(buffer, area, "no changes");
            let comments = state.comments_of(&lane.id).iter().enumerate();
            comments.for_each(|(at, comment)| line_at(buffer, area, count + at, &comment_line(comment, diff)));
            return count;
        }
        Some(Change::Missing(why)) => return draw_text(buffer, area, why),
        None => return draw_text(buffer, area, "reading …"),
    };
    let comments: Vec<(usize, &Comment)> =
        state.comments_of(&lane.id).iter().map(|comment| (comment.shown_at(diff), comment)).collect();
    let (first, last) = state.diff.marked();
    let mut at = 0;
    for (place, row) in diff.rows.iter().enumerate().skip(state.diff.top) {
        if at >= usize::from(area.height) {
            break;
        }
        line_at(buffer, area, at, &row_line(diff, row, &state.diff));
        if (first..=last).contains(&place) {
            let style = Style::new().add_modifier(Modifier::REVERSED);
            buffer.set_style(Rect { y: area.y + at as u16, height: 1, ..area }, style);
        }
        at += 1;
        for (_, comment) in comments.iter().filter(|(row, _)| *row == place) {
            line_at(buffer, area, at, &comment_line(comment, diff));
            at += 1;
        }
    }
    diff.rows.len()
}

fn draw_text(buffer: &mut Buffer, area: Rect, text: &str) -> usize {
    let rows = styled::rows(text, area.width.into());
    rows.iter().enumerate().for_each(|(at, row)| line_at(buffer, area, at, row));
    rows.len()
}

fn row_line(diff: &Diff, row: &Row, place: &DiffPlace) -> Line<'static> {
    let style = match row.kind {
        Kind::File => {
            let name = diff.files.get(row.file).map_or("", String::as_str);
            let text = format!("{name} ({}/{})", row.file + 1, diff.files.len());
            return plain(&text, Style::new().add_modifier(Modifier::BOLD));
        }
        Kind::Header => Style::new().add_modifier(Modifier::DIM),
        Kind::Hunk => Style::new().fg(Color::Cyan),
        Kind::Context => Style::new(),
        Kind::Added => Style::new().fg(Color::Green),
        Kind::Removed => Style::new().fg(Color::Red),
    };
    let number = row.number.map_or_else(String::new, |number| format!("{number:>5} "));
    // An agent's escapes are shown without effect, and not with the colours that it chose.
    let text: String = styled::cells(&row.text).iter().map(|(c, _)| *c).skip(place.shift).collect();
    Line::from(vec![Span::styled(number, Style::new().add_modifier(Modifier::DIM)), Span::styled(text, style)])
}

fn comment_line(comment: &Comment, diff: &Diff) -> Line<'static> {
    let outdated = match comment.row(diff) {
        Some(_) => String::new(),
        None => format!("outdated, {}: ", comment.place()),
    };
    plain(&format!("      ▌ {outdated}{}", comment.text), Style::new().fg(Color::Yellow))
}

fn plain(text: &str, style: Style) -> Line<'static> {
    Line::styled(styled::cells(text).iter().map(|(c, _)| *c).collect::<String>(), style)
}
