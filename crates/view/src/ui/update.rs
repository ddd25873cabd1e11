//! What a key or an answer changes: pure; what is to be done outside comes back as effects.

use lanewright_model::text::shell_line;
use lanewright_model::{HumanGate, LaneId};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::board::Board;
use super::comments::{Comment, message};
use super::diff::{Diff, Kind, Row};
use super::keys::{HELP, Key, key};
use super::material::Material;
use super::scroll::Step;
use super::state::{Command, Dialog, DiffPlace, Extent, Focus, Input, Notice, Purpose, State, Tab};
use crate::answers::approvals::open_gate;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Key(KeyEvent),
    Pasted(String),
    /// What was drawn, so that positions stay within it.
    Drawn(Extent),
    /// A command ended: what it printed, or its error.
    Ended(Result<String, String>),
}

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Call(Call),
    /// The words after the program's name; it has the terminal until it ends.
    InTerminal(Vec<String>),
    Copy(String),
    /// Read the diff of the lane.
    ReadDiff,
    Quit,
}

/// A command of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The words after the program's name.
    pub words: Vec<String>,
    /// Whether it works on the run, and outlives the interface.
    pub detached: bool,
}

pub fn update(state: &mut State, board: &Board<'_>, material: &Material, message: Message) -> Vec<Effect> {
    let mut updating = Updating { state, board, material, effects: Vec::new() };
    match message {
        Message::Drawn(extent) => updating.state.extent = extent,
        Message::Ended(outcome) => updating.ended(outcome),
        Message::Pasted(text) => updating.pasted(&text),
        Message::Key(event) => updating.key(event),
    }
    updating.effects
}

struct Updating<'a, 'h> {
    state: &'a mut State,
    board: &'a Board<'h>,
    material: &'a Material,
    effects: Vec<Effect>,
}

impl Updating<'_, '_> {
    fn ended(&mut self, outcome: Result<String, String>) {
        self.state.running = None;
        // What was refused is kept.
        match self.state.sent.take() {
            Some((input, _)) if outcome.is_err() => self.state.keep_unsent(input),
            Some((Input { purpose: Purpose::Message { lane, .. }, .. }, sent)) => {
                let comments = self.state.comments.entry(lane).or_default();
                comments.retain(|comment| !sent.contains(comment));
            }
            _ => {}
        }
        let shown = |said: String| self.board.with_keys(said.trim());
        self.state.notice =
            Some(outcome.map_or_else(|said| Notice::bad(shown(said)), |said| Notice::good(shown(said))));
    }

    fn pasted(&mut self, text: &str) {
        if let Some(Dialog::Input(input)) = &mut self.state.dialog {
            input.text.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
            self.typed();
        }
    }

    fn key(&mut self, event: KeyEvent) {
        // What a command answered meanwhile is seen once the refusal is gone.
        if !matches!(self.state.dialog, Some(Dialog::Refused(_))) {
            self.state.notice = None;
        }
        let is_ctrl_c = event.modifiers.contains(KeyModifiers::CONTROL) && event.code == KeyCode::Char('c');
        match self.state.dialog.take() {
            _ if is_ctrl_c => self.effects.push(Effect::Quit),
            None => key(event).into_iter().for_each(|key| self.act(key)),
            Some(Dialog::Help { top }) => {
                if let Some(Key::Move(step)) = key(event) {
                    let page = self.state.extent.help.max(1);
                    let places = (HELP.len() + 1).saturating_sub(page);
                    self.state.dialog = Some(Dialog::Help { top: step.applied_to(top, places, page) });
                }
            }
            Some(Dialog::Refused(why)) => {
                if !matches!(event.code, KeyCode::Enter | KeyCode::Esc) {
                    self.state.dialog = Some(Dialog::Refused(why));
                }
            }
            Some(Dialog::Stop { lane }) => self.confirm_stop(lane, event.code),
            Some(Dialog::Resume { more }) => {
                if event.code == KeyCode::Char('y') {
                    self.resume_with(&more);
                }
            }
            Some(Dialog::Input(input)) => self.type_key(input, event),
        }
    }

