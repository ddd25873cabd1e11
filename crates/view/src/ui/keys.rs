//! Which key does what: one table for the help and for the documentation.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::scroll::Step;
use super::state::Tab;

pub(crate) const HELP: &[(&str, &str)] = &[
    ("j k ↓ ↑", "next, previous lane or line"),
    ("PgDn PgUp", "next, previous page (also Ctrl-D, Ctrl-U)"),
    ("g G", "first, last lane or line; the last line of the tail follows the output"),
    ("J K", "next, previous lane, whichever pane has the focus"),
    ("h l ← → Tab Enter", "to the lanes, to the detail pane, to the other pane"),
    ("1 2 3 4 5", "overview, tail, prompt, diff, DAG"),
    ("z", "the pane with the focus on the whole screen"),
    ("[ ]", "older, newer attempt (tail, prompt); previous, next file (diff)"),
    ("{ }", "previous, next hunk (diff)"),
    ("< >", "left, right (diff)"),
    ("v", "mark lines from here (diff)"),
    ("c", "comment on the line or the marked lines (diff)"),
    ("x", "remove the comment on the line (diff)"),
    ("a", "approve, with a message if you like"),
    ("r", "reject, with the comments and what you type"),
    ("m", "say something to the agents of the lane"),
    ("t", "retry the lane, with a message if you like"),
    ("s", "stop the run or the lane"),
    ("R", "resume the run"),
    ("e", "open $VISUAL or $EDITOR in the worktree"),
    ("!", "open a shell in the worktree"),
    ("y", "copy the next command for the lane, and show it"),
    ("/", "show only lanes whose id, name or state contains a text"),
    ("u", "read the diff again"),
    ("Esc", "leave a question, a mark, the detail pane, the filter"),
    ("?", "this help"),
    ("q Ctrl-C", "quit; the run continues"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Move(Step),
    MoveLane(isize),
    ToLanes,
    ToDetail,
    OtherPane,
    Show(Tab),
    Zoom,
    /// `true`: the next one.
    Bracket(bool),
    Hunk(bool),
    Shift(bool),
    Mark,
    Comment,
    Uncomment,
    Approve,
    Reject,
    Tell,
    Retry,
    Stop,
    Resume,
    Edit,
    Shell,
    Copy,
    Filter,
    Reload,
    Leave,
    Help,
    Quit,
}

pub(super) fn key(event: KeyEvent) -> Option<Key> {
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return match event.code {
            KeyCode::Char('c') => Some(Key::Quit),
            KeyCode::Char('d') => Some(Key::Move(Step::Pages(1))),
            KeyCode::Char('u') => Some(Key::Move(Step::Pages(-1))),
            _ => None,
        };
    }
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(match event.code {
        KeyCode::Char('j') | KeyCode::Down => Key::Move(Step::Lines(1)),
        KeyCode::Char('k') | KeyCode::Up => Key::Move(Step::Lines(-1)),
        KeyCode::PageDown | KeyCode::Char(' ') => Key::Move(Step::Pages(1)),
        KeyCode::PageUp => Key::Move(Step::Pages(-1)),
        KeyCode::Char('g') | KeyCode::Home => Key::Move(Step::First),
        KeyCode::Char('G') | KeyCode::End => Key::Move(Step::Last),
        KeyCode::Char('J') => Key::MoveLane(1),
        KeyCode::Char('K') => Key::MoveLane(-1),
        KeyCode::Char('h') | KeyCode::Left => Key::ToLanes,
        KeyCode::Char('l') | KeyCode::Right | KeyCode::Enter => Key::ToDetail,
        KeyCode::Tab | KeyCode::BackTab => Key::OtherPane,
        KeyCode::Char(c @ '1'..='5') => Key::Show(Tab::ALL[c as usize - '1' as usize].0),
        KeyCode::Char('z') => Key::Zoom,
        KeyCode::Char('[') => Key::Bracket(false),
        KeyCode::Char(']') => Key::Bracket(true),
        KeyCode::Char('{') => Key::Hunk(false),
        KeyCode::Char('}') => Key::Hunk(true),
        KeyCode::Char('<') => Key::Shift(false),
        KeyCode::Char('>') => Key::Shift(true),
        KeyCode::Char('v') => Key::Mark,
        KeyCode::Char('c') => Key::Comment,
        KeyCode::Char('x') => Key::Uncomment,
        KeyCode::Char('a') => Key::Approve,
        KeyCode::Char('r') => Key::Reject,
        KeyCode::Char('m') => Key::Tell,
        KeyCode::Char('t') => Key::Retry,
        KeyCode::Char('s') => Key::Stop,
        KeyCode::Char('R') => Key::Resume,
        KeyCode::Char('e') => Key::Edit,
        KeyCode::Char('!') => Key::Shell,
        KeyCode::Char('y') => Key::Copy,
        KeyCode::Char('/') => Key::Filter,
        KeyCode::Char('u') => Key::Reload,
        KeyCode::Esc => Key::Leave,
        KeyCode::Char('?') => Key::Help,
        KeyCode::Char('q') => Key::Quit,
        _ => return None,
    })
}
