//! The state of a lane, in the words that users see.

use lanewright_model::{Approval, LaneId, TaskId, Timestamp};
use serde::{Serialize, Serializer};

/// The state of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String", extend("enum" = Self::ALL.map(Self::word))))]
pub enum LaneState {
    /// Waits for dependencies or for capacity.
    Waiting,
    /// Worktrees are opened.
    Starting,
    Running,
    /// The lane's tests run.
    Testing,
    Reviewing,
    NeedsApproval(Approval),
    /// The user must do a task, or say what was decided.
    NeedsPerson,
    /// On its way onto the integration branch.
    Merging,
    Merged,
    /// A pull request asks for its work to be merged.
    Proposed,
    Failed,
    /// Something outside must change first.
    Blocked,
    /// Begun, and asked to stop.
    Stopped,
    RolledBack,
    /// Not part of this run.
    Skipped,
}

impl LaneState {
    pub const ALL: [Self; 16] = [
        Self::Waiting,
        Self::Starting,
        Self::Running,
        Self::Testing,
        Self::Reviewing,
        Self::NeedsApproval(Approval::Plan),
        Self::NeedsApproval(Approval::Changes),
        Self::NeedsPerson,
        Self::Merging,
        Self::Merged,
        Self::Proposed,
        Self::Failed,
        Self::Blocked,
        Self::Stopped,
        Self::RolledBack,
        Self::Skipped,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Testing => "testing",
            Self::Reviewing => "reviewing",
            Self::NeedsApproval(Approval::Plan) => "waiting for approval (plan)",
            Self::NeedsApproval(Approval::Changes) => "waiting for approval (changes)",
            Self::NeedsPerson => "waiting for a person",
            Self::Merging => "merging",
            Self::Merged => "merged",
            Self::Proposed => "proposed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
            Self::RolledBack => "rolled back",
            Self::Skipped => "skipped",
        }
    }

    /// Whether this run has nothing left to do for the lane's work.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Merged | Self::Proposed)
    }

    /// Whether a person must answer before the lane goes on.
    pub fn needs_person(self) -> bool {
        matches!(self, Self::NeedsApproval(_) | Self::NeedsPerson)
    }

    /// Whether the lane is at work, or would be if the user answered.
    pub fn is_active(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Testing | Self::Reviewing | Self::Merging => true,
            Self::NeedsApproval(_) | Self::NeedsPerson => true,
            Self::Waiting | Self::Merged | Self::Proposed | Self::Failed | Self::Blocked => false,
            Self::Stopped | Self::RolledBack | Self::Skipped => false,
        }
    }
}

impl Serialize for LaneState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// What a lane waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// Lanes that are not merged.
    Lanes(Vec<LaneId>),
    /// Capacity: another lane's place among those that work at once.
    Place,
    Approval(Approval),
    /// The user's answers to these tasks.
    Person(Vec<TaskId>),
    /// A moment, after a failure.
    Until(Timestamp),
}
