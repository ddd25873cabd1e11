//! The time, this machine, and this process.

use chrono::{FixedOffset, Local, Offset};
use lanewright_model::event::Owner;
use lanewright_model::time::LocalTime;
use lanewright_model::{ProcessId, Timestamp};
use lanewright_programs::process::{self, LiveProcess};

pub(crate) fn now() -> Timestamp {
    Timestamp::from_unix_millis(chrono::Utc::now().timestamp_millis())
}

pub(crate) fn local_now() -> LocalTime {
    LocalTime { at: now(), offset: offset() }
}

/// Of the user's time zone.
pub(crate) fn offset() -> FixedOffset {
    Local::now().offset().fix()
}

pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn owner(session_id: &str) -> Owner {
    Owner { session_id: session_id.to_owned(), process: ProcessId::current(), host: host(), boot: process::boot() }
}
