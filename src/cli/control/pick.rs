//! `pick`: another candidate of a lane, before it is merged.

use lanewright_model::{LaneId, Round, RunId};
use lanewright_schedule::Unpickable;
use lanewright_store::Request;
use lanewright_store::lock::is_held;
use serde_json::json;

use super::tell::state_of;
use super::{ask, is_own_job};
use crate::cli::args::Pick;
use crate::cli::run::{Adoption, resume_with};
use crate::cli::runs::{candidate, command, require_lane};
use crate::cli::secrets::redactor_of_run;
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};

/// Records the pick; the process that works on the run, or a resume, acts upon it.
pub(crate) fn run(context: &Context, arguments: &Pick) -> Result<ExitStatus> {
    let layer = arguments.then.layer();
    let within = RepositoryContext::open_for_work(context, layer.clone())?;
    let (names, number) = arguments.names();
    let number = number.filter(|_| !names.is_empty()).and_then(|number| number.as_str().parse().ok());
    let Some(number) = number else {
        let error = ExitStatus::Usage.error("the number of a candidate is missing");
        return Err(error.hint("give the lane and the number: lanewright pick SL-1 2"));
    };
    let target = Selector::new(context, &within.state).target(&names)?;
    let (run, lane) = (&target.run, target.lane("pick")?);
    let directory = within.state.run(run);
    if is_own_job(context, &directory) {
        let message = format!("this is one of the jobs of run {run}, for which only its user picks");
        return Err(ExitStatus::InvalidOperation.error(message).hint("leave it to the user"));
    }
    let state = state_of(context, &within, run)?;
    let index = require_lane(state.plan(), lane)?;
    let (at, agent) = candidate(state.plan(), lane, number)?;
    let lane_state = state.lane(index);
    lane_state.may_pick(at).map_err(|why| refused(&within, (run, lane, number), why))?;
    let is_chosen = lane_state.chosen() == Some(at) && lane_state.picked().is_none();
    if !is_chosen {
        let redactor = redactor_of_run(&within.settings, &directory);
        ask::record(&within, run, redactor, Request::Pick { lane: lane.clone(), agent: agent.clone() })?;
        // It may have been merged before the process that works on it heard of the pick.
        if !state_of(context, &within, run)?.lane(index).wants(at) {
            return Err(refused(&within, (run, lane, number), Unpickable::InQueue));
        }
    }
    let live = is_held(&directory.lock());
    let mut text = match lane_state.chosen() {
        _ if is_chosen => format!("Candidate {number} of {lane}, {agent}, is chosen already.\n"),
        None => {
            let judge = state.plan().lane(index).round(Round::Judge).next();
            let others = if judge.is_some() { "the other candidates and the judge are" } else { "the others are" };
            format!("Candidate {number}, {agent}, will continue as the agent of {lane} once {others} done.\n")
        }
        Some(chosen) if chosen == at => format!("Candidate {number} of {lane}, {agent}, stays chosen.\n"),
        Some(_) => {
            format!("Candidate {number}, {agent}, will continue as the agent of {lane}; its work is judged again.\n")
        }
    };
    if !live && arguments.then.resume {
        context.printer.note(text.trim_end());
        return resume_with(&within, run, &Adoption::after_change(&arguments.then), layer);
    }
    if !live {
        let resume = command(&within.state, &["resume", run.as_str()]);
        text.push_str(&format!("The run is not active; continue with:\n  {resume}\n"));
    }
    if live && !is_chosen && lane_state.gave_up() {
        let resume = command(&within.state, &["resume", run.as_str()]);
        text.push_str(&format!("Lane {lane} has ended. Once the run has ended, continue with:\n  {resume}\n"));
    }
    let json = json!({"run_id": run, "lane": lane, "candidate": number, "agent": agent, "live": live});
    context.printer.print(text, &json)
}

fn refused(within: &RepositoryContext, (run, lane, number): (&RunId, &LaneId, u32), why: Unpickable) -> anyhow::Error {
    let command = |words: &[&str]| command(&within.state, words);
    let (run, id, candidate) = (run.as_str(), lane.as_str(), number.to_string());
    let rollback = || format!("undo that first: {}", command(&["rollback", run, "--lane", id]));
    let status = || format!("to see how far it is: {}", command(&["status", run, id]));
    let (message, hint) = match why {
        Unpickable::Merged => (format!("lane {lane} is merged, so no other candidate can be picked"), rollback()),
        Unpickable::Skipped => (format!("lane {lane} is skipped, so no candidate is merged"), rollback()),
        Unpickable::Proposed => (format!("lane {lane} has a pull request with its candidate"), rollback()),
        Unpickable::InQueue => (format!("lane {lane} is being merged, so no other candidate can be picked"), status()),
        Unpickable::AtWork => (format!("candidate {number} of {lane} has not passed its gates yet"), status()),
        Unpickable::Failed => {
            let work = command(&["diff", run, id, "--candidate", &candidate]);
            (format!("candidate {number} of {lane} failed"), format!("to see its work: {work}"))
        }
    };
    ExitStatus::InvalidOperation.error(message).hint(hint)
}
