//! `RunStatus`, `ReadLogs` and `ReadDiff`: how a run stands, what agents wrote, and what they changed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::parameters::{ReadDiff, ReadLogs, RunStatus, TaskId, agent, taken, usage};
use super::resume::lane_of;
use crate::cli::child::{Caller, Outcome, failed};
use crate::cli::{Hint, Result};

/// How often a run that is waited for is looked at.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long one call waits at most, in seconds: a caller that gave it up cannot end it.
const LONGEST_WAIT: u32 = 600;

/// What `status` prints, of the run or of one lane.
pub(crate) fn status(caller: &Caller, wanted: &RunStatus) -> Outcome {
    let task = wanted.task_id.as_deref().map(taken).transpose()?;
    let run = task.as_ref().map(|task| task.run.to_string());
    let words: Vec<String> = ["status".to_owned()].into_iter().chain(run).collect();
    let until = Instant::now() + Duration::from_secs(wanted.wait.min(LONGEST_WAIT).into());
    let mut status = caller.run(&words)?;
    // Another run may be the newest meanwhile.
    let words = ["status", status["run_id"].as_str().unwrap_or_default()].map(str::to_owned);
    while status["held"] == true && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
        status = caller.run(&words)?;
    }
    match task.and_then(|task| task.lane) {
        Some(lane) => lane_of(&status, &lane),
        None => Ok(status),
    }
}

/// How many lines an answer has if none are asked for, and at most.
const LINES: usize = 200;
const MOST_LINES: usize = 2000;

/// The last lines of what `logs` prints.
pub(crate) fn logs(caller: &Caller, wanted: &ReadLogs) -> Outcome {
    let most = wanted.lines.map_or(LINES, |lines| lines as usize);
    if !(1..=MOST_LINES).contains(&most) {
        return Err(usage(format!("lines is {most}, and may be 1 to {MOST_LINES}")));
    }
    let task = taken(&wanted.task_id)?;
    let words = words("logs", &task, wanted.agent.as_deref())?;
    let (lines, omitted) = caller.last_lines(&words, most)?;
    let lines: serde_json::Result<Vec<Value>> = lines.iter().map(|line| serde_json::from_str(line)).collect();
    let lines = lines.map_err(|error| failed(format!("its answer makes no sense: {error}")))?;
    Ok(json!({"run_id": task.run, "lane": task.lane, "lines": lines, "omitted": omitted}))
}

/// What `diff` prints: which files differ, and unless `stat` is asked for how, as `patch`.
pub(crate) fn diff(caller: &Caller, wanted: &ReadDiff) -> Outcome {
    let task = taken(&wanted.task_id)?;
    let (run, lane) = task.clone().with_lane()?;
    let words = words("diff", &task, wanted.agent.as_deref())?;
    let mut diff = caller.run(&words)?;
    if !wanted.stat {
        let plain = ["--", "--no-ext-diff"].map(str::to_owned);
        diff["patch"] = caller.text(&[words, plain.to_vec()].concat())?.into();
    }
    Ok(json!({"run_id": run, "lane": lane, "agent": wanted.agent, "diff": diff}))
}

/// `command RUN [LANE [AGENT]]`.
fn words(command: &str, task: &TaskId, name: Option<&str>) -> Result<Vec<String>> {
    let name = name.map(agent).transpose()?;
    if let (None, Some(name)) = (&task.lane, &name) {
        let error = usage(format!("agent `{name}` is named without its lane"));
        return Err(error.hint(format!("name the lane, too: taskId {}/LANE", task.run)));
    }
    let lane = task.lane.as_ref().map(ToString::to_string);
    Ok([command.to_owned(), task.run.to_string()].into_iter().chain(lane).chain(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_run_lane_and_agent() {
        let called = |task: &str, agent| words("diff", &taken(task).unwrap(), agent);
        assert_eq!(called("r1/A", Some("coder")).unwrap(), ["diff", "r1", "A", "coder"]);
        assert_eq!(called("r1", None).unwrap(), ["diff", "r1"]);
        called("r1", Some("coder")).unwrap_err();
        called("r1/A", Some("--raw")).unwrap_err();
    }
}
