//! `clean`: what finished runs left, removed, and what is kept, told.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::args::{Clean, Format};
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::{Site, holder, wait_for_refs};
use super::options::session_id;
use super::runs::{command, existing};
use crate::git::Pool;
use crate::model::RunId;
use crate::model::text::{counted, shell_line};
use crate::process::{self, Observation};
use crate::recover::clean::{Leftover, Surroundings, Thing, Traces, remove, remove_run, survey};
use crate::settings::Layer;
use crate::store::{RunLock, StateDirectory, lock, run_log};

/// What was done with one run.
struct Cleaned {
    run: RunId,
    found: Vec<Leftover>,
    /// Why the run was left alone altogether.
    left_alone: Option<String>,
}

/// `clean`.
pub(super) fn run(context: &Context, arguments: &Clean) -> Result<ExitStatus, CliError> {
    let site = Site::find_to_work_in(context)?;
    let settings = context.layers(Layer::default())?.resolve(None);
    let state = site.state(&settings);
    if !arguments.dry_run {
        wait_for_refs(context, &site.repository)?;
    }
    let (known, unreadable) = known_runs(&state)?;
    let chosen: Vec<RunId> = match &arguments.run {
        Some(run) => {
            refuse(&state, run, &known, &unreadable, arguments)?;
            vec![run.clone()]
        }
        None => known.keys().cloned().collect(),
    };
    let place = Place { site, state, known, session_id: session_id(&settings) };
    let mut cleaned = Vec::new();
    for run in chosen {
        cleaned.push(clean_one(&place, run, arguments)?);
    }
    let left_alone = |(run, reason)| Cleaned { run, found: Vec::new(), left_alone: Some(reason) };
    cleaned.extend(unreadable.into_iter().filter(|_| arguments.run.is_none()).map(left_alone));
    report(context, &cleaned, arguments.dry_run)
}

/// The repository, and all that is known of its runs.
struct Place {
    site: Site,
    state: StateDirectory,
    known: BTreeMap<RunId, Traces>,
    session_id: String,
}

/// Removes what a run left, or only looks for it.
fn clean_one(place: &Place, run: RunId, arguments: &Clean) -> Result<Cleaned, CliError> {
    let (traces, directory) = (&place.known[&run], place.state.run(&run));
    let reason = match () {
        () if arguments.run.is_none() && !traces.is_finished() => Some("it is not finished"),
        () if lock::is_held(&directory.lock()) => Some("a live session holds it"),
        () => None,
    };
    if let Some(reason) = reason {
        return Ok(Cleaned { run, found: Vec::new(), left_alone: Some(reason.to_owned()) });
    }
    let options = &traces.started.options;
    let pool = Pool::new(place.site.repository.clone(), &options.worktree_root, u32::MAX, options.keep_caches);
    let (repository, force) = (&place.site.repository, arguments.force);
    let around = Surroundings { repository, pool: &pool, directory: &directory, force };
    if arguments.dry_run {
        return Ok(Cleaned { found: survey(&around, traces)?, run, left_alone: None });
    }
    directory.create()?;
    let lock = RunLock::acquire(&directory.lock(), &holder(&place.state, &place.session_id, &run))?;
    let mut found = remove(&around, traces, survey(&around, traces)?);
    if let Some(log) = found.last_mut().filter(|log| log.goes())
        && let Err(error) = remove_run(&directory, lock)
    {
        log.refuse(&error.to_string());
    }
    crate::travel::forget(repository, &run)?;
    Ok(Cleaned { run, found, left_alone: None })
}

type Unreadable = BTreeMap<RunId, String>;

