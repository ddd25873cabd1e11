//! `approve` and `reject`: a person's answer to a lane that waits for one.

use std::sync::Arc;

use serde_json::json;

use super::args::{Answer, Format};
use super::ask::ask;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::{holder, now, redactor};
use super::options::session_id;
use super::runs::{command, existing, pinned_plan, read_log, state, unknown_lane};
use crate::event::{Event, LaneStage, Record};
use crate::model::{Approval, HumanGate, LaneId};
use crate::recover::resume::replay;
use crate::schedule::{RunState, approval_at};
use crate::store::lock::LockError;
use crate::store::{Journal, Request, RunDirectory, RunLock, StateDirectory};

/// Hands the answer to whoever works on the run, or writes it into the run log for the next resume.
pub(super) fn run(context: &Context, arguments: &Answer, approved: bool) -> Result<ExitStatus, CliError> {
    let (state, settings) = state(context)?;
    let directory = existing(&state, &arguments.run)?;
    let redactor = pinned_plan(&directory).map(|plan| redactor(&settings, &plan)).unwrap_or_default();
    let message = redactor.redact(&arguments.message).into_owned();
    directory.create()?;
    let holder = holder(&state, &session_id(&settings), &arguments.run);
    loop {
        match RunLock::acquire(&directory.lock(), &holder) {
            Ok(_lock) => return record(context, &state, &directory, arguments, approved, &message),
            Err(LockError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let gate = gate(arguments, &directory, &read_log(context, &directory)?.records)?;
        let (lane, message) = (arguments.lane.clone(), message.clone());
        let request = Request::Answer { lane, gate: gate.clone(), approved, message };
        let answers = |event: &Event| matches!(event, Event::GateAnswered { lane, gate: at, .. } if *lane == arguments.lane && *at == gate);
        if ask(&directory, &request, answers)? {
            return tell(context, &state, arguments, &gate, approved, true);
        }
    }
}

/// Writes the answer into the log of a run that nobody works on.
fn record(
    context: &Context,
    state: &StateDirectory,
    directory: &RunDirectory,
    arguments: &Answer,
    approved: bool,
    message: &str,
) -> Result<ExitStatus, CliError> {
    let (mut journal, records) = Journal::open(&directory.log())?;
    let gate = gate(arguments, directory, &records)?;
    let (lane, message) = (arguments.lane.clone(), message.to_owned());
    journal.append(now(), &Event::GateAnswered { lane, gate: gate.clone(), approved, message })?;
    journal.sync()?;
    tell(context, state, arguments, &gate, approved, false)
}

/// The gate at which the lane waits, which must be the one that was named.
fn gate(arguments: &Answer, directory: &RunDirectory, records: &[Record]) -> Result<HumanGate, CliError> {
    let Some(plan) = pinned_plan(directory) else {
        let message =
            format!("the plan that run {} pinned, {}, cannot be read", arguments.run, directory.plan().display());
        return Err(CliError::new(ExitStatus::Corrupted, message));
    };
    let state = replay(&arguments.run, &Arc::new(plan), records)?;
    let (lane, stage) = (&arguments.lane, stage(&state, &arguments.lane)?);
    let open = state.find(lane).map(|index| state.open_gates(index)).unwrap_or_default();
    match (open.as_slice(), &arguments.gate) {
        ([only], None) => Ok(only.clone()),
        ([], _) => {
            let message = format!("lane {lane} does not wait for an answer: {}", standing(&state, lane, stage));
            Err(CliError::new(ExitStatus::InvalidOperation, message))
        }
        (open, Some(named)) if open.contains(named) => Ok(named.clone()),
        (open, named) => {
            let gates = open.iter().map(HumanGate::for_people).collect::<Vec<_>>().join(" and its ");
            let message = match named {
                Some(named) => {
                    format!("lane {lane} waits for an answer to its {gates}, not to its {}", named.for_people())
                }
                None => format!("lane {lane} waits for an answer to its {gates}: say which with --gate"),
            };
            Err(CliError::new(ExitStatus::InvalidOperation, message))
        }
    }
}

fn stage(state: &RunState, lane: &LaneId) -> Result<LaneStage, CliError> {
    let known = || state.plan().lanes.iter().map(|lane| &lane.id);
    state.find(lane).map(|index| state.lane(index).stage).ok_or_else(|| unknown_lane(lane, known()))
}

fn standing(state: &RunState, lane: &LaneId, stage: LaneStage) -> String {
    let answer = approval_at(stage).and_then(|gate| {
        let answer = state.lane(state.find(lane)?).answers.get(&gate.into())?;
        let word = if answer.approved { "approved" } else { "rejected" };
        let be = be(&gate.into());
        Some(format!("its {gate} {be} {word} already"))
    });
    answer.unwrap_or_else(|| format!("it is at {stage}"))
}

fn tell(
    context: &Context,
    state: &StateDirectory,
    arguments: &Answer,
    gate: &HumanGate,
    approved: bool,
    live: bool,
) -> Result<ExitStatus, CliError> {
    let Answer { run, lane, .. } = arguments;
    if context.printer.format() == Format::Json {
        let answer = json!({"run_id": run, "lane": lane, "gate": gate, "approved": approved, "live": live});
        context.printer.json(&answer)?;
        return Ok(ExitStatus::Done);
    }
    let word = if approved { "approved" } else { "rejected" };
    let next = match live {
        true => "the run continues.".to_owned(),
        false => {
            format!("the run is not active; continue with:\n  {}", command(state, &["resume", run.as_str()]))
        }
    };
    context.printer.out(format_args!("The {} of {lane} {} {word}; {next}\n", gate.for_people(), be(gate)))?;
    Ok(ExitStatus::Done)
}

/// The verb for what is answered: a plan was, changes were.
fn be(gate: &HumanGate) -> &'static str {
    match gate {
        HumanGate::Approval(Approval::Changes) => "were",
        HumanGate::Approval(Approval::Plan) | HumanGate::Task(_) => "was",
    }
}
