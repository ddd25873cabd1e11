//! The format of one line of the run log (SPEC §4; for users: `docs/run-log.md`).
//!
//! A line is a JSON object: the contract's columns, the event's own fields, and last a checksum over every byte before
//! it. A field of the event that has a column's name is written once, as that column.

use lanewright_model::event::{Columns, Event, LogColumns, Record};
use lanewright_model::{PhaseId, RunId, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::json::to_object;

/// The version of the run log's format that is written; `RunStarted` carries it.
pub const FORMAT: &str = "1.0";

#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("it cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("its field `{0}` says something else than the column of that name")]
    Collision(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    #[error("its checksum does not match")]
    Checksum,
    #[error("it is no record of format {FORMAT}: {0}")]
    Fields(String),
    #[error("its event `{event}` is unknown to format {FORMAT}; the log has format {format}")]
    UnknownEvent { event: String, format: String },
    #[error("its number is {found}, not {expected}")]
    Sequence { expected: u64, found: u64 },
    #[error("it belongs to run {0}")]
    OtherRun(RunId),
}

pub(super) struct Line {
    pub(super) run_id: RunId,
    pub(super) phase: PhaseId,
    pub(super) record: Record,
}

/// Appends the line of `record`, with its newline, to `buffer`; an error leaves `buffer` as it was.
pub(super) fn encode(
    record: &Record,
    run_id: &RunId,
    phase: &PhaseId,
    buffer: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let own = to_object(&record.event)?;
    let columns = LogColumns::of(record, run_id.as_str(), phase.as_str(), &own["event"]);
    let mut members = to_object(&columns)?;
    for (name, value) in own {
        match members.get(&name) {
            None => drop(members.insert(name, value)),
            Some(column) if *column == value => {}
            Some(_) => return Err(EncodeError::Collision(name)),
        }
    }
    let mut line = serde_json::to_vec(&members)?;
    // The checksum brings the closing brace.
    line.pop();
    let checksum = checksum(&line);
    buffer.extend_from_slice(&line);
    buffer.extend_from_slice(&checksum);
    buffer.push(b'\n');
    Ok(())
}

/// Reads a line without its newline. `format` is the log's format, for messages.
pub(super) fn decode(line: &[u8], format: &str) -> Result<Line, LineFault> {
    if !is_intact(line) {
        return Err(LineFault::Checksum);
    }
    if let (Ok(head), Ok(event)) = (serde_json::from_slice::<Head>(line), serde_json::from_slice(line)) {
        return Ok(head.line(event));
    }
    // A column without a value is an absent field, which only some events require.
    let mut object: Map<String, Value> = serde_json::from_slice(line).map_err(fields)?;
    for column in ["lane", "task"] {
        if object.get(column).is_some_and(|value| value == Columns::NONE) {
            object.shift_remove(column);
        }
    }
    let head = Head::deserialize(&object).map_err(fields)?;
    let event = match Event::deserialize(&object) {
        Ok(event) => event,
        Err(error) => return Err(unknown_event(&object, format).unwrap_or_else(|| fields(error))),
    };
    Ok(head.line(event))
}

/// The word of a line's event, by its place among the columns: before it stand ids only, which hold no quotes.
pub(super) fn word_of(line: &[u8]) -> Option<&str> {
    const BEFORE: &[u8] = b",\"event\":\"";
    let start = line.windows(BEFORE.len()).position(|part| part == BEFORE)? + BEFORE.len();
    let word = line[start..].split(|&byte| byte == b'"').next()?;
    std::str::from_utf8(word).ok()
}

/// Whether the line ends with the checksum of the text before it.
pub(super) fn is_intact(line: &[u8]) -> bool {
    // The text is compared, not the number: `A` for `a` in the checksum is damage too.
    line.len().checked_sub(CHECKSUM_LENGTH).is_some_and(|end| {
        let (body, found) = line.split_at(end);
        found == checksum(body)
    })
}

/// The format that a log's first line names, if the line can be read at all.
pub(super) fn format_of(first_line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Started {
        format: String,
    }
    serde_json::from_slice::<Started>(first_line).ok().map(|started| started.format)
}

#[derive(Deserialize)]
struct Head {
    seq: u64,
    ts: Timestamp,
    run_id: RunId,
    phase: PhaseId,
    #[serde(default)]
    origin: Option<u64>,
}

impl Head {
    fn line(self, event: Event) -> Line {
        Line {
            run_id: self.run_id,
            phase: self.phase,
            record: Record { seq: self.seq, at: self.ts, event, origin: self.origin },
        }
    }
}

/// `,"crc":"xxxxxxxx"}`
const CHECKSUM_LENGTH: usize = 18;

fn checksum(body: &[u8]) -> [u8; CHECKSUM_LENGTH] {
    let mut text = *b",\"crc\":\"00000000\"}";
    let mut rest = crc32fast::hash(body);
    for digit in text[8..16].iter_mut().rev() {
        *digit = b"0123456789abcdef"[(rest & 0xf) as usize];
        rest >>= 4;
    }
    text
}

fn fields(error: serde_json::Error) -> LineFault {
    LineFault::Fields(error.to_string())
}

fn unknown_event(object: &Map<String, Value>, format: &str) -> Option<LineFault> {
    let event = object.get("event")?.as_str()?;
    let alone = Value::Object(Map::from_iter([("event".to_owned(), Value::from(event))]));
    let error = Event::deserialize(&alone).err()?.to_string();
    error
        .starts_with("unknown variant")
        .then(|| LineFault::UnknownEvent { event: event.to_owned(), format: format.to_owned() })
}

#[cfg(test)]
mod tests;
