//! `rollback`: lanes back to their starting point.

use lanewright_engine::rollback::{
    Asked, LaneToRollBack, MergedWork, RollbackError, RollbackPlan, RolledBackBefore, RolledBackLane, carry_out,
    left_ticked, merged_work, plan,
};
use lanewright_model::event::{Event, Record, RunOutcome, RunStarted, SnapshotReason, stage_in_words};
use lanewright_model::text::{counted, listed, shell_line};
use lanewright_model::{LaneId, Plan, RunId, Stage};
use lanewright_store::StateDirectory;
use lanewright_view::answers::commands::Commands;
use lanewright_view::history::SnapshotView;
use serde_json::{Value, json};

use super::intent::{Adoption, Consent};
use super::lock::{LockedRun, Reach, adopt};
use super::power_cut::{is_in_another_boot, recover};
use crate::cli::args::Rollback;
use crate::cli::confirm::{can_ask, confirms};
use crate::cli::executors::remove_states;
use crate::cli::look::report;
use crate::cli::runs::{command, did_you_mean, unknown_lane};
use crate::cli::select::Selector;
use crate::cli::wait_policy::wait_for_refs;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};
use crate::progress::Activity;
use crate::progress::projections::ProjectionWriter;

pub(crate) fn rollback(context: &Context, arguments: &Rollback) -> Result<ExitStatus> {
    let within = RepositoryContext::open_for_work(context, arguments.control.layer())?;
    let run = Selector::new(context, &within.state).unfinished(arguments.run.run.as_ref(), "roll back")?;
    let consent = Consent { yes: arguments.control.yes, dry_run: arguments.dry_run };
    let to = Some(arguments.to.as_str()).filter(|to| *to != Stage::BeforeLaneStart.word());
    let asked = Asked { lanes: &arguments.lanes, to };
    roll_back(&within, &run, asked, (&Adoption::of(&arguments.control), consent))
}

/// Rolls back what is `asked` of a run.
pub(super) fn roll_back(
    within: &RepositoryContext,
    run: &RunId,
    asked: Asked<'_>,
    (adoption, consent): (&Adoption, Consent),
) -> Result<ExitStatus> {
    let context = &within.context;
    wait_for_refs(context, &within.repository)?;
    let mut locked = adopt(within, run, adoption, Reach::All)?;
    let (started, phase_plan) = (locked.started.clone(), locked.plan.clone());
    let refused_with = |error, flags: &[&str]| refusal(error, &within.state, (&started, &phase_plan), (asked, flags));
    let given: &[&str] = if consent.yes { &["--yes"] } else { &[] };
    let refused = |error| refused_with(error, given);
    let rollback = plan(&locked.state, &locked.records, asked).map_err(refused)?;
    let executor = within.executor(&started, &phase_plan)?;
    let undone = merged_work(&executor, &rollback).map_err(refused)?;
    if consent.dry_run {
        return preview(within, &locked, &rollback, (&undone, asked));
    }
    if !is_agreed(within, &started, asked, &undone, consent)? {
        context.printer.out("Nothing was changed.\n")?;
        return Ok(ExitStatus::Done);
    }
    if is_in_another_boot(within, &locked) {
        recover(within, &locked, &executor)?;
    }
    present(within, &locked, &rollback, asked);
    let was_placed = |it: &&LaneToRollBack| locked.state.lane(it.lane).placement().number() > 0;
    let placed: Vec<LaneId> =
        rollback.lanes.iter().filter(was_placed).map(|it| phase_plan.lane(it.lane).id.clone()).collect();
    let behind = |error: String| {
        let hints = ["the run log is complete; `lanewright resume` writes the others again".to_owned()];
        context.printer.warning(format!("checkpoints.json or task.json is behind: {error}"), &hints);
    };
    let writer = within.projections(&started, &phase_plan, locked.records.clone());
    let writer = writer.map_err(|error| behind(error.to_string())).ok();
    let mut left = rollback.lanes.len();
    let show = |left: usize| match left {
        0 => within.activity("Removing worktrees"),
        lanes => within.counted_activity("Resetting lanes", lanes),
    };
    let mut shown = Some(show(left));
    let mut follow = |records: &[Record]| {
        writer.iter().for_each(|writer| writer.send(records));
        for _ in records.iter().filter(|record| matches!(record.event, Event::LaneRolledBack { .. })) {
            shown.iter().for_each(Activity::advance);
            left = left.saturating_sub(1);
            if left == 0 {
                drop(shown.take());
                shown = Some(show(0));
            }
        }
    };
    let done = carry_out(&executor, &mut locked.journal, &mut locked.state, &rollback, &mut follow);
    drop(shown);
    within.show_notices();
    if let Some(Err(error)) = writer.map(ProjectionWriter::finish) {
        behind(error.to_string());
    }
    // The user said yes to what is undone, also where that was asked for.
    let agreed: &[&str] = if undone.is_empty() { given } else { &["--yes"] };
    let done = done.map_err(|error| refused_with(error, agreed))?;
    if !placed.is_empty() {
        remove_states(within, run, &placed);
    }
    if rollback.ends_run {
        report::keep(within, &phase_plan, run);
    }
    report(within, &locked, &rollback, (&done, asked))
}

