//! Packs a run as it is on disk into one commit.
//!
//! The log is read first and everything else after it. So what the log names exists, and branches that have moved on
//! meanwhile are no different from those that a crash leaves: every executor finds its work done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lanewright_files::regular_file;
use lanewright_git::{Bundle, GitError, write_bundle};
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, Record, RunStarted};
use lanewright_model::{CommitId, LaneIndex, MergeMode, Plan, Redactor, Timestamp};
use lanewright_schedule::{LaneState, RunState};
use lanewright_store::run_files::{FileChanges, KnownFiles, RunFile};
use lanewright_store::run_log::{self, DurableLog, DurableRead};

use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::manifest::{FILES, FORMAT, LOG, Manifest};
use crate::state_sync::push::secrets;
use crate::state_sync::{Source, outgoing_reference};

/// How many records a piece of the log has. A whole piece never changes again, so git sends it once.
const RECORDS_IN_A_PIECE: usize = 512;

pub(crate) struct Packed {
    pub(crate) commit: CommitId,
    pub(crate) manifest: Manifest,
    pub(crate) log: Vec<u8>,
}

/// Packs a run again and again: what did not change since the last time is not read, cleaned and written again.
#[derive(Default)]
pub(crate) struct Packer {
    log: ReplayedLog,
    files: KnownFiles,
    last: Option<LastPacked>,
}

struct LastPacked {
    commit: CommitId,
    redactor: Redactor,
    pieces: Pieces,
}

/// The pieces of a log that never change again: how many, and how many bytes of the log they take.
#[derive(Clone, Copy, Default)]
struct Pieces {
    count: usize,
    bytes: usize,
}

/// A run's log with the state that it leads to.
#[derive(Default)]
struct ReplayedLog {
    log: DurableLog,
    plan: Vec<u8>,
    state: Option<RunState>,
    snapshots: Snapshots,
    last: Option<(u64, Timestamp)>,
}

#[derive(Default)]
struct Snapshots(BTreeSet<String>);

impl Snapshots {
    fn extend(&mut self, records: &[Record]) {
        let named = records.iter().filter_map(|record| match &record.event {
            Event::SnapshotTaken { reference, .. } => Some(reference.clone()),
            _ => None,
        });
        self.0.extend(named);
    }

    /// Those that were not removed or damaged.
    fn there(&self, source: &Source) -> Result<BTreeMap<String, CommitId>> {
        let mut there = BTreeMap::new();
        for reference in &self.0 {
            match source.repository.commit_at(reference) {
                Err(GitError::LostObject { .. }) => {}
                found => there.extend(found?.map(|commit| (reference.clone(), commit))),
            }
        }
        Ok(there)
    }
}

struct Contents {
    /// What they are changes of; `None`: they are all.
    tree: Option<String>,
    changes: FileChanges,
    redactor: Redactor,
    /// The pieces of the log in `tree`.
    pieces: Pieces,
}

impl Packer {
    /// Packs a run as it is now. The same state is the same commit, whatever was packed before. After an error nothing may
    /// be packed with it.
    pub(crate) fn pack(&mut self, source: &Source) -> Result<Packed> {
        let (log, state, references, last_record) = self.log.read(source)?;
        let manifest = describe(source, (state, references), &log, last_record)?;
        let last = self.last.take().filter(|_| log.continues);
        // It may be gone: a push that failed left no ref to it.
        let last = last.and_then(|last| Some((source.repository.tree_of(&last.commit).ok()?, last)));
        let Contents { tree, changes, redactor, pieces: known } = contents(&mut self.files, source, state, last)?;
        let (mut files, pieces) = pieces(&log.bytes, known);
        let in_files = |path: String| format!("{FILES}{path}");
        files.extend(changes.written.into_iter().map(|(path, text)| (in_files(path), text)));
        let removed: Vec<String> = changes.removed.into_iter().map(in_files).collect();
        let commit = write(source, state, &manifest, files, (tree.as_deref(), &removed))?;
        self.last = Some(LastPacked { commit: commit.clone(), redactor, pieces });
        Ok(Packed { commit, manifest, log: log.bytes })
    }
}

