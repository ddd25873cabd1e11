//! What finished runs left behind: found, judged, removed (SPEC §2, `clean`).
//!
//! [`scan()`] changes nothing and judges everything that it finds; [`remove`] removes no more than that. Unmerged work
//! stays unless `--force` is given, and is listed either way.

mod merged;
mod remove;
mod scan;

use std::path::PathBuf;

use lanewright_git::HeldSlot;
use lanewright_model::event::LaneStage;
use lanewright_model::{CommitId, LaneId};
use lanewright_view::history::LaneHistory;

use crate::doctor::Expected;

pub use merged::MergedCommits;
pub use remove::{remove, remove_run};
pub use scan::{CleanScope, scan};

/// Whether nothing is left to do or to resume: all is done, or everything that began was rolled back.
pub fn is_finished(run: &Expected) -> bool {
    run.done() || !run.history.lanes().iter().any(has_begun)
}

/// Whether a lane has begun and was not rolled back since.
pub fn has_begun(lane: &LaneHistory) -> bool {
    lane.stage != LaneStage::Waiting
}

/// The lanes that have begun, also those that were rolled back, by name.
pub fn begun_lanes(run: &Expected) -> Vec<&LaneHistory> {
    let mut lanes: Vec<_> = run.history.lanes().iter().filter(|lane| !lane.transitions.is_empty()).collect();
    lanes.sort_by_key(|lane| &lane.id);
    lanes
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub item: Item,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Remove(String),
    Keep(String),
    Refused(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Held(HeldSlot),
    Free(PathBuf),
    /// A branch, without `refs/heads/`.
    Branch(String, CommitId),
    Snapshot(String, CommitId),
    /// What a lane has beside its worktrees: links, `task.json`, `status.json`.
    LaneDirectory(LaneId, PathBuf),
    /// The run's log and its directory: plan, prompts, output.
    Log(PathBuf),
}

impl Item {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Held(_) | Self::Free(_) => "worktree",
            Self::Branch(..) => "branch",
            Self::Snapshot(..) => "snapshot",
            Self::LaneDirectory(..) => "directory",
            Self::Log(_) => "log",
        }
    }

    pub fn name(&self) -> String {
        match self {
            Self::Held(HeldSlot { path, .. }) => path.display().to_string(),
            Self::Free(path) | Self::LaneDirectory(_, path) | Self::Log(path) => path.display().to_string(),
            Self::Branch(name, _) | Self::Snapshot(name, _) => name.clone(),
        }
    }

    /// The commit that brings it back, where one does.
    pub fn commit(&self) -> Option<&CommitId> {
        match self {
            Self::Branch(_, commit) | Self::Snapshot(_, commit) => Some(commit),
            Self::Held(_) | Self::Free(_) | Self::LaneDirectory(..) | Self::Log(_) => None,
        }
    }
}

impl Leftover {
    pub fn goes(&self) -> bool {
        matches!(self.verdict, Verdict::Remove(_))
    }

    pub fn refuse(&mut self, reason: &str) {
        self.verdict = Verdict::Refused(reason.to_owned());
    }

    pub fn was_refused(&self) -> bool {
        matches!(self.verdict, Verdict::Refused(_))
    }

    pub fn reason(&self) -> &str {
        match &self.verdict {
            Verdict::Remove(reason) | Verdict::Keep(reason) | Verdict::Refused(reason) => reason,
        }
    }
}
