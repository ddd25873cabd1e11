//! `skip`: leaves a lane out of its run.

use serde_json::json;

use super::locked_run::{LockedRun, Reach, adopt};
use super::phases::resume_with;
use super::request::Adoption;
use crate::cli::args::Skip;
use crate::cli::runs::{command, unknown_lane};
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result, now};
use crate::event::Event;
use crate::model::{LaneId, LaneIndex};

pub(crate) fn skip_lane(context: &Context, arguments: &Skip) -> Result<ExitStatus> {
    let layer = arguments.then.layer();
    let within = RepositoryContext::open_for_work(context, layer.clone())?;
    let target = Selector::new(context, &within.state).target(&arguments.target.names())?;
    let lane = target.lane("skip")?;
    let text = record(&within, adopt(&within, &target.run, &Adoption::default(), Reach::Own)?, lane, arguments)?;
    if arguments.then.resume {
        context.printer.note(text);
        return resume_with(&within, &target.run, &Adoption::after_answer(&arguments.then), layer);
    }
    let next = command(&within.state, &["resume", target.run.as_str()]);
    let json = json!({"run_id": target.run, "lane": lane, "reason": arguments.message});
    context.printer.print(format_args!("{text}\nThe run is not active; continue with:\n  {next}\n"), &json)
}

/// Records that the lane is left out; the text says what that means.
fn record(within: &RepositoryContext<'_>, mut locked: LockedRun, lane: &LaneId, arguments: &Skip) -> Result<String> {
    let plan = locked.plan.clone();
    let unknown = || unknown_lane(lane, plan.lanes.iter().map(|lane| &lane.id));
    let index = plan.find(lane).ok_or_else(unknown)?;
    refuse(within, &locked, lane, index)?;
    let reason = arguments.message.trim().to_owned();
    locked.journal.append(now(), &Event::LaneSkipped { lane: lane.clone(), reason })?;
    locked.journal.sync()?;
    let dependants: Vec<&str> = plan.dag().dependants(index).iter().map(|lane| plan.lane(*lane).id.as_str()).collect();
    let others = match dependants.as_slice() {
        [] => "no other lane depends on it".to_owned(),
        lanes => format!("{} will go on without its work", lanes.join(", ")),
    };
    let undo = command(&within.state, &["rollback", locked.started.run_id.as_str(), "--lane", lane.as_str()]);
    Ok(format!("Lane {lane} is skipped; {others}. Its work is kept.\nTo take it in again: {undo}"))
}

fn refuse(within: &RepositoryContext<'_>, locked: &LockedRun, lane: &LaneId, index: LaneIndex) -> Result<()> {
    let state = locked.state.lane(index);
    if !state.is_left_to_do() {
        return Err(ExitStatus::InvalidOperation.error(format!("lane {lane} is done, so it cannot be skipped")));
    }
    if !state.is_quiet() {
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