/// The commit of a run with this log and plan, whose other files are those of `before`.
pub(crate) fn pack_log(source: &Source, plan: &[u8], log: Vec<u8>, before: Option<&CommitId>) -> Result<CommitId> {
    let added = run_log::parse(&source.directory.log(), &log)?;
    let mut state = RunState::new(Arc::new(parse_plan(source, plan)?));
    apply_all(source, &mut state, &added)?;
    let last = last_record(source, &added, None)?;
    let mut snapshots = Snapshots::default();
    snapshots.extend(&added);
    let log = DurableRead { sha256: sha256(&log), bytes: log, continues: false, added };
    let manifest = describe(source, (&state, snapshots.there(source)?), &log, last)?;
    let mut files = pieces(&log.bytes, Pieces::default()).0;
    files.push((format!("{FILES}plan.json"), plan.to_vec()));
    let tree = before.map(|before| source.repository.tree_of(before)).transpose()?;
    write(source, &state, &manifest, files, (tree.as_deref(), &[]))
}

/// Writes the commit of a state: the manifest and `files`, on top of a tree without what is `removed` of it.
fn write(
    source: &Source,
    state: &RunState,
    manifest: &Manifest,
    mut files: Vec<RunFile>,
    (tree, removed): (Option<&str>, &[String]),
) -> Result<CommitId> {
    files.push(manifest.file().map_err(|error| unreadable(source, error.to_string()))?);
    let bundle = Bundle {
        tree,
        removed,
        files: &files,
        commits: &parents(source, manifest, state)?,
        message: &format!("Lanewright: run {} of phase {}, {} records", source.run, manifest.phase, manifest.records),
        at: manifest.at,
    };
    Ok(write_bundle(&source.repository, &outgoing_reference(&source.run), &bundle)?)
}

fn apply_all(source: &Source, state: &mut RunState, records: &[Record]) -> Result<()> {
    state.expect(records);
    for record in records {
        let fault = |fault| unreadable(source, format!("line {} of its log: {fault}", record.seq));
        state.apply(record).map_err(fault)?;
    }
    Ok(())
}

/// The number and the time of the last record, of `added` or before.
fn last_record(source: &Source, added: &[Record], before: Option<(u64, Timestamp)>) -> Result<(u64, Timestamp)> {
    let last = added.last().map(|record| (record.seq, record.at)).or(before);
    last.ok_or_else(|| unreadable(source, "its log holds no record".to_owned()))
}

/// What was read, the state after it with the refs of its snapshots, and the last record's number and time.
type Replayed<'a> = (DurableRead, &'a RunState, BTreeMap<String, CommitId>, (u64, Timestamp));

impl ReplayedLog {
    fn read(&mut self, source: &Source) -> Result<Replayed<'_>> {
        let mut log = self.log.read(&source.directory.log())?;
        let plan = regular_file::read(source.directory.plan());
        let plan = plan.map_err(|error| unreadable(source, format!("its plan: {error}")))?;
        // What a lane is taken back to may be among the records that were read before.
        let returns = |record: &Record| matches!(record.event, Event::LaneRolledBack { point: Some(_), .. });
        if log.continues && (plan != self.plan || log.added.iter().any(returns)) {
            self.log = DurableLog::default();
            log = self.log.read(&source.directory.log())?;
        }
        let mut state = match self.state.take() {
            Some(state) if log.continues => state,
            _ => RunState::new(Arc::new(parse_plan(source, &plan)?)),
        };
        apply_all(source, &mut state, &log.added)?;
        let last = last_record(source, &log.added, self.last)?;
        if !log.continues {
            self.snapshots = Snapshots::default();
        }
        self.snapshots.extend(&log.added);
        (self.plan, self.last) = (plan, Some(last));
        Ok((log, self.state.insert(state), self.snapshots.there(source)?, last))
    }
}

fn parse_plan(source: &Source, plan: &[u8]) -> Result<Plan> {
    serde_json::from_slice(plan).map_err(|error| unreadable(source, format!("its plan: {error}")))
}

