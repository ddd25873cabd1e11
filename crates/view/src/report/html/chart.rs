//! The timeline as shapes on a line for each lane. Positions and widths are percentages of the time of the run.

use std::collections::HashMap;
use std::time::Duration;

use lanewright_model::text::counted;
use lanewright_model::time::short;
use lanewright_model::{AgentName, LaneId, TaskId};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::ExecutionReport;
use super::super::lanes::{JobReport, LaneReport};
use super::duration;
use super::page::{result_of, tone_of_job};
use crate::history::clock::Span;

#[derive(Debug, Serialize)]
struct Row {
    /// `None`: the final gate.
    lane: Option<LaneId>,
    critical: bool,
    words: String,
    took_ms: u64,
    tracks: usize,
    /// From the beginning to the end of the lane.
    x: String,
    width: String,
    shapes: Vec<Shape>,
}

#[derive(Debug, Serialize)]
struct Shape {
    /// `attempt`, `gate`, `merge` or `wait`.
    kind: &'static str,
    tone: &'static str,
    x: String,
    middle: String,
    width: String,
    /// Where jobs of a lane overlap, they are on different tracks.
    track: usize,
    title: String,
    /// Where there is room.
    label: Option<String>,
}

/// Percentages of the time of the run.
#[derive(Debug, Clone, Copy)]
struct Scale {
    whole: u64,
}

/// Shapes that are narrower could not be seen, in percent.
const NARROWEST: f64 = 0.25;

/// How wide a shape with a label is at least, in percent.
const LABELLED: f64 = 6.0;

const TRACKS: usize = 8;

impl Scale {
    fn of(report: &ExecutionReport<'_>) -> Self {
        let ends = report.timeline.bars.iter().map(|bar| bar.end_ms);
        Self { whole: ends.chain([report.times.makespan_ms, 1]).max().unwrap_or(1) }
    }

    #[expect(clippy::cast_precision_loss, reason = "a position on the screen")]
    fn percent(self, ms: u64) -> f64 {
        (ms as f64 * 100.0 / self.whole as f64).clamp(0.0, 100.0)
    }

    fn place(self, (from, to): Span) -> (f64, f64) {
        let width = (self.percent(to) - self.percent(from)).max(NARROWEST);
        (self.percent(from).min(100.0 - width), width)
    }

    /// The time from a tick to the next: at most ten of them.
    fn step(self) -> u64 {
        const TENTHS: [u64; 6] = [1, 2, 5, 10, 20, 50];
        const SECONDS: [u64; 12] = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400];
        const HOURS: [u64; 4] = [6, 12, 24, 7 * 24];
        let longer = SECONDS.map(|it| it * 1000).into_iter().chain(HOURS.map(|it| it * 3_600_000));
        let fits = |step: &u64| self.whole / step <= 10;
        TENTHS.map(|it| it * 100).into_iter().chain(longer).find(fits).unwrap_or(self.whole.div_ceil(10))
    }
}

fn text(percent: f64) -> String {
    format!("{percent:.2}")
}

/// The style of the lines behind the rows, which depend on the time of the run.
pub(super) fn grid(report: &ExecutionReport<'_>) -> String {
    let scale = Scale::of(report);
    format!(":root{{--step:{}%}}\n", text(scale.percent(scale.step())))
}

/// Rows of the lanes that began, in the order in which they did, and of the final gate; how many lanes have not begun.
pub(super) fn chart(report: &ExecutionReport<'_>) -> Value {
    let scale = Scale::of(report);
    let step = scale.step();
    let tick = |at: u64| json!({ "x": text(scale.percent(at)), "label": time(at, step) });
    let ticks: Vec<Value> = (0..=scale.whole / step).map(|number| tick(number * step)).collect();
    let mut rows = rows(report, scale);
    let others = report.lanes.len() - rows.len();
    rows.sort_by_key(|(start, _)| *start);
    let final_gate = (!report.final_gate.is_empty()).then(|| final_gate(report, scale));
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).chain(final_gate).collect();
    json!({ "ticks": ticks, "rows": rows, "others": others })
}

fn time(at: u64, step: u64) -> String {
    match step {
        0..1000 => format!("{}.{}s", at / 1000, at % 1000 / 100),
        _ => short(Duration::from_millis(at)),
    }
}

