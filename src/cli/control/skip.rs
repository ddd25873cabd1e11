//! `skip`: leaves a lane out of its run.

use lanewright_model::event::Event;
use lanewright_model::{LaneId, LaneIndex};
use serde_json::json;

use crate::cli::args::Skip;
use crate::cli::run::{Adoption, LockedRun, Reach, adopt, complete_files_of, left_to_do, resume_with, undo_of_skip};
use crate::cli::runs::command;
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn run(context: &Context, arguments: &Skip) -> Result<ExitStatus> {
    let layer = arguments.then.layer();
    let within = RepositoryContext::open_for_work(context, layer.clone())?;
    let target = Selector::new(context, &within.state).target(&arguments.target.names())?;
    let lane = target.lane("skip")?;
    let text = record(&within, adopt(&within, &target.run, &Adoption::default(), Reach::Own)?, lane, arguments)?;
    if arguments.then.resume {
        context.printer.note(text);
        return resume_with(&within, &target.run, &Adoption::after_change(&arguments.then), layer);
    }
    let next = command(&within.state, &["resume", target.run.as_str()]);
    let json = json!({"run_id": target.run, "lane": lane, "reason": arguments.message});
    context.printer.print(format_args!("{text}\nThe run is not active; continue with:\n  {next}\n"), &json)
}

/// Records that the lane is left out; the text says what that means.
fn record(within: &RepositoryContext, mut locked: LockedRun, lane: &LaneId, arguments: &Skip) -> Result<String> {
    let plan = locked.plan.clone();
    let index = left_to_do(within, &locked, lane, "skip")?;
    refuse_at_work(within, &locked, lane, index)?;
    let reason = arguments.message.trim().to_owned();
    locked.journal.append(now(), &Event::LaneSkipped { lane: lane.clone(), reason })?;
    locked.journal.sync()?;
    complete_files_of(within, &locked.started.run_id);
    let dependants: Vec<&str> = plan.dag().dependants(index).iter().map(|lane| plan.lane(*lane).id.as_str()).collect();
    let others = match dependants.as_slice() {
        [] => "no other lane depends on it".to_owned(),
        lanes => format!("{} will go on without its work", lanes.join(", ")),
    };
    let undo = undo_of_skip(within, &locked, index);
    Ok(format!("Lane {lane} is skipped; {others}. Its work is kept.\nTo take it in again: {undo}"))
}

fn refuse_at_work(within: &RepositoryContext, locked: &LockedRun, lane: &LaneId, index: LaneIndex) -> Result<()> {
    if is_published(within, locked, index)? || !locked.state.lane(index).is_quiet() {
        let run = locked.started.run_id.as_str();
        let resume = command(&within.state, &["resume", run]);
        let message = format!("lane {lane} was interrupted at work, so it cannot be skipped now");
        return Err(ExitStatus::InvalidOperation.error(message).hint(format!(
            "let it come to rest first: {resume}, then {}",
            command(&within.state, &["stop", run, lane.as_str()])
        )));
    }
    Ok(())
}

/// Whether the lane's work is on the integration branch, also if Lanewright died before it could record that.
fn is_published(within: &RepositoryContext, locked: &LockedRun, lane: LaneIndex) -> Result<bool> {
    let Some(staged) = locked.state.lane(lane).staged() else { return Ok(false) };
    let tip = within.repository.branch_commit(&locked.started.base_branch)?;
    Ok(tip.map_or(Ok(false), |tip| within.repository.is_ancestor(&staged.commit, &tip))?)
}
