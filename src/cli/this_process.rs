//! The time, this machine, and this process.

use crate::event::Owner;
use crate::model::{ProcessId, Timestamp};

pub(crate) fn now() -> Timestamp {
    Timestamp::from_unix_millis(chrono::Utc::now().timestamp_millis())
}

pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn owner(session_id: &str) -> Owner {
    Owner { session_id: session_id.to_owned(), process: ProcessId::current(), host: host() }
}
