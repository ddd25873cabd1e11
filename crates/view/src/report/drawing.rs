//! The timeline in characters: a line for each lane and each attempt.

use std::time::Duration;

use lanewright_model::cells::{cut, pad, width};
use lanewright_model::time::short;
use lanewright_model::{AgentName, LaneId, TaskId};

use super::ExecutionReport;
use super::timeline::Bar;

const LINES: usize = 200;

const NAME: usize = 32;

/// The meaning of the characters.
pub(super) const LEGEND: &str = "# an agent works, = a gate runs, . neither; * on the critical path, ! did not pass";

/// The lines, at most `cells` wide; none before anything was done.
pub(super) fn lines(report: &ExecutionReport<'_>, cells: usize) -> Vec<String> {
    let bars = &report.timeline.bars;
    let drawn: Vec<&Bar> = bars.iter().filter(|bar| ["lane", "attempt", "final"].contains(&bar.kind)).collect();
    let names: Vec<String> = drawn.iter().map(|bar| name(bar)).collect();
    let column = names.iter().map(|name| width(name)).max().unwrap_or_default().min(NAME);
    let times = drawn.iter().map(|bar| short(length(bar)));
    let room = cells.saturating_sub(column + TIME + 4).max(10);
    let scale = Scale { room, whole: report.times.makespan_ms.max(1) };
    let line = |((bar, name), time): ((&&Bar, &String), String)| {
        let drawing = draw(bar, bars, &scale);
        format!("{} |{drawing}| {time}", pad(name, column)).trim_end().to_owned()
    };
    let mut lines: Vec<String> = drawn.iter().zip(&names).zip(times).map(line).take(LINES).collect();
    if drawn.len() > LINES {
        lines.push(format!("… and {} more", drawn.len() - LINES));
    }
    lines.into_iter().map(|line| cut(&line, cells)).collect()
}

/// The cells of the longest time.
const TIME: usize = 7;

/// `room` characters for `whole` milliseconds.
struct Scale {
    room: usize,
    whole: u64,
}

impl Scale {
    /// The characters from the first to before the last of a bar; never none.
    fn characters(&self, bar: &Bar) -> std::ops::Range<usize> {
        let at = |ms: u64| usize::try_from(ms.saturating_mul(self.room as u64) / self.whole).unwrap_or(self.room);
        let from = at(bar.start_ms).min(self.room - 1);
        from..at(bar.end_ms).clamp(from + 1, self.room)
    }
}

fn draw(bar: &Bar, bars: &[Bar], scale: &Scale) -> String {
    let mut drawing = vec![' '; scale.room];
    let mut fill = |bar: &Bar, c: char| drawing[scale.characters(bar)].fill(c);
    fill(bar, character(bar));
    if bar.kind == "lane" {
        bars.iter().filter(|job| job.kind != "lane" && job.lane == bar.lane).for_each(|job| fill(job, character(job)));
    }
    drawing.into_iter().collect()
}

fn character(bar: &Bar) -> char {
    match bar.kind {
        "lane" => '.',
        "attempt" => '#',
        _ => '=',
    }
}

fn name(bar: &Bar) -> String {
    let failed = if bar.passed == Some(false) { " !" } else { "" };
    match (bar.kind, &bar.lane) {
        ("lane", Some(lane)) => format!("{}{lane}", if bar.critical { "* " } else { "  " }),
        ("attempt", _) => {
            let agent = bar.agent.as_ref().map_or("", AgentName::as_str);
            let task = bar.task.as_ref().map_or("", TaskId::as_str);
            format!("    {agent}/{task} {}{failed}", bar.number)
        }
        _ => format!("* {} {}{failed}", bar.lane.as_ref().map_or("final gate", LaneId::as_str), bar.number),
    }
}

fn length(bar: &Bar) -> Duration {
    Duration::from_millis(bar.end_ms - bar.start_ms)
}
