//! `checkpoints restore`: a snapshot back into its worktree, into a new directory, or as a branch.

use std::path::Path;

use serde_json::json;

use super::create::{held, shares};
use super::find::{Found, Place, ways_back};
use crate::cli::args::{Format, RestoreCheckpoint};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::{Control, Opened, Part, now, ports, take};
use crate::cli::options::session_id;
use crate::cli::runs::open_jobs;
use crate::engine::ports::{Keeping, PortError, Ports};
use crate::event::{Event, SnapshotReason};
use crate::git::{self, HeldSlot, Snapshot};
use crate::model::text::shell_line;
use crate::process::{self, Observation};
use crate::settings::{OnConflict, absolute};

pub(super) fn run(context: &Context, arguments: &RestoreCheckpoint) -> Result<ExitStatus, CliError> {
    let place = Place::find(context)?;
    let found = place.named(context, &arguments.name)?;
    if let Some(damage) = &found.damage {
        let message = format!("{} is damaged and cannot be restored: {damage}", found.snapshot.name);
        let lane = &found.snapshot.lane;
        let latest = shell_line(["lanekeeper", "checkpoints", "restore", &format!("latest:{lane}")]);
        return Err(CliError::new(ExitStatus::Corrupted, message)
            .hint(format!("the newest one of the lane that can be read: {latest}")));
    }
    let repository = &place.site.repository;
    match (&arguments.to, &arguments.branch) {
        (Some(directory), _) => {
            let directory = absolute(&context.directory, directory);
            refuse_occupied(&directory)?;
            repository.check_out_apart(&directory, &found.snapshot.commit)?;
            let show = directory.to_string_lossy();
            let remove = shell_line(["git", "worktree", "remove", "--force", show.as_ref()]);
            tell(context, &found, "directory", &show, &format!("To remove it again: {remove}"))
        }
        (None, Some(branch)) => {
            repository.branch_off(branch, &found.snapshot.commit)?;
            let switch = shell_line(["git", "switch", branch]);
            tell(context, &found, "branch", branch, &format!("To go there: {switch}"))
        }
        (None, None) => restore_in_place(context, &place, &found),
    }
}

fn refuse_occupied(directory: &Path) -> Result<(), CliError> {
    let empty = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none());
    if empty || directory.symlink_metadata().is_err() {
        return Ok(());
    }
    let message = format!("{} is there already, and nothing is written over it", directory.display());
    Err(CliError::new(ExitStatus::Usage, message).hint("name a directory that does not exist"))
}

/// Puts the snapshot into the worktree that it came from, which nobody else can touch meanwhile.
fn restore_in_place(context: &Context, place: &Place, found: &Found) -> Result<ExitStatus, CliError> {
    let session_id = session_id(&place.settings);
    let control = Control {
        session_id,
        accept_plan_change: false,
        on_conflict: OnConflict::Fail,
        settings: place.settings.clone(),
    };
    let mut opened = take(context, &place.site, &found.run, &control, Part::Own)?;
    refuse_at_work(&opened, found)?;
    let ports = ports(&place.site, &place.settings, &opened.started, &opened.plan, opened.directory.clone())?;
    let slot = worktree(&opened, &ports, found)?;
    place.site.repository.vouch_for(&slot.path)?;
    let before = keep(&mut opened, &ports, found, &slot)?;
    git::restore(&slot.path, &found.snapshot.commit)?;
    let it = &found.snapshot;
    // What is there now is what this one holds: a resume takes it for no change of somebody else's.
    let now_there = Snapshot { commit: it.commit.clone(), reference: it.reference.clone() };
    opened.journal.append(now(), &on_record(found, &now_there))?;
    let message = format!("{} was restored into {}", it.name, slot.path.display());
    opened.journal.append(now(), &Event::Noted { lane: Some(it.lane.clone()), message })?;
    opened.journal.sync()?;
    let undo = shell_line(["lanekeeper", "checkpoints", "restore", &before.reference]);
    let next = shell_line(["lanekeeper", "resume", found.run.as_str()]);
    let words =
        format!("The previous state is saved as {}\nTo undo this: {undo}\nTo continue: {next}", before.reference);
    tell(context, found, "worktree", &slot.path.to_string_lossy(), &words)
}

/// Agents go on when Lanekeeper dies: nothing is put under their hands.
fn refuse_at_work(opened: &Opened, found: &Found) -> Result<(), CliError> {
    let lane = &found.snapshot.lane;
    for job in open_jobs(&opened.records).into_iter().filter(|job| job.lane.as_ref() == Some(lane)) {
        let seen = process::observe(&opened.directory.job(&job));
        if matches!(seen, Ok(Observation::Running(_) | Observation::Starting)) {
            let message = format!("{job} still runs, though no Lanekeeper does");
            let stop = shell_line(["lanekeeper", "stop", found.run.as_str()]);
            return Err(CliError::new(ExitStatus::Held, message).hint(format!("to stop it: {stop}")));
        }
    }
    Ok(())
}

fn worktree(opened: &Opened, ports: &Ports, found: &Found) -> Result<HeldSlot, CliError> {
    let it = &found.snapshot;
    let lane = opened.plan.find(&it.lane);
    let own = it.agent.as_ref().filter(|agent| lane.is_none_or(|lane| !shares(&opened.plan, lane, agent)));
    held(ports, &it.lane, own)?.ok_or_else(|| {
        let message = format!("the worktree that {} came from is no longer in use", it.name);
        let error = CliError::new(ExitStatus::InvalidState, message);
        ways_back(&it.name)[1..].iter().fold(error, |error, (what, command)| error.hint(format!("{what}: {command}")))
    })
}

/// Keeps what is there, on record before anything is put over it.
fn keep(opened: &mut Opened, ports: &Ports, found: &Found, slot: &HeldSlot) -> Result<Snapshot, CliError> {
    let it = &found.snapshot;
    let blocked = |error: PortError| CliError::new(ExitStatus::Blocked, error.to_string());
    let lane = opened.plan.find(&it.lane).ok_or(PortError::Missing("which lane that is")).map_err(blocked)?;
    let keeping = Keeping { lane, agent: it.agent.as_ref(), at: now(), reason: SnapshotReason::Restore };
    let kept = ports.keep_worktree(&keeping, &slot.path).map_err(blocked)?;
    opened.journal.append(now(), &on_record(found, &kept))?;
    opened.journal.sync()?;
    Ok(kept)
}

/// That the worktree of a snapshot holds what `snapshot` does.
fn on_record(found: &Found, snapshot: &Snapshot) -> Event {
    Event::SnapshotTaken {
        lane: found.snapshot.lane.clone(),
        agent: found.snapshot.agent.clone(),
        reason: SnapshotReason::Restore,
        commit: snapshot.commit.clone(),
        reference: snapshot.reference.clone(),
    }
}

fn tell(context: &Context, found: &Found, kind: &str, place: &str, words: &str) -> Result<ExitStatus, CliError> {
    let it = &found.snapshot;
    match context.printer.format() {
        Format::Json => {
            let value = json!({"run_id": found.run, "name": it.name, "commit": it.commit, kind: place, "notes": words});
            context.printer.json(&value)?;
        }
        Format::Text => context.printer.out(format_args!("Restored {} as the {kind} {place}\n{words}\n", it.name))?,
    }
    Ok(ExitStatus::Done)
}
