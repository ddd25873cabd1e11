//! The interface on a test's terminal: what it shows, what keys change.

mod keys;
mod screens;

use lanewright_model::event::{Event, LaneStage};
use lanewright_model::testing::*;
use lanewright_model::time::LocalTime;
use lanewright_model::{Approval, Budget, ReportFormat, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::board::Board;
use super::diff::Diff;
use super::material::{Change, Drawn, Material, Output, Prompt, Text};
use super::state::State;
use super::update::{Effect, Message, update};
use super::view;
use crate::RunHistory;
use crate::report::ExecutionReport;
use crate::status::styles::Styles;
use crate::status::summary::SummaryContext;

const DIFF: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
                    @@ -1,3 +1,4 @@ mod a;\n fn a() {\n-    one();\n+    two();\n+    three();\n }\n\
                    diff --git a/src/b.rs b/src/b.rs\n--- a/src/b.rs\n+++ b/src/b.rs\n@@ -9 +9 @@\n-old\n+new\n";

/// A run, what files hold, and the state of the interface.
struct Interface {
    history: RunHistory,
    now: Timestamp,
    program: Vec<String>,
    held: bool,
    material: Material,
    state: State,
}

impl Interface {
    /// `API` waits for approval, `DB` has failed, `UI` works, `DOCS` waits for `API`, `CORE` is merged.
    fn new() -> Self {
        let plan = plan(&[
            ("CORE", &[], &[]),
            ("DB", &[], &[]),
            ("UI", &["CORE"], &[]),
            ("API", &["CORE"], &[Approval::Changes]),
            ("DOCS", &["API"], &[]),
        ]);
        let (first, second) = (attempt("DB", "engineer", 1), attempt("DB", "engineer", 2));
        let story = Story::begun().opened("CORE", 1).merged("CORE", 'd').opened("DB", 3).retried("DB", 1, 1);
        let story = story.job(&second).exited(&second, 101).noted("DB").failed("DB").opened("API", 5);
        let done = attempt("API", "engineer", 1);
        let waits = (LaneStage::Implementation, LaneStage::AwaitingUserApproval);
        let story = story.job(&done).exited(&done, 0).moved("API", waits.0, waits.1).opened("UI", 7);
        let story = story.job(&attempt("UI", "engineer", 1)).wait(90);
        let lines = vec!["Compiling \u{1b}[32mui\u{1b}[0m".to_owned(), "\u{1b}[2Jdone\u{202e}".to_owned()];
        let output =
            Output { job: attempt("UI", "engineer", 1), path: "/run/output.log".into(), text: Text::new(lines) };
        let said = [(attempt("UI", "engineer", 1), "\u{1b}[31mCompiling ui".to_owned())].into();
        let prompt = Prompt { job: first, text: Text::new(vec!["Task 1".to_owned(), "Do it.".to_owned()]) };
        let diff = Some((lane("API"), Change::Shown(Diff::parse(DIFF))));
        Self {
            history: RunHistory::for_plan(&plan).after(&story.records),
            now: story.now(),
            program: program(),
            held: true,
            material: Material { said, output: Some(output), prompt: Some(prompt), diff, ..Material::default() },
            state: State::default(),
        }
    }

    fn then(&mut self, event: Event) {
        let record = lanewright_model::event::Record { seq: 999, at: self.now, event, origin: None };
        self.history.apply(&record);
        self.material.graph = Drawn::default();
    }

    fn board(&self) -> Board<'_> {
        let context = SummaryContext { now: LocalTime::utc(self.now), program: &self.program, held: self.held };
        Board::of(&self.history, context, &self.state.filter)
    }

    /// The screen as text, after a message with what was drawn.
    fn draw(&mut self, width: u16, height: u16) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut extent = self.state.extent;
        terminal
            .draw(|frame| {
                let (shown, cursor) = view::draw(frame.buffer_mut(), &self.state, &self.board(), &self.material, true);
                extent = shown;
                cursor.into_iter().for_each(|cursor| frame.set_cursor_position(cursor));
            })
            .unwrap();
        self.tell(Message::Drawn(extent));
        terminal
    }

    fn text(&mut self, width: u16, height: u16) -> String {
        let terminal = self.draw(width, height);
        let buffer = terminal.backend().buffer();
        let rows = buffer.content.chunks(width.into());
        let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect::<String>();
        rows.map(|cells| row(cells).trim_end().to_owned() + "\n").collect()
    }

    fn tell(&mut self, message: Message) -> Vec<Effect> {
        let mut state = std::mem::take(&mut self.state);
        let context = SummaryContext { now: LocalTime::utc(self.now), program: &self.program, held: self.held };
        let board = Board::of(&self.history, context, &state.filter);
        let effects = update(&mut state, &board, &self.material, message);
        self.state = state;
        effects
    }

    /// Presses the keys one after the other; the effects of all.
    fn press(&mut self, keys: &str) -> Vec<Effect> {
        keys.chars().flat_map(|c| self.tell(Message::Key(KeyEvent::new(code(c), KeyModifiers::NONE)))).collect()
    }
}

/// A newline is Enter, `⎋` is Esc, `⇥` is Tab, `⌫` is Backspace.
fn code(c: char) -> KeyCode {
    match c {
        '\n' => KeyCode::Enter,
        '⎋' => KeyCode::Esc,
        '⇥' => KeyCode::Tab,
        '⌫' => KeyCode::Backspace,
        c => KeyCode::Char(c),
    }
}
