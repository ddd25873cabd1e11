//! `ResumeTask`: the run is resumed by a process of its own, which outlives the server and its client.

use std::fs;
use std::path::Path;
use std::process::{Child, ExitStatus as Exit};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::child::{Caller, Outcome, failed, refusal};
use super::parameters::{TaskId, context, usage};
use crate::cli::runs::existing;
use crate::cli::{ExitStatus, Hint, Result};
use crate::event::Event;
use crate::fs::{handle, regular_file};
use crate::model::LaneId;
use crate::process::{Output, start_detached};
use crate::store::Follower;

/// How long a resume may take to say in the run log that it has begun, before the answer is that it is about to.
const PATIENCE: Duration = Duration::from_secs(60);

const LOOK: Duration = Duration::from_millis(20);

/// Starts the resume of `task`, and waits until it has begun or was refused.
pub(super) fn resume(caller: &Caller, task: &TaskId, additional: Option<&str>) -> Outcome {
    let additional = context(additional)?;
    let directory = existing(&caller.state()?, &task.run)?;
    if let Some(lane) = &task.lane {
        refuse_merged(caller, task, lane)?;
    }
    directory.create()?;
    let path = directory.directory().join(format!("resume-{}.log", uuid::Uuid::now_v7()));
    let output =
        handle::append_new(&path).map_err(|error| failed(format!("{} cannot be made: {error}", path.display())))?;
    let (program, arguments) = caller.call(&words(task, additional))?;
    let mut log = Follower::new(&directory.log());
    log.poll()?;
    let child = start_detached(&program, &arguments, &caller.directory, Output::File(output), &[]);
    let child = child.map_err(|error| failed(format!("the resume cannot be started: {error}")))?;
    let begun = wait(child, &mut log, &path)?;
    Ok(json!({
        "run_id": task.run, "lane": task.lane, "begun": begun.is_some(), "resume": begun, "output": path,
        "next": ["RunStatus", "ListCheckpoints"],
    }))
}

fn words(task: &TaskId, additional: Option<&str>) -> Vec<String> {
    let fixed = ["resume", task.run.as_str(), "--yes", "--progress", "plain", "--on-lock-conflict", "fail"];
    let message = additional.map(|text| format!("--message={text}"));
    let lane = task.lane.as_ref().filter(|_| message.is_some()).map(|lane| format!("--message-for={lane}"));
    fixed.map(str::to_owned).into_iter().chain(message).chain(lane).collect()
}

/// INVALID_OPERATION for a lane that is merged: its run may well be resumed, but not on its account.
fn refuse_merged(caller: &Caller, task: &TaskId, lane: &LaneId) -> Result<()> {
    let status = caller.run(&["status".to_owned(), task.run.to_string()])?;
    if lane_of(&status, lane)?["lane"]["state"] == "merged" {
        let message = format!("lane {lane} of run {} is merged; there is nothing to resume", task.run);
        return Err(ExitStatus::InvalidOperation.error(message));
    }
    Ok(())
}

/// What a run's status says of one lane.
pub(super) fn lane_of(status: &Value, lane: &LaneId) -> Outcome {
    let lanes = status["lanes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = lanes.iter().find(|it| it["lane"] == lane.as_str());
    let run = &status["run_id"];
    found.map(|lane| json!({"run_id": run, "lane": lane})).ok_or_else(|| {
        let known: Vec<&str> = lanes.iter().filter_map(|it| it["lane"].as_str()).collect();
        usage(format!("the run has no lane `{lane}`")).hint(format!("it has {}", known.join(", ")))
    })
}

/// Which resume it is, counted by the run; `None`: it has not begun yet.
fn wait(mut child: Child, log: &mut Follower, output: &Path) -> Result<Option<u32>> {
    let deadline = Instant::now() + PATIENCE;
    let pid = i64::from(child.id());
    loop {
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let ended = child.try_wait().ok().flatten();
        let begun = log.poll()?.records.into_iter().find_map(|record| match record.event {
            Event::RunResumed { number, owner, .. } if i64::from(owner.process.pid) == pid => Some(number),
            _ => None,
        });
        match (begun, ended) {
            (None, Some(exit)) => return Err(refused(output, exit)),
            (None, None) if Instant::now() < deadline => std::thread::sleep(LOOK),
            (begun, _) => {
                // Collected when it ends, if we are still here then.
                std::thread::spawn(move || child.wait());
                return Ok(begun);
            }
        }
    }
}

/// What a resume said that ended without having begun.
fn refused(output: &Path, exit: Exit) -> anyhow::Error {
    let said = regular_file::read_text(output).unwrap_or_default();
    let _ = fs::remove_file(output);
    refusal(&said).unwrap_or_else(|| failed(format!("the resume ended with {exit}: {}", said.trim())))
}
