//! What a command does while no run is shown: a spinner, or a bar where it is known how much there is to do.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::{self, Stderr, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use lanewright_model::cells::cut;
use lanewright_model::time::short;
use lanewright_model::{Progress, safe_text};
use lanewright_programs::process;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

use super::{Block, terminal_size};

/// What takes less time is not shown.
pub(super) const DELAY: Duration = Duration::from_millis(300);

const REDRAW: Duration = Duration::from_millis(100);

const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// Shown until it is dropped. Only one may be at a time, and none while a run is drawn.
#[must_use]
pub(crate) struct Activity {
    bar: ProgressBar,
    /// Dropping the sender ends the thread.
    shown: Option<(Sender<Infallible>, JoinHandle<()>)>,
}

impl Activity {
    /// Shows `what`, and how many of `total` are done, on standard error: redrawn if `progress` is live, as lines if it is
    /// plain. See `choose`.
    pub(crate) fn start(progress: Progress, what: impl Display, total: Option<usize>) -> Self {
        let what = safe_text::for_terminal(&what.to_string()).into_owned();
        let bar = ProgressBar::with_draw_target(total.map(|total| total as u64), ProgressDrawTarget::hidden());
        let bar = bar.with_message(what);
        let show = match progress {
            Progress::Live => draw,
            Progress::Plain => write_lines,
            Progress::Auto | Progress::Json | Progress::None => return Self { bar, shown: None },
        };
        let (sender, ended) = channel();
        let of_thread = bar.clone();
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(move || {
            if !ends_within(&ended, DELAY) {
                show(&of_thread, &ended);
            }
        });
        Self { bar, shown: thread.ok().map(|thread| (sender, thread)) }
    }

    /// One more is done.
    pub(crate) fn advance(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.shown.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// Writes to the terminal above what is drawn.
pub(crate) fn above_activity<T>(write: impl FnOnce() -> T) -> T {
    match &*drawn() {
        // Nothing is drawn, and the reader of what is written may have stopped reading.
        Some(bar) => bar.suspend(|| Interruption::released_during(write)),
        None => write(),
    }
}

/// The bar that is drawn now; locked while something else is written to the terminal.
fn drawn() -> MutexGuard<'static, Option<ProgressBar>> {
    static DRAWN: Mutex<Option<ProgressBar>> = Mutex::new(None);
    DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ends_within(ended: &Receiver<Infallible>, time: Duration) -> bool {
    ended.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
}

fn draw(bar: &ProgressBar, ended: &Receiver<Infallible>) {
    let interruption = Interruption::hold();
    let template = if bar.length().is_some() { "{spinner} {msg} [{bar:20}] {pos}/{len}" } else { "{spinner} {msg}" };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // Every terminal has these.
    bar.set_style(style.tick_chars(r"-\|/ ").progress_chars("=> "));
    let mut shared = drawn();
    let terminal = Terminal(Mutex::new((Block::new(io::stderr()), String::new())));
    bar.set_draw_target(ProgressDrawTarget::term_like_with_hz(Box::new(terminal), 10));
    *shared = Some(bar.clone());
    drop(shared);
    loop {
        bar.tick();
        if ends_within(ended, REDRAW) || interruption.came() {
            break;
        }
    }
    let mut shared = drawn();
    bar.finish_and_clear();
    *shared = None;
    drop(shared);
    interruption.release();
}

/// The terminal to indicatif, which by itself leaves pieces of its line behind where a terminal that becomes narrower breaks
/// lines anew (decision 49).
#[derive(Debug)]
struct Terminal(Mutex<(Block<Stderr>, String)>);

impl Terminal {
    /// What draws, and the line that is drawn next.
    fn parts(&self) -> MutexGuard<'_, (Block<Stderr>, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of one line, so the cursor never moves to another one.
impl TermLike for Terminal {
    fn width(&self) -> u16 {
        u16::try_from(terminal_size(io::stderr(), 80).1).unwrap_or(u16::MAX)
    }

    fn move_cursor_up(&self, _lines: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _lines: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _columns: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _columns: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.parts().1.push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.parts().1.clear();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let size = terminal_size(io::stderr(), 80);
        let (block, line) = &mut *self.parts();
        match cut(line.trim_end(), size.1.saturating_sub(1)) {
            empty if empty.is_empty() => block.clear(),
            line => block.draw("", vec![line], size),
        }
    }
}

fn write_lines(bar: &ProgressBar, ended: &Receiver<Infallible>) {
    let counted = || bar.length().map(|total| format!(" {}/{total}", bar.position())).unwrap_or_default();
    let mut written = None;
    loop {
        let count = counted();
        if written.as_ref() != Some(&count) {
            write_line(&format!("{}{count}", bar.message()));
            written = Some(count);
        }
        if ends_within(ended, BETWEEN_LINES) {
            break;
        }
    }
    write_line(&format!("{}{} took {}", bar.message(), counted(), short(bar.elapsed())));
}

/// In one piece. A failure cannot be reported anywhere.
fn write_line(line: &str) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Signals that end the process wait until what is drawn is removed.
///
/// A signal that was handled once is never left to the system again. So the handlers stay, and end the process at once
/// while nothing is drawn.
struct Interruption {
    ends_at_once: Arc<AtomicBool>,
    /// The signal that came; 0: none did.
    signal: Arc<AtomicUsize>,
}

impl Interruption {
    fn hold() -> &'static Self {
        static REGISTERED: OnceLock<Interruption> = OnceLock::new();
        let held = REGISTERED.get_or_init(Self::register);
        held.ends_at_once.store(false, Ordering::SeqCst);
        held
    }

    fn register() -> Self {
        let (ends_at_once, came) = (Arc::new(AtomicBool::new(true)), Arc::default());
        for (signal, number) in [(SIGINT, 2), (SIGTERM, 15)] {
            if !process::ignores(signal)
                && flag::register_conditional_default(signal, Arc::clone(&ends_at_once)).is_ok()
                && let Err(error) = flag::register_usize(signal, Arc::clone(&came), number)
            {
                tracing::warn!("signal {signal} is not handled: {error}");
            }
        }
        Self { ends_at_once, signal: came }
    }

    /// Does `work`, which a signal ends at once.
    fn released_during<T>(work: impl FnOnce() -> T) -> T {
        Self::hold().release();
        let done = work();
        Self::hold();
        done
    }

    fn came(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }

    /// Ends the process if a signal came.
    fn release(&self) {
        self.ends_at_once.store(true, Ordering::SeqCst);
        match self.signal.load(Ordering::SeqCst) {
            0 => {}
            signal => drop(emulate_default_handler(signal as i32)),
        }
    }
}
