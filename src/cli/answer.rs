//! `approve` and `reject`: the user's answer to a lane that waits for one.

use std::sync::Arc;

use serde_json::json;

use super::args::Answer;
use super::ask::lock_or_ask;
use super::repository_context::{holder, redactor, session_id};
use super::runs::{command, existing, pinned_plan, read_log, require_plan, state, unknown_lane};
use super::{Context, ExitStatus, Result, now};
use crate::event::{Event, LaneStage, Record};
use crate::model::{Approval, HumanGate, LaneId};
use crate::recover::resume::replay;
use crate::schedule::{RunState, approval_at};
use crate::store::{Journal, Request, RunDirectory, StateDirectory};

/// Hands the answer to the process that works on the run, or writes it into the run log for the next resume.
pub(super) fn run(context: &Context, arguments: &Answer, approved: bool) -> Result<ExitStatus> {
    let (state, settings) = state(context)?;
    let directory = existing(&state, &arguments.run)?;
    let redactor = pinned_plan(&directory).map(|plan| redactor(&settings, &plan)).unwrap_or_default();
    let (lane, message) = (&arguments.lane, redactor.redact(&arguments.message).into_owned());
    directory.create()?;
    let holder = holder(&state, &session_id(&settings), &arguments.run);
    let mut asked = None;
    let lock = lock_or_ask(&directory, &holder, || {
        let gate = gate(arguments, &directory, &read_log(context, &directory)?.records)?;
        asked = Some(gate.clone());
        Ok(Request::Answer { lane: lane.clone(), gate, approved, message: message.clone() })
    })?;
    if let (None, Some(gate)) = (&lock, &asked) {
        return report(context, &state, arguments, gate, approved, true);
    }
    let (mut journal, records) = Journal::open(&directory.log())?;
    let gate = gate(arguments, &directory, &records)?;
    journal.append(now(), &Event::GateAnswered { lane: lane.clone(), gate: gate.clone(), approved, message })?;
    journal.sync()?;
    report(context, &state, arguments, &gate, approved, false)
}

/// The gate at which the lane waits; one that was named must be open.
fn gate(arguments: &Answer, directory: &RunDirectory, records: &[Record]) -> Result<HumanGate> {
    let plan = require_plan(&arguments.run, directory)?;
    let state = replay(&arguments.run, &Arc::new(plan), records)?;
    let (lane, stage) = (&arguments.lane, stage(&state, &arguments.lane)?);
    let open = state.find(lane).map(|index| state.open_gates(index)).unwrap_or_default();
    match (open.as_slice(), &arguments.gate) {
        ([only], None) => Ok(only.clone()),
        ([], _) => {
            let message = format!("lane {lane} does not wait for an answer: {}", standing(&state, lane, stage));
            Err(ExitStatus::InvalidOperation.error(message))
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
            Err(ExitStatus::InvalidOperation.error(message))
        }
    }
}

fn stage(state: &RunState, lane: &LaneId) -> Result<LaneStage> {
    let known = || state.plan().lanes.iter().map(|lane| &lane.id);
    state.find(lane).map(|index| state.lane(index).stage()).ok_or_else(|| unknown_lane(lane, known()))
}

fn standing(state: &RunState, lane: &LaneId, stage: LaneStage) -> String {
    let answer = approval_at(stage).and_then(|gate| {
        let answer = state.lane(state.find(lane)?).answer(&gate.into())?;
        let word = if answer.approved { "approved" } else { "rejected" };
        let be = be(&gate.into());
        Some(format!("its {gate} {be} {word} already"))
    });
    answer.unwrap_or_else(|| format!("it is at {stage}"))
}

fn report(
    context: &Context,
    state: &StateDirectory,
    arguments: &Answer,
    gate: &HumanGate,
    approved: bool,
    live: bool,
) -> Result<ExitStatus> {
    let Answer { run, lane, .. } = arguments;
    let word = if approved { "approved" } else { "rejected" };
    let next = match live {
        true => "the run continues.".to_owned(),
        false => {
            format!("the run is not active; continue with:\n  {}", command(state, &["resume", run.as_str()]))
        }
    };
    context.printer.print(
        format_args!("The {} of {lane} {} {word}; {next}\n", gate.for_people(), be(gate)),
        &json!({"run_id": run, "lane": lane, "gate": gate, "approved": approved, "live": live}),
    )
}

/// A plan was, changes were.
fn be(gate: &HumanGate) -> &'static str {
    match gate {
        HumanGate::Approval(Approval::Changes) => "were",
        HumanGate::Approval(Approval::Plan) | HumanGate::Task(_) => "was",
    }
}