    fn act(&mut self, key: Key) {
        // What the user looks at stays selected when the lanes change their order.
        self.state.selected = self.lane();
        match key {
            Key::Move(step) => self.step(step),
            Key::MoveLane(by) => self.select(Step::Lines(by)),
            Key::ToLanes => self.state.focus = Focus::Lanes,
            Key::ToDetail => self.state.focus = Focus::Detail,
            Key::OtherPane => {
                self.state.focus = if self.state.focus == Focus::Lanes { Focus::Detail } else { Focus::Lanes };
            }
            Key::Show(tab) => self.show(tab),
            Key::Zoom => self.state.zoomed = !self.state.zoomed,
            Key::Bracket(next) => self.bracket(next),
            Key::Hunk(next) => self.jump(next, |row| row.kind == Kind::Hunk),
            Key::Shift(right) => {
                let shift = self.state.diff.shift.saturating_add_signed(if right { SHIFT } else { -SHIFT });
                self.state.diff.shift = shift;
            }
            Key::Mark => self.mark(),
            Key::Comment => self.ask_for_comment(),
            Key::Uncomment => self.uncomment(),
            Key::Approve => self.ask_for_message(Command::Approve),
            Key::Reject => self.ask_for_message(Command::Reject),
            Key::Tell => self.ask_for_message(Command::Tell),
            Key::Retry => self.ask_for_message(Command::Retry),
            Key::Stop => self.ask_what_to_stop(),
            Key::Resume => self.resume(),
            Key::Edit => self.open(&[]),
            Key::Shell => self.open(&["--with", "exec \"${SHELL:-sh}\""]),
            Key::Copy => self.copy(),
            Key::Filter => self.ask(Purpose::Filter),
            Key::Reload => self.effects.push(Effect::ReadDiff),
            Key::Leave => self.leave(),
            Key::Help => self.state.dialog = Some(Dialog::Help { top: 0 }),
            Key::Quit => self.effects.push(Effect::Quit),
        }
    }

    fn lane(&self) -> Option<LaneId> {
        self.board.lane(self.state.selected.as_ref()).map(|lane| lane.id.clone())
    }

    fn step(&mut self, step: Step) {
        let State { focus, tab, extent, .. } = *self.state;
        match (focus, tab) {
            (Focus::Lanes, _) => self.select(step),
            (Focus::Detail, Tab::Diff) => self.step_in_diff(step),
            (Focus::Detail, Tab::Output) => {
                let places = (extent.rows + 1).saturating_sub(extent.detail).max(1);
                let at = self.state.output_top.unwrap_or(places - 1);
                let to = step.applied_to(at, places, extent.detail);
                self.state.output_top = (to + 1 < places).then_some(to);
            }
            (Focus::Detail, _) => {
                let places = (extent.rows + 1).saturating_sub(extent.detail).max(1);
                self.state.top = step.applied_to(self.state.top, places, extent.detail);
            }
        }
    }

    fn select(&mut self, step: Step) {
        let lanes = self.board.lanes();
        let at = self.board.position(self.state.selected.as_ref());
        let chosen = lanes.get(step.applied_to(at, lanes.len(), self.state.extent.lanes)).map(|lane| lane.id.clone());
        if chosen != self.state.selected {
            self.state.selected = chosen;
            self.state.show_from_top();
        }
    }

    fn show(&mut self, tab: Tab) {
        if tab != self.state.tab {
            self.state.tab = tab;
            self.state.show_from_top();
        }
        if tab == Tab::Diff {
            self.effects.push(Effect::ReadDiff);
        }
        self.state.focus = Focus::Detail;
    }

    fn bracket(&mut self, next: bool) {
        match self.state.tab {
            Tab::Diff => self.jump(next, |row| row.kind == Kind::File),
            _ => {
                let back = self.state.back.saturating_add_signed(if next { -1 } else { 1 });
                let jobs = self.board.lane(self.state.selected.as_ref()).map_or(0, |lane| lane.jobs.all().count());
                self.state.show_from_top();
                self.state.back = back.min(jobs.saturating_sub(1));
            }
        }
    }

    fn diff(&self) -> Option<&Diff> {
        self.material.shown_diff(&self.lane()?).filter(|_| self.state.tab == Tab::Diff)
    }

    fn jump(&mut self, next: bool, wanted: impl Fn(&Row) -> bool) {
        let at = self.state.diff.cursor;
        let from = if next { at.checked_add(1) } else { at.checked_sub(1) };
        if let Some(to) = self.diff().zip(from).and_then(|(diff, from)| diff.find(from, !next, wanted)) {
            self.move_cursor(to);
        }
    }

    fn step_in_diff(&mut self, step: Step) {
        let count = self.diff().map_or(0, |diff| diff.rows.len());
        self.move_cursor(step.applied_to(self.state.diff.cursor, count, self.state.extent.detail));
    }

    /// Moves the cursor, and the window if it would not be seen; comments below lines take rows, too.
    fn move_cursor(&mut self, to: usize) {
        let Some(lane) = self.lane() else { return };
        let rows: Vec<usize> = match self.diff() {
            Some(diff) => self.state.comments_of(&lane).iter().map(|comment| comment.shown_at(diff)).collect(),
            None => return,
        };
        let height = self.state.extent.detail.max(1);
        let DiffPlace { cursor, top, .. } = &mut self.state.diff;
        (*cursor, *top) = (to, (*top).min(to));
        let shown = |top: usize| to - top + 1 + rows.iter().filter(|row| (top..=to).contains(*row)).count();
        while shown(*top) > height && *top < to {
            *top += 1;
        }
    }

