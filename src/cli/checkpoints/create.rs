//! `checkpoints create`: a worktree kept as it is now, on record in its run's log.

use std::sync::Arc;

use serde_json::json;

use super::find::{Place, RunRecords, started, ways_back};
use crate::cli::args::{CreateCheckpoint, Format};
use crate::cli::ask::ask;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::{holder, now, ports};
use crate::cli::options::session_id;
use crate::cli::runs::{existing, unknown, unknown_lane};
use crate::engine::ports::{Keeping, Ports};
use crate::event::{Event, SnapshotReason};
use crate::git::{HeldSlot, Snapshot};
use crate::model::{AgentName, LaneId, LaneIndex, Plan};
use crate::store::lock::LockError;
use crate::store::{Journal, Request, RunLock};
use crate::view::snapshots::snapshots;

pub(super) fn run(context: &Context, arguments: &CreateCheckpoint) -> Result<ExitStatus, CliError> {
    let place = Place::find(context)?;
    existing(&place.state, &arguments.run)?;
    let run = place.records(context, Some(&arguments.run))?;
    let plan = Arc::new(readable_plan(&run)?.clone());
    let lane = lane_of(&plan, arguments)?;
    let ports = ports(&place.site, &place.settings, started(&run)?, &plan, run.directory.clone())?;
    let agent = arguments.agent.as_ref().filter(|agent| !shares(&plan, lane, agent));
    let slot = held(&ports, &arguments.lane, agent)?.ok_or_else(|| nothing_there(arguments))?;
    let keeping = Keeping { lane, agent: arguments.agent.as_ref(), at: now(), reason: SnapshotReason::Request };
    let kept = ports
        .keep_worktree_saying(&keeping, &slot.path, &arguments.message)
        .map_err(|error| CliError::new(ExitStatus::Blocked, error.to_string()))?;
    record(&place, &run, &ports, arguments, &kept)?;
    tell(context, &place, arguments, &kept)
}

/// The plan that the run pinned, which says what it has.
pub(super) fn readable_plan(run: &RunRecords) -> Result<&Plan, CliError> {
    run.plan.as_ref().ok_or_else(|| {
        let message =
            format!("the plan that run {} pinned, {}, cannot be read", run.run, run.directory.plan().display());
        CliError::new(ExitStatus::Corrupted, message)
    })
}

fn lane_of(plan: &Plan, arguments: &CreateCheckpoint) -> Result<LaneIndex, CliError> {
    let known = || plan.lanes.iter().map(|lane| &lane.id);
    let lane = plan.find(&arguments.lane).ok_or_else(|| unknown_lane(&arguments.lane, known()))?;
    let agents: Vec<&str> = plan.lane(lane).agents.iter().map(|agent| agent.name.as_str()).collect();
    match &arguments.agent {
        Some(agent) if !agents.contains(&agent.as_str()) => {
            Err(unknown(&format!("lane {}", arguments.lane), "agent", agent.as_str(), &agents))
        }
        _ => Ok(lane),
    }
}

/// Whether the agent works in the lane's own worktree.
pub(super) fn shares(plan: &Plan, lane: LaneIndex, agent: &AgentName) -> bool {
    let plan = plan.lane(lane);
    plan.agents.iter().position(|known| known.name == *agent).is_some_and(|agent| plan.shares_worktree(agent))
}

/// The slot in which the agent, or without one the lane, works now.
pub(super) fn held(ports: &Ports, lane: &LaneId, agent: Option<&AgentName>) -> Result<Option<HeldSlot>, CliError> {
    let slots = ports.pool.held_by(&ports.facts.run_id)?;
    let of = |slot: &HeldSlot| slot.holder.lane.as_ref() == Some(lane) && slot.holder.agent.as_ref() == agent;
    Ok(slots.into_iter().find(|slot| slot.furnished && of(slot)))
}

fn nothing_there(arguments: &CreateCheckpoint) -> CliError {
    let who = arguments.agent.as_ref().map_or_else(String::new, |agent| format!("/{agent}"));
    let message = format!("{}{who} holds no worktree now, so there is nothing to keep", arguments.lane);
    CliError::new(ExitStatus::InvalidState, message)
        .hint(format!("where it stands: lanekeeper status {}", arguments.run))
}

/// Has whoever works on the run record the snapshot, or records it where nobody does.
fn record(
    place: &Place,
    run: &RunRecords,
    ports: &Ports,
    arguments: &CreateCheckpoint,
    kept: &Snapshot,
) -> Result<(), CliError> {
    let (lane, agent) = (arguments.lane.clone(), arguments.agent.clone());
    let (commit, reference) = (kept.commit.clone(), kept.reference.clone());
    let holder = holder(&place.state, &session_id(&place.settings), &run.run);
    run.directory.create()?;
    loop {
        match RunLock::acquire(&run.directory.lock(), &holder) {
            Ok(_lock) => {
                let (journal, _) = Journal::open(&run.directory.log())?;
                let mut journal = journal.redacting(ports.redactor.clone());
                let reason = SnapshotReason::Request;
                journal.append(now(), &Event::SnapshotTaken { lane, agent, reason, commit, reference })?;
                return Ok(journal.sync()?);
            }
            Err(LockError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let (lane, agent, reference) = (lane.clone(), agent.clone(), reference.clone());
        let request = Request::Record { lane, agent, commit: commit.clone(), reference };
        let done =
            |event: &Event| matches!(event, Event::SnapshotTaken { reference, .. } if *reference == kept.reference);
        if ask(&run.directory, &request, done)? {
            return Ok(());
        }
    }
}

fn tell(
    context: &Context,
    place: &Place,
    arguments: &CreateCheckpoint,
    kept: &Snapshot,
) -> Result<ExitStatus, CliError> {
    let run = place.records(context, Some(&arguments.run))?;
    let all = snapshots(&run.records, run.plan.as_ref());
    let taken = all.into_iter().find(|snapshot| snapshot.reference == kept.reference);
    let name = taken.map_or_else(|| kept.reference.clone(), |snapshot| snapshot.name);
    if context.printer.format() == Format::Json {
        let value = json!({"run_id": arguments.run, "name": name, "commit": kept.commit, "reference": kept.reference});
        context.printer.json(&value)?;
        return Ok(ExitStatus::Done);
    }
    let [(_, restore), ..] = ways_back(&name);
    context.printer.out(format_args!("Kept as {name}\n  {}\nTo restore it:\n  {restore}\n", kept.reference))?;
    Ok(ExitStatus::Done)
}
