//! Run logs of other writers: read leniently, shown, and never written.
//!
//! They follow the same contract (`ts run_id phase lane task event status`, then what else there is), and hold to it more
//! or less: what can be read counts, and what cannot is counted and named.

mod fold;
mod read;
mod render;

use serde::Serialize;

use crate::model::Timestamp;

pub use fold::{ForeignLane, ForeignRun};
pub use read::read;
pub use render::{list, show};

/// What a log of another writer holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignLog {
    /// Its records, in the order of the file.
    pub records: Vec<ForeignRecord>,
    /// What could not be read, in the order of the file.
    pub damage: Vec<ForeignDamage>,
}

/// One record; a field that says nothing (`-`, empty, absent) is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ForeignRecord {
    /// The line where it begins, from 1.
    pub line: usize,
    /// When it was written.
    pub ts: Option<Timestamp>,
    /// The run.
    pub run_id: Option<String>,
    /// The phase.
    pub phase: Option<String>,
    /// The lane.
    pub lane: Option<String>,
    /// The task.
    pub task: Option<String>,
    /// What happened, in its writer's word.
    pub event: String,
    /// How it went, in its writer's word.
    pub status: Option<String>,
    /// What that word means.
    pub standing: Standing,
    /// What was run.
    pub cmd: Option<String>,
    /// Its exit code.
    pub exit_code: Option<i64>,
    /// The message.
    pub notes: Option<String>,
}

/// Lines that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignDamage {
    /// The first of them, from 1.
    pub line: usize,
    /// How many there are.
    pub lines: usize,
    /// What is wrong.
    pub reason: String,
}

crate::model::word_enum! {
    /// What a status word of another writer means.
    #[derive(Default)]
    Standing {
        /// It went well.
        Ok = "ok",
        /// It goes on.
        Running = "running",
        /// It failed.
        Error = "error",
        /// It waits for something outside.
        Blocked = "blocked",
        /// It was not done.
        Skipped = "skipped",
        /// Nobody knows the word.
        #[default]
        Unknown = "unknown",
    }
}

impl Standing {
    /// What `word` means, whatever its case and however its parts are joined.
    pub fn of(word: &str) -> Self {
        let plain: String = word.chars().filter(|part| part.is_alphanumeric()).take(40).collect();
        match plain.to_lowercase().as_str() {
            "ok" | "okay" | "success" | "successful" | "succeeded" | "pass" | "passed" | "passing" | "complete"
            | "completed" | "done" | "finished" | "merged" | "ready" | "verified" | "green" | "true" => Self::Ok,
            "running" | "started" | "start" | "inprogress" | "progress" | "pending" | "working" | "active"
            | "queued" | "retrying" => Self::Running,
            "error" | "errored" | "fail" | "failed" | "failure" | "aborted" | "crashed" | "timeout" | "timedout"
            | "rejected" | "red" | "false" => Self::Error,
            "blocked" | "waiting" | "halted" | "paused" => Self::Blocked,
            "skipped" | "skip" | "ignored" | "cancelled" | "canceled" => Self::Skipped,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