/// Whether merged work may be undone: the user says so, with `--yes` or when asked.
fn is_agreed(
    within: &RepositoryContext,
    started: &RunStarted,
    asked: Asked<'_>,
    undone: &[MergedWork],
    consent: Consent,
) -> Result<bool> {
    if consent.yes || undone.is_empty() {
        return Ok(true);
    }
    let (context, run, base) = (&within.context, &started.run_id, &started.base_branch);
    let list: Vec<String> = undone.iter().map(|work| format!("  {}", described(work))).collect();
    let list = list.join("\n");
    if can_ask(context) {
        context.printer.out(format!("The rollback of run {run} undoes merged work on {base}:\n{list}\n"))?;
        return confirms(context, "Undo it?");
    }
    let message = format!("the rollback of run {run} undoes merged work on {base}, which needs a yes:\n{list}");
    Err(ExitStatus::Usage
        .error(message)
        .hint(format!("to undo it: {}", again(&within.state, run, asked, &["--yes"])))
        .hint(format!("to see all that would be done: {}", again(&within.state, run, asked, &["--dry-run"]))))
}

/// `SL-1: merge 1a2b3c4, 2 commits, 3 files`
fn described(MergedWork { lane, merge, commits, files }: &MergedWork) -> String {
    format!("{lane}: merge {}, {}, {}", merge.short(), counted(*commits, "commit"), counted(*files, "file"))
}

/// The same rollback with other flags.
fn again(state: &StateDirectory, run: &RunId, asked: Asked<'_>, flags: &[&str]) -> String {
    let lanes = asked.lanes.iter().flat_map(|lane| ["--lane", lane.as_str()]);
    let to = asked.to.into_iter().flat_map(|to| ["--to", to]);
    let words = ["rollback", run.as_str()].into_iter().chain(lanes).chain(to).chain(flags.iter().copied());
    let words: Vec<&str> = words.collect();
    command(state, &words)
}

