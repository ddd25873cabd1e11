//! The worktree of a lane or of an agent: which one it is, `path` and `open`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use lanewright_git::{HeldSlot, Pool};
use lanewright_model::event::RunStarted;
use lanewright_model::{AgentName, LaneId, LaneIndex, Plan, RunId};
use lanewright_plan::settings::Layer;
use lanewright_view::history::worktree_link;
use serde_json::json;

use crate::cli::args::{AgentArgs, Open};
use crate::cli::runs::{RunRecords, beginning, command, require_plan};
use crate::cli::select::{Selector, Target};
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};

/// Whether the agent works in the lane's own worktree.
pub(crate) fn shares(plan: &Plan, lane: LaneIndex, agent: &AgentName) -> bool {
    let plan = plan.lane(lane);
    plan.agents.iter().position(|known| known.name == *agent).is_some_and(|agent| plan.shares_worktree(agent))
}

/// The slot in which the agent, or without one the lane, works.
pub(crate) fn held_slot(
    pool: &Pool,
    run: &RunId,
    (lane, agent): (&LaneId, Option<&AgentName>),
) -> Result<Option<HeldSlot>> {
    let of = |slot: &HeldSlot| slot.holder.lane.as_ref() == Some(lane) && slot.holder.agent.as_ref() == agent;
    Ok(pool.held_by(run)?.into_iter().find(|slot| slot.provisioned && of(slot)))
}

/// The agent of the target, if it has a worktree of its own.
pub(super) fn own_agent<'t>(run: &RunRecords, target: &'t Target, lane: &LaneId) -> Result<Option<&'t AgentName>> {
    let plan = require_plan(&run.run, &run.directory)?;
    let at = plan.find(lane);
    Ok(target.agent.as_ref().filter(|agent| at.is_none_or(|lane| !shares(&plan, lane, agent))))
}

/// `path`: prints where a worktree is.
pub(crate) fn path(context: &Context, arguments: &AgentArgs) -> Result<ExitStatus> {
    let (target, path) = worktree(context, arguments, "path")?;
    let json = json!({"run_id": target.run, "lane": target.lane, "agent": target.agent, "path": path});
    context.printer.print(format_args!("{}\n", path.display()), &json)
}

/// `open`: starts a program in a worktree.
pub(crate) fn open(context: &Context, arguments: &Open) -> Result<ExitStatus> {
    let (_, path) = worktree(context, &arguments.target, "open")?;
    let line = arguments.with.clone().map_or_else(|| editor(context), Ok)?;
    let ended = Command::new("sh").args(["-c", &line]).current_dir(&path).status();
    let ended = ended.with_context(|| format!("cannot start `{line}`"))?;
    match ended.success() {
        true => Ok(ExitStatus::Done),
        false => Err(ExitStatus::Failed.error(format!("`{line}` ended with {ended}"))),
    }
}

/// The shell line that opens the present directory in the user's editor.
pub(crate) fn editor(context: &Context) -> Result<String> {
    let named = |name: &str| context.environment.get(name).and_then(|editor| editor.to_str()).map(str::trim);
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| named(name).filter(|editor| !editor.is_empty()));
    let missing = || ExitStatus::Usage.error("neither VISUAL nor EDITOR names an editor");
    let editor = editor.ok_or_else(|| missing().hint("name a program: lanewright open LANE --with 'code .'"))?;
    Ok(format!("{editor} ."))
}

fn worktree(context: &Context, arguments: &AgentArgs, word: &str) -> Result<(Target, PathBuf)> {
    let within = RepositoryContext::open(context, Layer::default())?;
    let target = Selector::new(context, &within.state).agent_target(&arguments.names())?;
    let lane = target.lane(word)?;
    let run = RunRecords::read(context, &within.state, target.run.clone())?;
    let agent = own_agent(&run, &target, lane)?;
    let started = run.started()?;
    let pool = within.pool(&started.options.worktree_root, started.options.keep_caches);
    match held_slot(&pool, &run.run, (lane, agent))? {
        Some(slot) => {
            let path = shown(started, (lane, agent), &slot.path);
            Ok((target, path))
        }
        None => Err(missing_worktree(&within, &target, &run)),
    }
}

/// The link that is named after the lane, if it leads to the slot.
fn shown(started: &RunStarted, (lane, agent): (&LaneId, Option<&AgentName>), slot: &Path) -> PathBuf {
    let link = worktree_link(started, lane, agent);
    let leads_there = fs::canonicalize(&link).is_ok_and(|path| fs::canonicalize(slot).is_ok_and(|slot| slot == path));
    if leads_there { link } else { slot.to_owned() }
}

/// Why there is no worktree of the target here.
pub(crate) fn missing_worktree(within: &RepositoryContext, target: &Target, run: &RunRecords) -> anyhow::Error {
    let history = beginning(&run.directory).after(&run.records);
    let placement = target.lane.as_ref().and_then(|lane| history.lane(lane)?.elsewhere());
    let why = match placement {
        Some(placement) => format!("here: {placement}"),
        None => "now: it has not started, was merged or was rolled back".to_owned(),
    };
    let message = format!("{} has no worktree {why}", target.place());
    let status = command(&within.state, &["status", target.run.as_str()]);
    ExitStatus::InvalidState.error(message).hint(format!("to see its state: {status}"))
}