/// Those of lanes, each with its beginning.
fn rows(report: &ExecutionReport<'_>, scale: Scale) -> Vec<(u64, Row)> {
    let timeline = &report.timeline;
    let mut waits: HashMap<&LaneId, Vec<Shape>> = HashMap::new();
    for wait in &timeline.waits {
        let agent = wait.agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
        let shape = shape("wait", "faint", (wait.start_ms, wait.end_ms), scale, format!("{}{agent}", wait.reason));
        waits.entry(&wait.lane).or_default().push(shape);
    }
    let mut merges: HashMap<&LaneId, Vec<Shape>> = HashMap::new();
    for merge in &timeline.merges {
        let what = merge.agent.as_ref().map_or("merge".to_owned(), |agent| format!("merge of {agent} into the lane"));
        let shape = shape("merge", "good", (merge.start_ms, merge.end_ms), scale, what);
        merges.entry(&merge.lane).or_default().push(shape);
    }
    let bars = timeline.bars.iter().filter(|bar| bar.kind == "lane");
    let bars: HashMap<&LaneId, _> = bars.filter_map(|bar| Some((bar.lane.as_ref()?, bar))).collect();
    let held = report.summary.held;
    let row = |lane: &LaneReport<'_>| {
        let bar = bars.get(&lane.lane.id)?;
        let mut row = row((bar.start_ms, bar.end_ms), &lane.jobs(), scale, held);
        let mut shapes = waits.remove(&lane.lane.id).unwrap_or_default();
        shapes.append(&mut row.shapes);
        shapes.extend(merges.remove(&lane.lane.id).unwrap_or_default());
        let words = format!("{}: {}, {}", lane.lane.id, lane.summary.word, row.words);
        Some((bar.start_ms, Row { lane: Some(lane.lane.id.clone()), critical: bar.critical, words, shapes, ..row }))
    };
    report.lanes.iter().filter_map(row).collect()
}

fn final_gate(report: &ExecutionReport<'_>, scale: Scale) -> Row {
    let jobs: Vec<&JobReport<'_>> = report.final_gate.iter().collect();
    // A clock that was set back can put the end of the last run before the start of the first.
    let from = jobs.iter().map(|job| job.span.0).min().unwrap_or_default();
    let span = (from, jobs.iter().map(|job| job.span.1).max().unwrap_or(from));
    let row = row(span, &jobs, scale, report.summary.held);
    Row { words: format!("final gate: {}", row.words), critical: true, ..row }
}

/// Without its name.
fn row(span: Span, jobs: &[&JobReport<'_>], scale: Scale, held: bool) -> Row {
    let mut ends: Vec<u64> = Vec::new();
    let mut shapes = Vec::new();
    for job in jobs {
        let track = ends.iter().position(|end| *end <= job.span.0).unwrap_or(ends.len().min(TRACKS - 1));
        match ends.get_mut(track) {
            Some(end) => *end = job.span.1,
            None => ends.push(job.span.1),
        }
        shapes.push(job_shape(job, track, scale, held));
    }
    let attempts = jobs.iter().filter(|job| job.job.job.is_attempt()).count();
    let failed = jobs.iter().filter(|job| job.job.passed() == Some(false)).count();
    let mut words = vec![duration(span.1 - span.0), counted(attempts, "attempt")];
    words.push(counted(jobs.len() - attempts, "gate"));
    words.extend((failed > 0).then(|| format!("{failed} did not pass")));
    let (x, width) = scale.place(span);
    Row {
        lane: None,
        critical: false,
        words: words.join(", "),
        took_ms: span.1 - span.0,
        tracks: ends.len().max(1),
        x: text(x),
        width: text(width),
        shapes,
    }
}

fn job_shape(job: &JobReport<'_>, track: usize, scale: Scale, held: bool) -> Shape {
    let id = &job.job.job;
    let kind = if id.is_attempt() { "attempt" } else { "gate" };
    let title = format!("{}: {}", job.job.label(), result_of(job.job, held));
    let agent = id.agent().map_or("", AgentName::as_str);
    let label = match id.task().filter(|_| id.is_attempt()) {
        Some(task) => format!("{agent}/{} {}", TaskId::as_str(task), id.number),
        None => id.role.word().to_owned(),
    };
    let shape = shape(kind, tone_of_job(job.job, held), job.span, scale, title);
    let has_room = scale.place(job.span).1 >= LABELLED;
    Shape { track, label: has_room.then_some(label), ..shape }
}

fn shape(kind: &'static str, tone: &'static str, span: Span, scale: Scale, title: String) -> Shape {
    let (x, width) = scale.place(span);
    let title = format!("{title}, {}", duration(span.1 - span.0));
    Shape { kind, tone, x: text(x), middle: text(x + width / 2.0), width: text(width), track: 0, title, label: None }
}
