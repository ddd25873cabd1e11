use serde::{Deserialize, Serialize};

use crate::CommitId;

crate::word_enum! {
    /// Why a snapshot was taken.
    SnapshotReason {
        /// A task passed its gate.
        Task = "task",
        /// An attempt failed.
        Failure = "failure",
        /// An attempt ran out of time.
        Timeout = "timeout",
        /// An attempt was stopped.
        Stop = "stop",
        /// Work is about to be put aside for a new base.
        Reset = "reset",
        /// Another candidate was chosen; the work is kept until `clean`.
        Candidate = "candidate",
        /// A rollback is about to put work aside.
        Rollback = "rollback",
        /// An attempt has worked for the configured interval.
        Interval = "interval",
        /// An agent has used its tools as often as configured.
        ToolCalls = "tool_calls",
        /// An agent is about to do, or has done, something risky.
        Risky = "risky",
        /// The user asked for it.
        Request = "request",
        /// Another snapshot is about to be restored over the uncommitted files.
        Restore = "restore",
        /// Files were changed while the run was inactive, and the run continues with them.
        External = "external",
    }
}

impl SnapshotReason {
    /// Whether the agent continues with its contents: not if they were saved only to be set aside.
    pub fn is_work_to_continue(self) -> bool {
        match self {
            Self::Task | Self::Interval | Self::ToolCalls | Self::Risky | Self::Request => true,
            Self::Failure | Self::Timeout | Self::Stop | Self::External => true,
            Self::Reset | Self::Candidate | Self::Rollback | Self::Restore => false,
        }
    }

    /// Whether it is asked for only once: all others have a name that stays the same until they are on record, so that
    /// one that was taken before a death is found when it is requested again, or are requested by the user.
    pub fn has_new_name_each_time(self) -> bool {
        match self {
            Self::Interval | Self::ToolCalls | Self::Risky | Self::External => true,
            Self::Task | Self::Failure | Self::Timeout | Self::Stop | Self::Reset | Self::Rollback => false,
            Self::Candidate | Self::Request | Self::Restore => false,
        }
    }

    /// Whether the worktree stays as the snapshot holds it, until the next attempt: then what was
    /// checked out is recorded with it.
    pub fn leaves_worktree(self) -> bool {
        match self {
            Self::Failure | Self::Timeout | Self::Stop | Self::Risky | Self::Request | Self::Restore => true,
            Self::Task | Self::Interval | Self::ToolCalls => false,
            Self::Reset | Self::Candidate | Self::Rollback | Self::External => false,
        }
    }

    /// Whether it was taken on the way of an agent that went on: the next one of the agent holds what came of it. All
    /// others hold work at a moment after which it was, or could have been, gone.
    pub fn is_routine(self) -> bool {
        match self {
            Self::Task | Self::Interval | Self::ToolCalls => true,
            Self::Failure | Self::Timeout | Self::Stop | Self::Reset | Self::Rollback => false,
            Self::Candidate | Self::Risky | Self::Request | Self::Restore | Self::External => false,
        }
    }
}

/// What was checked out in a worktree, and what was in no commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedOut {
    pub head: CommitId,
    /// The files with changes that were in no commit, relative to the worktree; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirty: Vec<String>,
}
