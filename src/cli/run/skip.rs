//! `skip`: leaves a lane out of its run.

use lanewright_model::event::Event;
use lanewright_model::{LaneId, LaneIndex};
use lanewright_schedule::LaneEnd;
use serde_json::json;

use super::locked_run::{LockedRun, Reach, adopt};
use super::phases::resume_with;
use super::request::Adoption;
use crate::cli::args::Skip;
use crate::cli::runs::{command, unknown_lane};
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn skip_lane(context: &Context, arguments: &Skip) -> Result<ExitStatus> {
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
    let undo = taking_in_again(within, &locked, index);
    Ok(format!("Lane {lane} is skipped; {others}. Its work is kept.\nTo take it in again: {undo}"))
}

/// The rollback that takes a skipped lane in again. It names the lanes that depend on it, so that it is possible also
/// after those were merged.
fn taking_in_again(within: &RepositoryContext<'_>, locked: &LockedRun, lane: LaneIndex) -> String {
    let (plan, run) = (&locked.plan, locked.started.run_id.as_str());
    let is_part = |lane: &LaneIndex| locked.state.lane(*lane).end() != Some(&LaneEnd::Left);
    let lanes: Vec<LaneIndex> = plan.dag().with_dependants([lane]).into_iter().filter(is_part).collect();
    let options = lanes.iter().flat_map(|lane| ["--lane", plan.lane(*lane).id.as_str()]);
    command(&within.state, &["rollback", run].into_iter().chain(options).collect::<Vec<_>>())
}

/// Refuses a lane in which nothing is left that could be `wanted`: to skip, to retry, to resume.
pub(super) fn refuse_over(
    within: &RepositoryContext<'_>,
    locked: &LockedRun,
    lane: LaneIndex,
    wanted: &str,
) -> Result<()> {
    let (id, state) = (&locked.plan.lane(lane).id, locked.state.lane(lane));
    if state.is_left_to_do() {
        return Ok(());
    }
    let refused =
        |is: &str| ExitStatus::InvalidOperation.error(format!("lane {id} {is}; there is nothing to {wanted}"));
    Err(match state.end() {
        Some(LaneEnd::Skipped) => {
            refused("is skipped").hint(format!("to take it in again: {}", taking_in_again(within, locked, lane)))
        }
        Some(LaneEnd::Left) => refused("is not part of this run"),
        _ => refused("is done"),
    })
}

fn refuse(within: &RepositoryContext<'_>, locked: &LockedRun, lane: &LaneId, index: LaneIndex) -> Result<()> {
    refuse_over(within, locked, index, "skip")?;
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
fn is_published(within: &RepositoryContext<'_>, locked: &LockedRun, lane: LaneIndex) -> Result<bool> {
    let Some(staged) = locked.state.lane(lane).staged() else { return Ok(false) };
    let tip = within.repository.branch_commit(&locked.started.base_branch)?;
    Ok(tip.map_or(Ok(false), |tip| within.repository.is_ancestor(&staged.commit, &tip))?)
}
