//! Processes: supervisors that outlive Lanewright, and the trees they look after.
//!
//! Each job runs under a supervisor of its own: this program again, as `lanewright supervise <job directory>`. All that
//! the two say to each other goes through the files of the job directory and two signals, so a Lanewright that was
//! killed loses nothing: the next one reads the same files. `docs/supervision.md` describes the protocol.

#[cfg_attr(not(target_os = "linux"), path = "no_changes.rs")]
mod changes;
mod error;
mod files;
mod gap;
mod identity;
mod launch;
mod nearby;
mod observe;
mod output;
mod path;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "posix.rs")]
mod platform;
mod secrets;
mod stop;
pub mod supervisor;
mod sweep;
mod tree;
mod wait;

pub use changes::{Changes, Watch};
pub use error::ProcessError;
pub use files::{Heartbeat, heartbeat, output_log, runner_of, started_at, worked_in};
pub use identity::LiveProcess;
pub use launch::{
    DELETE_TRASH, DETACHED, Launched, Output, current_program, launch, leave_session, set_descriptors_close_on_exec,
    start_detached,
};
pub use nearby::{at_work_in, is_in_job_below, supervisors_below};
pub use observe::{Observation, make_room, observe};
pub use output::{NewLines, both_ends, each_line, last_line, last_lines_start, lines_since, same_line, tail};
pub use path::find_program;
pub use secrets::{clean_bytes, redactor};
pub use stop::{StopOutcome, stop};
pub use sweep::sweep;
pub use wait::{close_removed, close_unsynced, wait, wait_without_secrets};

/// Whether SIGHUP was ignored when this process was started, as by `nohup`. A handler for it would undo that.
pub fn ignores_hang_up() -> bool {
    ignores(1)
}

/// The same of any signal.
pub fn ignores(signal: i32) -> bool {
    platform::ignored_signals() >> (signal - 1) & 1 != 0
}

/// The boot ID of this machine; empty: unknown.
pub fn boot() -> String {
    platform::boot()
}

/// The time since a moment that stays the same while this process lives; the time that the machine slept is part of it.
pub fn uptime() -> std::time::Duration {
    platform::uptime()
}
