//! Lines that are redrawn: current work, below what has happened.

use std::io;
use std::time::Duration;

use chrono::FixedOffset;
use indicatif::{ProgressBar, ProgressDrawTarget};

use super::{Reporter, redrawn, terminal_size};
use crate::event::Record;
use crate::model::safe_text::for_terminal;
use crate::model::time::short;
use crate::model::{AgentName, JobId, Timestamp};
use crate::projection::RunHistory;
use crate::projection::cells::{clean, cut, pad, width};
use crate::projection::history::{JobHistory, LaneHistory, LaneState, WaitingFor};
use crate::projection::line::{clock, narrate};
use crate::projection::styles::{Styles, Tone};
use crate::projection::summary::tone;

/// Reads the last line that a job wrote so far.
pub(crate) type LastLine<'a> = dyn Fn(&JobId) -> Option<String> + 'a;

/// Draws on a terminal: a line with counts, then a line for each active lane; what lasts is printed above. Nothing
/// is drawn where the target is not a terminal.
///
/// All lines are one bar of several lines, so each picture is drawn as a whole.
pub(crate) struct Live<'a> {
    bar: ProgressBar,
    screen: Box<dyn Fn() -> (usize, usize) + 'a>,
    last_line: Box<LastLine<'a>>,
    offset: FixedOffset,
    styles: Styles,
    drawn: Option<Timestamp>,
}

const REDRAW: Duration = Duration::from_millis(100);

impl<'a> Live<'a> {
    /// Draws on standard error. Times are shown at `offset` from UTC.
    pub(crate) fn stderr(last_line: Box<LastLine<'a>>, offset: FixedOffset, styles: Styles) -> Self {
        Self::new(
            ProgressDrawTarget::stderr_with_hz(20),
            Box::new(|| terminal_size(io::stderr(), 80)),
            last_line,
            offset,
            styles,
        )
    }

    /// Draws on `target`, whose rows and columns `screen` returns.
    pub(crate) fn new(
        target: ProgressDrawTarget,
        screen: Box<dyn Fn() -> (usize, usize) + 'a>,
        last_line: Box<LastLine<'a>>,
        offset: FixedOffset,
        styles: Styles,
    ) -> Self {
        Self { bar: redrawn(target), screen, last_line, offset, styles, drawn: None }
    }

    fn draw(&mut self, history: &RunHistory, now: Timestamp) {
        // A clock that was set back must not freeze the picture.
        let due = self.drawn.is_none_or(|drawn| now < drawn || now.since(drawn) >= REDRAW);
        if due && !self.bar.is_hidden() {
            self.drawn = Some(now);
            self.bar.set_message(for_terminal(&self.picture(history, now).join("\n")).into_owned());
        }
    }

    pub(super) fn picture(&self, history: &RunHistory, now: Timestamp) -> Vec<String> {
        let (rows, columns) = (self.screen)();
        // The last column stays free, a full line would wrap on some terminals.
        let cells = columns.saturating_sub(1);
        let room = rows.saturating_sub(2).max(1);
        let active = history.active().len();
        let shown = if active < room { active } else { room - 1 };
        let mut lines = vec![self.styles.paint(Tone::Strong, &cut(&header(history, now), cells))];
        lines.extend(history.run.jobs.running.iter().map(|job| self.phase_line(job, now, cells)));
        let names = history.active().take(shown).map(|lane| width(lane.id.as_str())).max().unwrap_or_default().min(20);
        lines.extend(history.active().take(shown).map(|lane| self.lane_line(history, lane, now, names, cells)));
        if shown < active && rows > 3 {
            let more = format!("… and {} more", active - shown);
            lines.push(self.styles.paint(Tone::Faint, &cut(&more, cells)));
        }
        lines
    }

    fn phase_line(&self, job: &JobHistory, now: Timestamp, cells: usize) -> String {
        let said = (self.last_line)(&job.job).map(|said| clean(&said)).unwrap_or_default();
        cut(&format!("{} gate {}  {said}", job.job.role.word(), short(now.since(job.since))), cells)
    }

    fn lane_line(
        &self,
        history: &RunHistory,
        lane: &LaneHistory,
        now: Timestamp,
        names: usize,
        cells: usize,
    ) -> String {
        let state = format!("{:<9}", lane.state.word());
        let name = cut(&format!("{} ", pad(lane.id.as_str(), names)), cells);
        let state = cut(&state, cells - width(&name));
        let mut rest = activity(history, lane, now);
        if let Some(said) = lane.jobs.running.last().and_then(|job| (self.last_line)(&job.job)) {
            rest.push_str(&format!("  {}", clean(&said)));
        }
        let rest = cut(&format!(" {rest}"), cells - width(&name) - width(&state));
        format!("{name}{}{rest}", self.styles.paint(tone(lane.state), &state))
    }
}

impl Reporter for Live<'_> {
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        if let Some(line) = narrate(record, history).filter(|line| line.lasting) {
            let text = self.styles.paint(line.tone, &line.text);
            self.bar.println(for_terminal(&format!("{} {text}", clock(record.at, self.offset))));
        }
        self.draw(history, record.at);
        Ok(())
    }

    fn tick(&mut self, history: &RunHistory, now: Timestamp) -> io::Result<()> {
        self.draw(history, now);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.bar.finish_and_clear();
        Ok(())
    }
}

fn header(history: &RunHistory, now: Timestamp) -> String {
    let mut words = vec![history.run.phase.as_ref().map_or("run", |phase| phase.as_str()).to_owned()];
    words.extend(tally(history));
    words.extend(history.run.started.map(|started| short(now.since(started))));
    if history.run.stop.is_some() {
        words.push("stopping".to_owned());
    }
    words.join(" · ")
}

/// `2 running · 3 merged · 1 failed`, in the order in which lanes live.
fn tally(history: &RunHistory) -> Vec<String> {
    let skipped = |state: &LaneState| *state == LaneState::Skipped;
    let counted = history.counts().iter().filter(|(state, _)| !skipped(state));
    counted.map(|(state, count)| format!("{count} {}", state.word())).collect()
}

/// Who is at it, at which attempt, for how long.
fn activity(history: &RunHistory, lane: &LaneHistory, now: Timestamp) -> String {
    let mut words: Vec<String> =
        lane.jobs.running.iter().filter(|job| job.job.is_attempt()).map(|job| attempt(&job.job)).collect();
    if words.is_empty() {
        words.extend(lane.jobs.running.iter().map(|job| job.job.role.word().to_owned()));
    }
    if let Some(WaitingFor::Until(moment)) = history.waiting_for(lane) {
        words.push(format!("tries again in {}", short(moment.since(now))));
    }
    let since = lane.jobs.running.last().map(|job| job.since).or(lane.started);
    words.extend(since.map(|since| short(now.since(since))));
    words.join(" ")
}

fn attempt(job: &JobId) -> String {
    let agent = job.agent().map_or("agent", AgentName::as_str);
    format!("{agent} {}", job.number)
}
