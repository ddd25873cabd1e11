//! Text in, records out: JSON lines, JSON over several lines, fields between bars, mixed as they come.

use chrono::{DateTime, NaiveDateTime};
use serde_json::{Map, Value};

use super::{ForeignDamage, ForeignLog, ForeignRecord, Standing};
use crate::model::Timestamp;

/// Reads a log. Every line is looked at once, whatever it holds.
pub fn read(text: &str) -> ForeignLog {
    let mut reader = Reader { text: text.trim_start_matches('\u{feff}'), ..Reader::default() };
    let mut offset = 0;
    for (index, line) in reader.text.split_inclusive('\n').enumerate() {
        reader.line(Place { offset, line: index + 1 }, line);
        offset += line.len();
    }
    reader.close(offset);
    reader.log
}

/// Where a line begins: its first byte and its number, from 1.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: usize,
    line: usize,
}

#[derive(Default)]
struct Reader<'t> {
    text: &'t str,
    log: ForeignLog,
    /// JSON that has begun, and how far its first line is indented.
    open: Option<(Place, usize)>,
}

impl Reader<'_> {
    fn line(&mut self, place: Place, line: &str) {
        let content = line.trim();
        let indent = line.len() - line.trim_start().len();
        let begins = content.starts_with('{') && self.open.is_none_or(|(_, of_open)| indent <= of_open);
        if begins {
            self.close(place.offset);
            self.open = Some((place, indent));
        } else if let Some(record) = fields_between_bars(content, place.line) {
            self.close(place.offset);
            self.log.records.push(record);
        } else if self.open.is_none() && content.contains(|part: char| !is_filler(part)) {
            self.damaged(place.line, line, "it is neither JSON nor a line of fields".to_owned());
        }
    }

    /// Reads the JSON that has begun; it ends at `end`.
    fn close(&mut self, end: usize) {
        let Some((place, _)) = self.open.take() else { return };
        let chunk = &self.text[place.offset..end];
        let (mut at, mut line) = (0, place.line);
        loop {
            let filler = chunk[at..].find(|part: char| !is_filler(part)).unwrap_or(chunk.len() - at);
            line += line_feeds(&chunk[at..at + filler]);
            at += filler;
            let rest = &chunk[at..];
            if rest.is_empty() {
                return;
            }
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            match values.next() {
                Some(Ok(Value::Object(object))) => match record(&object, line) {
                    Some(record) => self.log.records.push(record),
                    None => self.damaged(line, &rest[..values.byte_offset()], "it names no event".to_owned()),
                },
                Some(Ok(_)) => self.damaged(line, &rest[..values.byte_offset()], "it is no JSON object".to_owned()),
                Some(Err(error)) => {
                    let reason = format!("bad JSON: {error}");
                    // A line's end within a string: the line was cut off, and another one follows.
                    let breaks_off = error.is_eof() || reason.contains("control character");
                    let reason = if breaks_off { "it breaks off".to_owned() } else { reason };
                    return self.damaged(line, rest, reason);
                }
                None => return,
            }
            line += line_feeds(&rest[..values.byte_offset()]);
            at += values.byte_offset();
        }
    }

    fn damaged(&mut self, line: usize, text: &str, reason: String) {
        if self.log.damage.last().is_some_and(|damage| damage.line == line) {
            return;
        }
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        // The place within the piece that was read would only mislead.
        let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
        self.log.damage.push(ForeignDamage { line, lines, reason });
    }
}

fn line_feeds(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// What may stand between records.
fn is_filler(part: char) -> bool {
    part.is_whitespace() || [',', '[', ']', '\u{feff}'].contains(&part)
}

/// `ts|run|phase|lane|task|event|status|notes`: as many bars as the contract has columns, the last may hold more.
fn fields_between_bars(line: &str, number: usize) -> Option<ForeignRecord> {
    let fields: Vec<&str> = line.splitn(8, '|').map(str::trim).collect();
    let ts = fields.first().and_then(|text| moment(text))?;
    let [_, run, phase, lane, task, event, rest @ ..] = fields.as_slice() else { return None };
    let said = |text: &&str| said(text);
    let status = rest.first().and_then(said);
    Some(ForeignRecord {
        line: number,
        ts: Some(ts),
        run_id: said(run),
        phase: said(phase),
        lane: said(lane),
        task: said(task),
        event: said(event)?,
        standing: status.as_deref().map(Standing::of).unwrap_or_default(),
        status,
        notes: rest.get(1).and_then(said),
        ..ForeignRecord::default()
    })
}

/// `None`: it does not say what happened.
fn record(object: &Map<String, Value>, line: usize) -> Option<ForeignRecord> {
    let text = |names: &[&str]| names.iter().find_map(|name| object.get(*name).and_then(text_of));
    let status = text(&["status", "state", "result", "outcome"]);
    let exit_code = text(&["exit_code", "exitCode", "exit", "code"]).and_then(|code| code.parse().ok());
    let by_code = exit_code.map(|code: i64| if code == 0 { Standing::Ok } else { Standing::Error });
    Some(ForeignRecord {
        line,
        ts: text(&["ts", "timestamp", "time", "at"]).and_then(|text| moment(&text)),
        run_id: text(&["run_id", "runId", "run"]),
        phase: text(&["phase", "phase_id", "phaseId"]),
        lane: text(&["lane", "lane_id", "laneId"]),
        task: text(&["task", "task_id", "taskId"]),
        event: text(&["event", "event_type", "type", "action"])?,
        standing: status.as_deref().map(Standing::of).or(by_code).unwrap_or_default(),
        status,
        cmd: text(&["cmd", "command"]),
        exit_code,
        notes: text(&["notes", "note", "message", "msg", "details", "reason"]),
    })
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => said(text),
        Value::Array(values) => said(&values.iter().filter_map(text_of).collect::<Vec<_>>().join(", ")),
        other => said(&other.to_string()),
    }
}

fn said(text: &str) -> Option<String> {
    let text = text.trim();
    (!["", "-", "null", "none", "N/A"].contains(&text)).then(|| text.to_owned())
}

/// A time with any offset, without one (then UTC), or counted from 1970 in seconds or milliseconds.
fn moment(text: &str) -> Option<Timestamp> {
    if let Ok(number) = text.parse::<f64>() {
        let millis = if number.abs() < 1e11 { number * 1000.0 } else { number };
        return Some(Timestamp::from_unix_millis(millis as i64));
    }
    let offset = || DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z").ok();
    let spaced = || DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%z").ok();
    if let Some(known) = DateTime::parse_from_rfc3339(text).ok().or_else(offset).or_else(spaced) {
        return Some(Timestamp(known.to_utc()));
    }
    let naive = |format| NaiveDateTime::parse_from_str(text, format).ok();
    let naive = naive("%Y-%m-%dT%H:%M:%S%.f").or_else(|| naive("%Y-%m-%d %H:%M:%S%.f"))?;
    Some(Timestamp(naive.and_utc()))
}
