//! What a resume does about changes that were made while the run was at rest (SPEC §9; seed 001, US-3.3), and about
//! worktrees, branches and claims that were removed.

use std::sync::Arc;

use lanewright_engine::at_resume::external_changes::{
    ExternalChange, Moved, UndoneMerge, external_changes, undone_merges,
};
use lanewright_engine::at_resume::replay;
use lanewright_engine::executor::{Executor, ExecutorError, SnapshotTarget};
use lanewright_git::{self as git, GitError, Publication, Repository, Snapshot};
use lanewright_model::event::{Event, LaneStage, Record, SnapshotReason, Worktree};
use lanewright_model::text::{listed, shell_line};
use lanewright_model::{LaneId, Plan, RunId};
use lanewright_plan::settings::{Layer, OnConflict};
use lanewright_schedule::RunState;
use lanewright_store::{RunDirectory, StateDirectory, run_log};
use lanewright_view::RunHistory;

use crate::cli::run::intent::Adoption;
use crate::cli::run::lock::LockedRun;
use crate::cli::run::power_cut::outage;
use crate::cli::runs::require_plan;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result, now};

type Outcome<T> = std::result::Result<T, ExecutorError>;

/// How many files of a worktree are named.
const NAMED: usize = 20;

/// What a resume records of what it found.
pub(crate) struct Reconciled {
    /// Before anything else, also before the resume: a crash in between must not hide that a branch moved.
    pub(crate) moved: Vec<Event>,
    pub(crate) events: Vec<Event>,
}

/// Warns of branches that moved; refuses changed files and rewritten branches, or saves them; has the run continue with
/// them, and repairs what is missing. `lanes`: those that go on; empty: all; and whether the machine was started again.
pub(crate) fn reconcile(
    within: &RepositoryContext,
    locked: &LockedRun,
    history: &RunHistory,
    adoption: &Adoption,
    (lanes, is_in_another_boot): (&[LaneId], bool),
) -> Result<Reconciled> {
    let (printer, run) = (&within.context.printer, &locked.started.run_id);
    let refuses = adoption.on_conflict == OnConflict::Fail;
    let executor = within.executor(&locked.started, &locked.plan)?;
    let goes_on = |lane: &LaneId| lanes.is_empty() || lanes.contains(lane);
    // Before anything is compared: what is damaged cannot be, and what is repaired is no change by the user.
    let recovered = if is_in_another_boot {
        executor.recover_after_boot(&locked.state, &locked.records, outage(locked))
    } else {
        Vec::new()
    };
    let mut restored = executor.restore_lanes(&locked.state, goes_on);
    restored.events.splice(..0, recovered);
    let (state, history) = after(locked, history, &restored.events)?;
    let continues = |lane: &LaneId| goes_on(lane) && restored.blocked.iter().all(|(blocked, _)| blocked != lane);
    let found = external_changes(&within.repository, &state, &history, continues)?;
    let mut moved = restored.events;
    let blocked = |(lane, reason)| Event::LaneBlocked { lane, reason };
    let mut events: Vec<Event> = restored.blocked.into_iter().map(blocked).collect();
    for message in found.warnings {
        printer.warning(&message, &[]);
        events.push(Event::Noted { lane: None, message });
    }
    if refuses && !found.undone.is_empty() {
        return Err(work_is_gone(run, &locked.started.base_branch, &found.undone));
    }
    for undone in found.undone {
        printer.warning(&undone.message, &[]);
        events.push(Event::Noted { lane: Some(undone.lane), message: undone.message });
    }
    for change in found.changes.iter().filter(|change| !change.is_worked_on) {
        refuse_astray(within, &locked.plan, change)?;
    }
    let asked: Vec<&ExternalChange> = found.changes.iter().filter(|change| change.needs_consent()).collect();
    if refuses && !asked.is_empty() {
        return Err(refusal(run, &locked.plan, &asked));
    }
    for change in &found.changes {
        let kept = keep(&executor, change).and_then(|kept| Ok((kept, integrate(&executor, locked, change)?)));
        let (kept, taken) = kept.map_err(|error| {
            let place = change.place.display();
            ExitStatus::Blocked.error(format!("what was changed in {place} cannot be kept: {error}"))
        })?;
        let references: Vec<&str> = kept.iter().map(|kept| kept.reference.as_str()).collect();
        printer.note(format!("{}; kept as {}", described(&locked.plan, change), references.join(" and ")));
        let lane = &locked.plan.lane(change.lane).id;
        events.extend(kept.into_iter().map(|Snapshot { commit, reference }| {
            let (lane, agent, reason) = (lane.clone(), change.agent.clone(), SnapshotReason::External);
            Event::snapshot(lane, agent, reason, commit, reference)
        }));
        moved.extend(taken);
    }
    // Only now: a worktree that is locked again holds what is recorded, not what was changed.
    events.extend(executor.repair_all(&state));
    Ok(Reconciled { moved, events })
}

