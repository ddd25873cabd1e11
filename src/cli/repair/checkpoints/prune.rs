//! `checkpoints prune`.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use lanewright_engine::prune::{Candidate, Fate, PruneOptions, fates};
use lanewright_git as git;
use lanewright_model::event::Event;
use lanewright_model::text::{counted, shell_line};
use lanewright_model::{LaneId, RunId};
use lanewright_store::RunLock;
use serde_json::{Value, json};

use super::find::{Found, existing, records_of_named};
use crate::cli::args::PruneCheckpoints;
use crate::cli::runs::{RunRecords, newest_of_lanes};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn run(within: &RepositoryContext, arguments: &PruneCheckpoints) -> Result<ExitStatus> {
    let run = records_of_named(within, arguments.run.run.as_ref())?;
    let keep = arguments.keep.or(within.settings.checkpoint_keep.value).map(|keep| keep.get());
    let options = PruneOptions { keep, older_than: arguments.older_than, force: arguments.force };
    if (options.keep, options.older_than) == (None, None) {
        let again = shell_line(["lanewright", "checkpoints", "prune", run.run.as_str(), "--keep", "5"]);
        return Err(ExitStatus::Usage
            .error("neither --keep nor --older-than nor `checkpoint_keep` says which")
            .hint(format!("for example: {again}")));
    }
    // What is not forced touches nothing that a run still needs, so it may be worked on meanwhile.
    let _lock = match arguments.force {
        true => {
            run.directory.create()?;
            Some(RunLock::acquire(&run.directory.lock(), &within.holder(&run.run))?)
        }
        false => None,
    };
    let checking = within.activity("Checking snapshots");
    let found = existing(within, &run)?;
    let judged = fates(&candidates(within, &run, &found)?, &options, now());
    drop(checking);
    let removing = within.counted_activity("Removing snapshots", judged.iter().filter(|it| **it == Fate::Goes).count());
    let mut outcome = Vec::new();
    for (found, fate) in found.iter().zip(judged) {
        let removed = fate == Fate::Goes && (arguments.dry_run || remove(within, found)?);
        outcome.push((found, fate, removed));
        if removed {
            removing.advance();
        }
    }
    drop(removing);
    report(within, &run, arguments, &outcome)
}

/// Removes the superseded snapshots of a run that has ended beyond `checkpoint_keep`, where that is set.
pub(crate) fn by_setting(within: &RepositoryContext, run: &RunId) {
    let Some(keep) = within.settings.checkpoint_keep.value.map(NonZeroU32::get) else { return };
    let removed = || -> Result<usize> {
        let run = RunRecords::read(&within.context, &within.state, run.clone())?;
        let found = existing(within, &run)?;
        let options = PruneOptions { keep: Some(keep), older_than: None, force: false };
        let judged = fates(&candidates(within, &run, &found)?, &options, now());
        let goes = found.iter().zip(judged).filter(|(_, fate)| *fate == Fate::Goes);
        goes.map(|(found, _)| remove(within, found).map(usize::from)).sum()
    };
    let note = match removed() {
        Ok(0) => return,
        Ok(removed) => format!("removed {} (checkpoint_keep = {keep})", counted(removed, "superseded snapshot")),
        Err(error) => format!("superseded snapshots are not removed: {error:#}"),
    };
    within.context.printer.note(note);
}

/// Whether the ref still was where the run log says, and is gone now.
fn remove(within: &RepositoryContext, found: &Found) -> Result<bool> {
    let (name, commit) = (found.snapshot.reference.clone(), found.snapshot.commit.clone());
    Ok(git::delete_references(&within.repository, &[(name, commit)])?.is_empty())
}

fn candidates(within: &RepositoryContext, run: &RunRecords, found: &[Found]) -> Result<Vec<Candidate>> {
    let merged = merged_lanes(within, run)?;
    let candidate = |found: &Found| {
        let it = &found.snapshot;
        Candidate {
            lane: it.lane.clone(),
            agent: it.agent.clone(),
            reason: it.reason,
            at: it.at,
            intact: found.damage.is_none(),
            merged: merged.contains(&it.lane),
        }
    };
    Ok(found.iter().map(candidate).collect())
}

/// The lanes whose work the integration branch has now.
fn merged_lanes(within: &RepositoryContext, run: &RunRecords) -> Result<BTreeSet<LaneId>> {
    let landed = newest_of_lanes(&run.records, |event| match event {
        Event::LaneMerged { lane, commit, .. } => Some((lane, commit.clone())),
        _ => None,
    });
    let mut merged = BTreeSet::new();
    let Some(base) = within.repository.branch_commit(&run.started()?.base_branch)? else { return Ok(merged) };
    for (lane, commit) in landed {
        if within.repository.is_ancestor(&commit, &base)? {
            merged.insert(lane);
        }
    }
    Ok(merged)
}

fn report(
    within: &RepositoryContext,
    run: &RunRecords,
    arguments: &PruneCheckpoints,
    outcome: &[(&Found, Fate, bool)],
) -> Result<ExitStatus> {
    let one = |(found, fate, removed): &(&Found, Fate, bool)| {
        let it = &found.snapshot;
        json!({"name": it.name, "reference": it.reference, "commit": it.commit, "removed": removed, "why": fate.words()})
    };
    let all: Vec<Value> = outcome.iter().map(one).collect();
    let json = json!({"run_id": run.run, "dry_run": arguments.dry_run, "snapshots": all});
    let mut text = String::new();
    let verb = if arguments.dry_run { "would remove" } else { "removed" };
    for (found, fate, removed) in outcome {
        let it = &found.snapshot;
        match (fate, removed) {
            (Fate::Goes, true) => text += &format!("{verb}  {} ({})\n", it.name, it.commit),
            (Fate::Goes, false) => text += &format!("kept  {}: its ref was moved by another program\n", it.name),
            (Fate::NotMeant, _) => {}
            (fate, _) => text += &format!("kept  {}: {}\n", it.name, fate.words()),
        }
    }
    let removed = outcome.iter().filter(|(_, _, removed)| *removed).count();
    text += &format!("{verb} {} of {}\n", counted(removed, "snapshot"), outcome.len());
    within.context.printer.print(text, &json)
}