/// What a rollback would do (`--dry-run`).
fn preview(
    within: &RepositoryContext,
    locked: &LockedRun,
    rollback: &RollbackPlan,
    (undone, asked): (&[MergedWork], Asked<'_>),
) -> Result<ExitStatus> {
    let run = &locked.started.run_id;
    let id = |lane: &LaneToRollBack| &locked.plan.lane(lane.lane).id;
    let lanes = rollback.lanes.iter().map(|it| json!({"lane": id(it), "was": it.stage, "standing": it.standing}));
    let undoes =
        undone.iter().map(|it| json!({"lane": it.lane, "merge": it.merge, "commits": it.commits, "files": it.files}));
    let json = json!({
        "run_id": run,
        "phase": locked.plan.phase,
        "stage": point_of(asked),
        "dry_run": true,
        "lanes": lanes.collect::<Vec<_>>(),
        "undoes": undoes.collect::<Vec<_>>(),
        "stops": rollback.jobs,
        "never_began": rollback.untouched,
        "already_rolled_back": rollback.already.iter().map(before_as_json).collect::<Vec<_>>(),
    });
    let mut lines: Vec<String> = rollback
        .lanes
        .iter()
        .map(|it| format!("{}: would be rolled back from {}{}", id(it), standing(it), to(it)))
        .collect();
    lines.extend(rollback.jobs.iter().map(|job| format!("{job}: would be stopped, if it still runs")));
    if !undone.is_empty() {
        lines.push(format!("Merged work on {} that would be undone:", locked.started.base_branch));
        lines.extend(undone.iter().map(|work| format!("  {}", described(work))));
    }
    lines.extend(at_rest(locked, rollback));
    lines.push("Nothing was changed (--dry-run).".to_owned());
    within.context.printer.print(lines.join("\n") + "\n", &json)
}

/// The lanes in which there is nothing to do.
fn at_rest(locked: &LockedRun, rollback: &RollbackPlan) -> Vec<String> {
    let mut lines: Vec<String> = rollback.already.iter().map(|it| before_as_text(it, locked)).collect();
    let never_began: Vec<String> = rollback.untouched.iter().map(ToString::to_string).collect();
    let never_began = Some(listed(&never_began, NAMED)).filter(|_| !never_began.is_empty());
    lines.extend(never_began.map(|lanes| format!("{lanes}: never began, so nothing was done")));
    lines
}

fn before_as_text(before: &RolledBackBefore, locked: &LockedRun) -> String {
    let mut text = format!("{}: already rolled back at {}", before.lane, before.at);
    if let Some(integration) = &before.integration {
        text += &format!("; its merge into {} is undone as of {}", locked.started.base_branch, integration.short());
    }
    if !before.kept.is_empty() {
        text += &format!("; its work is saved as {}", before.kept.join(" and "));
    }
    text
}

fn before_as_json(before: &RolledBackBefore) -> Value {
    json!({"lane": before.lane, "at": before.at, "integration": before.integration, "kept": before.kept})
}

/// What is printed before a rollback begins (seed 004).
fn present(within: &RepositoryContext, locked: &LockedRun, rollback: &RollbackPlan, asked: Asked<'_>) {
    let run = &locked.started.run_id;
    let mut lines = vec![format!("Rolling back run {run} of phase {} to {}", locked.plan.phase, point_of(asked))];
    let stage = |lane: &LaneToRollBack| format!("{} at {}", locked.plan.lane(lane.lane).id, standing(lane));
    let mut stages: Vec<String> = rollback.lanes.iter().map(stage).collect();
    stages.extend(rollback.already.iter().map(|before| format!("{} rolled back", before.lane)));
    stages.extend(rollback.untouched.iter().map(|lane| format!("{lane} not begun")));
    lines.push(format!("Current stage: {}", listed(&stages, NAMED)));
    lines.push(format!("Checkpoints: {}", within.state.checkpoints().display()));
    lines.extend(rollback.jobs.iter().map(|job| format!("Stopping {job}, if it still runs")));
    within.context.printer.note(lines.join("\n"));
}

/// How many lanes are named with their stage.
const NAMED: usize = 4;

fn report(
    within: &RepositoryContext,
    locked: &LockedRun,
    rollback: &RollbackPlan,
    (done, asked): (&[RolledBackLane], Asked<'_>),
) -> Result<ExitStatus> {
    let run = &locked.started.run_id;
    let program = within.state.program();
    let commands = Commands { program: &program, run };
    let (resume, again) = (shell_line(commands.resume()), shell_line(commands.rollback(None)));
    let is_over = locked.state.finished().is_some_and(|(outcome, _)| outcome == RunOutcome::RolledBack);
    let lanes: Vec<Value> = rollback.lanes.iter().zip(done).map(|(lane, done)| as_json(lane, done)).collect();
    let json = json!({
        "run_id": run,
        "phase": locked.plan.phase,
        "stage": point_of(asked),
        "lanes": lanes,
        "never_began": rollback.untouched,
        "already_rolled_back": rollback.already.iter().map(before_as_json).collect::<Vec<_>>(),
        "outcome": is_over.then_some(RunOutcome::RolledBack),
        "checkpoints": within.state.checkpoints(),
        "resume_hint": resume,
        "rollback_hint": again,
    });
    let mut lines: Vec<String> = Vec::new();
    for (lane, done) in rollback.lanes.iter().zip(done) {
        lines.extend(as_text(lane, done, &locked.started.base_branch, &commands));
    }
    lines.extend(at_rest(locked, rollback));
    if is_over {
        let already = if rollback.lanes.is_empty() && !rollback.ends_run { "already " } else { "" };
        lines.push(format!("Run {run} is {already}rolled back; its plan can be started again."));
        lines.push(format!("To list its saved work: {}", shell_line(commands.snapshots())));
        lines.push(format!("To remove what else is left of it: {}", shell_line(commands.clean())));
        lines.push(format!("To run its lanes again: {resume}"));
    } else {
        lines.push(format!("To run the lanes again: {resume}"));
        lines.push(format!("To roll back what has begun by then: {again}"));
    }
    within.context.printer.print(lines.join("\n") + "\n", &json)
}

fn as_text(lane: &LaneToRollBack, done: &RolledBackLane, base: &str, commands: &Commands<'_>) -> Vec<String> {
    let mut lines = vec![format!("{}: rolled back from {}{}", done.lane, standing(lane), to(lane))];
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
    if let Some(work) = done.kept.iter().find(|work| work.reason == SnapshotReason::Rollback) {
        let undo = shell_line(commands.rollback_to([&done.lane], Some(&work.reference)));
        lines.push(format!("  to undo the rollback of {}: {undo}", done.lane));
    }
    if let Some(url) = &lane.pull_request {
        lines.push(format!("  its pull request stays as it is: {url}"));
        lines.push("    it is brought up to date when the lane is run again; otherwise close it there".to_owned());
    }
    if let Some((remote, branch)) = &lane.pushed {
        lines.push(format!("  its branch stays on {remote}: {branch}"));
        lines.push(format!("    to delete it there: {}", shell_line(["git", "push", remote, "--delete", branch])));
    }
    lines.extend(done.left_ticked.iter().map(|path| format!("  {}", left_ticked(path))));
    lines.extend(done.aside.iter().map(|path| {
        format!("  what was in the place of a worktree is now {}; look at it, and delete it", path.display())
    }));
    if done.kept.is_empty() {
        lines.push("  it held no work that is not kept elsewhere".to_owned());
    }
    lines
}

/// ` to after_lane_start`, where it is not taken back to its start.
fn to(lane: &LaneToRollBack) -> String {
    lane.point.as_ref().map(|point| format!(" to {}", point.name)).unwrap_or_default()
}

fn listed_lanes(lanes: &[LaneId]) -> String {
    listed(&lanes.iter().map(ToString::to_string).collect::<Vec<_>>(), NAMED)
}

fn point_of<'a>(asked: Asked<'a>) -> &'a str {
    asked.to.unwrap_or(Stage::BeforeLaneStart.word())
}

