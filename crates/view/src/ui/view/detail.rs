//! The pane of the selected lane.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::board::{Board, attempt_to_show, is_live, job_to_show};
use super::super::material::{Material, Rows, Text};
use super::super::state::{Focus, State, Tab};
use super::super::styled;
use super::{diff, line_at, title};
use crate::history::LaneHistory;

/// Draws the tab; the rows of its text, and the height for them.
pub(super) fn draw(
    buffer: &mut Buffer,
    area: Rect,
    state: &State,
    board: &Board<'_>,
    material: &Material,
) -> (usize, usize) {
    title(buffer, area, state.focus == Focus::Detail, tabs(state));
    let inner = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let height = usize::from(inner.height);
    let Some(lane) = board.lane(state.selected.as_ref()) else { return (0, height) };
    if state.tab == Tab::Diff {
        return (diff::draw(buffer, inner, state, lane, material), height);
    }
    let (head, text) = rows(state, board, lane, material, inner.width.into());
    let count = head.len() + text.len();
    let most = count.saturating_sub(height);
    let top = match state.tab {
        Tab::Output => state.output_top.unwrap_or(most),
        _ => state.top,
    };
    for (at, row) in head.iter().chain(&*text).skip(top.min(most)).take(height).enumerate() {
        line_at(buffer, inner, at, row);
    }
    (count, height)
}

fn tabs(state: &State) -> Vec<Span<'static>> {
    let tab = |(number, (tab, name)): (usize, (Tab, &str))| {
        let is_shown = tab == state.tab;
        let style = if is_shown { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        [Span::styled(format!("{number} {name}"), style), Span::raw(" ")]
    };
    (1..).zip(Tab::ALL).flat_map(tab).collect()
}

/// The first rows, and the text below them.
fn rows(
    state: &State,
    board: &Board<'_>,
    lane: &LaneHistory,
    material: &Material,
    width: usize,
) -> (Vec<Line<'static>>, Rows) {
    let below = |head: &str, text: Option<&Text>| {
        let head = styled::rows(head, width).into_iter().map(|row| row.patch_style(Style::new().fg(Color::Cyan)));
        (head.collect(), text.map(|text| text.rows(width)).unwrap_or_default())
    };
    match state.tab {
        Tab::Overview => (styled::rows(&board.overview(lane, width, material), width), Rows::default()),
        Tab::Output if is_live(lane, state) => {
            let live = material.live.as_ref().filter(|(of, _)| *of == lane.id);
            let head = lane.elsewhere().map(ToString::to_string).unwrap_or_default();
            below(&head, live.map(|(_, text)| text))
        }
        Tab::Output => {
            let job = job_to_show(lane, state.back);
            let output = material.output.as_ref().filter(|output| Some(&output.job) == job);
            let head = job.map_or_else(|| "nothing has run yet".to_owned(), ToString::to_string);
            below(&head, output.map(|output| &output.text))
        }
        Tab::Prompt => {
            let job = attempt_to_show(lane, state.back);
            let prompt = material.prompt.as_ref().filter(|prompt| Some(&prompt.job) == job);
            let head = job.map_or_else(|| "no attempt yet".to_owned(), ToString::to_string);
            below(&head, prompt.map(|prompt| &prompt.text))
        }
        Tab::Graph => {
            let rows = || Rows::from(styled::rows(&board.graph(width), width));
            (Vec::new(), material.graph.rows(width, rows))
        }
        Tab::Diff => Default::default(),
    }
}