fn unreadable(source: &Source, reason: String) -> StateSyncError {
    StateSyncError::Unreadable { run: source.run.clone(), reason }
}

/// The files of a run that changed since `last`, which is given with its tree. All of them where secrets are known that were
/// not known then, or are not known any more.
fn contents(
    known: &mut KnownFiles,
    source: &Source,
    state: &RunState,
    last: Option<(String, LastPacked)>,
) -> Result<Contents> {
    if last.is_none() {
        *known = KnownFiles::default();
    }
    let running: Vec<_> = state.running_jobs().map(|job| source.directory.job(job)).collect();
    let mut changes = known.changes(&source.directory, &running)?;
    // After the files: a job has a specification before it writes its secrets.
    let redactor = secrets::redactor(state.plan(), known.specifications(&source.directory)?);
    if last.as_ref().is_some_and(|(_, last)| last.redactor != redactor) {
        return contents(known, source, state, None);
    }
    secrets::clean(&mut changes.written, &redactor);
    let (tree, pieces) = last.map(|(tree, last)| (tree, last.pieces)).unzip();
    Ok(Contents { tree, changes, redactor, pieces: pieces.unwrap_or_default() })
}

fn describe(
    source: &Source,
    (state, references): (&RunState, BTreeMap<String, CommitId>),
    log: &DurableRead,
    last: (u64, Timestamp),
) -> Result<Manifest> {
    let started = state.started().ok_or_else(|| unreadable(source, "its log has no beginning".to_owned()))?;
    let integration = source.repository.branch_commit(&started.base_branch)?;
    let (records, at) = last;
    Ok(Manifest {
        format: FORMAT.to_owned(),
        lanewright: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: source.run.clone(),
        phase: started.phase.clone(),
        host: source.host.clone(),
        repository: source.repository.main_worktree().to_owned(),
        worktree_root: started.options.worktree_root.clone(),
        records,
        at,
        log_bytes: log.bytes.len() as u64,
        log_sha256: log.sha256.clone(),
        outcome: state.finished().map(|(outcome, _)| outcome),
        base_branch: started.base_branch.clone(),
        integration: integration.unwrap_or_else(|| started.base_commit.clone()),
        branch_prefix: started.options.branch_prefix.clone(),
        branches: branches(source, state, started)?,
        references,
        claim: source.claim.clone(),
        placed_by: started.options.placed_by.clone(),
        published: source.directory.publication(),
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
    // One that came back from a job has no worktree until it is merged.
    let came_back = lane_state.head().is_some() && lane_state.merged().is_none() && !lane_state.is_elsewhere();
    if lane_state.worktree().is_none() && !unmerged && !came_back {
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

/// The commits that the state keeps: those with names, and those that only the log names.
fn parents(source: &Source, manifest: &Manifest, state: &RunState) -> Result<Vec<CommitId>> {
    let unnamed: BTreeSet<CommitId> =
        state.plan().indices().flat_map(|lane| unnamed(state.lane(lane))).cloned().collect();
    let mut parents = manifest.commits();
    parents.extend(source.repository.existing_commits(unnamed)?);
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

/// The pieces of a log after those that are `known`, with all that are whole.
fn pieces(log: &[u8], known: Pieces) -> (Vec<RunFile>, Pieces) {
    let lines: Vec<&[u8]> = log[known.bytes..].split_inclusive(|&byte| byte == b'\n').collect();
    let chunks = lines.chunks(RECORDS_IN_A_PIECE);
    let whole = chunks.clone().filter(|chunk| chunk.len() == RECORDS_IN_A_PIECE);
    let bytes = whole.clone().flatten().map(|line| line.len()).sum::<usize>();
    let whole = Pieces { count: known.count + whole.count(), bytes: known.bytes + bytes };
    let numbered = chunks.zip(known.count + 1..);
    (numbered.map(|(chunk, number)| (format!("{LOG}{number:06}.jsonl"), chunk.concat())).collect(), whole)
}

#[cfg(test)]
mod tests;
