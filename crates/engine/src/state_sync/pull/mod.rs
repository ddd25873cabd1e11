//! Fetches the state that a remote has, and checks every byte of it before anything is created from it.

mod foreign;
pub(crate) mod job_files;
pub(crate) mod restore;
mod worktrees;

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use lanewright_git::{GitError, Remote, Repository, forget_reference};
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, Record};
use lanewright_model::{CommitId, LaneId, Plan, RunId, TreeEntry, TreeEntryKind};
use lanewright_schedule::RunState;
use lanewright_store::run_files::{RunFile, is_excluded, is_plain};
use lanewright_store::run_log;

use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::manifest::{self, FILES, LOG, Manifest};
use crate::state_sync::pull::job_files::{is_below_one, retain_planned};
use crate::state_sync::{STATES, incoming_reference, state_reference};

#[derive(Debug)]
pub struct Offer {
    pub run: RunId,
    pub commit: CommitId,
    /// Its manifest, or why that cannot be read.
    pub manifest: Result<Manifest>,
}

/// A state that was fetched; its commits are here now.
#[derive(Debug, Clone)]
pub struct ReceivedState {
    pub commit: CommitId,
    pub manifest: Manifest,
    pub(crate) remote: String,
    pub(crate) entries: Vec<TreeEntry>,
}

/// The parts of a received state that were checked.
pub(crate) struct Contents {
    pub(crate) log: Vec<u8>,
    pub(crate) records: Vec<Record>,
    pub(crate) state: RunState,
    pub(crate) files: Vec<RunFile>,
}

/// The runs whose states a remote has, in the order of their names. Refs that no run can have are passed over.
pub fn runs_of(remote: &Remote) -> Result<Vec<(RunId, CommitId)>> {
    let named = |(name, commit): (String, CommitId)| {
        let run = RunId::new(name.strip_prefix(STATES)?).ok()?;
        Some((run, commit))
    };
    Ok(remote.references(&[STATES])?.into_iter().filter_map(named).collect())
}

/// The states that a remote has, in the order of their names; each is fetched.
pub fn offers(repository: &Repository, remote: &Remote) -> Result<Vec<Offer>> {
    let looked_at = runs_of(remote)?.into_iter().map(|(run, commit)| {
        let manifest = fetch(repository, remote, &run).map(|received| received.manifest);
        Offer { run, commit, manifest }
    });
    Ok(looked_at.collect())
}

/// Fetches the state of a run, with all of its commits, and reads its manifest. No branch is created or moved.
///
/// # Errors
/// [`StateSyncError::NoState`], [`StateSyncError::Damaged`], [`StateSyncError::NewerFormat`], or what git says.
pub fn fetch(repository: &Repository, remote: &Remote, run: &RunId) -> Result<ReceivedState> {
    fetch_into(repository, remote, run, &incoming_reference(run))
}

/// The same by way of the ref `incoming`.
pub(crate) fn fetch_into(
    repository: &Repository,
    remote: &Remote,
    run: &RunId,
    incoming: &str,
) -> Result<ReceivedState> {
    let reference = state_reference(run);
    if remote.commit_at(&reference)?.is_none() {
        return Err(StateSyncError::NoState { remote: remote.name().to_owned(), run: run.clone() });
    }
    remote.fetch(&[format!("+{reference}:{incoming}")])?;
    let commit = repository.commit_at(incoming);
    forget_reference(repository, incoming)?;
    let missing = || GitError::NoCommitName { text: format!("{reference} leads to no commit") };
    state_at(repository, remote, run, commit?.ok_or_else(missing)?)
}

/// The state of a run that `commit` is, which is here.
pub(crate) fn state_at(
    repository: &Repository,
    remote: &Remote,
    run: &RunId,
    commit: CommitId,
) -> Result<ReceivedState> {
    let entries = repository.entries(&commit)?;
    let manifest = entries.iter().find(|entry| entry.path == manifest::NAME && entry.kind == TreeEntryKind::File);
    let missing = || StateSyncError::damaged(remote.name(), run, &format!("it has no {}", manifest::NAME));
    let manifest = manifest.ok_or_else(missing)?;
    let manifest = Manifest::read(&repository.contents(&manifest.object)?, remote.name(), run)?;
    Ok(ReceivedState { commit, manifest, remote: remote.name().to_owned(), entries })
}