/// The state and the history as they are once `events` are recorded.
fn after(locked: &LockedRun, history: &RunHistory, events: &[Event]) -> Result<(RunState, RunHistory)> {
    let (mut state, mut history) = (locked.state.clone(), history.clone());
    let last = locked.records.last().map_or(0, |record| record.seq);
    for (seq, event) in (last + 1..).zip(events) {
        let record = Record { seq, at: now(), event: event.clone(), origin: None };
        state.apply(&record).map_err(|fault| ExitStatus::Corrupted.error(fault.to_string()))?;
        history.apply(&record);
    }
    Ok((state, history))
}

/// Refuses a head that does not continue the lane's branch and is not on it: it cannot be taken in, whatever the user
/// agrees to.
fn refuse_astray(within: &RepositoryContext, plan: &Plan, change: &ExternalChange) -> Result<()> {
    let Worktree { path, branch, .. } = &change.worktree;
    let Err(mut error) = git::head_that_continues(&within.repository, path, branch) else { return Ok(()) };
    let GitError::Astray { head, worktree, .. } = &mut error else { return Ok(()) };
    worktree.clone_from(&change.place);
    let head = head.clone();
    let place = change.place.to_string_lossy();
    let switch = shell_line(["git", "-C", &place, "switch", branch]);
    let mut merge = vec!["git", "-C", &place, "merge", head.short()];
    let tip = within.repository.branch_commit(branch)?;
    if tip.is_some_and(|tip| within.repository.merge_base(&tip, &head).is_ok_and(|base| base.is_none())) {
        merge.push("--allow-unrelated-histories");
    }
    let merge = shell_line(merge);
    Err(ExitStatus::ExternalChanges
        .error(format!("{}: {error}", change.whose(plan)))
        .hint(format!("to add what is checked out to the lane: {switch} && {merge}"))
        .hint(format!("to continue without it: {switch}")))
}

/// Refuses to approve changes that a person added to since the lane's tests and reviewers judged it.
pub(crate) fn refuse_unjudged(context: &Context, state: &StateDirectory, run: &RunId, lane: &LaneId) -> Result<()> {
    let plan = Arc::new(require_plan(run, &state.run(run))?);
    let records = run_log::read(&state.run(run).log())?.records;
    let (state, history) = (replay(run, &plan, &records)?, RunHistory::for_plan(&plan).after(records.iter()));
    let awaits = state.find(lane).is_some_and(|lane| state.lane(lane).stage() == LaneStage::AwaitingUserApproval);
    if !awaits {
        return Ok(());
    }
    let within = RepositoryContext::open(context, Layer::default())?;
    let found = external_changes(&within.repository, &state, &history, |other| other == lane)?;
    let Some(change) = found.changes.first() else { return Ok(()) };
    let consent = if change.needs_consent() { " --on-conflict override" } else { "" };
    let message = format!("lane {lane} was changed by hand after it was judged: {}", described(&plan, change));
    Err(ExitStatus::ExternalChanges
        .error(message)
        .hint(format!("to have that judged, and be asked again: lanewright resume {run} --lane {lane}{consent}")))
}

/// Keeps the worktree, and the commits that its branch no longer has.
fn keep(executor: &Executor, change: &ExternalChange) -> Outcome<Vec<Snapshot>> {
    let (lane, at) = (change.lane, now());
    let target = SnapshotTarget { lane, agent: change.agent.as_ref(), at, reason: SnapshotReason::External };
    let gone = change.moved.iter().filter(|moved| !moved.continues);
    let mut kept: Vec<Snapshot> =
        gone.map(|moved| executor.keep_commit(lane, &moved.from, at)).collect::<Outcome<_>>()?;
    kept.push(executor.keep_worktree(&target, &change.worktree.path)?);
    Ok(kept)
}

/// Has the lane continue with what was changed, unless an agent that is not done finds it there.
fn integrate(executor: &Executor, locked: &LockedRun, change: &ExternalChange) -> Outcome<Option<Event>> {
    if change.is_worked_on {
        return Ok(None);
    }
    let head = executor.commit_changes_by_hand(change.lane, &change.worktree, &change.paths)?;
    let (lane, agent) = (locked.plan.lane(change.lane).id.clone(), change.agent.clone());
    Ok(Some(Event::BranchMoved { lane, agent, head, theirs: None }))
}

