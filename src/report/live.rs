//! Lines that are redrawn: what goes on now, below what has happened.

use std::io;
use std::time::Duration;

use chrono::FixedOffset;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Reporter;
use crate::event::Record;
use crate::model::safe_text::for_terminal;
use crate::model::time::short;
use crate::model::{AgentName, JobId, Timestamp};
use crate::view::cells::{clean, cut, pad, width};
use crate::view::line::{clock, narrate};
use crate::view::summary::tone;
use crate::view::{JobView, LaneState, LaneView, RunView, Styles, Tone, WaitingFor};

/// Reads the last line that a job wrote so far.
pub type LastLine<'a> = dyn Fn(&JobId) -> Option<String> + 'a;

/// Draws on a terminal: a line with counts, then a line for each active lane; what lasts is printed above. Nothing at all
/// is drawn where the target is no terminal.
///
/// All lines are one bar of several lines, so each picture is drawn as a whole.
pub struct Live<'a> {
    bar: ProgressBar,
    screen: Box<dyn Fn() -> (usize, usize) + 'a>,
    last_line: Box<LastLine<'a>>,
    offset: FixedOffset,
    styles: Styles,
    drawn: Option<Timestamp>,
}

/// The shortest time between two pictures.
const REDRAW: Duration = Duration::from_millis(100);

impl<'a> Live<'a> {
    /// Draws on standard error. Times are shown at `offset` from UTC.
    pub fn stderr(last_line: Box<LastLine<'a>>, offset: FixedOffset, styles: Styles) -> Self {
        Self::new(ProgressDrawTarget::stderr_with_hz(20), Box::new(stderr_size), last_line, offset, styles)
    }

    /// Draws on `target`, whose rows and columns `screen` tells each time.
    pub fn new(
        target: ProgressDrawTarget,
        screen: Box<dyn Fn() -> (usize, usize) + 'a>,
        last_line: Box<LastLine<'a>>,
        offset: FixedOffset,
        styles: Styles,
    ) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self { bar, screen, last_line, offset, styles, drawn: None }
    }

    fn draw(&mut self, view: &RunView, now: Timestamp) {
        // A clock that was set back must not freeze the picture.
        let due = self.drawn.is_none_or(|drawn| now < drawn || now.since(drawn) >= REDRAW);
        if due && !self.bar.is_hidden() {
            self.drawn = Some(now);
            self.bar.set_message(for_terminal(&self.picture(view, now).join("\n")).into_owned());
        }
    }

    pub(super) fn picture(&self, view: &RunView, now: Timestamp) -> Vec<String> {
        let (rows, columns) = (self.screen)();
        // The last column stays free, a full line would wrap on some terminals.
        let cells = columns.saturating_sub(1);
        let room = rows.saturating_sub(2).max(1);
        let active = view.active().len();
        let shown = if active < room { active } else { room - 1 };
        let mut lines = vec![self.styles.paint(Tone::Strong, &cut(&header(view, now), cells))];
        lines.extend(view.run.running.iter().map(|job| self.phase_line(job, now, cells)));
        let names = view.active().take(shown).map(|lane| width(lane.id.as_str())).max().unwrap_or_default().min(20);
        lines.extend(view.active().take(shown).map(|lane| self.lane_line(view, lane, now, names, cells)));
        if shown < active && rows > 3 {
            let more = format!("… and {} more", active - shown);
            lines.push(self.styles.paint(Tone::Faint, &cut(&more, cells)));
        }
        lines
    }

    fn phase_line(&self, job: &JobView, now: Timestamp, cells: usize) -> String {
        let said = (self.last_line)(&job.job).map(|said| clean(&said)).unwrap_or_default();
        cut(&format!("{} gate {}  {said}", job.job.role.word(), short(now.since(job.since))), cells)
    }

    fn lane_line(&self, view: &RunView, lane: &LaneView, now: Timestamp, names: usize, cells: usize) -> String {
        let state = format!("{:<9}", lane.state.word());
        let name = cut(&format!("{} ", pad(lane.id.as_str(), names)), cells);
        let state = cut(&state, cells - width(&name));
        let mut rest = activity(view, lane, now);
        if let Some(said) = lane.running.last().and_then(|job| (self.last_line)(&job.job)) {
            rest.push_str(&format!("  {}", clean(&said)));
        }
        let rest = cut(&format!(" {rest}"), cells - width(&name) - width(&state));
        format!("{name}{}{rest}", self.styles.paint(tone(lane.state), &state))
    }
}

impl Reporter for Live<'_> {
    fn record(&mut self, record: &Record, view: &RunView) -> io::Result<()> {
        if let Some(line) = narrate(record, view).filter(|line| line.lasting) {
            let text = self.styles.paint(line.tone, &line.text);
            self.bar.println(for_terminal(&format!("{} {text}", clock(record.at, self.offset))));
        }
        self.draw(view, record.at);
        Ok(())
    }

    fn tick(&mut self, view: &RunView, now: Timestamp) -> io::Result<()> {
        self.draw(view, now);
        Ok(())
    }

    fn finish(&mut self, _view: &RunView) -> io::Result<()> {
        self.bar.finish_and_clear();
        Ok(())
    }
}

fn header(view: &RunView, now: Timestamp) -> String {
    let mut words = vec![view.run.phase.as_ref().map_or("run", |phase| phase.as_str()).to_owned()];
    words.extend(tally(view));
    words.extend(view.run.started.map(|started| short(now.since(started))));
    if view.run.stop.is_some() {
        words.push("stopping".to_owned());
    }
    words.join(" · ")
}

/// `2 running · 3 merged · 1 failed`, in the order in which lanes live.
fn tally(view: &RunView) -> Vec<String> {
    let skipped = |state: &LaneState| *state == LaneState::Skipped;
    let counted = view.counts().iter().filter(|(state, _)| !skipped(state));
    counted.map(|(state, count)| format!("{count} {}", state.word())).collect()
}

/// Who is at it, at which attempt, for how long.
fn activity(view: &RunView, lane: &LaneView, now: Timestamp) -> String {
    let mut words: Vec<String> = lane.current_attempts().map(|job| attempt(&job.job)).collect();
    if words.is_empty() {
        words.extend(lane.running.iter().map(|job| job.job.role.word().to_owned()));
    }
    if let Some(WaitingFor::Until(moment)) = view.waiting_for(lane) {
        words.push(format!("tries again in {}", short(moment.since(now))));
    }
    let since = lane.running.last().map(|job| job.since).or(lane.started);
    words.extend(since.map(|since| short(now.since(since))));
    words.join(" ")
}

fn attempt(job: &JobId) -> String {
    let agent = job.agent().map_or("agent", AgentName::as_str);
    format!("{agent} {}", job.number)
}

fn stderr_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    size.map_or((24, 80), |size| (size.ws_row.into(), size.ws_col.into()))
}
