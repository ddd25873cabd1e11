//! Packs a run as it is on disk into one commit.
//!
//! The log is read first and everything else after it. So what the log names exists, and branches that have moved on
//! meanwhile are no different from those that a crash leaves: every executor finds its work done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::{Result, StateSyncError};
use super::manifest::{FORMAT, Manifest};
use super::{Source, outgoing_reference, secrets};
use crate::event::{Record, RunStarted};
use crate::fs::regular_file;
use crate::git::{Bundle, write_bundle};
use crate::model::digest::sha256;
use crate::model::{CommitId, LaneIndex, MergeMode, Plan};
use crate::schedule::{LaneState, RunState};
use crate::store::run_files::{self, RunFile};
use crate::store::run_log;

pub(super) const FILES: &str = "files/";

pub(super) const LOG: &str = "log/";

/// How many records a piece of the log has. A whole piece never changes again, so git sends it once.
const RECORDS_IN_A_PIECE: usize = 512;

pub(super) struct Packed {
    pub(super) commit: CommitId,
    pub(super) manifest: Manifest,
    pub(super) log: Vec<u8>,
}

/// Packs a run as it is now. The same state is the same commit.
pub(super) fn pack(source: &Source) -> Result<Packed> {
    let unreadable = |reason: String| StateSyncError::Unreadable { run: source.run.clone(), reason };
    let (log, records) = run_log::read_durable(&source.directory.log())?;
    let plan = regular_file::read(source.directory.plan()).map_err(|error| unreadable(format!("its plan: {error}")))?;
    let plan: Plan = serde_json::from_slice(&plan).map_err(|error| unreadable(format!("its plan: {error}")))?;
    let state = RunState::replay(&Arc::new(plan), &records)
        .map_err(|(line, fault)| unreadable(format!("line {line} of its log: {fault}")))?;
    let started = state.started().ok_or_else(|| unreadable("its log has no beginning".to_owned()))?;
    let manifest = describe(source, &state, started, &log, &records)?;
    let running: Vec<_> = state.running_jobs().map(|job| source.directory.job(job)).collect();
    let mut files = run_files::collect(&source.directory, &running)?;
    let jobs = run_files::specifications(&source.directory)?;
    secrets::clean(&mut files, &secrets::redactor(state.plan(), &jobs));
    let message = format!("Lanekeeper: run {} of phase {}, {} records", source.run, manifest.phase, manifest.records);
    let bundle = Bundle {
        files: &tree(&manifest, &log, files).map_err(|error| unreadable(error.to_string()))?,
        tree: None,
        removed: &[],
        commits: &parents(source, &manifest, &state)?,
        message: &message,
        at: manifest.at,
    };
    let commit = write_bundle(&source.repository, &outgoing_reference(&source.run), &bundle)?;
    Ok(Packed { commit, manifest, log })
}

fn describe(
    source: &Source,
    state: &RunState,
    started: &RunStarted,
    log: &[u8],
    records: &[Record],
) -> Result<Manifest> {
    let last = records.last().map(|record| (record.seq, record.at));
    let (records, at) = last.ok_or_else(|| StateSyncError::Unreadable {
        run: source.run.clone(),
        reason: "its log holds no record".to_owned(),
    })?;
    let integration = source.repository.branch_commit(&started.base_branch)?;
    Ok(Manifest {
        format: FORMAT.to_owned(),
        lanekeeper: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: source.run.clone(),
        phase: started.phase.clone(),
        host: source.host.clone(),
        repository: source.repository.main_worktree().to_owned(),
        worktree_root: started.options.worktree_root.clone(),
        records,
        at,
        log_bytes: log.len() as u64,
        log_sha256: sha256(log),
        outcome: state.finished().map(|(outcome, _)| outcome),
        base_branch: started.base_branch.clone(),
        integration: integration.unwrap_or_else(|| started.base_commit.clone()),
        branches: branches(source, state, started)?,
        references: references(source, state)?,
        claim: source.claim.clone(),
    })
}

/// The branches of lanes that have begun and whose work is not merged. One that was deleted is taken from the log.
fn branches(source: &Source, state: &RunState, started: &RunStarted) -> Result<BTreeMap<String, CommitId>> {
    let mut branches = BTreeMap::new();
    for lane in state.plan().indices() {
        for (branch, known) in branches_of(state, started, lane) {
            let commit = source.repository.branch_commit(&branch)?.or(known);
            branches.extend(commit.map(|commit| (branch, commit)));
        }
    }
    Ok(branches)
}

/// A lane's branches that may exist, each with its head as the log knows it.
fn branches_of(state: &RunState, started: &RunStarted, lane: LaneIndex) -> Vec<(String, Option<CommitId>)> {
    let (lane_state, plan) = (state.lane(lane), state.plan().lane(lane));
    // A lane that is not merged locally is cleaned up and keeps its branch.
    let unmerged = lane_state.merged().is_some() && started.options.merge != MergeMode::Local;
    if lane_state.worktree().is_none() && !unmerged {
        return Vec::new();
    }
    let mut branches = vec![(started.lane_branch(&plan.id), lane_state.head().cloned())];
    for (at, (agent, worker)) in plan.agents.iter().zip(lane_state.agents()).enumerate() {
        if worker.start.is_some() && !plan.shares_worktree(at) {
            let known = worker.head.clone().filter(|_| worker.worktree.is_some());
            branches.push((started.agent_branch(&plan.id, &agent.name), known));
        }
    }
    branches
}

fn references(source: &Source, state: &RunState) -> Result<BTreeMap<String, CommitId>> {
    let mut references = BTreeMap::new();
    for (reference, _) in state.plan().indices().flat_map(|lane| state.lane(lane).snapshots()) {
        let commit = source.repository.commit_at(reference)?;
        references.extend(commit.map(|commit| (reference.clone(), commit)));
    }
    Ok(references)
}

/// The commits that the state keeps: those with names, and those that only the log names.
fn parents(source: &Source, manifest: &Manifest, state: &RunState) -> Result<Vec<CommitId>> {
    let unnamed: BTreeSet<CommitId> =
        state.plan().indices().flat_map(|lane| unnamed(state.lane(lane))).cloned().collect();
    let mut parents = manifest.commits();
    parents.extend(source.repository.commits_here(unnamed)?);
    parents.sort();
    parents.dedup();
    Ok(parents)
}

/// Commits of a lane that no ref need lead to.
fn unnamed(lane: &LaneState) -> impl Iterator<Item = &CommitId> {
    let staged = lane.staged().into_iter().flat_map(|staged| [&staged.onto, &staged.commit]);
    let agents = lane.agents().iter().flat_map(|agent| agent.start.iter().chain(&agent.good).chain(&agent.passed));
    staged.chain(agents).chain(lane.base()).chain(lane.head())
}

fn tree(manifest: &Manifest, log: &[u8], files: Vec<RunFile>) -> serde_json::Result<Vec<RunFile>> {
    let mut tree = vec![manifest.file()?];
    let lines: Vec<&[u8]> = log.split_inclusive(|&byte| byte == b'\n').collect();
    let pieces = lines.chunks(RECORDS_IN_A_PIECE).zip(1..);
    tree.extend(pieces.map(|(piece, number): (_, u32)| (format!("{LOG}{number:06}.jsonl"), piece.concat())));
    tree.extend(files.into_iter().map(|(path, contents)| (format!("{FILES}{path}"), contents)));
    Ok(tree)
}