/// Brings checkouts of the integration branch into step that were left half-way or behind, by a crash or by a `git switch`
/// during a publication. What prevents it is a warning: nothing is lost yet.
pub(super) fn sync_checkouts(within: &RepositoryContext, branch: &str) {
    warn_of_checkouts(within, branch, git::sync_checkouts(&within.repository, branch));
}

/// The same once no `git switch` can be under way, so that no note about the last publication is left.
pub(crate) fn sync_after_switches(within: &RepositoryContext, branch: &str) {
    warn_of_checkouts(within, branch, git::sync_after_switches(&within.repository, branch));
}

fn warn_of_checkouts(within: &RepositoryContext, branch: &str, settled: Result<Option<Publication>, git::GitError>) {
    let warning = match settled {
        Ok(Some(Publication::CheckedOutDirty { worktree, blockers })) => blockers.cannot_move(branch, &worktree),
        Ok(_) => return,
        Err(error) => format!("whether checkouts of {branch} are in step with it is unknown: {}", error.with_remedy()),
    };
    within.context.printer.warning(&warning, &[]);
}

/// Looks in the run log of `directory` for merged work that the integration branch no longer has.
pub(crate) fn missing_work(repository: &Repository, directory: &RunDirectory) -> Option<String> {
    let records = run_log::read(&directory.log()).ok()?.records;
    let history = RunHistory::default().after(&records);
    // What cannot be found out is found by the next resume.
    let undone = undone_merges(repository, &history).ok().filter(|undone| !undone.is_empty())?;
    let list: Vec<&str> = undone.iter().map(|undone| undone.message.as_str()).collect();
    let (list, branch) = (list.join("; "), history.run.base_branch());
    let without = continue_without(history.run.run_id()?);
    let restore = restoring(&undone);
    Some(format!("{list}; to restore it, on {branch}: `{restore}`, then resume; to continue without it: `{without}`"))
}

fn continue_without(run: &RunId) -> String {
    shell_line(["lanewright", "resume", run.as_str(), "--on-conflict", "override"])
}

/// The command that brings merged work back.
fn restoring(undone: &[UndoneMerge]) -> String {
    let pick = |picked: &mut dyn Iterator<Item = &String>| {
        shell_line(["git", "cherry-pick", "-m", "1"].into_iter().chain(picked.map(String::as_str)))
    };
    // Git takes a range and single commits together for one walk.
    match undone.iter().all(|undone| undone.picked.len() == 1) {
        true => pick(&mut undone.iter().flat_map(|undone| &undone.picked)),
        false => undone.iter().map(|undone| pick(&mut undone.picked.iter())).collect::<Vec<_>>().join(" && "),
    }
}

fn work_is_gone(run: &RunId, branch: &str, undone: &[UndoneMerge]) -> anyhow::Error {
    let list: Vec<&str> = undone.iter().map(|undone| undone.message.as_str()).collect();
    let message = format!("merged work was taken out of the integration branch:\n  {}", list.join("\n  "));
    let restore = restoring(undone);
    let without = continue_without(run);
    ExitStatus::ExternalChanges
        .error(message)
        .hint(format!("to restore it, on {branch}: {restore}"))
        .hint(format!("to continue without it: {without}"))
}

fn refusal(run: &RunId, plan: &Plan, changes: &[&ExternalChange]) -> anyhow::Error {
    let list: Vec<String> = changes.iter().map(|change| described(plan, change)).collect();
    let message =
        format!("worktrees of run {run} were changed while nothing of it was at work:\n  {}", list.join("\n  "));
    let go_on = shell_line(["lanewright", "resume", run.as_str(), "--on-conflict", "override"]);
    ExitStatus::ExternalChanges
        .error(message)
        .hint(format!("to save the changes and continue with them: {go_on}"))
        .hint("or undo them, then resume")
}

fn described(plan: &Plan, change: &ExternalChange) -> String {
    let moved = change.moved.as_ref().map(|Moved { from, to, continues }| {
        let (branch, from, to) = (&change.worktree.branch, from.short(), to.short());
        let lost = if *continues { String::new() } else { format!(" and no longer has {from}") };
        format!("{branch} moved from {from} to {to}{lost}")
    });
    let files = (!change.paths.is_empty()).then(|| listed(&change.paths, NAMED));
    let place = change.place.display();
    let what: Vec<String> = moved.into_iter().chain(files.map(|files| format!("{files} in {place}"))).collect();
    format!("{}: {}", change.whose(plan), what.join("; "))
}