    fn mark(&mut self) {
        if self.diff().is_some() {
            let DiffPlace { cursor, mark, .. } = &mut self.state.diff;
            *mark = if mark.is_some() { None } else { Some(*cursor) };
        }
    }

    fn ask_for_comment(&mut self) {
        let (first, last) = self.state.diff.marked();
        let mut comment = self.diff().and_then(|diff| Comment::on(diff, first, last, ""));
        if comment.is_none()
            && let Some(line) = self.diff().and_then(|diff| diff.line_near(last))
        {
            self.move_cursor(line);
            comment = self.diff().and_then(|diff| Comment::on(diff, line, line, ""));
        }
        match (self.lane(), comment) {
            (Some(lane), Some(comment)) => self.ask(Purpose::Comment(lane, comment)),
            _ => self.refuse("there is no line to comment on here; comments are for lines of a diff"),
        }
    }

    fn uncomment(&mut self) {
        let (Some(lane), Some(diff)) = (self.lane(), self.diff()) else { return };
        let cursor = self.state.diff.cursor;
        let others: Vec<Comment> =
            self.state.comments_of(&lane).iter().filter(|it| it.shown_at(diff) != cursor).cloned().collect();
        self.state.comments.insert(lane, others);
    }

    fn ask(&mut self, purpose: Purpose) {
        let text = match purpose {
            Purpose::Filter => self.state.filter.clone(),
            _ => self.state.take_unsent(&purpose).unwrap_or_default(),
        };
        self.state.dialog = Some(Dialog::Input(Input { purpose, text }));
    }

    fn ask_for_message(&mut self, kind: Command) {
        let Some(lane) = self.board.lane(self.state.selected.as_ref()) else {
            return self.refuse("no lane is selected");
        };
        let gate = open_gate(lane).filter(|_| kind.is_answer());
        if kind.is_answer() && gate.is_none() {
            return self.refuse(format!("lane {} does not wait for an answer", lane.id));
        }
        if kind == Command::Retry && self.board.held() {
            return self.refuse("the run is active; stop it first, or wait until it ends");
        }
        if kind == Command::Retry && lane.state.is_done() {
            return self.refuse(format!("lane {} is done; there is nothing to retry", lane.id));
        }
        if kind == Command::Reject && !self.state.comments_of(&lane.id).is_empty() {
            // Which comments are outdated is said of the diff as it is now.
            self.effects.push(Effect::ReadDiff);
        }
        self.ask(Purpose::Message { lane: lane.id.clone(), kind, gate });
    }

    /// Shows why no text is asked for. What the user types before seeing it must not be taken for commands.
    fn refuse(&mut self, why: impl Into<String>) {
        self.state.dialog = Some(Dialog::Refused(why.into()));
    }

    fn ask_what_to_stop(&mut self) {
        let lane = self.board.lane(self.state.selected.as_ref()).filter(|lane| lane.state.is_active());
        match self.board.held() {
            true => self.state.dialog = Some(Dialog::Stop { lane: lane.map(|lane| lane.id.clone()) }),
            false => self.state.notice = Some(Notice::bad("the run is not active")),
        }
    }

    fn confirm_stop(&mut self, lane: Option<LaneId>, code: KeyCode) {
        let lane = match code {
            KeyCode::Char('y') => None,
            KeyCode::Char('l') if lane.is_some() => lane,
            _ => return,
        };
        let lane = lane.map(|lane| lane.to_string());
        self.call("stop", lane.as_deref(), &[], false);
    }