fn standing(lane: &LaneToRollBack) -> String {
    format!("{} ({})", stage_in_words(lane.stage.word()), lane.standing)
}

fn commands_for(work: &SnapshotView) -> [String; 2] {
    let name = format!("restored-{}", work.commit.short());
    [shell_line(["git", "log", &work.reference]), shell_line(["git", "checkout", "-b", &name, &work.reference])]
}

fn as_json(lane: &LaneToRollBack, done: &RolledBackLane) -> Value {
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
        "pushed": lane.pushed.as_ref().map(|(remote, branch)| json!({"remote": remote, "branch": branch})),
        "kept": kept.collect::<Vec<_>>(),
        "aside": done.aside,
        "left_ticked": done.left_ticked,
    })
}

/// Why a rollback that was `asked` with `flags` cannot be done, with the exit code and what to type next.
pub(crate) fn refusal(
    refused: RollbackError,
    state: &StateDirectory,
    (started, plan): (&RunStarted, &Plan),
    (asked, flags): (Asked<'_>, &[&str]),
) -> anyhow::Error {
    let again = |lanes: &[LaneId]| again(state, &started.run_id, Asked { lanes, ..asked }, flags);
    let then = format!("then the same again: {}", again(asked.lanes));
    let blocked = ExitStatus::Blocked.error(refused.to_string());
    match refused {
        RollbackError::UnknownLane(lane) => unknown_lane(&lane, plan.lanes.iter().map(|lane| &lane.id)),
        RollbackError::Dependants { ref all, .. } => {
            ExitStatus::Usage.error(refused.to_string()).hint(format!("all of them together: {}", again(all)))
        }
        RollbackError::Conflict { merge, branch, .. } => {
            let checkout = shell_line(["git", "checkout", branch.as_str()]);
            let revert = shell_line(["git", "revert", "-m", "1", merge.as_str()]);
            blocked.hint(format!("undo it by hand: {checkout} && {revert}")).hint(then)
        }
        RollbackError::CheckedOut { blockers, .. } => blocked.hint(blockers.remedy.clone()).hint(then),
        RollbackError::BranchInUse { place, .. } => {
            let place = place.to_string_lossy();
            let leave = shell_line(["git", "-C", place.as_ref(), "checkout", "--detach"]);
            blocked.hint(format!("leave the branch: {leave}")).hint(then)
        }
        RollbackError::Elsewhere(_) => {
            blocked.hint("resume the run and stop it, which ends the job and brings back what it did").hint(then)
        }
        RollbackError::UnknownPoint { ref to, ref has, .. } => {
            let error = ExitStatus::Usage.error(refused.to_string());
            let known: Vec<&str> = has.iter().map(String::as_str).collect();
            let list = command(state, &["checkpoints", "list", started.run_id.as_str()]);
            let all = || (!known.is_empty()).then(|| format!("it has {}", known.join(", ")));
            did_you_mean(error, to, &known, all).hint(format!("its snapshots: {list}"))
        }
        RollbackError::AmbiguousPoint { ref names, .. } => {
            names.iter().fold(ExitStatus::Usage.error(refused.to_string()), |error, name| {
                error.hint(format!("one of them: --to {name}"))
            })
        }
        RollbackError::SeveralLanes { ref lanes, .. } => {
            lanes.iter().take(NAMED).fold(ExitStatus::Usage.error(refused.to_string()), |error, lane| {
                error.hint(format!("one of them: {}", again(std::slice::from_ref(lane))))
            })
        }
        RollbackError::DependsOn { ref lane, ref missing } => {
            let start = command(state, &["rollback", started.run_id.as_str(), "--lane", lane.as_str()]);
            let then = format!("or resume until {} is merged", listed_lanes(missing));
            blocked.hint(format!("take {lane} back to its start: {start}")).hint(then)
        }
        RollbackError::Placed(_) | RollbackError::LostPoint { .. } => {
            let lanes = asked.lanes.iter().flat_map(|lane| ["--lane", lane.as_str()]);
            let words: Vec<&str> = ["rollback", started.run_id.as_str()].into_iter().chain(lanes).collect();
            let start = command(state, &words);
            blocked.hint(format!("to take it back to its start: {start}"))
        }
        RollbackError::BranchTaken(ref branch) => {
            let rename = shell_line(["git", "branch", "-m", branch, &format!("{branch}-kept")]);
            blocked.hint(format!("give it another name: {rename}")).hint(then)
        }
        RollbackError::ConflictAgain { .. } => {
            blocked.hint("take the lane back to its start, which does its work again, by leaving --to out")
        }
        RollbackError::Embedded { .. } => blocked.hint("move them out of the worktree").hint(then),
        RollbackError::Busy { .. } => blocked.hint(then),
        error @ (RollbackError::Git(_)
        | RollbackError::Executor(_)
        | RollbackError::Process(_)
        | RollbackError::Log(_)
        | RollbackError::Contradiction(_)) => anyhow::Error::from(error).hint(then),
    }
}
