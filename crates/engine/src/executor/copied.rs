//! The ignored files of the checkout that worktrees get before a job runs in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lanewright_git as git;
use lanewright_model::JobId;
use lanewright_model::event::Event;
use lanewright_model::text::listed;

use super::{Executor, Result};

/// The worktrees that got them in this life of the run.
#[derive(Debug, Default)]
pub struct CopiedFiles(Mutex<BTreeSet<PathBuf>>);

impl CopiedFiles {
    /// The worktree was opened: its next job has the files copied.
    pub(super) fn forget(&self, worktree: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(worktree);
    }
}

/// The most paths that a message names.
const NAMED: usize = 10;

impl Executor {
    /// Copies what `worktree` lacks before its first job in this life of the run, which may have another `copy` than the last
    /// one, and before each attempt, whose worktree may have been reset.
    pub(super) fn copy_ignored(&self, job: &JobId, worktree: &Path, emit: &dyn Fn(Event)) -> Result<()> {
        let is_first = !self.copied.0.lock().unwrap_or_else(PoisonError::into_inner).contains(worktree);
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
        let copied = git::copy_ignored(&self.repository, worktree, &patterns, &note)?;
        if is_first && !copied.not_ignored.is_empty() {
            let names = listed(&copied.not_ignored, NAMED);
            note(format!(
                "not copied, because git does not ignore them in the worktree and a commit could hold them: {names}; \
                 commit a .gitignore that names them"
            ));
        }
        self.copied.0.lock().unwrap_or_else(PoisonError::into_inner).insert(worktree.to_owned());
        Ok(())
    }
}
