//! `ResumeTask`: the run is resumed by a process of its own, which outlives the server and its client.

use lanewright_model::LaneId;
use serde_json::{Value, json};

use super::parameters::{TaskId, context, usage};
use crate::cli::child::detached::{Start, start_resume};
use crate::cli::child::{Caller, Outcome, failed};
use crate::cli::runs::existing;
use crate::cli::{ExitStatus, Hint, Result};

/// Starts the resume of `task`, and waits until it has begun or was refused.
pub(crate) fn resume(caller: &Caller, task: &TaskId, additional: Option<&str>) -> Outcome {
    let additional = context(additional)?;
    let directory = existing(&caller.state()?, &task.run)?;
    if let Some(lane) = &task.lane {
        refuse_merged(caller, task, lane)?;
    }
    let (path, started) = start_resume(caller, &directory, &words(task, additional))?;
    let begun = match started {
        Start::Begun(number) => Some(number),
        Start::NotYet => None,
        Start::Ended(said) => return Err(failed(format!("resume had nothing to do: {}", said.trim()))),
    };
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
pub(crate) fn lane_of(status: &Value, lane: &LaneId) -> Outcome {
    let lanes = status["lanes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = lanes.iter().find(|it| it["lane"] == lane.as_str());
    let run = &status["run_id"];
    found.map(|lane| json!({"run_id": run, "lane": lane})).ok_or_else(|| {
        let known: Vec<&str> = lanes.iter().filter_map(|it| it["lane"].as_str()).collect();
        usage(format!("the run has no lane `{lane}`")).hint(format!("it has {}", known.join(", ")))
    })
}
