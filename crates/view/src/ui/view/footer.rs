//! The last lines: what is asked, what was said, else the keys.

use lanewright_model::HumanGate;
use lanewright_model::cells::cut_middle;
use lanewright_model::text::{counted, shell_line};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use super::super::board::Board;
use super::super::material::Material;
use super::super::state::{Command, Dialog, Focus, Input, Purpose, State, Tab};
use super::super::styled;
use crate::answers::approvals::open_gate;
use crate::status::header::fitting;

pub(super) struct Footer {
    pub(super) lines: Vec<Line<'static>>,
    /// The column of the cursor, while the user types.
    pub(super) cursor: Option<usize>,
}

pub(super) fn lines(state: &State, board: &Board<'_>, material: &Material, width: usize) -> Footer {
    let asked = Style::new().fg(Color::Yellow);
    let says = |lines| Footer { lines, cursor: None };
    match (&state.dialog, &state.notice, &state.running) {
        (Some(Dialog::Input(input)), ..) => typed(input, state, material, width),
        (Some(Dialog::Refused(why)), ..) => {
            let rows = styled::rows(&format!("{why} (Esc or Enter: back)"), width);
            says(rows.into_iter().map(|row| row.patch_style(Style::new().fg(Color::Red))).collect())
        }
        (Some(Dialog::Stop { lane }), ..) => {
            let lane = lane.as_ref().map(|lane| format!(", l: only lane {lane}")).unwrap_or_default();
            says(vec![Line::styled(format!("Stop? y: the run{lane}, any other key: no"), asked)])
        }
        (Some(Dialog::Resume { more }), ..) => {
            let asked_for =
                format!("The budget is exhausted. Resume with {}? y: yes, any other key: no", shell_line(more));
            says(styled::rows(&asked_for, width).into_iter().map(|row| row.patch_style(asked)).collect())
        }
        (_, Some(notice), _) => {
            let style = Style::new().fg(if notice.is_error { Color::Red } else { Color::Green });
            says(styled::rows(&notice.text, width).into_iter().map(|row| row.patch_style(style)).collect())
        }
        (_, _, Some(running)) => says(vec![Line::styled(format!("{running} …"), asked)]),
        _ => {
            let line = fitting(&keys(state, board), width);
            says(vec![Line::styled(line, Style::new().add_modifier(Modifier::DIM))])
        }
    }
}

/// The end of what is typed is seen.
fn typed(Input { purpose, text }: &Input, state: &State, material: &Material, width: usize) -> Footer {
    let label = label(purpose, state, material, width);
    let room = width.saturating_sub(label.width() + 1);
    let text: String = styled::cells(last_chars(text, MOST_CHARS)).iter().map(|(c, _)| *c).collect();
    let mut shown = last_chars(&text, room);
    while shown.width() > room {
        shown = last_chars(shown, shown.chars().count() - 1);
    }
    let cursor = label.width() + shown.width();
    Footer {
        lines: vec![Line::styled(format!("{label}{shown}"), Style::new().fg(Color::Yellow))],
        cursor: Some(cursor),
    }
}

/// More than fit on any screen.
const MOST_CHARS: usize = 4096;

fn last_chars(text: &str, count: usize) -> &str {
    let start = count.checked_sub(1).and_then(|last| text.char_indices().nth_back(last));
    match (count, start) {
        (0, _) => "",
        (_, Some((start, _))) => &text[start..],
        (_, None) => text,
    }
}

fn label(purpose: &Purpose, state: &State, material: &Material, width: usize) -> String {
    let label = match purpose {
        Purpose::Filter => "/".to_owned(),
        Purpose::Comment(..) => "comment: ".to_owned(),
        Purpose::Message { lane, kind, gate } => {
            let comments = state.comments_of(lane).len();
            let with = match kind {
                Command::Approve if comments > 0 => format!(" without {}", counted(comments, "comment")),
                Command::Reject if comments > 0 => {
                    let (current, left_out) = state.current_comments(lane, material);
                    let with = format!(" with {}", counted(current.len(), "comment"));
                    if left_out == 0 { with } else { format!("{with}, {left_out} outdated left out") }
                }
                _ => String::new(),
            };
            let verb = kind.name();
            let gate = match gate {
                Some(HumanGate::Approval(approval)) => format!("the {approval} of "),
                Some(task) => format!("{} of ", task.for_people()),
                None => String::new(),
            };
            format!("{verb} {gate}{lane}{with}, message: ")
        }
    };
    cut_middle(&label, width * 2 / 3)
}

/// The keys that are useful now, the most useful first.
fn keys(state: &State, board: &Board<'_>) -> Vec<String> {
    let waits = board.lane(state.selected.as_ref()).is_some_and(|lane| open_gate(lane).is_some());
    let in_diff = state.tab == Tab::Diff && state.focus == Focus::Detail;
    let known = [
        ("? help", true),
        ("a approve", waits),
        ("r reject", waits),
        ("c comment", in_diff),
        ("v mark", in_diff),
        ("R resume", !board.held()),
        ("s stop", board.held()),
        ("q quit", true),
        ("Tab pane", true),
        ("1-5 tab", true),
        ("t retry", !board.held()),
        ("/ filter", true),
        ("m message", board.held()),
        ("e editor", true),
        ("! shell", true),
        ("y copy command", true),
    ];
    known.into_iter().filter(|(_, is_useful)| *is_useful).map(|(key, _)| key.to_owned()).collect()
}
