//! `checkpoints prune`.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::find::{Found, Place, RunRecords, started};
use crate::cli::args::{Format, PruneCheckpoints};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::{holder, now};
use crate::cli::options::session_id;
use crate::event::Event;
use crate::git;
use crate::model::text::{counted, shell_line};
use crate::model::{CommitId, LaneId};
use crate::recover::prune::{Candidate, Fate, Wish, fates};
use crate::store::RunLock;

pub(super) fn run(context: &Context, arguments: &PruneCheckpoints) -> Result<ExitStatus, CliError> {
    let place = Place::find(context)?;
    let run = place.records(context, arguments.run.as_ref())?;
    let keep = arguments.keep.or(place.settings.checkpoint_keep.value).map(|keep| keep.get());
    let wish = Wish { keep, older_than: arguments.older_than, force: arguments.force };
    if (wish.keep, wish.older_than) == (None, None) {
        let again = shell_line(["lanekeeper", "checkpoints", "prune", run.run.as_str(), "--keep", "5"]);
        return Err(CliError::new(
            ExitStatus::Usage,
            "neither --keep nor --older-than nor `checkpoint_keep` says which",
        )
        .hint(format!("for example: {again}")));
    }
    // What is not forced touches nothing that a run still needs, so it may be worked on meanwhile.
    let _lock = match arguments.force {
        true => {
            run.directory.create()?;
            let holder = holder(&place.state, &session_id(&place.settings), &run.run);
            Some(RunLock::acquire(&run.directory.lock(), &holder)?)
        }
        false => None,
    };
    let found = place.existing(&run)?;
    let judged = fates(&candidates(&place, &run, &found)?, &wish, now());
    let mut outcome = Vec::new();
    for (found, fate) in found.iter().zip(judged) {
        let removed = fate == Fate::Goes && (arguments.dry_run || remove(&place, found)?);
        outcome.push((found, fate, removed));
    }
    report(context, &run, arguments, &outcome)
}

/// Whether the ref still was where the run log says, and is gone now.
fn remove(place: &Place, found: &Found) -> Result<bool, CliError> {
    let (name, commit) = (found.snapshot.reference.clone(), found.snapshot.commit.clone());
    Ok(git::delete_references(&place.site.repository, &[(name, commit)])?.is_empty())
}

fn candidates(place: &Place, run: &RunRecords, found: &[Found]) -> Result<Vec<Candidate>, CliError> {
    let merged = merged_lanes(place, run)?;
    let candidate = |found: &Found| {
        let it = &found.snapshot;
        Candidate {
            lane: it.lane.clone(),
            agent: it.agent.clone(),
            reason: it.reason,
            at: it.at,
            intact: found.damage.is_none(),
            merged: merged.contains_key(&it.lane),
        }
    };
    Ok(found.iter().map(candidate).collect())
}

/// The lanes whose work the integration branch holds now.
fn merged_lanes(place: &Place, run: &RunRecords) -> Result<HashMap<LaneId, CommitId>, CliError> {
    let mut landed = HashMap::new();
    for record in &run.records {
        match &record.event {
            Event::LaneMerged { lane, commit, .. } => drop(landed.insert(lane.clone(), commit.clone())),
            Event::LaneRolledBack { lane, .. } => drop(landed.remove(lane)),
            _ => {}
        }
    }
    let repository = &place.site.repository;
    let Some(base) = repository.branch_commit(&started(run)?.base_branch)? else { return Ok(HashMap::new()) };
    let mut merged = HashMap::new();
    for (lane, commit) in landed {
        if repository.is_ancestor(&commit, &base)? {
            merged.insert(lane, commit);
        }
    }
    Ok(merged)
}

fn report(
    context: &Context,
    run: &RunRecords,
    arguments: &PruneCheckpoints,
    outcome: &[(&Found, Fate, bool)],
) -> Result<ExitStatus, CliError> {
    if context.printer.format() == Format::Json {
        let one = |(found, fate, removed): &(&Found, Fate, bool)| {
            let it = &found.snapshot;
            json!({"name": it.name, "reference": it.reference, "commit": it.commit, "removed": removed, "why": fate.words()})
        };
        let all: Vec<Value> = outcome.iter().map(one).collect();
        let value = json!({"run_id": run.run, "dry_run": arguments.dry_run, "snapshots": all});
        context.printer.json(&value)?;
        return Ok(ExitStatus::Done);
    }
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
    context.printer.out(text)?;
    Ok(ExitStatus::Done)
}
