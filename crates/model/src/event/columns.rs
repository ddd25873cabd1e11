//! The columns with which lines about an event begin (SPEC §4), in the run log and for programs that watch a run.

use serde::Serialize;
use serde_json::Value;

use super::{Facts, Record, RecordStatus};
use crate::{LaneId, TaskId, Timestamp};

/// The columns of every line.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Columns<'a> {
    /// 1 for the first line, and one more for each.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub seq: u64,
    /// When it was written; never earlier than the previous line, even if the clock was set back.
    pub ts: Timestamp,
    /// The run; never the name of another file of Lanewright (`checkpoints`, `errors`, `slots`, `trash`, `*.jsonl`).
    #[cfg_attr(feature = "schema", schemars(with = "crate::RunId"))]
    pub run_id: &'a str,
    /// The phase.
    #[cfg_attr(feature = "schema", schemars(with = "crate::PhaseId"))]
    pub phase: &'a str,
    /// The lane, or `-`.
    pub lane: &'a str,
    /// The task, or `-`.
    pub task: &'a str,
    /// What happened.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub event: &'a Value,
    pub status: RecordStatus,
}

/// The columns of a line of the run log.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogColumns<'a> {
    #[serde(flatten)]
    pub columns: Columns<'a>,
    /// The command, as typed in a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmd: Option<&'a str>,
    /// The exit code of the command. 124: it ran out of time; 137: it had to be killed; 127: it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<&'a str>,
    /// The `seq` of the line that this one was copied from: a lane on a cluster has a log of its own (`clusters.md`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub origin: Option<u64>,
}

impl<'a> Columns<'a> {
    /// What the columns of a record that has no lane or no task hold.
    pub const NONE: &'static str = "-";

    /// The columns of `record`. `word`: that of its event.
    pub fn of(record: &'a Record, run_id: &'a str, phase: &'a str, word: &'a Value) -> Self {
        let Facts { lane, task, status, .. } = record.event.facts();
        Self {
            seq: record.seq,
            ts: record.at,
            run_id,
            phase,
            lane: lane.map_or(Self::NONE, LaneId::as_str),
            task: task.map_or(Self::NONE, TaskId::as_str),
            event: word,
            status,
        }
    }
}

impl<'a> LogColumns<'a> {
    /// The columns of `record`. `word`: that of its event.
    pub fn of(record: &'a Record, run_id: &'a str, phase: &'a str, word: &'a Value) -> Self {
        let Facts { command, exit_code, notes, .. } = record.event.facts();
        let notes = Some(notes).filter(|notes| !notes.is_empty());
        let columns = Columns::of(record, run_id, phase, word);
        Self { columns, cmd: command, exit_code, notes, origin: record.origin }
    }
}
