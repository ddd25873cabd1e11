//! The state of a lane, in the words that users see.

use lanewright_model::{Approval, LaneId, TaskId, Timestamp, word_enum};
use serde::{Serialize, Serializer};

word_enum! {
    /// How a lane is doing, those first that need the user. `state-WORD` is its class in SVG.
    StateGroup {
        /// A person must answer.
        NeedsYou = "needs-you",
        Failed = "failed",
        /// Something outside must change first.
        Blocked = "blocked",
        /// Begun, and stopped or rolled back.
        Stopped = "stopped",
        /// Agents or gates work, or it is being merged.
        Working = "working",
        /// For other lanes or for capacity.
        Waiting = "waiting",
        /// Merged or proposed.
        Merged = "merged",
        /// Not part of the run.
        Skipped = "skipped",
    }
}

/// The state of a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String", extend("enum" = Self::ALL.map(Self::word))))]
pub enum LaneState {
    /// Waits for dependencies or for capacity.
    #[default]
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
    pub const ALL: [Self; 17] = [
        Self::Waiting,
        Self::Starting,
        Self::Running,
        Self::Testing,
        Self::Reviewing,
        Self::NeedsApproval(Approval::Setup),
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
            Self::NeedsApproval(Approval::Setup) => "waiting for approval (setup)",
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

    /// The word where room is scarce.
    pub fn brief(self) -> &'static str {
        match self {
            Self::NeedsApproval(_) => "needs approval",
            Self::NeedsPerson => "needs you",
            state => state.word(),
        }
    }

    pub fn group(self) -> StateGroup {
        match self {
            Self::NeedsApproval(_) | Self::NeedsPerson => StateGroup::NeedsYou,
            Self::Failed => StateGroup::Failed,
            Self::Blocked => StateGroup::Blocked,
            Self::Stopped | Self::RolledBack => StateGroup::Stopped,
            Self::Starting | Self::Running | Self::Testing | Self::Reviewing | Self::Merging => StateGroup::Working,
            Self::Waiting => StateGroup::Waiting,
            Self::Merged | Self::Proposed => StateGroup::Merged,
            Self::Skipped => StateGroup::Skipped,
        }
    }

    /// Whether this run has nothing left to do for the lane's work.
    pub fn is_done(self) -> bool {
        self.group() == StateGroup::Merged
    }

    /// Whether a person must answer before the lane goes on.
    pub fn needs_person(self) -> bool {
        self.group() == StateGroup::NeedsYou
    }

    /// Whether the lane is at work, or would be if the user answered.
    pub fn is_active(self) -> bool {
        matches!(self.group(), StateGroup::NeedsYou | StateGroup::Working)
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
    /// Runners that are paused.
    Runner {
        /// Their account.
        account: String,
        /// When one attempt finds out whether that is over; null: a person has to change something first.
        until: Option<Timestamp>,
    },
}
