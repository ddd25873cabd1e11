//! One run, its lane and its agent, and lines of its log.

use lanewright_model::event::*;
pub(super) use lanewright_model::testing::{commit, every_event, sample_checkpoint, sample_exit};
use lanewright_model::*;

pub(super) fn run() -> RunId {
    RunId::new("r1").unwrap()
}

pub(super) fn phase() -> PhaseId {
    PhaseId::new("P1").unwrap()
}

pub(super) fn lane() -> LaneId {
    LaneId::new("SL-1").unwrap()
}

pub(super) fn agent() -> AgentName {
    AgentName::new("engineer").unwrap()
}

pub(super) fn task() -> TaskId {
    TaskId::new("1.2").unwrap()
}

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_767_225_600_000 + millis)
}

/// The first event of the run.
pub(super) fn started() -> Event {
    Event::RunStarted(Box::new(RunStarted { run_id: run(), phase: phase(), ..testing::run_started() }))
}

pub(super) fn noted(lane: Option<LaneId>, message: &str) -> Event {
    Event::Noted { lane, message: message.into() }
}

pub(super) fn record(event: Event) -> Record {
    Record { seq: 3, at: at(7), event, origin: None }
}

pub(super) fn line_of(record: &Record) -> Vec<u8> {
    let mut line = Vec::new();
    super::record::encode(record, &run(), &phase(), &mut line).unwrap();
    assert_eq!(line.pop(), Some(b'\n'));
    line
}

/// A line with the right checksum and whatever else `edit` makes of it.
pub(super) fn forged(event: Event, edit: impl Fn(&str) -> String) -> Vec<u8> {
    let line = String::from_utf8(line_of(&record(event))).unwrap();
    let body = edit(&line[..line.len() - 18]);
    format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes())).into_bytes()
}
