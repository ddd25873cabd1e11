//! A JSON object for each event, for programs.

use std::io::{self, Write};

use lanewright_model::event::{Event, Record};
use lanewright_model::{LaneId, TaskId, safe_text};
use lanewright_view::RunHistory;
use serde_json::{Map, Value, json};

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

const NONE: &str = "-";

impl<W: Write> Reporter for Jsonl<W> {
    fn record(&mut self, record: &Record, history: &RunHistory) -> io::Result<()> {
        let text = to_line(record, history)?.to_string();
        self.out.write_all(format!("{}\n", safe_text::json(&text)).as_bytes())?;
        self.out.flush()
    }
}

fn to_line(record: &Record, history: &RunHistory) -> io::Result<Value> {
    let (mut fields, facts) = (own_fields(&record.event)?, record.event.facts());
    let mut line = json!({
        "seq": record.seq,
        "ts": record.at,
        "run_id": history.run.run_id().map_or(NONE, |run| run.as_str()),
        "phase": history.run.phase.as_ref().map_or(NONE, |phase| phase.as_str()),
        "lane": facts.lane.map_or(NONE, LaneId::as_str),
        "task": facts.task.map_or(NONE, TaskId::as_str),
        "event": fields.remove("event"),
        "status": facts.status,
    });
    if let Value::Object(line) = &mut line {
        line.extend(fields);
    }
    Ok(line)
}

/// The event's fields, without those that are columns of every line.
fn own_fields(event: &Event) -> io::Result<Map<String, Value>> {
    let Value::Object(mut fields) = serde_json::to_value(event)? else { return Ok(Map::new()) };
    fields.retain(|name, _| !matches!(name.as_str(), "run_id" | "phase" | "lane" | "task"));
    Ok(fields)
}
