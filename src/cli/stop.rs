//! `stop`: ends a run or a lane so that it can be resumed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use super::args::{self, Format};
use super::ask::ask;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::holder;
use super::options::session_id;
use super::runs::{existing, open_jobs, pinned_plan, read_log, state, unknown_lane};
use crate::event::{Event, Record};
use crate::model::text::counted;
use crate::model::{JobId, LaneId};
use crate::process::{self, Observation, ProcessError, StopOutcome};
use crate::store::lock::LockError;
use crate::store::{Request, RunDirectory, RunLock};

/// Asks whoever works on the run to stop it; if nobody does, stops the agents that go on without.
pub(super) fn run(context: &Context, arguments: &args::Stop) -> Result<ExitStatus, CliError> {
    let (state, settings) = state(context)?;
    let directory = existing(&state, &arguments.run)?;
    let records = read_log(context, &directory)?.records;
    if let Some(lane) = &arguments.lane {
        check_lane(&directory, &records, lane)?;
    }
    if !directory.directory().is_dir() {
        return tell(context, arguments, "not_running", "is not running");
    }
    let holder = holder(&state, &session_id(&settings), &arguments.run);
    loop {
        match RunLock::acquire(&directory.lock(), &holder) {
            Ok(_lock) => return stop_orphans(context, arguments, &directory, &records),
            Err(LockError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let request = Request::Stop { lane: arguments.lane.clone(), force: arguments.force };
        let stops = |event: &Event| matches!(event, Event::StopRequested { lane, .. } if *lane == arguments.lane);
        if ask(&directory, &request, stops)? {
            return tell(context, arguments, "stopping", "is stopping; what its agents did is kept");
        }
    }
}

fn check_lane(directory: &RunDirectory, records: &[Record], lane: &LaneId) -> Result<(), CliError> {
    let plan = pinned_plan(directory);
    let planned = plan.iter().flat_map(|plan| &plan.lanes).map(|lane| &lane.id);
    let known: std::collections::BTreeSet<&LaneId> =
        planned.chain(records.iter().filter_map(|record| record.event.lane())).collect();
    if known.contains(lane) { Ok(()) } else { Err(unknown_lane(lane, known.into_iter())) }
}

/// Stops agents whose Lanekeeper is dead. Their exits stay where a resume finds them.
fn stop_orphans(
    context: &Context,
    arguments: &args::Stop,
    directory: &RunDirectory,
    records: &[Record],
) -> Result<ExitStatus, CliError> {
    let concerned = |job: &JobId| arguments.lane.is_none() || job.lane == arguments.lane;
    let open: Vec<PathBuf> = open_jobs(records).into_iter().filter(concerned).map(|job| directory.job(&job)).collect();
    let (asked, left) = stop_all(&open, arguments.force)
        .map_err(|error| CliError::new(ExitStatus::Failed, format!("not everything was stopped: {error}")))?;
    let count = counted(asked, "job");
    match (asked, left) {
        (0, _) => tell(context, arguments, "not_running", "is not running"),
        (_, 0) => {
            let ended = format!("was not running; {count} that went on without it stopped");
            tell(context, arguments, "stopped", &ended)
        }
        (_, left) => {
            let ending = format!("was not running; {count} of it were told to stop, {left} still ending");
            tell(context, arguments, "stopping", &ending)
        }
    }
}

/// How many of the jobs were alive and were told to stop, and how many of these have not ended in time.
fn stop_all(jobs: &[PathBuf], force: bool) -> Result<(usize, usize), ProcessError> {
    let mut asked = Vec::new();
    for job in jobs {
        if stop_orphan(job, force)? {
            asked.push(job);
        }
    }
    Ok((asked.len(), wait_for(&asked)?))
}

/// Whether something of the job was alive and was told to end.
fn stop_orphan(job: &Path, force: bool) -> Result<bool, ProcessError> {
    match process::observe(job)? {
        Observation::Running(_) | Observation::Starting => match process::stop(job, force)? {
            StopOutcome::Lost => Ok(process::sweep(job)? > 0),
            StopOutcome::Asked | StopOutcome::NeverBegun => Ok(true),
            StopOutcome::Ended => Ok(false),
        },
        Observation::Lost(_) => Ok(process::sweep(job)? > 0),
        Observation::Absent | Observation::Planned | Observation::Exited(_) => Ok(false),
    }
}

/// How long agents that were told to stop are waited for; more than the time they get by default before they are killed.
const PATIENCE: Duration = Duration::from_secs(15);

/// How many of the jobs have not ended when patience has.
fn wait_for(jobs: &[&PathBuf]) -> Result<usize, ProcessError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut left = 0;
        for job in jobs {
            left += usize::from(matches!(process::observe(job)?, Observation::Running(_) | Observation::Starting));
        }
        if left == 0 || Instant::now() > deadline {
            return Ok(left);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn tell(
    context: &Context,
    arguments: &args::Stop,
    result: &'static str,
    sentence: &str,
) -> Result<ExitStatus, CliError> {
    let run = &arguments.run;
    match (context.printer.format(), &arguments.lane) {
        (Format::Json, lane) => context.printer.json(&json!({"run_id": run, "lane": lane, "result": result}))?,
        (Format::Text, Some(lane)) => context.printer.out(format_args!("Lane {lane} of run {run} {sentence}.\n"))?,
        (Format::Text, None) => context.printer.out(format_args!("Run {run} {sentence}.\n"))?,
    }
    Ok(ExitStatus::Done)
}
