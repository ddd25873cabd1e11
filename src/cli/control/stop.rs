//! `stop`: ends a run or a lane so that it can be resumed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_model::JobId;
use lanewright_model::text::counted;
use lanewright_programs::process::{self, Observation, ProcessError, StopOutcome};
use lanewright_store::Request;
use serde_json::json;

use super::ask::lock_or_ask;
use crate::cli::args;
use crate::cli::repository_context::{holder, session_id};
use crate::cli::runs::{open_jobs, read_log, state};
use crate::cli::select::{Selector, Target};
use crate::cli::{Context, ExitStatus, Result};

/// Asks the process that works on the run to stop it; if there is none, stops the agents that outlived theirs.
pub(crate) fn run(context: &Context, arguments: &args::Stop) -> Result<ExitStatus> {
    let (state, settings) = state(context)?;
    let target = Selector::new(context, &state).target(&arguments.target.names())?;
    let directory = state.run(&target.run);
    let records = read_log(context, &directory)?.records;
    if !directory.directory().is_dir() {
        return report(context, &target, "not_running", "is not running");
    }
    let holder = holder(&state, &session_id(&settings), &target.run);
    let request = || Ok(Request::Stop { lane: target.lane.clone(), force: arguments.force });
    match lock_or_ask(&directory, &holder, request)? {
        Some(_lock) => {
            let concerned = |job: &JobId| target.lane.is_none() || job.lane == target.lane;
            let open = open_jobs(&records).into_iter().filter(concerned).map(|job| directory.job(&job));
            stop_orphans(context, &target, &open.collect::<Vec<_>>(), arguments.force)
        }
        None => report(context, &target, "stopping", "is stopping; what its agents did is kept"),
    }
}

/// Stops agents whose Lanewright is dead. A resume finds their exits.
fn stop_orphans(context: &Context, target: &Target, open: &[PathBuf], force: bool) -> Result<ExitStatus> {
    let (asked, left) = stop_all(open, force)
        .map_err(|error| ExitStatus::Failed.error(format!("not everything was stopped: {error}")))?;
    let count = counted(asked, "job");
    match (asked, left) {
        (0, _) => report(context, target, "not_running", "is not running"),
        (_, 0) => {
            let ended = format!("was not running; {count} that went on without it stopped");
            report(context, target, "stopped", &ended)
        }
        (_, left) => {
            let ending = format!("was not running; {count} of it were asked to stop, {left} still ending");
            report(context, target, "stopping", &ending)
        }
    }
}

/// How many of the jobs were alive and were asked to stop, and how many of these have not ended in time.
fn stop_all(jobs: &[PathBuf], force: bool) -> Result<(usize, usize), ProcessError> {
    let mut asked = Vec::new();
    for job in jobs {
        if stop_orphan(job, force)? {
            asked.push(job);
        }
    }
    Ok((asked.len(), wait_for(&asked)?))
}

/// Whether a process of the job was alive and was asked to end.
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

/// How long agents may take to stop; more than the time they get by default before they are killed.
const LONGEST_STOP: Duration = Duration::from_secs(15);

/// How many of the jobs have not ended in time.
fn wait_for(jobs: &[&PathBuf]) -> Result<usize, ProcessError> {
    let deadline = Instant::now() + LONGEST_STOP;
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

fn report(context: &Context, target: &Target, result: &'static str, sentence: &str) -> Result<ExitStatus> {
    let Target { run, lane, .. } = target;
    let what = lane.as_ref().map_or_else(|| format!("Run {run}"), |lane| format!("Lane {lane} of run {run}"));
    let json = json!({"run_id": run, "lane": lane, "result": result});
    context.printer.print(format_args!("{what} {sentence}.\n"), &json)
}
