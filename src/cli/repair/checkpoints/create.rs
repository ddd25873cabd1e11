//! `checkpoints create`: saves a worktree as it is now.

use std::sync::Arc;

use lanewright_engine::executor::{Executor, SnapshotTarget};
use lanewright_git::Snapshot;
use lanewright_model::event::{Event, SnapshotReason};
use lanewright_model::{AgentName, LaneId, LaneIndex, Plan, RunId};
use lanewright_store::{Journal, Request};
use lanewright_view::history::snapshots::snapshots;
use serde_json::json;

use super::find::ways_back;
use crate::cli::args::CreateCheckpoint;
use crate::cli::control::ask::lock_or_ask;
use crate::cli::look::worktree::{held_slot, shares};
use crate::cli::run::complete_files_of;
use crate::cli::runs::{RunRecords, require_lane, require_plan, unknown};
use crate::cli::select::{Selector, Target};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn run(within: &RepositoryContext, arguments: &CreateCheckpoint) -> Result<ExitStatus> {
    let target = Selector::new(&within.context, &within.state).agent_target(&arguments.target.names())?;
    let (place, agent) = (target.lane("checkpoints create")?, target.agent.as_ref());
    let run = RunRecords::read(&within.context, &within.state, target.run.clone())?;
    let plan = Arc::new(require_plan(&run.run, &run.directory)?);
    let lane = lane_of(&plan, place, agent)?;
    let executor = within.executor(run.started()?, &plan)?;
    let holder = agent.filter(|agent| !shares(&plan, lane, agent));
    let slot = held_slot(&executor.pool, &run.run, (place, holder))?.ok_or_else(|| nothing_there(&target))?;
    let target = SnapshotTarget { lane, agent, at: now(), reason: SnapshotReason::Request };
    let kept = executor.keep_worktree_with_note(&target, &slot.path, &arguments.message)?;
    record(within, &run, &executor, (place, agent), &kept)?;
    report(within, run.run, &kept)
}

fn lane_of(plan: &Plan, lane: &LaneId, agent: Option<&AgentName>) -> Result<LaneIndex> {
    let at = require_lane(plan, lane)?;
    let agents: Vec<&str> = plan.lane(at).agents.iter().map(|agent| agent.name.as_str()).collect();
    match agent {
        Some(agent) if !agents.contains(&agent.as_str()) => {
            Err(unknown(&format!("lane {lane}"), "agent", agent.as_str(), &agents))
        }
        _ => Ok(at),
    }
}

fn nothing_there(target: &Target) -> anyhow::Error {
    let message = format!("{} holds no worktree now, so there is nothing to keep", target.place());
    ExitStatus::InvalidState.error(message).hint(format!("to see its state: lanewright status {}", target.run))
}

/// Has the process that works on the run record the snapshot, or records it if there is none.
fn record(
    within: &RepositoryContext,
    run: &RunRecords,
    executor: &Executor,
    (lane, agent): (&LaneId, Option<&AgentName>),
    kept: &Snapshot,
) -> Result<()> {
    run.directory.create()?;
    let (lane, agent) = (lane.clone(), agent.cloned());
    let request = Request::Record { lane, agent, commit: kept.commit.clone(), reference: kept.reference.clone() };
    let Some(_lock) = lock_or_ask(&run.directory, &within.holder(&run.run), || Ok(request.clone()))? else {
        return Ok(());
    };
    let (journal, _) = Journal::open(&run.directory.log())?;
    let mut journal = journal.redacting(executor.redactor.clone());
    journal.append(now(), &Event::from(request))?;
    journal.sync()?;
    drop(journal);
    complete_files_of(within, &run.run);
    Ok(())
}

fn report(within: &RepositoryContext, run: RunId, kept: &Snapshot) -> Result<ExitStatus> {
    let run = RunRecords::read(&within.context, &within.state, run)?;
    let all = snapshots(&run.records, run.plan.as_ref());
    let taken = all.into_iter().find(|snapshot| snapshot.reference == kept.reference);
    let name = taken.map_or_else(|| kept.reference.clone(), |snapshot| snapshot.name);
    let [(_, restore), ..] = ways_back(&name);
    within.context.printer.print(
        format_args!("Kept as {name}\n  {}\nTo restore it:\n  {restore}\n", kept.reference),
        &json!({"run_id": run.run, "name": name, "commit": kept.commit, "reference": kept.reference}),
    )
}
