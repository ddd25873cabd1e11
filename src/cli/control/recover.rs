//! `recover`: the next level of recovery for a lane that failed or is blocked (seed 000).

use std::sync::Arc;

use lanewright_engine::at_resume::replay;
use lanewright_model::event::{Event, Record, SnapshotReason};
use lanewright_model::{EventName, LaneId, LaneIndex, RetryLevel};
use lanewright_schedule::{Recovery, RunState};
use lanewright_store::Request;
use lanewright_store::lock::is_held;
use lanewright_view::answers::escalation::Escalation;
use lanewright_view::status::summary::{Summary, SummaryContext};
use serde_json::json;

use super::ask::record;
use crate::cli::args::Recover;
use crate::cli::run::{Adoption, resume_with};
use crate::cli::runs::{RunRecords, beginning, command, named_few, require_lane, require_plan};
use crate::cli::secrets::redactor_of_run;
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result, local_now};

/// The name of the event that records which level was chosen.
const EVENT: &str = "recover";

pub(crate) fn run(context: &Context, arguments: &Recover) -> Result<ExitStatus> {
    let layer = arguments.control.layer();
    let within = RepositoryContext::open_for_work(context, layer.clone())?;
    let target = Selector::new(context, &within.state).target(&arguments.target.names())?;
    let lane = target.lane("recover")?;
    let run = RunRecords::read(context, &within.state, target.run.clone())?;
    let plan = Arc::new(require_plan(&run.run, &run.directory)?);
    let index = require_lane(&plan, lane)?;
    if is_held(&run.directory.lock()) {
        let error = ExitStatus::Held.error(format!("run {} is active, and recovers its lanes itself", run.run));
        let words = ["status", run.run.as_str(), lane.as_str()];
        return Err(error.hint(format!("to see what it does: {}", command(&within.state, &words))));
    }
    let replayed = replay(&run.run, &plan, &run.records)?;
    let state = replayed.lane(index);
    if !state.gave_up() {
        let message = format!("lane {lane} neither failed nor is it blocked, so there is nothing to recover");
        let words = ["status", run.run.as_str(), lane.as_str()];
        let status = command(&within.state, &words);
        return Err(ExitStatus::InvalidOperation.error(message).hint(format!("to see its state: {status}")));
    }
    let missing = waits_for(&replayed, index);
    if let Some(first) = missing.first() {
        let names = missing.iter().map(|on| plan.lane(*on).id.as_str());
        let message = format!("lane {lane} waits for {}, so there is nothing to recover in it", named_few(names));
        let words = ["recover", run.run.as_str(), plan.lane(*first).id.as_str()];
        return Err(ExitStatus::InvalidOperation.error(message).hint(command(&within.state, &words)));
    }
    let next = state.recovery(plan.lane(index), retried_by_hand(&run.records, lane));
    let (number, what, level, why) = match next {
        Recovery::Retry(why) => (1, "retry", Some(RetryLevel::Retry), why),
        Recovery::Rollback(why) => (
            2,
            "reset to the last state that passed, and retry with a different approach",
            Some(RetryLevel::Rollback),
            why,
        ),
        Recovery::Escalate(why) => (3, "escalate", None, why),
    };
    let text = format!("Lane {lane}: level {number} of 3, {what} ({why}).");
    let mut json = json!({"run_id": run.run, "lane": lane, "level": number, "action": what, "reason": why});
    let escalation = level.is_none().then(|| escalation(&within, &run, lane)).flatten();
    if arguments.dry_run {
        return context.printer.print(format_args!("{text}\n"), &json);
    }
    let data = json!({"level": number, "reason": why, "error": arguments.error.trim()});
    let (name, about) = (EventName::new(EVENT).map_err(anyhow::Error::new)?, Some(lane.clone()));
    let request = Request::Log { lane: about, name, data: Some(data) };
    let Some(level) = level else {
        record(&within, &run.run, redactor_of_run(&within.settings, &run.directory), request)?;
        json["escalation"] = json!(escalation);
        let decide = escalation.as_ref().map(Escalation::render).unwrap_or_default();
        context.printer.print(format_args!("{text}\n\n{decide}"), &json)?;
        return Ok(ExitStatus::Blocked);
    };
    context.printer.note(text);
    // The resume records it, once it has all that it needs.
    resume_with(&within, &run.run, &Adoption::recovery(lane.clone(), arguments, level, request.into()), layer)
}

/// The lanes that must be recovered before `lane` can start: of those that it depends on, each that gave up and waits for
/// none itself.
fn waits_for(state: &RunState, lane: LaneIndex) -> Vec<LaneIndex> {
    let dag = state.plan().dag();
    let gave_up = |lane: LaneIndex| {
        let needed = dag.with_dependencies([lane]).into_iter();
        needed.filter(move |on| *on != lane && state.lane(*on).gave_up())
    };
    gave_up(lane).filter(|on| gave_up(*on).next().is_none()).collect()
}

/// How often users had the lane retried since its last progress.
fn retried_by_hand(records: &[Record], lane: &LaneId) -> u32 {
    records.iter().fold(0, |count, record| match &record.event {
        Event::RunResumed { retried, .. } if retried.contains(lane) => count + 1,
        Event::SnapshotTaken { lane: of, reason: SnapshotReason::Task, .. }
        | Event::AgentMerged { lane: of, .. }
        | Event::LaneRolledBack { lane: of, .. }
            if of == lane =>
        {
            0
        }
        _ => count,
    })
}

/// What the user has to decide about the lane.
fn escalation(within: &RepositoryContext, run: &RunRecords, lane: &LaneId) -> Option<Escalation> {
    let history = beginning(&run.directory).after(&run.records);
    let program = within.state.program();
    let summary = Summary::of(&history, SummaryContext { now: local_now(), program: &program, held: false });
    summary.escalations.into_iter().find(|escalation| escalation.lane.as_ref() == Some(lane))
}
