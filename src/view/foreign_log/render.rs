//! Logs of other writers as text: a short list of several, or one of them whole.

use super::fold::{ForeignLane, ForeignRun};
use super::{ForeignRecord, Standing};
use crate::model::Timestamp;
use crate::model::text::counted;
use crate::view::cells::{clean, cut};
use crate::view::styles::{Styles, Tone};
use crate::view::table::{Cell, Column, lines};

/// How many logs, lanes of each, last records and damaged places are told.
const LOGS: usize = 5;
const LANES: usize = 8;
const LAST: usize = 12;
const DAMAGES: usize = 5;

/// Each log with its lanes, the newest first; nothing where there is none.
pub fn list(runs: &[ForeignRun], width: usize, styles: Styles) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let mut text = String::from("Other run logs:\n");
    for run in runs.iter().take(LOGS) {
        text.push_str(&format!("  {}\n", cut(&headline(run), width.saturating_sub(2))));
        for lane in run.lanes.iter().take(LANES) {
            text.push_str(&format!("    {}\n", lane_line(lane, width.saturating_sub(4), styles)));
        }
        if run.lanes.len() > LANES {
            text.push_str(&format!("    … and {}\n", counted(run.lanes.len() - LANES, "more lane")));
        }
    }
    if runs.len() > LOGS {
        text.push_str(&format!("  … and {}\n", counted(runs.len() - LOGS, "more log")));
    }
    text.push_str("Look: lanekeeper status RUN\n");
    text
}

/// One log: its lanes, its last records, and what could not be read.
pub fn show(run: &ForeignRun, width: usize, styles: Styles) -> String {
    let mut text = format!("{}\n", styles.paint(Tone::Strong, &cut(&headline(run), width)));
    text.push_str(&format!("{}\n", clean(&run.path)));
    if let Some(phase) = &run.phase_said {
        text.push_str(&format!("{}\n", lane_line(phase, width, styles)));
    }
    let mut push = |table: Vec<String>| {
        text.push('\n');
        table.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    };
    if !run.lanes.is_empty() {
        push(lines(LANE_COLUMNS, &run.lanes.iter().map(lane_row).collect::<Vec<_>>(), width, styles));
    }
    if !run.records.is_empty() {
        let last = &run.records[run.records.len().saturating_sub(LAST)..];
        push(lines(RECORD_COLUMNS, &last.iter().map(record_row).collect::<Vec<_>>(), width, styles));
    }
    if !run.damaged.is_empty() {
        text.push_str(&format!("\n{} could not be read\n", counted(run.damaged_lines(), "line")));
        for damage in run.damaged.iter().take(DAMAGES) {
            text.push_str(&format!("  line {}: {}\n", damage.line, clean(&damage.reason)));
        }
    }
    text
}

const LANE_COLUMNS: &[Column] = &[
    Column { heading: "lane", least: 8, dispensable: None },
    Column { heading: "last event", least: 10, dispensable: None },
    Column { heading: "status", least: 8, dispensable: None },
    Column { heading: "records", least: 7, dispensable: Some(1) },
    Column { heading: "at (UTC)", least: 19, dispensable: Some(2) },
    Column { heading: "notes", least: 12, dispensable: None },
];

const RECORD_COLUMNS: &[Column] = &[
    Column { heading: "at (UTC)", least: 19, dispensable: Some(2) },
    Column { heading: "lane", least: 8, dispensable: None },
    Column { heading: "task", least: 4, dispensable: Some(1) },
    Column { heading: "event", least: 10, dispensable: None },
    Column { heading: "status", least: 8, dispensable: None },
    Column { heading: "notes", least: 12, dispensable: None },
];

/// `P1-20260101 · P1 · 9 records · 2026-01-02 01:32:56 UTC`.
fn headline(run: &ForeignRun) -> String {
    let mut words = vec![clean(&run.run_id)];
    words.extend(run.phase.as_deref().map(clean));
    words.push(counted(run.records.len(), "record"));
    words.extend(run.last.map(|last| format!("{} UTC", time(last))));
    words.extend((!run.damaged.is_empty()).then(|| counted(run.damaged_lines(), "damaged line")));
    words.join(" · ")
}

fn lane_line(lane: &ForeignLane, width: usize, styles: Styles) -> String {
    let name = if lane.lane == "-" { "phase" } else { &lane.lane };
    let status = lane.status.as_deref().unwrap_or(lane.standing.word());
    styles.paint(tone(lane.standing), &cut(&clean(&format!("{name}: {} {status}", lane.event)), width))
}

fn lane_row(lane: &ForeignLane) -> Vec<Cell> {
    vec![
        plain(Some(&lane.lane)),
        plain(Some(&lane.event)),
        status(lane.status.as_ref(), lane.standing),
        (lane.records.to_string(), Tone::Plain),
        (lane.last.map(time).unwrap_or_else(|| "-".to_owned()), Tone::Plain),
        plain(lane.notes.as_ref()),
    ]
}

fn record_row(record: &ForeignRecord) -> Vec<Cell> {
    vec![
        (record.ts.map(time).unwrap_or_else(|| "-".to_owned()), Tone::Plain),
        plain(record.lane.as_ref()),
        plain(record.task.as_ref()),
        plain(Some(&record.event)),
        status(record.status.as_ref(), record.standing),
        plain(record.notes.as_ref().or(record.cmd.as_ref())),
    ]
}

fn plain(text: Option<&String>) -> Cell {
    (text.map(|text| cut(&clean(text), 200)).unwrap_or_else(|| "-".to_owned()), Tone::Plain)
}

fn status(word: Option<&String>, standing: Standing) -> Cell {
    (plain(word).0, tone(standing))
}

fn tone(standing: Standing) -> Tone {
    match standing {
        Standing::Ok => Tone::Good,
        Standing::Running => Tone::Busy,
        Standing::Error => Tone::Bad,
        Standing::Blocked => Tone::Warn,
        Standing::Skipped => Tone::Faint,
        Standing::Unknown => Tone::Plain,
    }
}

fn time(at: Timestamp) -> String {
    at.0.format("%Y-%m-%d %H:%M:%S").to_string()
}
