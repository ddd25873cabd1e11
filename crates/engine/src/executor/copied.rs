//! The ignored files of the checkout that worktrees get before a job runs in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lanewright_git::{self as git, CopyReport};
use lanewright_model::event::Event;
use lanewright_model::text::listed;
use lanewright_model::{JobId, LaneId};

use super::{Executor, Result};

/// The worktrees that got them in this life of the run, and those that get them now.
#[derive(Debug, Default)]
pub struct CopiedFiles {
    complete: Mutex<BTreeSet<PathBuf>>,
    running: Mutex<BTreeMap<PathBuf, RunningCopy>>,
}

/// A copy that runs.
#[derive(Debug, Clone)]
pub struct RunningCopy {
    /// `A: copies node_modules`, with what is at the root of the worktree.
    pub what: String,
    /// `3.2 GiB of 20.0 GiB`
    pub progress: String,
    pub since: Instant,
}

impl CopiedFiles {
    /// The worktree was opened: its next job has the files copied.
    pub(super) fn forget(&self, worktree: &Path) {
        self.complete().remove(worktree);
    }

    /// The copies that run now.
    pub fn running(&self) -> Vec<RunningCopy> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn complete(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.complete.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the file at `path` is copied next into `worktree`, where `job` is to run.
    fn note_next(&self, job: &JobId, worktree: &Path, path: &Path, [done, total]: [u64; 2]) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let since = running.get(worktree).map_or_else(Instant::now, |running| running.since);
        let top = path.iter().next().unwrap_or_default().to_string_lossy();
        let lane = job.lane.as_ref().map_or("run", LaneId::as_str);
        let agent = job.agent().map(|agent| format!(" {agent}")).unwrap_or_default();
        let what = format!("{lane}{agent}: copies {top}");
        let progress = format!("{} of {}", git::size_in_words(done), git::size_in_words(total));
        running.insert(worktree.to_owned(), RunningCopy { what, progress, since });
    }

    fn end(&self, worktree: &Path) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(worktree);
    }
}

/// The most paths that a message names.
const NAMED: usize = 10;

impl Executor {
    /// Copies what `worktree` lacks before its first job in this life of the run, which may have another `copy` than the last
    /// one, and before each attempt, whose worktree may have been reset.
    pub(super) fn copy_ignored(&self, job: &JobId, worktree: &Path, emit: &dyn Fn(Event)) -> Result<()> {
        let is_first = !self.copied.complete().contains(worktree);
        if !is_first && !job.is_attempt() {
            return Ok(());
        }
        let lane = job.lane.as_ref().and_then(|lane| self.plan.find(lane));
        // The final gate judges all lanes.
        let lanes = self.plan.lanes.iter().enumerate().filter(|(at, _)| lane.is_none_or(|lane| lane.at() == *at));
        let patterns: BTreeSet<&str> = lanes.flat_map(|(_, lane)| &lane.copy).map(String::as_str).collect();
        let patterns: Vec<&str> = patterns.into_iter().collect();
        let note = |message| emit(Event::Noted { lane: job.lane.clone(), message });
        let empty = self.repository.fill_submodules(worktree)?;
        if is_first && !empty.is_empty() {
            let names = listed(&empty, NAMED);
            note(format!("submodules of which the checkout has no copy stay empty: {names}"));
        }
        let report = |report: CopyReport<'_>| match report {
            CopyReport::Long(message) => note(message),
            CopyReport::Next { path, done, total } => self.copied.note_next(job, worktree, path, [done, total]),
        };
        let copied = git::copy_ignored(&self.repository, worktree, &patterns, &report);
        self.copied.end(worktree);
        let copied = copied?;
        if is_first && !copied.not_ignored.is_empty() {
            let names = listed(&copied.not_ignored, NAMED);
            note(format!(
                "not copied, because git does not ignore them in the worktree and a commit could hold them: {names}; \
                 commit a .gitignore that names them"
            ));
        }
        self.copied.complete().insert(worktree.to_owned());
        Ok(())
    }
}
