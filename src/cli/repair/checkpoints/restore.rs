//! `checkpoints restore`: a snapshot into its worktree, into a new directory, or as a branch.

use std::path::Path;

use lanewright_engine::executor::{Executor, ExecutorError, SnapshotTarget};
use lanewright_git::{self as git, HeldSlot, Snapshot};
use lanewright_model::event::{Event, SnapshotReason};
use lanewright_model::text::shell_line;
use lanewright_plan::settings::absolute;
use lanewright_programs::process::{self, Observation};
use serde_json::json;

use super::find::{named, ways_back};
use crate::cli::args::RestoreCheckpoint;
use crate::cli::look::worktree::{held_slot, shares};
use crate::cli::run::{Adoption, LockedRun, Reach, adopt, complete_files_of};
use crate::cli::runs::open_jobs;
use crate::cli::snapshots::Found;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn run(within: &RepositoryContext, arguments: &RestoreCheckpoint) -> Result<ExitStatus> {
    let found = named(within, &arguments.name)?;
    if let Some(damage) = &found.damage {
        let message = format!("{} is damaged and cannot be restored: {damage}", found.snapshot.name);
        let lane = &found.snapshot.lane;
        let latest = shell_line(["lanewright", "checkpoints", "restore", &format!("latest:{lane}")]);
        return Err(ExitStatus::Corrupted
            .error(message)
            .hint(format!("the newest one of the lane that can be read: {latest}")));
    }
    let repository = &within.repository;
    match (&arguments.to, &arguments.branch) {
        (Some(directory), _) => {
            let directory = absolute(&within.context.directory, directory);
            refuse_occupied(&directory)?;
            repository.create_detached_worktree(&directory, &found.snapshot.commit)?;
            let show = directory.to_string_lossy();
            let remove = shell_line(["git", "worktree", "remove", "--force", show.as_ref()]);
            report(within, &found, "directory", &show, &format!("To remove it again: {remove}"))
        }
        (None, Some(branch)) => {
            repository.branch_off(branch, &found.snapshot.commit)?;
            let switch = shell_line(["git", "switch", branch]);
            report(within, &found, "branch", branch, &format!("To go there: {switch}"))
        }
        (None, None) => restore_in_place(within, &found),
    }
}

fn refuse_occupied(directory: &Path) -> Result<()> {
    let empty = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none());
    if empty || directory.symlink_metadata().is_err() {
        return Ok(());
    }
    let message = format!("{} is there already, and nothing is written over it", directory.display());
    Err(ExitStatus::Usage.error(message).hint("name a directory that does not exist"))
}

/// Restores the snapshot into its worktree, while the run is locked.
fn restore_in_place(within: &RepositoryContext, found: &Found) -> Result<ExitStatus> {
    let mut locked = adopt(within, &found.run, &Adoption::default(), Reach::Own)?;
    refuse_at_work(&locked, found)?;
    let executor = within.executor(&locked.started, &locked.plan)?;
    let slot = worktree(&locked, &executor, found)?;
    within.repository.refuse_foreign_worktree(&slot.path)?;
    let before = keep(&mut locked, &executor, found, &slot)?;
    git::restore(&slot.path, &found.snapshot.commit)?;
    let it = &found.snapshot;
    // The worktree equals this snapshot now: a resume does not take that for an external change.
    let now_there = Snapshot { commit: it.commit.clone(), reference: it.reference.clone() };
    locked.journal.append(now(), &on_record(&executor, found, &now_there))?;
    let message = format!("{} was restored into {}", it.name, slot.path.display());
    locked.journal.append(now(), &Event::Noted { lane: Some(it.lane.clone()), message })?;
    locked.journal.sync()?;
    complete_files_of(within, &found.run);
    let undo = shell_line(["lanewright", "checkpoints", "restore", &before.reference]);
    let next = shell_line(["lanewright", "resume", found.run.as_str()]);
    let words =
        format!("The previous state is saved as {}\nTo undo this: {undo}\nTo continue: {next}", before.reference);
    report(within, found, "worktree", &slot.path.to_string_lossy(), &words)
}

/// Agents outlive Lanewright: their files are not changed while they run.
fn refuse_at_work(locked: &LockedRun, found: &Found) -> Result<()> {
    let lane = &found.snapshot.lane;
    for job in open_jobs(&locked.records).into_iter().filter(|job| job.lane.as_ref() == Some(lane)) {
        let seen = process::observe(&locked.directory.job(&job));
        if matches!(seen, Ok(Observation::Running(_) | Observation::Starting)) {
            let message = format!("{job} still runs, though no Lanewright does");
            let stop = shell_line(["lanewright", "stop", found.run.as_str()]);
            return Err(ExitStatus::Held.error(message).hint(format!("to stop it: {stop}")));
        }
    }
    Ok(())
}

fn worktree(locked: &LockedRun, executor: &Executor, found: &Found) -> Result<HeldSlot> {
    let it = &found.snapshot;
    let lane = locked.plan.find(&it.lane);
    let own = it.agent.as_ref().filter(|agent| lane.is_none_or(|lane| !shares(&locked.plan, lane, agent)));
    held_slot(&executor.pool, &executor.facts.run_id, (&it.lane, own))?.ok_or_else(|| {
        let message = format!("the worktree that {} came from is no longer in use", it.name);
        let error = ExitStatus::InvalidState.error(message);
        ways_back(&it.name)[1..].iter().fold(error, |error, (what, command)| error.hint(format!("{what}: {command}")))
    })
}

/// Saves the worktree, and records that before anything is overwritten.
fn keep(locked: &mut LockedRun, executor: &Executor, found: &Found, slot: &HeldSlot) -> Result<Snapshot> {
    let it = &found.snapshot;
    let lane = locked.plan.find(&it.lane).ok_or(ExecutorError::Missing("the lane"))?;
    let target = SnapshotTarget { lane, agent: it.agent.as_ref(), at: now(), reason: SnapshotReason::Restore };
    let kept = executor.keep_worktree(&target, &slot.path)?;
    locked.journal.append(now(), &on_record(executor, found, &kept))?;
    locked.journal.sync()?;
    Ok(kept)
}

/// Records that the worktree of a snapshot equals `snapshot`.
fn on_record(executor: &Executor, found: &Found, snapshot: &Snapshot) -> Event {
    let it = &found.snapshot;
    executor.taken(it.lane.clone(), it.agent.clone(), SnapshotReason::Restore, snapshot.clone())
}

fn report(within: &RepositoryContext, found: &Found, kind: &str, place: &str, words: &str) -> Result<ExitStatus> {
    let it = &found.snapshot;
    within.context.printer.print(
        format_args!("Restored {} as the {kind} {place}\n{words}\n", it.name),
        &json!({"run_id": found.run, "name": it.name, "commit": it.commit, kind: place, "notes": words}),
    )
}
