//! The loop: looks at the run, draws what has changed, and carries out what keys ask for.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use lanewright_engine::executor::crash::{CrashPoint, crash_point};
use lanewright_model::{LaneId, RunId, Timestamp};
use lanewright_store::lock::is_held;
use lanewright_store::{Follower, RunDirectory, StateDirectory};
use lanewright_view::RunHistory;
use lanewright_view::status::styles::Styles;
use lanewright_view::status::summary::SummaryContext;
use lanewright_view::ui::board::Board;
use lanewright_view::ui::decoder::Decoder;
use lanewright_view::ui::material::{Change, Drawn, Material};
use lanewright_view::ui::state::{Notice, State, Tab};
use lanewright_view::ui::update::{Effect, Message, update};
use lanewright_view::ui::view;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::execute;

use super::commands::{Commands, OPEN_EDITOR, with_hints};
use super::files::Files;
use super::screen::{Input, Screen, input, is_gone};
use crate::cli::child::Caller;
use crate::cli::look::worktree::editor;
use crate::cli::runs::{beginning, stamp};
use crate::cli::signals::Signals;
use crate::cli::{Context, ExitStatus, Result, local_now, now};
use crate::progress::styles_for;

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long the rest of a sequence may take.
const BRIEFLY: Duration = Duration::from_millis(50);

/// How long the start of a child may take.
const START: Duration = Duration::from_secs(2);

/// What a thread found out.
enum Answer {
    Ended(Result<String, String>),
    Diff { lane: LaneId, last: Option<Timestamp>, change: Change },
}

pub(super) struct App {
    directory: RunDirectory,
    program: Vec<String>,
    commands: Commands,
    log: Follower,
    /// The log as it was read last.
    read: Option<(u64, std::time::SystemTime)>,
    history: RunHistory,
    held: bool,
    state: State,
    material: Material,
    files: Files,
    /// Of which lane, with which last event, the diff was asked for.
    diff_of: Option<(LaneId, Option<Timestamp>)>,
    answers: (Sender<Answer>, Receiver<Answer>),
    decoder: Decoder,
    looked: Option<Instant>,
    /// The second that was drawn last: times are shown in seconds.
    second: i64,
}

impl App {
    pub(crate) fn new(context: &Context, state: &StateDirectory, run: &RunId) -> Result<Self> {
        let directory = state.run(run);
        let caller = Arc::new(Caller::new(context)?);
        let no_editor = editor(context).err().map(with_hints);
        Ok(Self {
            program: state.program(),
            files: Files::new(directory.clone(), Arc::clone(&caller)),
            commands: Commands { caller, run: run.clone(), directory: directory.clone(), no_editor },
            log: Follower::new(&directory.log()),
            read: None,
            history: beginning(&directory),
            held: false,
            state: State::default(),
            material: Material::default(),
            diff_of: None,
            answers: mpsc::channel(),
            decoder: Decoder::default(),
            looked: None,
            second: 0,
            directory,
        })
    }

    /// Shows the run until the user leaves or a signal comes.
    pub(crate) fn follow(&mut self, screen: &mut Screen, signals: &Signals) -> Result<ExitStatus> {
        let shown = self.show(screen, signals);
        match signals.received() {
            Some((status, _)) => Ok(status),
            // What is gone cannot be drawn on, which is no error to report.
            None if is_gone() => Ok(ExitStatus::HungUp),
            None => shown.map(|()| ExitStatus::Done),
        }
    }

    fn show(&mut self, screen: &mut Screen, signals: &Signals) -> Result<()> {
        let is_coloured = styles_for(&io::stdout()) != Styles::plain();
        let mut due = true;
        while signals.received().is_none() {
            due |= self.look(due)? | self.take_answers() | screen.is_outgrown();
            if due {
                self.draw(screen, is_coloured)?;
            }
            let typed = match input(if self.decoder.is_ambiguous() { BRIEFLY } else { POLL_INTERVAL }) {
                Input::Gone => break,
                Input::Nothing => self.decoder.flush().into_iter().collect::<Vec<_>>(),
                Input::Came(bytes) => self.decoder.read(&bytes),
            };
            due = !typed.is_empty();
            for message in typed {
                for effect in self.tell(message) {
                    if effect == Effect::Quit {
                        return Ok(());
                    }
                    self.carry_out(effect, screen, signals)?;
                }
            }
        }
        Ok(())
    }

    /// Waits for the command that still runs when the interface is left, if one does: what it printed, or its error.
    pub(crate) fn last_outcome(&self, signals: &Signals) -> Option<Result<String, String>> {
        self.state.running.as_ref()?;
        let since = Instant::now();
        loop {
            match self.answers.1.recv_timeout(POLL_INTERVAL) {
                Ok(Answer::Ended(outcome)) => return Some(outcome),
                // After a signal only until the child has certainly been started.
                Err(_) if signals.received().is_some() && since.elapsed() > START => return None,
                _ => {}
            }
        }
    }

