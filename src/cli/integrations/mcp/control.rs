//! `Approve`, `Reject` and `Retry`: what continues a run does so in a process of its own, which outlives the server.

use serde_json::{Value, json};

use super::parameters::{Answer, Pick, Retry, TaskId, Tell, taken, usage};
use crate::cli::child::detached::{Start, start_resume};
use crate::cli::child::{Caller, Outcome};
use crate::cli::runs::existing;
use crate::cli::{Hint, Result};

/// Answers a lane, and resumes the run unless that is not wanted or a process works on it.
pub(super) fn answer(caller: &Caller, wanted: &Answer, approved: bool) -> Outcome {
    let command = if approved { "approve" } else { "reject" };
    let message = wanted.message.as_deref().map(str::trim).unwrap_or_default();
    if !approved && message.is_empty() {
        let error = usage("a rejection needs a `message`: it is all that the agent knows of it".to_owned());
        return Err(error.hint("say what to change, in the user's words"));
    }
    let task = taken(&wanted.task_id)?;
    let (run, lane) = task.clone().with_lane()?;
    let mut words = [command, run.as_str(), lane.as_str()].map(str::to_owned).to_vec();
    words.extend(wanted.gate.iter().map(|gate| format!("--gate={gate}")));
    words.push(format!("--message={message}"));
    if !wanted.resume.unwrap_or(true) {
        return caller.run(&words);
    }
    words.extend(["--resume", "--progress", "plain"].map(str::to_owned));
    let mut answer = in_background(caller, &task, &words)?;
    answer["approved"] = approved.into();
    Ok(answer)
}

/// Tells the agents of a lane something, also while they work.
pub(super) fn tell(caller: &Caller, wanted: &Tell) -> Outcome {
    let (run, lane) = taken(&wanted.task_id)?.with_lane()?;
    let words = ["tell", run.as_str(), lane.as_str()].map(str::to_owned).into_iter();
    caller.run(&words.chain([format!("--message={}", wanted.message)]).collect::<Vec<_>>())
}

/// Has another candidate of a lane continue.
pub(super) fn pick(caller: &Caller, wanted: &Pick) -> Outcome {
    let (run, lane) = taken(&wanted.task_id)?.with_lane()?;
    caller.run(&["pick", run.as_str(), lane.as_str(), &wanted.candidate.to_string()].map(str::to_owned))
}

/// Runs a lane again that failed or is blocked, with what depends on it.
pub(super) fn retry(caller: &Caller, wanted: &Retry) -> Outcome {
    let task = taken(&wanted.task_id)?;
    in_background(caller, &task, &retry_words(wanted, &task)?)
}

fn retry_words(wanted: &Retry, task: &TaskId) -> Result<Vec<String>> {
    let (run, lane) = task.clone().with_lane()?;
    let fixed = ["retry", run.as_str(), lane.as_str(), "--yes", "--progress", "plain", "--on-lock-conflict", "fail"];
    let message = wanted.message.iter().map(|text| format!("--message={text}"));
    let runner = wanted.runner.iter().map(|runner| format!("--runner={runner}"));
    Ok(fixed.map(str::to_owned).into_iter().chain(message).chain(runner).collect())
}

/// Starts a command that may resume the run, and waits until it has or was refused.
fn in_background(caller: &Caller, task: &TaskId, words: &[String]) -> Outcome {
    let directory = existing(&caller.state()?, &task.run)?;
    let (path, started) = start_resume(caller, &directory, words)?;
    let of_task = json!({"run_id": task.run, "lane": task.lane});
    let more = match started {
        Start::Begun(number) => {
            json!({"begun": true, "resume": number, "output": path, "next": ["RunStatus", "ReadLogs"]})
        }
        Start::NotYet => json!({"begun": false, "output": path, "next": ["RunStatus", "ReadLogs"]}),
        // A process works on the run, which got the answer.
        Start::Ended(said) => {
            let said = serde_json::from_str(&said).unwrap_or_else(|_| json!({"message": said.trim()}));
            with(json!({"begun": false, "next": ["RunStatus", "ReadLogs"]}), said)
        }
    };
    Ok(with(of_task, more))
}

/// The fields of both objects.
fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut value, more) {
        fields.extend(more);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_retry_are_no_flags() {
        let task = taken("r1/A").unwrap();
        let wanted = |task_id: &str| Retry {
            task_id: task_id.to_owned(),
            message: Some("--force".to_owned()),
            runner: Some("-x".to_owned()),
        };
        let words = retry_words(&wanted("r1/A"), &task).unwrap();
        assert!(
            words.contains(&"--message=--force".to_owned()) && words.contains(&"--runner=-x".to_owned()),
            "{words:?}"
        );
        retry_words(&wanted("r1"), &taken("r1").unwrap()).unwrap_err();
    }
}
