//! `checkpoints create`: saves a worktree as it is now, or the branch where no worktree is.

use std::sync::Arc;

use lanewright_engine::executor::{Executor, SnapshotTarget};
use lanewright_git::Snapshot;
use lanewright_model::event::{GivenContext, SnapshotReason};
use lanewright_model::{AgentName, LaneId, LaneIndex, Plan, RunId};
use lanewright_store::Request;
use lanewright_store::lane_files::read_context;
use lanewright_view::history::snapshots::snapshots;
use serde_json::json;

use super::find::ways_back;
use crate::cli::args::CreateCheckpoint;
use crate::cli::control::ask::record;
use crate::cli::json_argument;
use crate::cli::look::worktree::{held_slot, missing_worktree, shares};
use crate::cli::runs::{RunRecords, beginning, require_lane, require_plan, unknown};
use crate::cli::secrets::with_secrets;
use crate::cli::select::{Selector, Target};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn run(within: &RepositoryContext, arguments: &CreateCheckpoint) -> Result<ExitStatus> {
    let target = Selector::new(&within.context, &within.state).agent_target(&arguments.target.names())?;
    let (place, agent) = (target.lane("checkpoints create")?, target.agent.as_ref());
    let run = RunRecords::read(&within.context, &within.state, target.run.clone())?;
    let started = run.started()?;
    let plan = Arc::new(with_secrets(&within.settings, started, &require_plan(&run.run, &run.directory)?));
    let lane = lane_of(&plan, place, agent)?;
    let executor = within.executor(started, &plan)?;
    let holder = agent.filter(|agent| !shares(&plan, lane, agent));
    let context = arguments.context.as_deref().map(|text| given(text, &executor, lane, agent)).transpose()?;
    let slot = held_slot(&executor.pool, &run.run, (place, holder))?;
    let snapshot = SnapshotTarget { lane, agent, at: now(), reason: SnapshotReason::Request };
    let history = beginning(&run.directory).after(&run.records);
    if slot.is_none() && history.lane(place).is_some_and(|lane| lane.elsewhere().is_some()) {
        return Err(missing_worktree(within, &target, &run));
    }
    let words = executor.redactor.redact(&arguments.message);
    let kept = match slot {
        Some(slot) => executor.keep_worktree_with_note(&snapshot, &slot.path, &words)?,
        None => executor.keep_branch_with_note(&snapshot, &words)?.ok_or_else(|| nothing_there(&target))?,
    };
    let (lane, agent) = (place.clone(), agent.cloned());
    let (commit, reference) = (kept.commit.clone(), kept.reference.clone());
    let checked_out = executor.checked_out(snapshot.reason, &commit);
    let context = context.map(Box::new);
    let request = Request::Record { lane, agent, commit, reference, context, checked_out };
    record(within, &run.run, executor.redactor, request)?;
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

/// What is given along with the snapshot; the next task is one of the agent's, or without an agent of the lane's.
fn given(text: &str, executor: &Executor, lane: LaneIndex, agent: Option<&AgentName>) -> Result<GivenContext> {
    let value = json_argument::read("--context", text, &executor.redactor)?;
    let context = read_context(&value).map_err(|fault| {
        let error = ExitStatus::Usage.error(format!("--context {fault}; nothing was kept"));
        error.hint(
            "for example: --context '{\"decisions\": [\"use the v2 API\"], \"blockers\": [], \"next_task\": \"2\"}'",
        )
    })?;
    let plan = executor.plan.lane(lane);
    let agents = plan.agents.iter().filter(|known| agent.is_none_or(|agent| known.name == *agent));
    let tasks: Vec<&str> = agents.flat_map(|agent| &agent.tasks).map(|task| task.id.as_str()).collect();
    match &context.next_task {
        Some(next) if !tasks.contains(&next.as_str()) => {
            Err(unknown(&format!("lane {}", plan.id), "task", next.as_str(), &tasks))
        }
        _ => Ok(context),
    }
}

fn nothing_there(target: &Target) -> anyhow::Error {
    let message = format!("{} has no worktree and no branch now, so there is nothing to keep", target.place());
    ExitStatus::InvalidState.error(message).hint(format!("to see its state: lanewright status {}", target.run))
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
