//! `Doctor`, `Gate` and `Rollback`: each is a command whose answer is the tool's, also where the exit code says that
//! something is wrong.

use super::parameters::{Doctor, Gate, Rollback, agent, taken, usage};
use crate::cli::child::{Caller, Outcome};
use crate::cli::{ExitStatus, Hint};

/// What is wrong with the stored state, or was repaired.
pub(super) fn doctor(caller: &Caller, wanted: &Doctor) -> Outcome {
    let mut words = vec!["doctor".to_owned()];
    if let Some(task) = &wanted.task_id {
        let task = taken(task)?;
        if task.lane.is_some() {
            return Err(usage(format!("taskId `{}/…` names a lane", task.run))
                .hint(format!("the doctor checks a run: {}", task.run)));
        }
        words.push(task.run.to_string());
    }
    words.extend(wanted.fix.then(|| "--fix".to_owned()));
    caller.report(&words, &[ExitStatus::Corrupted, ExitStatus::Held])
}

/// What a gate finds, which changes no state of the run.
pub(super) fn gate(caller: &Caller, wanted: &Gate) -> Outcome {
    let task = taken(&wanted.task_id)?;
    let agent = wanted.agent.as_deref().map(agent).transpose()?;
    if let (None, Some(agent)) = (&task.lane, &agent) {
        let error = usage(format!("agent `{agent}` is named without its lane"));
        return Err(error.hint(format!("name the lane, too: taskId {}/LANE", task.run)));
    }
    let mut words = ["gate", wanted.gate.word(), task.run.as_str()].map(str::to_owned).to_vec();
    words.extend(task.lane.iter().map(ToString::to_string).chain(agent));
    caller.report(&words, &[ExitStatus::Failed, ExitStatus::TimedOut])
}

/// A run, or one of its lanes, back to a point.
pub(super) fn rollback(caller: &Caller, wanted: &Rollback) -> Outcome {
    let task = taken(&wanted.task_id)?;
    let mut words = ["rollback", task.run.as_str(), "--on-lock-conflict", "fail"].map(str::to_owned).to_vec();
    words.extend(task.lane.iter().map(|lane| format!("--lane={lane}")));
    words.extend(wanted.to.iter().map(|to| format!("--to={to}")));
    words.extend(wanted.dry_run.then(|| "--dry-run".to_owned()));
    words.extend(wanted.undo_merged.then(|| "--yes".to_owned()));
    caller.run(&words)
}
