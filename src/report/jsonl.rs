//! A JSON object for each event, for programs.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use super::Reporter;
use crate::event::{Event, Record, RecordStatus};
use crate::model::{LaneId, TaskId, Timestamp, safe_text};
use crate::projection::RunHistory;

/// Writes a JSON object for each event: the columns of the run log (SPEC §4), then the event's own fields.
pub(crate) struct Jsonl<W> {
    out: W,
}

impl<W: Write> Jsonl<W> {
    pub(crate) fn new(out: W) -> Self {
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
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        let text = serde_json::to_string(&to_line(record, history)?)?;
        self.out.write_all(format!("{}\n", safe_text::json(&text)).as_bytes())?;
        self.out.flush()
    }
}

fn to_line<'a>(record: &'a Record, history: &'a RunHistory) -> io::Result<Line<'a>> {
    let mut fields = own_fields(&record.event)?;
    Ok(Line {
        seq: record.seq,
        ts: record.at,
        run_id: history.run.run_id().map_or(NONE, |run| run.as_str()),
        phase: history.run.phase.as_ref().map_or(NONE, |phase| phase.as_str()),
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
