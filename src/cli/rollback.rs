//! `rollback`: lanes back to where they had not begun.

use serde_json::{Value, json};

use super::args::{Format, Rollback};
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::{Control, Opened, Part, Site, ports, take, wait_for_refs};
use super::options::session_id;
use super::runs::{command, named_or_only_unfinished, unknown_lane};
use crate::engine::mirror::Mirror;
use crate::event::{Record, RunStarted};
use crate::model::text::shell_line;
use crate::model::{LaneId, Plan, RunId, Stage};
use crate::recover::rollback::{KeptWork, LaneToPutBack, PutBack, RollbackError, RollbackPlan, carry_out, plan};
use crate::store::StateDirectory;
use crate::view::commands::Commands;

/// `rollback`.
pub(super) fn run(context: &Context, arguments: &Rollback) -> Result<ExitStatus, CliError> {
    if arguments.to != Stage::BeforeLaneStart {
        let message = format!("lanes cannot be reset to {}: rollback has one stage, before_lane_start", arguments.to);
        return Err(CliError::new(ExitStatus::Usage, message).hint("leave --to out"));
    }
    let site = Site::find_to_work_in(context)?;
    let settings = context.layers(arguments.control.layer())?.resolve(None);
    let run = named_or_only_unfinished(&site.state(&settings), arguments.run.as_ref())?;
    let session_id = session_id(&settings);
    let control = Control {
        session_id,
        accept_plan_change: arguments.control.accept_plan_change,
        on_conflict: arguments.control.on_conflict,
        settings,
    };
    roll_back(context, &site, &run, &arguments.lanes, &control)
}

/// Puts lanes of a run back to where they had not begun; no lane named: all that began.
pub(super) fn roll_back(
    context: &Context,
    site: &Site,
    run: &RunId,
    lanes: &[LaneId],
    control: &Control,
) -> Result<ExitStatus, CliError> {
    wait_for_refs(context, &site.repository)?;
    let mut opened = take(context, site, run, control, Part::All)?;
    let state = site.state(&control.settings);
    let (started, phase_plan) = (opened.started.clone(), opened.plan.clone());
    let run_of = (&started, &*phase_plan);
    let rollback = plan(&opened.state, &opened.records, lanes).map_err(|error| told(error, &state, run_of, lanes))?;
    present(context, &opened, &rollback, &state);
    let ports = ports(site, &control.settings, &opened.started, &opened.plan, opened.directory.clone())?;
    let unwritten = |error: String| {
        let hints = ["the run log is complete; `lanekeeper resume` writes the others again".to_owned()];
        context.printer.warning(format!("checkpoints.json or task.json is behind: {error}"), &hints);
    };
    let mirror =
        Mirror::start(&state, &ports.repository, &ports.pool, &opened.started, &opened.plan, opened.records.clone());
    let mirror = mirror.map_err(|error| unwritten(error.to_string())).ok();
    let mut follow = |records: &[Record]| mirror.iter().for_each(|mirror| mirror.send(records));
    let done = carry_out(&ports, &mut opened.journal, &mut opened.state, &rollback, &mut follow);
    if let Some(Err(error)) = mirror.map(Mirror::finish) {
        unwritten(error.to_string());
    }
    let done = done.map_err(|error| told(error, &state, run_of, lanes))?;
    report(context, &opened, &rollback, &done, &state)?;
    Ok(ExitStatus::Done)
}

/// What seed 004 wants a person to be told on every rollback, before it begins.
fn present(context: &Context, opened: &Opened, rollback: &RollbackPlan, state: &StateDirectory) {
    let run = &opened.started.run_id;
    if rollback.lanes.is_empty() {
        return;
    }
    let mut lines = vec![format!("Rolling back run {run} of phase {} to before_lane_start", opened.plan.phase)];
    lines.push("Current stage:".to_owned());
    for lane in &rollback.lanes {
        lines.push(format!("  {:<20} {:<24} {}", opened.plan.lane(lane.lane).id.as_str(), lane.stage, lane.standing));
    }
    lines.push(format!("Checkpoints: {}", state.checkpoints().display()));
    lines.extend(rollback.jobs.iter().map(|job| format!("Stopping {job}, if it still runs")));
    context.printer.note(lines.join("\n"));
}

fn report(
    context: &Context,
    opened: &Opened,
    rollback: &RollbackPlan,
    done: &[PutBack],
    state: &StateDirectory,
) -> Result<(), CliError> {
    let run = &opened.started.run_id;
    let program = state.program();
    let commands = Commands { program: &program, run };
    let (resume, again) = (shell_line(commands.resume()), shell_line(commands.rollback(None)));
    if context.printer.format() == Format::Json {
        let lanes: Vec<Value> = rollback.lanes.iter().zip(done).map(|(lane, done)| as_json(lane, done)).collect();
        return Ok(context.printer.json(&json!({
            "run_id": run,
            "phase": opened.plan.phase,
            "stage": Stage::BeforeLaneStart,
            "lanes": lanes,
            "never_began": rollback.untouched,
            "checkpoints": state.checkpoints(),
            "resume_hint": resume,
            "rollback_hint": again,
        }))?);
    }
    let mut lines: Vec<String> = Vec::new();
    for (lane, done) in rollback.lanes.iter().zip(done) {
        lines.extend(as_text(lane, done, &opened.started.base_branch));
    }
    lines.extend(rollback.untouched.iter().map(|lane| format!("{lane}: never began, so nothing was done")));
    lines.push(format!("To run the lanes again: {resume}"));
    lines.push(format!("To roll back what has begun by then: {again}"));
    Ok(context.printer.out(lines.join("\n") + "\n")?)
}

