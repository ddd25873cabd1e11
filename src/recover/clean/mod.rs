//! What finished runs left behind: found, judged, removed (SPEC §2, `clean`).
//!
//! [`survey`] looks and changes nothing; what it finds is judged before anything is removed, and [`remove`] removes no
//! more than that. Work that is not merged anywhere stays, unless it is asked for by force, and is named either way.

mod remove;
mod survey;
mod traces;

use std::path::PathBuf;

use crate::git::HeldSlot;
use crate::model::{CommitId, LaneId};

pub use remove::{remove, remove_run};
pub use survey::{Surroundings, survey};
pub use traces::{LaneTraces, Traces};

/// Something that a run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub thing: Thing,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// What becomes of a leftover, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes.
    Remove(String),
    /// It stays.
    Keep(String),
    /// It was to go, and something went wrong.
    Resist(String),
}

/// What a run may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thing {
    /// A worktree that the run still holds.
    Held(HeldSlot),
    /// A worktree that nobody holds.
    Free(PathBuf),
    /// A branch, without `refs/heads/`.
    Branch(String, CommitId),
    /// A snapshot's ref.
    Snapshot(String, CommitId),
    /// What a lane has beside its worktrees: links, `task.json`, `status.json`.
    LaneDirectory(LaneId, PathBuf),
    /// The run's log and its directory: plan, prompts, output.
    Log(PathBuf),
}

impl Thing {
    /// One word for the kind of thing.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Held(_) | Self::Free(_) => "worktree",
            Self::Branch(..) => "branch",
            Self::Snapshot(..) => "snapshot",
            Self::LaneDirectory(..) => "directory",
            Self::Log(_) => "log",
        }
    }

    /// Its name: a path, a branch, a ref.
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
    /// Whether it goes.
    pub fn goes(&self) -> bool {
        matches!(self.verdict, Verdict::Remove(_))
    }

    /// Says that it stays although it was to go.
    pub fn refuse(&mut self, reason: &str) {
        self.verdict = Verdict::Resist(reason.to_owned());
    }

    /// Whether it was to go and could not be removed.
    pub fn was_refused(&self) -> bool {
        matches!(self.verdict, Verdict::Resist(_))
    }

    /// Why it goes or stays.
    pub fn reason(&self) -> &str {
        match &self.verdict {
            Verdict::Remove(reason) | Verdict::Keep(reason) | Verdict::Resist(reason) => reason,
        }
    }
}