/// Every run that has a log, and why the others cannot be judged.
fn known_runs(state: &StateDirectory) -> Result<(BTreeMap<RunId, Traces>, Unreadable), CliError> {
    let (mut known, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
    for run in state.runs()? {
        let damaged =
            |log: &run_log::LogContents| log.damage.first().map(|damage| format!("its log is damaged: {damage}"));
        let reason = match run_log::read(&state.run(&run).log()) {
            Err(error) => error.to_string(),
            Ok(log) => match (damaged(&log), Traces::of(&log.records)) {
                (None, Some(traces)) => {
                    known.insert(run, traces);
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
    known: &BTreeMap<RunId, Traces>,
    unreadable: &Unreadable,
    arguments: &Clean,
) -> Result<(), CliError> {
    if let Some(reason) = unreadable.get(run) {
        let message = format!("run {run} cannot be judged, so nothing was removed: {reason}");
        return Err(CliError::new(ExitStatus::Corrupted, message));
    }
    existing(state, run)?;
    let Some(traces) = known.get(run) else { return Ok(()) };
    let words = |name: &str| command(state, &[name, run.as_str()]);
    if lock::is_held(&state.run(run).lock()) {
        let message = format!("run {run} is held by a live session, so nothing was removed");
        return Err(CliError::new(ExitStatus::Held, message).hint(format!("to stop what it does: {}", words("stop"))));
    }
    let runs = |job: &&crate::model::JobId| {
        let seen = process::observe(&state.run(run).job(job));
        matches!(seen, Ok(Observation::Running(_) | Observation::Starting))
    };
    if let Some(job) = traces.jobs.iter().find(runs) {
        let message = format!("{job} of run {run} still runs, so nothing was removed");
        return Err(CliError::new(ExitStatus::Held, message)
            .hint(format!("to stop it and keep its work: {}", words("rollback"))));
    }
    if !traces.is_finished() && !arguments.force {
        let message = format!("run {run} is not finished, so nothing was removed");
        return Err(CliError::new(ExitStatus::InvalidOperation, message)
            .hint(format!("to go on with it: {}", words("resume")))
            .hint(format!("to put it back: {}", words("rollback")))
            .hint("to remove it with all its work: --force"));
    }
    Ok(())
}

/// Tells of everything, and whether something resisted.
fn report(context: &Context, cleaned: &[Cleaned], dry_run: bool) -> Result<ExitStatus, CliError> {
    let all = || cleaned.iter().flat_map(|run| &run.found);
    let refused = all().any(Leftover::was_refused);
    if context.printer.format() == Format::Json {
        context.printer.json(
            &json!({"dry_run": dry_run, "runs": cleaned.iter().map(|it| as_json(it, dry_run)).collect::<Vec<_>>()}),
        )?;
    } else {
        let lines: String = cleaned.iter().flat_map(|run| as_text(run, dry_run)).map(|line| line + "\n").collect();
        let (gone, kept) = (all().filter(|it| it.goes()).count(), all().filter(|it| !it.goes()).count());
        let end = match dry_run {
            _ if cleaned.is_empty() => "There is nothing to clean.".to_owned(),
            true => {
                format!("{} would be removed, {kept} kept. Nothing was changed (--dry-run).", counted(gone, "thing"))
            }
            false => format!("{} removed, {kept} kept.", counted(gone, "thing")),
        };
        context.printer.out(format!("{lines}{end}\n"))?;
    }
    Ok(if refused { ExitStatus::Blocked } else { ExitStatus::Done })
}

fn word(leftover: &Leftover, dry_run: bool) -> &'static str {
    match (leftover.goes(), dry_run) {
        (true, true) => "would remove",
        (true, false) => "removed",
        (false, _) => "kept",
    }
}

fn as_text(cleaned: &Cleaned, dry_run: bool) -> Vec<String> {
    let mut lines = match &cleaned.left_alone {
        Some(reason) => vec![format!("run {}: left alone: {reason}", cleaned.run)],
        None => vec![format!("run {}:", cleaned.run)],
    };
    lines.extend(cleaned.found.iter().map(|leftover| {
        let at = leftover.thing.commit().map(|commit| format!(" at {}", commit.short())).unwrap_or_default();
        let (word, kind, name) = (word(leftover, dry_run), leftover.thing.kind(), leftover.thing.name());
        format!("  {word} {kind} {name}{at}: {}", leftover.reason())
    }));
    let kept_work =
        |leftover: &&Leftover| !leftover.goes() && matches!(leftover.thing, Thing::Snapshot(..) | Thing::Branch(..));
    if let Some(leftover) = cleaned.found.iter().find(kept_work) {
        lines.push(format!("  to look at what is kept: {}", shell_line(["git", "log", &leftover.thing.name()])));
    }
    lines
}

fn as_json(cleaned: &Cleaned, dry_run: bool) -> Value {
    let things = cleaned.found.iter().map(|leftover| {
        json!({
            "action": word(leftover, dry_run).replace(' ', "_"),
            "kind": leftover.thing.kind(),
            "name": leftover.thing.name(),
            "commit": leftover.thing.commit(),
            "reason": leftover.reason(),
        })
    });
    json!({"run_id": cleaned.run, "left_alone": cleaned.left_alone, "things": things.collect::<Vec<_>>()})
}