impl ReceivedState {
    pub(crate) fn open(&self, repository: &Repository) -> Result<Contents> {
        self.refuse_foreign_files()?;
        let log = self.log(repository)?;
        if log.len() as u64 != self.manifest.log_bytes || sha256(&log) != self.manifest.log_sha256 {
            return Err(self.damaged("its run log is not the one that it was pushed with"));
        }
        let name = format!("the log of run {}", self.manifest.run_id);
        let records = run_log::parse(Path::new(&name), &log)?;
        self.refuse_another_run(&records)?;
        self.refuse_foreign_worktrees(&records)?;
        self.refuse_foreign_snapshots(&records)?;
        if let Some(Event::RunStarted(started)) = records.first().map(|record| &record.event)
            && let (Some(_), [lane]) = (&started.options.placed_by, started.options.lanes.as_slice())
        {
            self.refuse_content_of_others((&started.phase, lane), &records)?;
        }
        let mut files = self.below(repository, FILES)?;
        retain_planned(&mut files, &records);
        let plan = files.iter().find(|(path, _)| path == "plan.json").map(|(_, text)| text.as_slice());
        let plan: Plan = serde_json::from_slice(plan.unwrap_or_default())
            .map_err(|error| self.damaged(&format!("its plan cannot be read: {error}")))?;
        let plan = Arc::new(plan);
        let state = RunState::replay(&plan, &records)
            .map_err(|(line, fault)| self.damaged(&format!("its log contradicts itself in line {line}: {fault}")))?;
        Ok(Contents { log, records, state, files })
    }

    pub(crate) fn damaged(&self, reason: &str) -> StateSyncError {
        StateSyncError::damaged(&self.remote, &self.manifest.run_id, reason)
    }

    pub fn log(&self, repository: &Repository) -> Result<Vec<u8>> {
        Ok(self.below(repository, LOG)?.into_iter().flat_map(|(_, piece)| piece).collect())
    }

    fn below(&self, repository: &Repository, root: &str) -> Result<Vec<RunFile>> {
        let files = self.entries.iter().filter_map(|entry| Some((entry.path.strip_prefix(root)?, &entry.object)));
        files.map(|(path, object)| Ok((path.to_owned(), repository.contents(object)?))).collect()
    }

    /// The files of these jobs (`jobs`: their directories below the run's) that are not in `known`, which has
    /// `<path> <object>` of each and is extended.
    pub fn new_files(
        &self,
        repository: &Repository,
        known: &mut HashSet<String>,
        jobs: &HashSet<PathBuf>,
    ) -> Result<Vec<RunFile>> {
        let all = self.entries.iter().filter_map(|entry| Some((entry.path.strip_prefix(FILES)?, &entry.object)));
        let mut files = Vec::new();
        for (path, object) in all.filter(|(path, _)| is_below_one(path, jobs)) {
            if known.insert(format!("{path} {object}")) {
                files.push((path.to_owned(), repository.contents(object)?));
            }
        }
        Ok(files)
    }

    /// Nothing but plain files with plain names is ever written here, and no file that a process reads as a
    /// request.
    pub(crate) fn refuse_foreign_files(&self) -> Result<()> {
        let foreign = |entry: &&TreeEntry| {
            let is_for_a_process = entry.path.strip_prefix(FILES).is_some_and(|path| path.split('/').any(is_excluded));
            entry.kind != TreeEntryKind::File || !is_plain(&entry.path) || is_for_a_process
        };
        match self.entries.iter().find(foreign) {
            Some(entry) => Err(self.damaged(&format!("`{}` does not belong in it", entry.path))),
            None => Ok(()),
        }
    }

    /// A worktree of the run lies below the root that it was pushed from: what lies there is taken for the run's own, and
    /// reset and deleted as it needs.
    fn refuse_foreign_worktrees(&self, records: &[Record]) -> Result<()> {
        let root = &self.manifest.worktree_root;
        let mut elsewhere: HashSet<&LaneId> = HashSet::new();
        for record in records {
            let foreign = match &record.event {
                Event::LaneOffered { lane, .. } => {
                    elsewhere.insert(lane);
                    None
                }
                Event::PlacementEnded { lane, .. } => {
                    elsewhere.remove(lane);
                    None
                }
                // It is on the machine that has the lane, and forgotten when the lane comes back.
                Event::WorktreeOpened { lane, .. } if elsewhere.contains(lane) => None,
                Event::RunStarted(started) => Some(&started.options.worktree_root).filter(|it| *it != root),
                Event::WorktreeOpened { worktree, .. } | Event::FinalOpened { worktree } => {
                    Some(&worktree.path).filter(|path| !is_below(root, path))
                }
                _ => None,
            };
            if let Some(path) = foreign {
                let (path, root) = (path.display(), root.display());
                return Err(self.damaged(&format!("its run log has a worktree at {path}, outside of {root}")));
            }
        }
        Ok(())
    }

    fn refuse_another_run(&self, records: &[Record]) -> Result<()> {
        let manifest = &self.manifest;
        let same = match records.first().map(|record| &record.event) {
            Some(Event::RunStarted(started)) => {
                started.run_id == manifest.run_id
                    && started.phase == manifest.phase
                    && started.base_branch == manifest.base_branch
            }
            _ => false,
        };
        let whole = records.last().is_some_and(|record| record.seq == manifest.records);
        if same && whole { Ok(()) } else { Err(self.damaged("its run log is another run's")) }
    }
}

/// Whether `path` leads from `root` straight down, at least one step.
fn is_below(root: &Path, path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix(root) else { return false };
    rest.components().count() > 0 && rest.components().all(|part| matches!(part, Component::Normal(_)))
}