fn as_text(lane: &LaneToPutBack, done: &PutBack, base: &str) -> Vec<String> {
    let mut lines = vec![format!("{}: rolled back from {} ({})", done.lane, lane.stage, lane.standing)];
    if let Some(commit) = &done.undone_by {
        lines.push(format!("  its merge into {base} is undone by {}", commit.short()));
        lines.push(format!("    to have it in {base} again: {}", shell_line(["git", "revert", commit.as_str()])));
    }
    for work in &done.kept {
        let who = work.agent.as_ref().map_or("the lane", |agent| agent.as_str());
        lines.push(format!("  {who}: kept as {} ({})", work.reference, work.commit.short()));
        let [look, restore] = commands_for(work);
        lines.push(format!("    to look at it: {look}"));
        lines.push(format!("    to restore it: {restore}"));
    }
    if let Some(url) = &lane.pull_request {
        lines.push(format!("  its pull request stays as it is: {url}"));
        lines.push("    it is brought up to date when the lane is run again; otherwise close it there".to_owned());
    }
    lines.extend(done.aside.iter().map(|path| {
        format!("  what was in the place of a worktree is now {}; look at it, and delete it", path.display())
    }));
    if done.kept.is_empty() {
        lines.push("  it held no work that is not kept elsewhere".to_owned());
    }
    lines
}

fn commands_for(work: &KeptWork) -> [String; 2] {
    let name = format!("restored-{}", work.commit.short());
    [shell_line(["git", "log", &work.reference]), shell_line(["git", "checkout", "-b", &name, &work.reference])]
}

fn as_json(lane: &LaneToPutBack, done: &PutBack) -> Value {
    let kept = done.kept.iter().map(|work| {
        let [look, restore] = commands_for(work);
        json!({"agent": work.agent, "reference": work.reference, "commit": work.commit, "look": look, "restore": restore})
    });
    json!({
        "lane": done.lane,
        "was": lane.stage,
        "standing": lane.standing,
        "undone_by": done.undone_by,
        "pull_request": lane.pull_request,
        "kept": kept.collect::<Vec<_>>(),
        "aside": done.aside,
    })
}

/// What a rollback says when it cannot be done, with the exit code and what to type next.
pub(super) fn told(
    error: RollbackError,
    state: &StateDirectory,
    (started, plan): (&RunStarted, &Plan),
    asked: &[LaneId],
) -> CliError {
    let message = error.to_string();
    let again = |lanes: &[LaneId]| {
        let lanes = lanes.iter().flat_map(|lane| ["--lane", lane.as_str()]);
        let words: Vec<&str> = ["rollback", started.run_id.as_str()].into_iter().chain(lanes).collect();
        command(state, &words)
    };
    let then = format!("then the same again: {}", again(asked));
    let blocked = || CliError::new(ExitStatus::Blocked, &message);
    match error {
        RollbackError::UnknownLane(lane) => unknown_lane(&lane, plan.lanes.iter().map(|lane| &lane.id)),
        RollbackError::Dependants { all, .. } => {
            CliError::new(ExitStatus::Usage, message).hint(format!("all of them together: {}", again(&all)))
        }
        RollbackError::Conflict { merge, branch, .. } => {
            let checkout = shell_line(["git", "checkout", branch.as_str()]);
            let revert = shell_line(["git", "revert", "-m", "1", merge.as_str()]);
            blocked().hint(format!("undo it by hand: {checkout} && {revert}")).hint(then)
        }
        RollbackError::CheckedOut { obstacles, .. } => blocked().hint(obstacles.remedy.clone()).hint(then),
        RollbackError::BranchInUse { place, .. } => {
            let place = place.to_string_lossy();
            let leave = shell_line(["git", "-C", place.as_ref(), "checkout", "--detach"]);
            blocked().hint(format!("leave the branch: {leave}")).hint(then)
        }
        RollbackError::Embedded { .. } => blocked().hint("move them out of the worktree").hint(then),
        RollbackError::Busy { .. } | RollbackError::Process(_) => blocked().hint(then),
        RollbackError::Fault(_) => CliError::new(ExitStatus::Corrupted, message),
        RollbackError::Git(error) => CliError::from(error).hint(then),
        RollbackError::Port(_) => blocked().hint(then),
        RollbackError::File(error) => error.into(),
        RollbackError::Log(error) => error.into(),
    }
}
