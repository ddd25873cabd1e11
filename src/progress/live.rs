//! Lines that are redrawn: current work, below what has happened.

use std::io::{self, Write};
use std::time::Duration;

use chrono::FixedOffset;
use lanewright_model::cells::cut;
use lanewright_model::event::{Event, Record};
use lanewright_model::safe_text::for_terminal;
use lanewright_model::time::LocalTime;
use lanewright_model::{LaneId, Timestamp};
use lanewright_view::RunHistory;
use lanewright_view::history::LaneHistory;
use lanewright_view::messages::line::{clock, narrate};
use lanewright_view::status::header::{counts, header};
use lanewright_view::status::lane_row::{self, LaneSummary, LastSaid, row_of_run};
use lanewright_view::status::styles::{Styles, Tone};
use lanewright_view::status::summary::SummaryContext;
use lanewright_view::status::table::rows;

use super::activity::DELAY;
use super::block::{Block, Size};
use super::{Preparation, Reporter};

/// Draws on a terminal: a header, then a line for each lane that works or needs the user, then how many others there
/// are; what lasts is printed above.
pub(crate) struct Live<'a, W> {
    block: Block<W>,
    screen: Box<dyn Fn() -> Size + 'a>,
    last_said: Box<LastSaid<'a>>,
    offset: FixedOffset,
    styles: Styles,
    /// Lasting lines that are printed with the next picture.
    above: String,
    /// The line of each lane's last failure, as long as it may be what ends the lane, which has one line then.
    failures: Vec<(LaneId, String)>,
    drawn: Option<Timestamp>,
    emptying_since: Option<Timestamp>,
    /// What worktrees wait for.
    preparations: Vec<String>,
}

pub(super) const REDRAW: Duration = Duration::from_millis(200);

/// The rows that are no lanes: the blank line above, the header, the counts, and the last row, which stays free.
const OTHER_ROWS: usize = 4;

impl<'a, W: Write> Live<'a, W> {
    /// Draws on `out`, whose rows and columns `screen` returns. Times are shown at `offset` from UTC.
    pub(crate) fn new(
        out: W,
        screen: Box<dyn Fn() -> Size + 'a>,
        last_said: Box<LastSaid<'a>>,
        offset: FixedOffset,
        styles: Styles,
    ) -> Self {
        let (above, failures, preparations) = (String::new(), Vec::new(), Vec::new());
        let (block, drawn, emptying_since) = (Block::new(out), None, None);
        Self { block, screen, last_said, offset, styles, above, failures, drawn, emptying_since, preparations }
    }

    /// Prints the lines of the failures of the lane that `event` is about, unless it ends because of them.
    fn release_failures(&mut self, event: &Event) {
        let concerned = |known: &LaneId| event.lane().is_none_or(|lane| lane == known);
        let lines: String = self.failures.extract_if(.., |(lane, _)| concerned(lane)).map(|(_, line)| line).collect();
        if !matches!(event, Event::LaneFailed { .. }) {
            self.above.push_str(&lines);
        }
    }

    fn draw(&mut self, history: &RunHistory, now: Timestamp) -> io::Result<()> {
        // A clock that was set back must not freeze the picture.
        let due = self.drawn.is_none_or(|drawn| now < drawn || now.since(drawn) >= REDRAW);
        if !due {
            return Ok(());
        }
        self.drawn = Some(now);
        let size = (self.screen)();
        let picture = self.picture(history, now, size);
        let picture = picture.iter().map(|line| for_terminal(line).into_owned()).collect();
        self.block.draw(&std::mem::take(&mut self.above), picture, size)
    }

    pub(super) fn picture(&self, history: &RunHistory, now: Timestamp, (height, columns): Size) -> Vec<String> {
        // The last column stays free, a full line would wrap on some terminals.
        let cells = columns.saturating_sub(1);
        let mut active: Vec<&LaneHistory> = history.active().collect();
        active.sort_by_key(|lane| lane.state.group());
        let of_run = history.run.jobs.running.iter().map(|job| row_of_run(job, &*self.last_said, now));
        let local = LocalTime { at: now, offset: self.offset };
        let context = SummaryContext { now: local, program: &[], held: true };
        let of_lane = |lane| LaneSummary::of(history, lane, context).with_said(&*self.last_said).row();
        let room = height.saturating_sub(OTHER_ROWS);
        let shown: Vec<_> = of_run.chain(active.iter().map(|lane| of_lane(lane))).take(room).collect();
        let hidden = (history.run.jobs.running.len() + active.len()).saturating_sub(shown.len());
        let mut lines = vec![self.styles.paint(Tone::Strong, &header(history, local, cells))];
        lines.extend(rows(lane_row::COLUMNS, &shown, cells, self.styles));
        lines.extend(self.preparations.iter().take(room).map(|line| cut(line, cells)));
        let is_emptying = self.emptying_since.is_some_and(|since| now.since(since) >= DELAY);
        lines.extend(is_emptying.then(|| cut("Removing worktrees", cells)));
        lines.extend(counts(history, hidden, cells, self.styles));
        lines.truncate(height.saturating_sub(2));
        lines
    }
}

impl<W: Write> Reporter for Live<'_, W> {
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        let line = narrate(record, history, self.offset).filter(|line| line.lasting);
        if line.is_some() || matches!(record.event, Event::JobPlanned { .. }) {
            self.release_failures(&record.event);
        }
        if matches!(record.event, Event::PoolEmptied { .. }) {
            self.emptying_since = None;
        }
        if let Some(line) = line {
            let text = format!("{} {}", clock(record.at, self.offset), self.styles.paint(line.tone, &line.text));
            let line = format!("{}\n", for_terminal(&text));
            match &record.event {
                Event::FailureNoted { lane, .. } => self.failures.push((lane.clone(), line)),
                _ => self.above.push_str(&line),
            }
        }
        self.draw(history, record.at)
    }

    fn shows_time(&self) -> bool {
        true
    }

    fn emptying_pool(&mut self, since: Timestamp) {
        self.emptying_since = Some(since);
    }

    fn preparations(&mut self, running: &[Preparation], _now: Timestamp) -> io::Result<()> {
        let long = running.iter().filter(|it| it.takes >= DELAY);
        self.preparations = long.map(|it| format!("{}, {}", it.what, it.progress)).collect();
        Ok(())
    }

    fn tick(&mut self, history: &RunHistory, now: Timestamp) -> io::Result<()> {
        self.draw(history, now)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.failures.drain(..).for_each(|(_, line)| self.above.push_str(&line));
        self.block.draw(&std::mem::take(&mut self.above), Vec::new(), (0, 0))?;
        self.block.clear()
    }
}
