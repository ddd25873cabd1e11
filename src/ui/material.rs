//! What files say, as far as the screen shows it: read by the caller, bounded by what is read.

use std::collections::HashMap;
use std::path::PathBuf;

use super::diff::Diff;
use crate::model::{JobId, LaneId};

/// Of the selected lane, but for the last words of all jobs that are seen.
#[derive(Debug, Default)]
pub(crate) struct Material {
    pub(crate) said: HashMap<JobId, String>,
    pub(crate) output: Option<Output>,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) diff: Option<(LaneId, Change)>,
}

/// The end of a job's output, oldest line first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) job: JobId,
    pub(crate) path: PathBuf,
    pub(crate) lines: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) job: JobId,
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Shown(Diff),
    /// Why there is none.
    Missing(String),
}

impl Material {
    pub(crate) fn diff_of(&self, lane: &LaneId) -> Option<&Change> {
        self.diff.as_ref().filter(|(of, _)| of == lane).map(|(_, change)| change)
    }

    pub(crate) fn shown_diff(&self, lane: &LaneId) -> Option<&Diff> {
        match self.diff_of(lane)? {
            Change::Shown(diff) => Some(diff),
            Change::Missing(_) => None,
        }
    }
}
