//! `tell`: a word to the agents of a lane, also while they work.

use std::sync::Arc;

use lanewright_engine::at_resume::replay;
use lanewright_engine::executor::{BriefFiles, messages};
use lanewright_files::directory::create_directory_unsynced;
use lanewright_model::event::Record;
use lanewright_model::{AgentName, LaneId, RunId};
use lanewright_schedule::RunState;
use lanewright_store::lock::is_held;
use lanewright_store::{Request, tool_calls};
use serde_json::json;

use super::{ask, is_own_job};
use crate::cli::args::Tell;
use crate::cli::runs::{command, read_log, require_lane, require_plan};
use crate::cli::secrets::redactor_of_run;
use crate::cli::select::Selector;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};
use lanewright_plan::settings::Layer;

/// Records the message, and leaves it where agents that work find it.
pub(crate) fn run(context: &Context, arguments: &Tell) -> Result<ExitStatus> {
    let within = RepositoryContext::open(context, Layer::default())?;
    let target = Selector::new(context, &within.state).target(&arguments.target.names())?;
    let (run, lane) = (&target.run, target.lane("tell")?);
    let directory = within.state.run(run);
    if is_own_job(context, &directory) {
        let message = format!("this is one of the jobs of run {run}, whose agents only its user tells something");
        return Err(ExitStatus::InvalidOperation.error(message).hint("leave it to the user"));
    }
    let redactor = redactor_of_run(&within.settings, &directory);
    let message = redactor.redact(arguments.message.trim()).into_owned();
    if message.is_empty() {
        return Err(ExitStatus::Usage.error("there is nothing to tell").hint("give a text with -m TEXT"));
    }
    refuse_done(&within, run, lane, &state_of(context, &within, run)?)?;
    ask::record(&within, run, redactor, Request::Tell { lane: lane.clone(), message: message.clone() })?;
    let state = state_of(context, &within, run)?;
    let elsewhere = state.lane(require_lane(state.plan(), lane)?).is_elsewhere();
    // Those that began meanwhile have it in their prompt and get it twice, which is better than never.
    let at_work = if elsewhere { Vec::new() } else { deliver(&within, run, &state, lane, &message)? };
    let live = is_held(&directory.lock());
    let reached: Vec<String> = at_work.iter().filter(|(_, asks)| *asks).map(|(agent, _)| agent.to_string()).collect();
    let later: Vec<String> = at_work.iter().filter(|(_, asks)| !asks).map(|(agent, _)| agent.to_string()).collect();
    let mut text = vec![match elsewhere {
        true => format!(
            "Recorded for {lane}, which a job on a cluster has: its agents get it only if the lane is offered again."
        ),
        false => format!("Recorded for {lane}; the next prompts of its agents have it."),
    }];
    if !reached.is_empty() {
        text.push(format!("At work: {} gets it at the next tool call.", reached.join(" and ")));
    }
    if !later.is_empty() {
        let names = later.join(" and ");
        text.push(format!(
            "At work: {names}. Lanewright's hook was not called there so far; the message is given when it is, else with the \
             next attempt."
        ));
    }
    if !live {
        let resume = command(&within.state, &["resume", run.as_str()]);
        text.push(format!("The run is not active; continue with:\n  {resume}"));
    }
    let json = json!({
        "run_id": run, "lane": lane, "message": message, "live": live, "now": reached, "later": later, "elsewhere": elsewhere,
    });
    context.printer.print(format_args!("{}\n", text.join("\n")), &json)
}

pub(super) fn state_of(context: &Context, within: &RepositoryContext, run: &RunId) -> Result<RunState> {
    let directory = within.state.run(run);
    let plan = Arc::new(require_plan(run, &directory)?);
    let records: Vec<Record> = read_log(context, &directory)?.records;
    Ok(replay(run, &plan, &records)?)
}

fn refuse_done(within: &RepositoryContext, run: &RunId, lane: &LaneId, state: &RunState) -> Result<()> {
    let index = require_lane(state.plan(), lane)?;
    // One whose pull request is open may be sent back.
    if state.lane(index).is_left_to_do() || state.lane(index).is_followed() {
        return Ok(());
    }
    let look = command(&within.state, &["status", run.as_str(), lane.as_str()]);
    let message = format!("no agent works in lane {lane} any more, so the message would reach none");
    Err(ExitStatus::InvalidOperation.error(message).hint(format!("to look at it: {look}")))
}

/// Leaves the message with the attempts that run here: whose they are, and whether their programs ask for messages.
fn deliver(
    within: &RepositoryContext,
    run: &RunId,
    state: &RunState,
    lane: &LaneId,
    message: &str,
) -> Result<Vec<(AgentName, bool)>> {
    let directory = within.state.run(run);
    let mut reached = Vec::new();
    for job in state.running_jobs().filter(|job| job.is_attempt() && job.lane.as_ref() == Some(lane)) {
        let Some(agent) = job.agent() else { continue };
        let attempt = directory.job(job);
        // One that is planned may have no files yet.
        create_directory_unsynced(&attempt)?;
        tool_calls::append(&messages(&attempt), &json!(message))?;
        let files = BriefFiles { status: attempt.join("status.json"), directory: attempt };
        // A hook that passes on tool calls asks for messages, too.
        reached.push((agent.clone(), files.tool_calls().exists()));
    }
    Ok(reached)
}
