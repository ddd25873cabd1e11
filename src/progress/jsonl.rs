//! A JSON object for each event, for programs.

use std::io::{self, Write};

use lanewright_model::event::{Columns, Record};
use lanewright_model::{PhaseId, RunId, safe_text};
use lanewright_view::RunHistory;
use serde_json::Value;

use super::Reporter;

/// Writes a JSON object for each event: the columns of the run log (SPEC §4), then the event's own fields.
pub(crate) struct Jsonl<W> {
    out: W,
}

impl<W: Write> Jsonl<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Reporter for Jsonl<W> {
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        let text = to_line(record, history)?.to_string();
        self.out.write_all(format!("{}\n", safe_text::json(&text)).as_bytes())?;
        self.out.flush()
    }
}

/// A field of the event that has a column's name is written once, as that column.
fn to_line(record: &Record, history: &RunHistory) -> io::Result<Value> {
    let event = serde_json::to_value(&record.event)?;
    let run = history.run.run_id().map_or(Columns::NONE, RunId::as_str);
    let phase = history.run.phase.as_ref().map_or(Columns::NONE, PhaseId::as_str);
    let mut line = serde_json::to_value(Columns::of(record, run, phase, &event["event"]))?;
    if let (Value::Object(line), Value::Object(event)) = (&mut line, event) {
        for (name, value) in event {
            line.entry(name).or_insert(value);
        }
    }
    Ok(line)
}
