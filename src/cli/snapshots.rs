//! The snapshots of a run that exist, and the removal of those that are superseded.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use lanewright_engine::prune::{Candidate, Fate, PruneOptions, fates};
use lanewright_git as git;
use lanewright_model::event::Event;
use lanewright_model::text::counted;
use lanewright_model::{CommitId, LaneId, RunId};
use lanewright_view::history::snapshots::{KeptSnapshot, snapshots};

use super::runs::{RunRecords, newest_of_lanes};
use super::{RepositoryContext, Result, now};

/// A snapshot whose ref exists, and its run.
pub(crate) struct Found {
    pub(crate) run: RunId,
    pub(crate) snapshot: KeptSnapshot,
    /// What is wrong with it, if it cannot be read.
    pub(crate) damage: Option<String>,
}

/// The run's snapshots whose refs exist, oldest first.
pub(crate) fn existing(within: &RepositoryContext, run: &RunRecords) -> Result<Vec<Found>> {
    let all = snapshots(&run.records, run.plan.as_ref()).into_iter();
    let there: Vec<KeptSnapshot> = all.filter(|snapshot| exists(within, snapshot)).collect();
    let commits: Vec<CommitId> = there.iter().map(|snapshot| snapshot.commit.clone()).collect();
    let mut damage: BTreeMap<CommitId, String> = git::damaged(&within.repository, &commits)?;
    let found = |snapshot: KeptSnapshot| {
        let damage = damage.remove(&snapshot.commit);
        Found { run: run.run.clone(), snapshot, damage }
    };
    Ok(there.into_iter().map(found).collect())
}

/// A ref to something that cannot be read exists too.
fn exists(within: &RepositoryContext, snapshot: &KeptSnapshot) -> bool {
    within.repository.commit_at(&snapshot.reference).map_or(true, |at| at.as_ref() == Some(&snapshot.commit))
}

/// Removes the superseded snapshots of a run that has ended beyond `checkpoint_keep`, where that is set.
pub(crate) fn prune_by_setting(within: &RepositoryContext, run: &RunId) {
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

/// Removes the snapshot's ref. Whether the ref still was where the run log says, and is gone now.
pub(crate) fn remove(within: &RepositoryContext, found: &Found) -> Result<bool> {
    let (name, commit) = (found.snapshot.reference.clone(), found.snapshot.commit.clone());
    Ok(git::delete_references(&within.repository, &[(name, commit)])?.is_empty())
}

pub(crate) fn candidates(within: &RepositoryContext, run: &RunRecords, found: &[Found]) -> Result<Vec<Candidate>> {
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
