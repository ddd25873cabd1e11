//! The terminal: taken over while the interface is shown, and given back however it ends.

use std::io::{self, Stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};

use crate::progress::terminal_size;

type Drawn = Terminal<CrosstermBackend<Stdout>>;

/// Gives the terminal back when it is dropped.
pub(crate) struct Screen {
    terminal: Drawn,
    area: Rect,
}

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        restore_at_panic();
        // Dropped if what follows fails.
        let area = area();
        let screen = Self { terminal: drawn(area)?, area };
        enter()?;
        Ok(screen)
    }

    /// Whether the terminal has another size than what was drawn.
    pub(super) fn is_outgrown(&self) -> bool {
        area() != self.area
    }

    /// Shows what `draw` draws; it returns where the cursor is, if it is seen.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Buffer) -> Option<(u16, u16)>) -> io::Result<()> {
        if self.is_outgrown() {
            self.clear()?;
        }
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            if let Some(cursor) = draw(frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        execute!(io::stdout(), EndSynchronizedUpdate)
    }

    /// Gives the terminal to `act`, and takes it again.
    pub(super) fn lent<T>(&mut self, act: impl FnOnce() -> T) -> io::Result<T> {
        leave()?;
        let done = act();
        enter()?;
        self.clear()?;
        Ok(done)
    }

    /// The size is asked of standard output itself: the controlling terminal, if there is one, may be another.
    fn clear(&mut self) -> io::Result<()> {
        self.area = area();
        execute!(io::stdout(), Clear(ClearType::All))?;
        self.terminal = drawn(self.area)?;
        Ok(())
    }
}

/// What a wait for input ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Came(Vec<u8>),
    Nothing,
    /// The terminal was closed.
    Gone,
}

const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::NVAL);

/// Whether the terminal was closed. Nothing of what was typed is read.
pub(crate) fn is_gone() -> bool {
    polled(Duration::ZERO).intersects(GONE)
}

fn polled(at_most: Duration) -> PollFlags {
    let (stdin, limit) = (io::stdin(), Timespec::try_from(at_most).ok());
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let _ = poll(&mut polled, limit.as_ref());
    polled[0].revents()
}

/// Waits for input, for at most this time; a signal ends the wait early.
pub(crate) fn input(at_most: Duration) -> Input {
    let came = polled(at_most);
    if came.intersects(GONE) {
        return Input::Gone;
    }
    if !came.contains(PollFlags::IN) {
        return Input::Nothing;
    }
    let stdin = io::stdin();
    let mut bytes = vec![0; MOST_INPUT];
    match read(&stdin, &mut bytes) {
        Ok(0) => Input::Gone,
        Ok(count) => {
            bytes.truncate(count);
            Input::Came(bytes)
        }
        Err(Errno::INTR | Errno::AGAIN) => Input::Nothing,
        Err(_) => Input::Gone,
    }
}

/// What is read before something is drawn.
const MOST_INPUT: usize = 64 * 1024;

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = leave();
    }
}

fn drawn(area: Rect) -> io::Result<Drawn> {
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    Terminal::with_options(CrosstermBackend::new(io::stdout()), options)
}

fn area() -> Rect {
    let (rows, columns) = terminal_size(io::stdout(), 80);
    let cells = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    Rect::new(0, 0, cells(columns), cells(rows))
}

/// Whether the terminal is in raw mode.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn enter() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    // A program that was ended on the terminal may have left the mouse on.
    execute!(io::stdout(), EnterAlternateScreen, DisableMouseCapture, EnableBracketedPaste, Clear(ClearType::All))
}

/// Gives the terminal back, once: leaving the other screen again would move the cursor onto what was printed since.
fn leave() -> io::Result<()> {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    let left = execute!(io::stdout(), EndSynchronizedUpdate, DisableBracketedPaste, LeaveAlternateScreen, Show);
    disable_raw_mode().and(left)
}

/// The message of a panic would be lost with the screen, and staircase over it. Other threads do not own the terminal.
fn restore_at_panic() {
    let (hook, owner) = (panic::take_hook(), std::thread::current().id());
    panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == owner {
            let _ = leave();
            hook(panic);
        }
    }));
}
