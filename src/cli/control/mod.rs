//! Commands that change what a run does: its answers, lanes that are tried again or left out, its stop.

use lanewright_programs::process;
use lanewright_store::RunDirectory;

use super::Context;

pub(super) mod answer;
pub(crate) mod ask;
pub(super) mod pick;
pub(super) mod recover;
pub(super) mod retry;
pub(super) mod skip;
pub(super) mod stop;
pub(super) mod tell;

/// Whether this is one of the run's own jobs, which must not answer for its user. A program may start others without the
/// variable, as agents start MCP servers.
fn is_own_job(context: &Context, run: &RunDirectory) -> bool {
    let directory = run.directory();
    let own = context.environment.get("LANEWRIGHT_RUN_ID").map(std::ffi::OsStr::new);
    own.is_some_and(|own| directory.file_name() == Some(own))
        || std::path::absolute(&directory).is_ok_and(|directory| process::is_in_job_below(&directory))
}
