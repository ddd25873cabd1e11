//! What exists of a run whose log is gone or incomplete. Nothing here writes a byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lanewright_files::FileError;
use lanewright_files::directory::entries;
use lanewright_git::{self as git, GitError};
use lanewright_model::event::{AGENT_BRANCHES, Event, LANE_BRANCHES};
use lanewright_model::id::snapshot_group;
use lanewright_model::{CheckpointRecord, CommitId, Plan, RunId};
use lanewright_store::{RunDirectory, run_log};

use crate::doctor::error::Result;
use crate::doctor::{LogSeen, RunFacts, RunTraces, Scope, pool};

/// Every run that has left something: a log, a directory, a slot, or checkpoints of lanes that are not complete and
/// whose branches exist.
pub(super) fn known_runs(scope: &Scope<'_>, records: &[CheckpointRecord]) -> Result<Vec<RunId>> {
    let logged: Vec<RunId> = scope.state.runs()?;
    let mut runs: BTreeSet<RunId> = logged.iter().cloned().collect();
    for path in entries(&scope.state.path())?.iter().filter(|path| path.is_dir()) {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| RunId::new(name).ok());
        if (path.join("plan.json").exists() || path.join("lanes").exists())
            && let Some(run) = name
        {
            runs.insert(run);
        }
    }
    // The default pool, for runs whose own is unknown.
    for slot in pool(scope.repository, scope.worktree_root).inspect_slots()? {
        runs.extend(slot.holder.ok().flatten().map(|holder| holder.run));
    }
    let phases: BTreeSet<_> =
        records.iter().filter(|it| runs.contains(&it.run_id)).map(|it| it.phase.clone()).collect();
    for record in records.iter().filter(|it| !phases.contains(&it.phase)) {
        let branch = record.git.as_ref().and_then(|git| git.branch.clone()).filter(|branch| branch.starts_with("lane"));
        if !record.is_over()
            && let Some(branch) = branch
            && scope.repository.branch_commit(&branch)?.is_some()
        {
            runs.insert(record.run_id.clone());
        }
    }
    Ok(runs.into_iter().collect())
}

/// `own`: what `checkpoints.json` holds of the run.
pub(super) fn log_path(directory: &RunDirectory, own: &[&CheckpointRecord]) -> PathBuf {
    let usual = directory.log();
    if usual.exists() {
        return usual;
    }
    let named = own.iter().map(|record| &record.log_path);
    let mut elsewhere = named.filter(|path| path.is_absolute() && path.exists());
    elsewhere.next_back().map_or(usual, |path| path.to_path_buf())
}

/// Finds everything that has the names of the run's lanes and agents.
pub(super) fn find(scope: &Scope<'_>, facts: &RunFacts, own: &[&CheckpointRecord]) -> Result<RunTraces> {
    let own: Vec<CheckpointRecord> = own.iter().map(|&record| record.clone()).collect();
    let slots = pool(scope.repository, scope.worktree_root).inspect_slots()?;
    let holds = |holder: &Option<lanewright_git::Holder>| holder.as_ref().is_some_and(|holder| holder.run == facts.run);
    let slots = slots.into_iter().filter(|slot| slot.holder.as_ref().is_ok_and(holds)).collect();
    let plan = facts.plan.pinned.as_ref().and_then(|plan| plan.as_ref().ok());
    let phase = plan.map(|plan| plan.phase.to_string()).or_else(|| own.first().map(|it| it.phase.to_string()));
    let mut traces = RunTraces { records: own, slots, ..RunTraces::default() };
    traces.jobs = job_directories(&facts.directory);
    traces.has_directory = facts.plan.pinned.is_some() || !traces.jobs.is_empty();
    if let Some(phase) = &phase {
        let lanes = lanes(plan.map(AsRef::as_ref), &traces.records);
        let branches = scope.repository.references("refs/heads/")?;
        for lane in &lanes {
            for names in [LANE_BRANCHES, AGENT_BRANCHES] {
                let name = format!("{names}/{phase}/{lane}");
                traces.branches.extend(branches.iter().filter(|(branch, _)| branch.contains(&name)).cloned());
            }
            for space in ["refs/lanewright/checkpoint", "refs/tags/checkpoint"] {
                traces
                    .snapshots
                    .extend(scope.repository.references(&format!("{space}/{}", snapshot_group(phase, lane)))?);
            }
        }
        // Lane A-B of phase P1 has the names of lane B of phase P1-A.
        let of_others = snapshots_of_others(scope, &facts.run)?;
        let is_its = |(name, commit): &(String, CommitId)| {
            let run = git::trailers_of(scope.repository, commit).remove("Run");
            run.is_none_or(|run| run == facts.run.as_str()) && !of_others.contains(name)
        };
        traces.snapshots.retain(is_its);
    }
    traces.phase = phase;
    if let LogSeen::Damaged(salvage) = &facts.log {
        let (path, merges) = beginning_of(scope, facts, &salvage.records)?;
        traces.plan = path;
        traces.unknown_merges = merges;
    }
    traces.plan = traces.plan.or_else(|| plan_path(&traces.records));
    Ok(traces)
}

/// The refs that the logs of the other runs name.
fn snapshots_of_others(scope: &Scope<'_>, run: &RunId) -> Result<BTreeSet<String>, FileError> {
    let mut named = BTreeSet::new();
    for other in scope.state.runs()?.iter().filter(|other| *other != run) {
        // A log that cannot be read names none.
        let taken = run_log::read_some(&scope.state.run(other).log(), |word| word == "snapshot_taken");
        named.extend(taken.unwrap_or_default().into_iter().filter_map(|record| match record.event {
            Event::SnapshotTaken { reference, .. } => Some(reference),
            _ => None,
        }));
    }
    Ok(named)
}

fn beginning_of(
    scope: &Scope<'_>,
    facts: &RunFacts,
    records: &[lanewright_model::event::Record],
) -> Result<(Option<PathBuf>, Vec<CommitId>), GitError> {
    let Some(Event::RunStarted(started)) = records.first().map(|record| &record.event) else {
        return Ok((None, Vec::new()));
    };
    let mut known = vec![started.base_commit.clone()];
    known.extend(records.iter().filter_map(|record| match &record.event {
        Event::LaneMerged { commit, .. } => Some(commit.clone()),
        _ => None,
    }));
    let merges = scope.repository.commits_of_run(&facts.run, &started.base_branch, &known)?;
    Ok((Some(started.plan_path.clone()), merges))
}

fn lanes(plan: Option<&Plan>, records: &[CheckpointRecord]) -> BTreeSet<String> {
    let planned = plan.into_iter().flat_map(|plan| plan.lanes.iter().map(|lane| lane.id.to_string()));
    let recorded = records.iter().filter_map(|record| record.lane.as_ref().map(ToString::to_string));
    planned.chain(recorded).collect()
}

/// The plan's file, which the hints of checkpoints name.
fn plan_path(records: &[CheckpointRecord]) -> Option<PathBuf> {
    let words = shlex::split(&records.last()?.resume_hint)?;
    let at = words.iter().position(|word| word == "execute-phase")?;
    words.get(at + 1).map(PathBuf::from)
}

/// The directories of jobs below a run's, relative to it.
fn job_directories(run: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![run.to_owned()];
    while let Some(directory) = open.pop() {
        for path in entries(&directory).unwrap_or_default() {
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else if path.ends_with("spec.json") {
                found.extend(directory.strip_prefix(run).map(Path::to_owned));
            }
        }
    }
    found.sort();
    found
}