    fn type_key(&mut self, mut input: Input, event: KeyEvent) {
        match event.code {
            KeyCode::Esc if input.purpose == Purpose::Filter => return self.state.filter.clear(),
            KeyCode::Esc => return,
            KeyCode::Enter => return self.entered(input),
            KeyCode::Backspace => drop(input.text.pop()),
            KeyCode::Char('u') if event.modifiers.contains(KeyModifiers::CONTROL) => input.text.clear(),
            KeyCode::Char(c) if !event.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                input.text.push(c);
            }
            _ => {}
        }
        self.state.dialog = Some(Dialog::Input(input));
        self.typed();
    }

    /// A filter has its effect while it is typed.
    fn typed(&mut self) {
        if let Some(Dialog::Input(Input { purpose: Purpose::Filter, text })) = &self.state.dialog {
            self.state.filter.clone_from(text);
        }
    }

    fn entered(&mut self, Input { purpose, text }: Input) {
        match purpose.clone() {
            Purpose::Filter => self.state.filter = text,
            Purpose::Comment(lane, comment) => self.comment(lane, Comment { text: text.trim().to_owned(), ..comment }),
            Purpose::Message { lane, kind, gate } => match self.answer(&lane, kind, gate, &text) {
                Some(comments) => self.state.sent = Some((Input { purpose, text }, comments)),
                None => {
                    self.state.keep_unsent(Input { purpose, text });
                    let refused = self.state.notice.take();
                    refused.into_iter().for_each(|notice| self.refuse(notice.text));
                }
            },
        }
    }

    fn comment(&mut self, lane: LaneId, comment: Comment) {
        if !comment.text.is_empty() {
            self.state.comments.entry(lane).or_default().push(comment);
        }
        self.state.diff.mark = None;
        self.move_cursor(self.state.diff.cursor);
    }

    /// The comments that are sent; `None`: nothing is sent now.
    fn answer(&mut self, lane: &LaneId, kind: Command, gate: Option<HumanGate>, typed: &str) -> Option<Vec<Comment>> {
        let (comments, _) = self.state.current_comments(lane, self.material);
        let comments: Vec<Comment> = comments.into_iter().cloned().collect();
        let text = match kind {
            Command::Reject => message(typed, &comments),
            _ => typed.trim().to_owned(),
        };
        if let Some(why) = message_fault(kind, &text) {
            self.state.notice = Some(Notice::bad(why));
            return None;
        }
        let message = (!text.is_empty()).then(|| format!("--message={text}"));
        let gate = gate.map(|gate| format!("--gate={gate}"));
        let is_retry = kind == Command::Retry;
        let unattended = UNATTENDED.iter().filter(|_| is_retry).map(|&flag| flag.to_owned());
        let rest: Vec<String> = gate.into_iter().chain(message).chain(unattended).collect();
        let are_sent = self.call(kind.name(), Some(lane.as_str()), &rest, is_retry);
        are_sent.then(|| if kind == Command::Reject { comments } else { Vec::new() })
    }

    fn resume(&mut self) {
        if self.board.held() {
            return self.state.notice = Some(Notice::bad("the run is active"));
        }
        let run = &self.board.history().run;
        let more = run.budget.flags_for_more(&run.used);
        match more.is_empty() {
            true => self.resume_with(&more),
            false => self.state.dialog = Some(Dialog::Resume { more }),
        }
    }

    fn resume_with(&mut self, more: &[String]) {
        let flags: Vec<String> = UNATTENDED.map(str::to_owned).into_iter().chain(more.iter().cloned()).collect();
        self.call("resume", None, &flags, true);
    }

    /// Whether the command is carried out: one at a time is.
    fn call(&mut self, name: &str, lane: Option<&str>, rest: &[String], detached: bool) -> bool {
        let Some(run) = self.board.history().run.run_id() else { return false };
        if let Some(running) = &self.state.running {
            self.state.notice = Some(Notice::bad(format!("{running} has not ended")));
            return false;
        }
        let words = [name, run.as_str()].into_iter().chain(lane).map(str::to_owned);
        let call = Call { words: words.chain(rest.iter().cloned()).collect(), detached };
        self.state.running = Some(name.to_owned());
        self.effects.push(Effect::Call(call));
        true
    }

    fn open(&mut self, rest: &[&str]) {
        if let (Some(run), Some(lane)) = (self.board.history().run.run_id(), self.lane()) {
            let words = ["open", run.as_str(), lane.as_str()].into_iter().chain(rest.iter().copied());
            self.effects.push(Effect::InTerminal(words.map(str::to_owned).collect()));
        }
    }

    fn copy(&mut self) {
        let lane = self.board.lane(self.state.selected.as_ref());
        if let Some(command) = lane.and_then(|lane| self.board.next_command(lane)) {
            let line = shell_line(command);
            self.state.notice = Some(Notice::good(format!("copied: {line}")));
            self.effects.push(Effect::Copy(line));
        }
    }

    fn leave(&mut self) {
        if self.state.diff.mark.take().is_some() {
            return;
        }
        if self.state.focus == Focus::Detail {
            return self.state.focus = Focus::Lanes;
        }
        self.state.filter.clear();
    }
}

fn message_fault(kind: Command, text: &str) -> Option<String> {
    if kind == Command::Reject && text.is_empty() {
        return Some("a rejection needs a reason: type one, or comment on lines of the diff".to_owned());
    }
    if kind == Command::Tell && text.is_empty() {
        return Some("there is nothing to say to the agents: type a text".to_owned());
    }
    let (most, size) = (LONGEST_MESSAGE / 1024, text.len() / 1024);
    (text.len() > LONGEST_MESSAGE).then(|| format!("a message may have at most {most} KiB; this one has {size} KiB"))
}

/// The flags of a command that has no terminal to ask on.
const UNATTENDED: [&str; 3] = ["--yes", "--progress=plain", "--on-lock-conflict=fail"];

const SHIFT: isize = 8;

/// Systems limit an argument of a command to 128 KiB.
const LONGEST_MESSAGE: usize = 120 * 1024;