    fn board(&self) -> Board<'_> {
        let context = SummaryContext { now: local_now(), program: &self.program, held: self.held };
        Board::of(&self.history, context, &self.state.filter)
    }

    /// Reads what was added to the log and to the files that are shown; whether anything has changed.
    fn look(&mut self, is_due: bool) -> Result<bool> {
        if !is_due && self.looked.is_some_and(|looked| looked.elapsed() < POLL_INTERVAL) {
            return Ok(false);
        }
        self.looked = Some(Instant::now());
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let held = is_held(&self.directory.lock());
        let mut is_new = held != std::mem::replace(&mut self.held, held);
        let stamp = stamp(&self.directory.log());
        if stamp != self.read {
            match (std::mem::replace(&mut self.read, stamp), stamp) {
                (Some(_), None) => {
                    self.log = Follower::new(&self.directory.log());
                    let run = &self.commands.run;
                    self.state.notice = Some(Notice::bad(format!("run {run} was removed; showing its last state")));
                    is_new = true;
                }
                (None, Some(_)) => {
                    self.history = beginning(&self.directory);
                    self.files = Files::new(self.directory.clone(), Arc::clone(&self.commands.caller));
                    self.material = Material::default();
                }
                _ => {}
            }
            let contents = self.log.poll()?;
            if !contents.records.is_empty() {
                is_new = true;
                self.material.graph = Drawn::default();
            }
            contents.records.iter().for_each(|record| self.history.apply(record));
            if let Some(damage) = contents.damage.first() {
                self.state.notice = Some(Notice::bad(format!("the run log is damaged: {damage}")));
            }
        }
        let second = now().unix_millis() / 1000;
        // How long a pause lasts is shown also of a run that is not active.
        is_new |= (held || self.history.run.pauses.iter().next().is_some())
            && second != std::mem::replace(&mut self.second, second);
        let mut material = std::mem::take(&mut self.material);
        let context = SummaryContext { now: local_now(), program: &self.program, held: self.held };
        let board = Board::of(&self.history, context, &self.state.filter);
        is_new |= self.files.read(&self.state, &board, &mut material);
        self.material = material;
        self.read_new_diff();
        Ok(is_new)
    }

    /// Reads the diff that is shown again once something has happened to its lane.
    fn read_new_diff(&mut self) {
        if self.state.tab != Tab::Diff || self.state.dialog.is_some() {
            return;
        }
        let lane = self.board().lane(self.state.selected.as_ref()).map(|lane| (lane.id.clone(), lane.last));
        if lane.is_some() && lane != self.diff_of {
            self.read_diff();
        }
    }

    fn read_diff(&mut self) {
        let Some((lane, last)) =
            self.board().lane(self.state.selected.as_ref()).map(|lane| (lane.id.clone(), lane.last))
        else {
            return;
        };
        self.diff_of = Some((lane.clone(), last));
        let (commands, answers) = (self.commands.clone(), self.answers.0.clone());
        std::thread::spawn(move || {
            let change = commands.diff(&lane);
            // The receiver is gone once the interface is left.
            let _ = answers.send(Answer::Diff { lane, last, change });
        });
    }

    fn take_answers(&mut self) -> bool {
        let mut any = false;
        while let Ok(answer) = self.answers.1.try_recv() {
            any = true;
            match answer {
                Answer::Ended(outcome) => drop(self.tell(Message::Ended(outcome))),
                Answer::Diff { lane, last, change } if self.diff_of == Some((lane.clone(), last)) => {
                    self.material.diff = Some((lane, change));
                }
                Answer::Diff { .. } => {}
            }
        }
        any
    }

    fn draw(&mut self, screen: &mut Screen, is_coloured: bool) -> Result<()> {
        let mut extent = self.state.extent;
        let board = self.board();
        screen.draw(|buffer| {
            let (shown, cursor) = view::draw(buffer, &self.state, &board, &self.material, is_coloured);
            extent = shown;
            crash_point(CrashPoint::Drawn);
            cursor
        })?;
        self.tell(Message::Drawn(extent));
        Ok(())
    }

    fn tell(&mut self, message: Message) -> Vec<Effect> {
        let mut state = std::mem::take(&mut self.state);
        let context = SummaryContext { now: local_now(), program: &self.program, held: self.held };
        let board = Board::of(&self.history, context, &state.filter);
        let effects = update(&mut state, &board, &self.material, message);
        self.state = state;
        effects
    }

    fn carry_out(&mut self, effect: Effect, screen: &mut Screen, signals: &Signals) -> Result<()> {
        match effect {
            Effect::Quit => {}
            Effect::ReadDiff => self.read_diff(),
            Effect::Copy(text) => execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))?,
            Effect::Call(call) => {
                let (commands, answers) = (self.commands.clone(), self.answers.0.clone());
                std::thread::spawn(move || drop(answers.send(Answer::Ended(commands.call(&call)))));
            }
            Effect::InTerminal(words) => {
                if let Err(refused) = self.commands.require_place(&words) {
                    self.state.notice = Some(Notice::bad(refused));
                    return Ok(());
                }
                let ended = screen.lent(|| self.commands.on_terminal(&words))?;
                // An interrupt was for the program that had the terminal.
                signals.forget_interrupt();
                self.state.notice = match ended {
                    // A shell ends with the exit status of the last command in it.
                    Ok(exit) if exit.success() || words.len() > OPEN_EDITOR => None,
                    Ok(exit) => Some(Notice::bad(format!("{} ended with {exit}", words.join(" ")))),
                    Err(error) => Some(Notice::bad(error.to_string())),
                };
            }
        }
        Ok(())
    }
}
