//! Collects the facts about what all runs share. Nothing here writes a byte.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lanewright_git::{self as git, GitError, Pool, Repository};
use lanewright_model::id::snapshot_group;
use lanewright_model::{CheckpointRecord, CommitId, PhaseId, RunId};
use lanewright_programs::process;

use crate::doctor::error::Result;
use crate::doctor::{IndexTrouble, RunFacts, Scope, SharedFacts, pool};
use crate::executor::FINAL;

pub(super) fn shared_facts(
    scope: &Scope<'_>,
    runs: &[RunFacts],
    checkpoints: Result<Vec<CheckpointRecord>, String>,
) -> Result<SharedFacts> {
    let pools = pools(scope, runs);
    let known_records = match &checkpoints {
        Ok(_) => Vec::new(),
        Err(_) => runs.iter().flat_map(|run| run.checkpoints.records.clone()).collect(),
    };
    let mut shared = SharedFacts {
        checkpoints_path: scope.state.checkpoints(),
        checkpoints: Some(checkpoints),
        held: runs.iter().filter(|run| run.held).map(|run| run.run.clone()).collect(),
        held_phases: held_phases(runs),
        known_records,
        held_slots: runs.iter().flat_map(|run| &run.holdings).map(|it| it.holding.worktree.path.clone()).collect(),
        all_known: runs.iter().all(is_known),
        ..SharedFacts::default()
    };
    for (root, pool) in &pools {
        shared.slots.insert(root.clone(), pool.inspect_slots()?);
        shared.trash.extend(pool.in_trash());
        shared.prunable.extend(pool.prunable()?.into_iter().map(|it| (root.clone(), it)));
    }
    shared.index_locks = index_troubles(scope, runs, &shared, Repository::index_lock_in)?;
    shared.reference_locks = reference_locks(scope, runs, &shared);
    shared.damaged_indexes = index_troubles(scope, runs, &shared, Repository::damaged_index_in)?;
    shared.stray_references = stray_references(scope, runs, &shared)?;
    shared.kept_of_removed = git::kept_of_removed(scope.repository)?;
    shared.stray_supervisors = stray_supervisors(scope, runs);
    let places = [scope.repository.main_worktree().to_owned()].into_iter().chain(pools.into_keys());
    shared.disks = places.filter_map(|path| free(&path)).collect();
    Ok(shared)
}

/// Whether a run's log and plan say which slots it holds.
fn is_known(run: &RunFacts) -> bool {
    run.expected.as_ref().is_some_and(|expected| run.held || expected.done() || expected.state.is_some())
}

fn held_phases(runs: &[RunFacts]) -> BTreeMap<PhaseId, RunId> {
    let held = runs.iter().filter(|run| run.held).filter_map(|run| Some((run, &run.expected.as_ref()?.started)));
    let on_its_branches = held.filter(|(_, started)| started.options.branch_suffix.is_empty());
    on_its_branches.map(|(run, started)| (started.phase.clone(), run.run.clone())).collect()
}

/// The pools of all runs, and that of the next run.
fn pools(scope: &Scope<'_>, runs: &[RunFacts]) -> BTreeMap<PathBuf, Pool> {
    let roots = runs.iter().filter_map(|run| Some(run.expected.as_ref()?.started.options.worktree_root.as_path()));
    let pool = |root: &Path| {
        let pool = pool(scope.repository, root);
        (pool.root().to_owned(), pool)
    };
    roots.chain([scope.worktree_root]).map(pool).collect()
}

fn index_troubles(
    scope: &Scope<'_>,
    runs: &[RunFacts],
    shared: &SharedFacts,
    in_worktree: fn(&Repository, &Path) -> Result<Option<PathBuf>, GitError>,
) -> Result<Vec<IndexTrouble>, GitError> {
    let mut found = Vec::new();
    let used = |worktree: &Path| process::at_work_in(worktree, "git").map(|gits| !gits.is_empty());
    let mut inspect = |worktree: &Path, pool: Option<&PathBuf>, is_held: bool| -> Result<(), GitError> {
        let Some(path) = in_worktree(scope.repository, worktree)? else { return Ok(()) };
        let in_use = if is_held { Some(true) } else { used(worktree) };
        // The git that had it may have ended since it was seen.
        if in_worktree(scope.repository, worktree)?.is_some() {
            found.push(IndexTrouble { path, worktree: worktree.to_owned(), pool: pool.cloned(), in_use });
        }
        Ok(())
    };
    inspect(scope.repository.main_worktree(), None, false)?;
    for (root, slots) in &shared.slots {
        for slot in slots.iter().filter(|slot| slot.ours) {
            let holder = slot.holder.as_ref().ok().and_then(Option::as_ref);
            let held = holder.is_some_and(|holder| shared.held.contains(&holder.run));
            let mut busy = runs.iter().flat_map(|run| &run.holdings).filter(|it| it.busy.is_some());
            let is_held = held || busy.any(|it| it.holding.worktree.path == slot.path);
            // A live session may remove the slot at any moment.
            let _ = inspect(&slot.path, Some(root), is_held);
        }
    }
    Ok(found)
}

