//! The choices that a user has in how a task list becomes lanes.

use serde::{Deserialize, Serialize};

use super::word_enum;
use crate::plan::SharedFiles;

word_enum! {
    /// What orders the lanes of a task list.
    #[derive(Default)]
    LaneOrder {
        /// What the list says of dependencies.
        #[default]
        Dependencies = "dependencies",
        /// The list itself: the lanes run one after the other.
        File = "file",
    }
}

word_enum! {
    /// Which tasks of a task list become lanes of their own.
    #[derive(Default)]
    LaneSplit {
        /// None.
        #[default]
        None = "none",
        /// Tasks marked `[P]` of the phases that all stories wait for.
        Parallel = "p",
    }
}

/// How a task list becomes lanes, where that is for the user to choose. A run records it: with other values, its list would
/// be another plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ListOptions {
    pub order: LaneOrder,
    pub split: LaneSplit,
    /// Whether tasks that only a person can do are left out.
    pub skip_manual: bool,
    /// Whether a person approves what was done at each checkpoint of the list.
    pub stop_at_checkpoints: bool,
    /// What becomes of lanes that own the same files; absent: as the plan and the settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_files: Option<SharedFiles>,
}

impl ListOptions {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
