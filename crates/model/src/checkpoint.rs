//! Checkpoints: the durable records of the recovery contract (seed 004).

use serde::{Deserialize, Serialize};

use super::id::CommitId;
use super::word_enum;

word_enum! {
    // seed 004, Required Checkpoints.
    /// When a checkpoint is written.
    Stage {
        /// Preconditions passed, nothing created yet.
        BeforeLaneStart = "before_lane_start",
        /// The lane's and the agents' worktrees are checked out.
        AfterLaneStart = "after_lane_start",
        /// The lane's tests ended.
        AfterLaneTests = "after_lane_tests",
        /// The lane is about to be merged, or proposed in a pull request.
        PrePr = "pre_pr",
        /// A failed attempt is about to be retried.
        RetryAttempt = "retry_attempt",
    }
}

word_enum! {
    // seed 004, Checkpoint Schema.
    /// The status of a lane at a checkpoint.
    CheckpointStatus {
        /// It can go on.
        Ready = "ready",
        /// The stage has begun.
        InProgress = "in_progress",
        /// The stage's work failed.
        Failed = "failed",
        /// It waits for a person, for another lane, or for something outside of the run.
        Blocked = "blocked",
        /// The stage's work is done.
        Complete = "complete",
        /// The lane was reset to an earlier stage.
        RolledBack = "rolled_back",
        /// A failed attempt is about to be repeated.
        Retrying = "retrying",
    }
}

/// A checkpoint of a lane; the fields of the run are added when the record is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    pub stage: Stage,
    /// The status of the lane.
    #[serde(rename = "checkpoint_status")]
    pub status: CheckpointStatus,
    /// The last command, or what the lane waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The lane's head, or the base where there is no lane branch yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<CommitId>,
    /// The target of the pull request, for `pre_pr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_branch: Option<String>,
    /// What was run, for `after_lane_tests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The retry that comes next, from 1, for `retry_attempt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_attempt: Option<u32>,
    /// How many retries the lane may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The errors of earlier attempts, each with its last log entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_context: Vec<String>,
}

impl Checkpoint {
    /// A checkpoint with nothing but a stage and a status.
    pub fn new(stage: Stage, status: CheckpointStatus) -> Self {
        Self {
            stage,
            status,
            context: String::new(),
            head_sha: None,
            target_branch: None,
            command: None,
            exit_code: None,
            retry_attempt: None,
            max_retries: None,
            failure_context: Vec::new(),
        }
    }
}