/// Git's locks on what all worktrees share: a git in any of them may hold one.
fn reference_locks(scope: &Scope<'_>, runs: &[RunFacts], shared: &SharedFacts) -> Vec<IndexTrouble> {
    let expected = runs.iter().filter_map(|run| run.expected.as_ref());
    let bases: BTreeSet<&str> = expected.map(|expected| expected.started.base_branch.as_str()).collect();
    let locks = scope.repository.reference_locks(&bases.into_iter().collect::<Vec<_>>());
    let main = scope.repository.main_worktree();
    let places = || std::iter::once(main).chain(shared.slots.keys().map(PathBuf::as_path));
    let inspect = |path: PathBuf| {
        let at_work = || places().map(|path| process::at_work_in(path, "git"));
        let in_use = at_work().try_fold(false, |used, gits| gits.map(|gits| used || !gits.is_empty()));
        IndexTrouble { path, worktree: main.to_owned(), pool: None, in_use }
    };
    let troubles = locks.into_iter().map(inspect).collect::<Vec<_>>();
    // One that is gone since then had an owner that ended while processes were listed.
    troubles.into_iter().filter(|trouble| trouble.path.symlink_metadata().is_ok()).collect()
}

/// Snapshots that have the name of no lane of a run that is known.
fn stray_references(
    scope: &Scope<'_>,
    runs: &[RunFacts],
    shared: &SharedFacts,
) -> Result<Vec<(String, CommitId)>, GitError> {
    // Each with the lanes that have it: lane A-B of phase P1 has that of lane B of phase P1-A.
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let mut know = |phase: &PhaseId, lane: &str| {
        known.entry(snapshot_group(phase.as_str(), lane)).or_default().insert(lane.to_owned());
    };
    for run in runs {
        if let Some(Ok(plan)) = &run.plan.pinned {
            plan.lanes.iter().for_each(|lane| know(&plan.phase, lane.id.as_str()));
        }
        if let Some(expected) = &run.expected {
            named.extend(expected.snapshots());
            let phase = &expected.started.phase;
            let of_phase = |name| lane_part(name)?.strip_prefix(phase.as_str())?.strip_prefix('-');
            expected.snapshots().filter_map(of_phase).for_each(|lane| know(phase, lane));
            know(phase, FINAL);
        }
        if run.held || run.expected.is_none() {
            let records = shared.checkpoints.iter().flatten().flatten().filter(|it| it.run_id == run.run);
            records.for_each(|it| it.lane.iter().for_each(|lane| know(&it.phase, lane.as_str())));
        }
    }
    let is_stray = |(name, commit): &(String, CommitId)| {
        let Some(lanes) = lane_part(name).and_then(|part| known.get(part)) else { return true };
        let lane = || git::trailers_of(scope.repository, commit).remove("Lane");
        !named.contains(name.as_str()) && lane().is_some_and(|lane| !lanes.contains(&lane))
    };
    let all = scope.repository.references("refs/lanewright/checkpoint")?;
    Ok(all.into_iter().filter(is_stray).collect())
}

/// `P1-SL-1` of `refs/lanewright/checkpoint/P1-SL-1/<timestamp>`.
fn lane_part(reference: &str) -> Option<&str> {
    Some(reference.split_once("/checkpoint/")?.1.split_once('/')?.0)
}

/// Supervisors of jobs that no log has as running. Those of runs that a live session works on do not count.
fn stray_supervisors(scope: &Scope<'_>, runs: &[RunFacts]) -> Vec<(lanewright_model::ProcessId, PathBuf)> {
    let root = scope.state.path();
    let has_run = |job: &Path| {
        runs.iter().any(|run| {
            let known = run.jobs.iter().any(|(_, directory, _)| directory == job);
            job.starts_with(&run.directory) && (run.held || known || run.expected.is_some() && !is_known(run))
        })
    };
    // A supervisor whose job has ended is about to end.
    let works = |job: &Path| !matches!(process::observe(job), Ok(process::Observation::Exited(_)));
    process::supervisors_below(&root).into_iter().filter(|(_, job)| !has_run(job) && works(job)).collect()
}

/// The bytes that are free on the disk of `path`, or of what of it exists, and how many there are.
fn free(path: &Path) -> Option<(PathBuf, u64, u64)> {
    let existing = path.ancestors().find(|part| part.exists())?;
    let disk = rustix::fs::statvfs(existing).ok()?;
    Some((existing.to_owned(), disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize))
}
