//! Drawing: pure, into a buffer.

mod detail;
mod diff;
mod footer;

use lanewright_model::cells::cut;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::board::Board;
use super::layout::Panes;
use super::material::Material;
use super::scroll::window_start;
use super::state::{Dialog, Extent, Focus, State};
use super::{keys, styled};

/// Draws the screen; how much there was to show, and where the cursor is while the user types.
pub fn draw(
    buffer: &mut Buffer,
    state: &State,
    board: &Board<'_>,
    material: &Material,
    is_coloured: bool,
) -> (Extent, Option<(u16, u16)>) {
    let area = buffer.area;
    let width = usize::from(area.width);
    let header = board.header(width, if area.height < TALL { 1 } else { 2 });
    let footer = footer::lines(state, board, material, width);
    let count = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
    let panes = Panes::of(area, state, count(header.len()), count(footer.lines.len()).min(area.height / 2));
    for (at, text) in header.iter().enumerate() {
        let style = if at == 0 { Style::new().add_modifier(Modifier::BOLD) } else { Style::new().fg(Color::Yellow) };
        line_at(buffer, panes.header, at, &Line::styled(text.clone(), style));
    }
    let mut extent = Extent::default();
    if let Some(area) = panes.lanes {
        extent.lanes = lanes(buffer, area, state, board, material);
        // Between panes that are beside each other.
        let gap =
            Rect { x: area.right(), width: panes.detail.map_or(0, |it| it.x.saturating_sub(area.right())), ..area };
        (0..usize::from(gap.height)).for_each(|at| line_at(buffer, gap, at, &Line::raw("│")));
    }
    if let Some(area) = panes.detail {
        (extent.rows, extent.detail) = detail::draw(buffer, area, state, board, material);
    }
    for (at, line) in footer.lines.iter().enumerate() {
        line_at(buffer, panes.footer, at, line);
    }
    extent.help = last_keys(area);
    if let Some(Dialog::Help { top }) = state.dialog {
        help(buffer, area, top);
    }
    if !is_coloured {
        buffer.content.iter_mut().for_each(|cell| (cell.fg, cell.bg) = (Color::Reset, Color::Reset));
    }
    let cursor = footer.cursor.map(|column| (panes.footer.x + count(column), panes.footer.y));
    (extent, cursor.filter(|(x, y)| *x < area.right() && *y < area.bottom()))
}

/// Screens with fewer rows have one line of header, unless there is something to do.
const TALL: u16 = 16;

/// The list with its title; the height for lanes.
fn lanes(buffer: &mut Buffer, area: Rect, state: &State, board: &Board<'_>, material: &Material) -> usize {
    let filter = if state.filter.is_empty() { String::new() } else { format!(" /{}", state.filter) };
    let name = format!(" lanes{filter}: ");
    let counts = if board.lanes().is_empty() { "no lane".to_owned() } else { board.counts().join(" · ") };
    let shown = cut(&format!("{name}{counts}"), usize::from(area.width).saturating_sub(1));
    title(buffer, area, state.focus == Focus::Lanes, vec![Span::raw(format!("{shown} "))]);
    // Below the title and the heading.
    let height = usize::from(area.height.saturating_sub(2));
    let selected = board.position(state.selected.as_ref());
    let first = window_start(selected, height, board.lanes().len());
    let rows = board.rows(first, height, usize::from(area.width), material);
    for (at, row) in rows.iter().enumerate() {
        line_at(buffer, area, at + 1, &styled::line(&styled::cells(row)));
    }
    if !board.lanes().is_empty()
        && let Ok(row) = u16::try_from(selected - first + 2)
        && row < area.height
    {
        let focused = if state.focus == Focus::Lanes { Modifier::REVERSED } else { Modifier::UNDERLINED };
        buffer.set_style(Rect { y: area.y + row, height: 1, ..area }, Style::new().add_modifier(focused));
    }
    height
}

/// A rule with a title, in the first row of `area`.
fn title(buffer: &mut Buffer, area: Rect, has_focus: bool, spans: Vec<Span<'_>>) {
    let style = if has_focus { Style::new().fg(Color::Green) } else { Style::new().add_modifier(Modifier::DIM) };
    let rule = "─".repeat(area.width.into());
    line_at(buffer, area, 0, &Line::styled(rule, style));
    line_at(buffer, area, 0, &Line::from(spans).style(style));
}

/// The line at row `at` of `area`, if it has such a row.
fn line_at(buffer: &mut Buffer, area: Rect, at: usize, line: &Line<'_>) {
    if let Ok(at) = u16::try_from(at)
        && at < area.height
    {
        buffer.set_line(area.x, area.y + at, line, area.width);
    }
}

/// The keys, over everything else.
fn help(buffer: &mut Buffer, area: Rect, top: usize) {
    buffer.content.iter_mut().for_each(Cell::reset);
    let title = "Keys (j k scroll, others close)";
    line_at(buffer, area, 0, &Line::styled(title, Style::new().add_modifier(Modifier::BOLD)));
    let rows = help_rows(area.width).into_iter().skip(top).flatten();
    rows.take(area.height.into()).enumerate().for_each(|(at, row)| line_at(buffer, area, at + 1, &row));
}

/// The rows of each key.
fn help_rows(width: u16) -> Vec<Vec<Line<'static>>> {
    let column = keys::HELP.iter().map(|(keys, _)| keys.width()).max().unwrap_or_default();
    let column = if width < NARROW { 0 } else { column };
    keys::HELP.iter().map(|(keys, what)| styled::rows(&format!("{keys:column$}  {what}"), width.into())).collect()
}

/// How many of the last keys fit below the title of the help.
fn last_keys(area: Rect) -> usize {
    let mut left = usize::from(area.height.saturating_sub(1));
    let mut fits = |rows: &[Line<'_>]| {
        let rest = left.checked_sub(rows.len());
        rest.inspect(|rest| left = *rest).is_some()
    };
    help_rows(area.width).iter().rev().take_while(|rows| fits(rows)).count()
}

const NARROW: u16 = 60;
