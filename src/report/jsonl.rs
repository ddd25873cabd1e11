//! A JSON object for each event, for programs.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use super::Reporter;
use crate::event::{Event, Record, RecordStatus};
use crate::model::{LaneId, TaskId, Timestamp, safe_text};
use crate::view::RunView;

/// Writes a JSON object for each event: the columns of the run log (SPEC §4), then the event's own fields.
pub struct Jsonl<W> {
    out: W,
}

impl<W: Write> Jsonl<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    ts: Timestamp,
    run_id: &'a str,
    phase: &'a str,
    lane: &'a str,
    task: &'a str,
    event: Value,
    status: RecordStatus,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

const NONE: &str = "-";

impl<W: Write> Reporter for Jsonl<W> {
    fn record(&mut self, record: &Record, view: &RunView) -> io::Result<()> {
        let text = serde_json::to_string(&to_line(record, view)?)?;
        self.out.write_all(format!("{}\n", safe_text::json(&text)).as_bytes())?;
        self.out.flush()
    }

    fn tick(&mut self, _view: &RunView, _now: Timestamp) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _view: &RunView) -> io::Result<()> {
        self.out.flush()
    }
}

fn to_line<'a>(record: &'a Record, view: &'a RunView) -> io::Result<Line<'a>> {
    let mut fields = own_fields(&record.event)?;
    Ok(Line {
        seq: record.seq,
        ts: record.at,
        run_id: view.run.run_id.as_ref().map_or(NONE, |run| run.as_str()),
        phase: view.run.phase.as_ref().map_or(NONE, |phase| phase.as_str()),
        lane: record.event.lane().map_or(NONE, LaneId::as_str),
        task: record.event.task().map_or(NONE, TaskId::as_str),
        event: fields.remove("event").unwrap_or_default(),
        status: record.event.status(),
        fields,
    })
}

/// The event's fields, without those that are columns of every line.
fn own_fields(event: &Event) -> io::Result<Map<String, Value>> {
    let Value::Object(mut fields) = serde_json::to_value(event)? else { return Ok(Map::new()) };
    fields.retain(|name, _| !matches!(name.as_str(), "run_id" | "phase" | "lane" | "task"));
    Ok(fields)
}
