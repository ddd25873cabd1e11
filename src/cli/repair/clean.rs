//! `clean`: removes what finished runs left, and reports what is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lanewright_engine::clean::{
    CleanScope, Item, Leftover, MergedCommits, begun_lanes, has_begun, is_finished, remove, remove_run, scan,
};
use lanewright_engine::doctor::Expected;
use lanewright_git::{Kept, Pool, Repository};
use lanewright_model::RunId;
use lanewright_model::event::Event;
use lanewright_model::text::{counted, shell_line};
use lanewright_programs::process::{self, Observation};
use lanewright_store::{Journal, RunDirectory, StateDirectory, lock, run_log};
use serde_json::{Value, json};

use crate::cli::args::{Clean, Name};
use crate::cli::confirm::{can_ask, confirms};
use crate::cli::executors::remove_all_states;
use crate::cli::run::{lock_resting_run, sync_after_switches};
use crate::cli::runs::command;
use crate::cli::select::Selector;
use crate::cli::wait_policy::wait_for_refs;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result, now};

struct Cleaned {
    run: RunId,
    /// What it left; an error: why it was left alone.
    found: Result<Vec<Leftover>, String>,
}

/// Deletes what a run left in the trash of the pool at `root`, in the repository of the current directory.
pub fn delete_trash(root: &Path) -> ExitCode {
    let deleted = Repository::discover(Path::new(".")).and_then(|repository| {
        let pool = Pool::new(repository, root, 0, false);
        let kept = pool.delete_trash(None)?;
        pool.remove_root();
        Ok(kept)
    });
    if deleted.is_ok_and(|kept| kept.is_empty()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

pub(crate) fn run(context: &Context, arguments: &Clean) -> Result<ExitStatus> {
    let within = RepositoryContext::open_for_work(context, arguments.progress.layer())?;
    if !arguments.dry_run {
        wait_for_refs(context, &within.repository)?;
    }
    let only = arguments.run.as_ref().map(|run| Selector::new(context, &within.state).named(run)).transpose()?;
    let (known, unreadable) = known_runs(&within.state)?;
    let chosen: Vec<RunId> = match &only {
        Some(run) => {
            refuse(&within.state, run, &known, &unreadable, arguments)?;
            vec![run.clone()]
        }
        None => known.keys().cloned().collect(),
    };
    let unreadable = unreadable.into_iter().filter(|_| arguments.run.is_none());
    let left_alone = unreadable.map(|(run, reason)| Cleaned { run, found: Err(reason) });
    let merged = MergedCommits::find(&within.repository, chosen.iter().filter_map(|run| known.get(run)))?;
    let runs = KnownRuns { within, known, merged };
    let checking = runs.within.counted_activity("Checking runs", chosen.len());
    let inspected = chosen.into_iter().map(|run| inspect(&runs, run, arguments).inspect(|_| checking.advance()));
    let mut cleaned: Vec<Cleaned> = inspected.collect::<Result<_, _>>()?;
    drop(checking);
    if !arguments.dry_run {
        if !is_agreed(context, arguments, &cleaned)? {
            return Ok(ExitStatus::Done);
        }
        let leftovers = cleaned.iter().flat_map(|run| run.found.iter().flatten());
        let removing = runs.within.counted_activity("Removing leftovers", leftovers.filter(|it| it.goes()).count());
        let removed = cleaned.into_iter().map(|seen| match seen.found {
            Err(_) => Ok(seen),
            Ok(_) => remove_from(&runs, seen.run, arguments, &|| removing.advance()),
        });
        cleaned = removed.collect::<Result<_, _>>()?;
        drop(removing);
        runs.within.show_notices();
    }
    let trash = trash_left(&runs, arguments)?;
    for Kept { path, reason } in &trash {
        context.printer.warning(format!("kept {}: {reason}", path.display()), &[]);
    }
    cleaned.extend(left_alone);
    // The log of a run of which nothing else is left is no reason to mention it.
    cleaned.retain(|run| arguments.run.is_some() || run.found.as_ref().map_or(true, |found| !found.is_empty()));
    report(context, &cleaned, trash.len(), arguments.dry_run)
}

/// Deletes what is in the trash of the pools of the known runs: the process that does so at the end of a run may have died.
/// Returns what cannot be deleted.
fn trash_left(runs: &KnownRuns, arguments: &Clean) -> Result<Vec<Kept>> {
    let roots: BTreeSet<&PathBuf> = runs.known.values().map(|run| &run.started.options.worktree_root).collect();
    let mut kept = Vec::new();
    for root in roots.into_iter().filter(|_| !arguments.dry_run) {
        let pool = runs.within.pool(root, false);
        kept.extend(pool.delete_trash(None)?);
        pool.remove_root();
    }
    Ok(kept)
}

/// Whether what was `found` may be removed: the user says so, with `--yes` or when asked.
fn is_agreed(context: &Context, arguments: &Clean, found: &[Cleaned]) -> Result<bool> {
    if arguments.yes || !found.iter().flat_map(|run| run.found.iter().flatten()).any(Leftover::goes) {
        return Ok(true);
    }
    if can_ask(context) {
        context.printer.out(as_lines(found, true))?;
        return confirms(context, "Remove this?");
    }
    let flags = [(arguments.force, "--force"), (arguments.logs, "--logs"), (true, "--yes")];
    let flags = flags.into_iter().filter_map(|(given, flag)| given.then_some(flag));
    let again = ["lanewright", "clean"].into_iter().chain(arguments.run.as_ref().map(Name::as_str)).chain(flags);
    Err(ExitStatus::Usage
        .error("nothing removed: cannot ask for confirmation without a terminal")
        .hint(format!("to remove it without being asked: {}", shell_line(again)))
        .hint("to see what would be removed: add --dry-run"))
}

/// The repository, and all that is known of its runs.
struct KnownRuns {
    within: RepositoryContext,
    known: BTreeMap<RunId, Expected>,
    merged: MergedCommits,
}

impl KnownRuns {
    fn with<T>(&self, run: &RunId, arguments: &Clean, work: impl FnOnce(&CleanScope<'_>, &Expected) -> T) -> T {
        let (logged, directory) = (&self.known[run], self.within.state.run(run));
        let (repository, options) = (&self.within.repository, &logged.started.options);
        let pool = self.within.pool(&options.worktree_root, options.keep_caches);
        let (force, logs) = (arguments.force, arguments.logs);
        let merged = &self.merged;
        work(&CleanScope { repository, pool: &pool, directory: &directory, merged, force, logs }, logged)
    }
}

/// Looks for what a run left. Nothing is changed.
fn inspect(runs: &KnownRuns, run: RunId, arguments: &Clean) -> Result<Cleaned> {
    let (logged, directory) = (&runs.known[&run], runs.within.state.run(&run));
    let reason = match () {
        () if arguments.run.is_none() && !is_finished(logged) => Some("it is not finished"),
        () if lock::is_held(&directory.lock()) => Some("a live session holds it"),
        () => None,
    };
    let found = match reason {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(runs.with(&run, arguments, scan)?),
    };
    Ok(Cleaned { run, found })
}

/// Calls `removed` for each thing.
fn remove_from(runs: &KnownRuns, run: RunId, arguments: &Clean, removed: &dyn Fn()) -> Result<Cleaned> {
    let directory = runs.within.state.run(&run);
    directory.create()?;
    let lock = lock_resting_run(&runs.within, &run)?;
    let logged = &runs.known[&run];
    sync_after_switches(&runs.within, &logged.started.base_branch);
    let mut found = runs
        .with(&run, arguments, |around, logged| anyhow::Ok(remove(around, logged, scan(around, logged)?, removed)))?;
    match found.last_mut().filter(|last| matches!(last.item, Item::Log(_))) {
        None => record(&directory, logged, &found)?,
        Some(log) if log.goes() => {
            if let Err(error) = remove_run(&directory, lock) {
                log.refuse(&error.to_string());
            }
        }
        Some(_) => {}
    }
    // What a job works on, and is nowhere else, goes by force only.
    let is_elsewhere = logged.history.lanes().iter().any(|lane| lane.elsewhere().is_some());
    if arguments.force || !is_elsewhere {
        remove_all_states(&runs.within, &run, begun_lanes(logged).into_iter().map(|lane| &lane.id));
        lanewright_engine::state_sync::forget(&runs.within.repository, &run)?;
    }
    Ok(Cleaned { run, found: Ok(found) })
}

/// Records that the lanes whose unmerged work was removed are as if they had not begun: a resume begins them again.
fn record(directory: &RunDirectory, logged: &Expected, found: &[Leftover]) -> Result<()> {
    if is_finished(logged) {
        return Ok(());
    }
    let (mut journal, _) = Journal::open(&directory.log())?;
    let left: Vec<String> = found.iter().filter(|it| !it.goes()).map(|it| it.item.name()).collect();
    for lane in begun_lanes(logged).into_iter().filter(|lane| has_begun(lane) && lane.merge_commit.is_none()) {
        journal.append(
            now(),
            &Event::LaneRolledBack { lane: lane.id.clone(), integration: None, kept: left.clone(), point: None },
        )?;
    }
    Ok(journal.sync()?)
}

type Unreadable = BTreeMap<RunId, String>;

/// Every run that has a log, and why the others cannot be judged.
fn known_runs(state: &StateDirectory) -> Result<(BTreeMap<RunId, Expected>, Unreadable)> {
    let (mut known, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
    for run in state.runs()? {
        let damaged =
            |log: &run_log::LogContents| log.damage.first().map(|damage| format!("its log is damaged: {damage}"));
        let reason = match run_log::read(&state.run(&run).log()) {
            Err(error) => error.to_string(),
            Ok(log) => match (damaged(&log), Expected::of(&log.records)) {
                (None, Some(logged)) => {
                    known.insert(run, logged);
                    continue;
                }
                (Some(damage), _) => damage,
                (None, None) => "its log does not begin with the start of a run".to_owned(),
            },
        };
        unreadable.insert(run, reason);
    }
    Ok((known, unreadable))
}

/// Refuses to clean a run that is named and may not be cleaned.
fn refuse(
    state: &StateDirectory,
    run: &RunId,
    known: &BTreeMap<RunId, Expected>,
    unreadable: &Unreadable,
    arguments: &Clean,
) -> Result<()> {
    if let Some(reason) = unreadable.get(run) {
        let message = format!("run {run} cannot be judged, so nothing was removed: {reason}");
        return Err(ExitStatus::Corrupted.error(message));
    }
    let Some(logged) = known.get(run) else { return Ok(()) };
    let words = |name: &str| command(state, &[name, run.as_str()]);
    if lock::is_held(&state.run(run).lock()) {
        let message = format!("run {run} is held by a live session, so nothing was removed");
        return Err(ExitStatus::Held.error(message).hint(format!("to stop what it does: {}", words("stop"))));
    }
    let runs = |job: &&lanewright_model::JobId| {
        let seen = process::observe(&state.run(run).job(job));
        matches!(seen, Ok(Observation::Running(_) | Observation::Starting))
    };
    if let Some(job) = logged.unended_jobs().find(runs) {
        let message = format!("{job} of run {run} still runs, so nothing was removed");
        return Err(ExitStatus::Held
            .error(message)
            .hint(format!("to stop it and keep its work: {}", words("rollback"))));
    }
    if !is_finished(logged) && !arguments.force {
        let message = format!("run {run} is not finished, so nothing was removed");
        return Err(ExitStatus::InvalidOperation
            .error(message)
            .hint(format!("to resume it: {}", words("resume")))
            .hint(format!("to roll it back: {}", words("rollback")))
            .hint("to remove it with all its work: --force"));
    }
    Ok(())
}

/// Blocked if something could not be removed.
fn report(context: &Context, cleaned: &[Cleaned], trash: usize, dry_run: bool) -> Result<ExitStatus> {
    let all = || cleaned.iter().flat_map(|run| run.found.iter().flatten());
    let refused = trash > 0 || all().any(Leftover::was_refused);
    let runs: Vec<Value> = cleaned.iter().map(|run| as_json(run, dry_run)).collect();
    let (gone, kept) = (all().filter(|it| it.goes()).count(), all().filter(|it| !it.goes()).count());
    let (gone, kept) = (counted(gone, "thing"), kept + trash);
    let end = match dry_run {
        _ if cleaned.is_empty() && trash == 0 => "There is nothing to clean.".to_owned(),
        true => format!("{gone} would be removed, {kept} kept. Nothing was changed (--dry-run)."),
        false => format!("{gone} removed, {kept} kept."),
    };
    let text = format!("{}{end}\n", as_lines(cleaned, dry_run));
    context.printer.print(text, &json!({"dry_run": dry_run, "runs": runs}))?;
    Ok(if refused { ExitStatus::Blocked } else { ExitStatus::Done })
}

fn word(leftover: &Leftover, dry_run: bool) -> &'static str {
    match (leftover.goes(), dry_run) {
        (true, true) => "would remove",
        (true, false) => "removed",
        (false, _) => "kept",
    }
}

fn as_lines(cleaned: &[Cleaned], dry_run: bool) -> String {
    cleaned.iter().flat_map(|run| as_text(run, dry_run)).map(|line| line + "\n").collect()
}

fn as_text(cleaned: &Cleaned, dry_run: bool) -> Vec<String> {
    let found = match &cleaned.found {
        Err(reason) => return vec![format!("run {}: left alone: {reason}", cleaned.run)],
        Ok(found) => found,
    };
    let mut lines = vec![format!("run {}:", cleaned.run)];
    lines.extend(found.iter().map(|leftover| {
        let at = leftover.item.commit().map(|commit| format!(" at {}", commit.short())).unwrap_or_default();
        let (word, kind, name) = (word(leftover, dry_run), leftover.item.kind(), leftover.item.name());
        format!("  {word} {kind} {name}{at}: {}", leftover.reason())
    }));
    let kept_work =
        |leftover: &&Leftover| !leftover.goes() && matches!(leftover.item, Item::Snapshot(..) | Item::Branch(..));
    if let Some(leftover) = found.iter().find(kept_work) {
        lines.push(format!("  to look at what is kept: {}", shell_line(["git", "log", &leftover.item.name()])));
    }
    if found.iter().any(|it| !it.goes() && matches!(it.item, Item::Snapshot(..))) {
        let run = cleaned.run.as_str();
        lines.push(format!("  to list its snapshots: {}", shell_line(["lanewright", "checkpoints", "list", run])));
        lines.push(format!(
            "  to remove them with all that is kept: {}",
            shell_line(["lanewright", "clean", run, "--force"])
        ));
    }
    lines
}

fn as_json(cleaned: &Cleaned, dry_run: bool) -> Value {
    let things = cleaned.found.iter().flatten().map(|leftover| {
        json!({
            "action": word(leftover, dry_run).replace(' ', "_"),
            "kind": leftover.item.kind(),
            "name": leftover.item.name(),
            "commit": leftover.item.commit(),
            "reason": leftover.reason(),
        })
    });
    json!({"run_id": cleaned.run, "left_alone": cleaned.found.as_ref().err(), "things": things.collect::<Vec<_>>()})
}
