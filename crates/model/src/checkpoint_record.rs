//! One record of `checkpoints.json` (seed 004, Checkpoint Schema; SPEC §5).

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::checkpoint::{CheckpointStatus, Stage};
use super::id::{CommitId, LaneId, PhaseId, RunId};
use super::time::Timestamp;

/// The record in `checkpoints.json` of one stage of one lane (`docs/checkpoints.md`). Records of other writers may have
/// more fields.
// The fields are in the contract's order. Fields that the contract requires but other writers leave out read as empty; the
// five that identify and judge a record, and its time, must be there. A run of thousands of lanes has as many records,
// most of whose texts are the same: those are shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointRecord {
    pub run_id: RunId,
    pub phase: PhaseId,
    /// The lane, or `-` for the phase itself.
    #[serde(with = "lane_or_dash")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub lane: Option<LaneId>,
    pub stage: Stage,
    pub status: CheckpointStatus,
    /// The integration branch, without `refs/heads/`.
    #[serde(default)]
    pub base_branch: Arc<str>,
    /// The link to the lane's worktree, absolute; empty once the worktree is gone.
    #[serde(default = "nowhere")]
    pub worktree_path: Arc<Path>,
    /// The run log; absolute.
    #[serde(default = "nowhere")]
    pub log_path: Arc<Path>,
    /// Later than those of the lane's other records if it says where the lane stands.
    pub timestamp: Timestamp,
    /// Why the lane is in this state, or what runs: what it waits for, the last command, the merge commit.
    #[serde(default)]
    pub notes: String,
    /// A command for a POSIX shell that resumes the run, in any directory.
    #[serde(default)]
    pub resume_hint: Arc<str>,
    /// A command for a POSIX shell that rolls the lane back, in any directory.
    #[serde(default)]
    pub rollback_hint: Arc<str>,
    /// The retry that comes next, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_attempt: Option<u32>,
    /// How many retries the lane may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The errors of earlier attempts, each with its last log entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_context: Vec<String>,
    /// What was run, for `after_lane_tests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The lane's head, for `pre_pr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<CommitId>,
    /// The branch that the lane is about to be merged into, for `pre_pr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_branch: Option<Arc<str>>,
    /// The worktree at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitState>,
    /// The session that wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Arc<str>>,
}

/// The state of a worktree in git.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GitState {
    /// The branch that was checked out, without `refs/heads/`; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Arc<str>>,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// Files with changes that were in no commit when the worktree was saved last, relative to it; at most 100.
    #[serde(default)]
    pub dirty_files: Vec<String>,
}

impl CheckpointRecord {
    /// Whether it says that the lane's work was merged, or proposed in a pull request.
    pub fn is_merged(&self) -> bool {
        self.stage == Stage::PrePr && self.status == CheckpointStatus::Complete
    }

    /// Whether its lane has nothing left to do, if it is the newest of the lane's records.
    pub fn is_over(&self) -> bool {
        // Of a lane that an earlier run merged there is one record, of the first stage.
        let merged_before = self.stage == Stage::BeforeLaneStart && self.status == CheckpointStatus::Complete;
        self.is_merged() || merged_before || self.status == CheckpointStatus::RolledBack
    }

    /// The fields that a record may have, in the order in which they are written.
    pub const FIELDS: [&str; 21] = [
        "run_id",
        "phase",
        "lane",
        "stage",
        "status",
        "base_branch",
        "worktree_path",
        "log_path",
        "timestamp",
        "notes",
        "resume_hint",
        "rollback_hint",
        "retry_attempt",
        "max_retries",
        "failure_context",
        "command",
        "exit_code",
        "head_sha",
        "target_branch",
        "git",
        "session_id",
    ];
}

/// The path of a record without one.
fn nowhere() -> Arc<Path> {
    Path::new("").into()
}

/// A lane's name, or `-` for the phase itself (seed 004).
mod lane_or_dash {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::LaneId;

    pub(super) fn serialize<S: Serializer>(lane: &Option<LaneId>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(lane.as_ref().map_or("-", LaneId::as_str))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<LaneId>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "-" { Ok(None) } else { LaneId::new(&text).map(Some).map_err(serde::de::Error::custom) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> CheckpointRecord {
        CheckpointRecord {
            run_id: RunId::new("r1").unwrap(),
            phase: PhaseId::new("P1").unwrap(),
            lane: None,
            stage: Stage::PrePr,
            status: CheckpointStatus::Ready,
            base_branch: "main".into(),
            worktree_path: Path::new("/w").into(),
            log_path: Path::new("/l").into(),
            timestamp: Timestamp::from_unix_millis(0),
            notes: "n".into(),
            resume_hint: "r".into(),
            rollback_hint: "b".into(),
            retry_attempt: Some(1),
            max_retries: Some(2),
            failure_context: vec!["x".into()],
            command: Some("c".into()),
            exit_code: Some(0),
            head_sha: CommitId::new(&"a".repeat(40)).ok(),
            target_branch: Some("main".into()),
            git: Some(GitState::default()),
            session_id: Some("s".into()),
        }
    }

    #[test]
    fn the_fields_are_written_in_the_contracts_order() {
        let value = serde_json::to_value(full()).unwrap();
        let written: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(written, CheckpointRecord::FIELDS);
        assert_eq!(serde_json::from_value::<CheckpointRecord>(value).unwrap(), full());
    }

    #[test]
    fn the_example_of_seed_004_is_read() {
        let example = r#"{"run_id": "P1-SL-AUTH-20251227", "phase": "P1", "lane": "SL-AUTH", "stage": "retry_attempt",
            "status": "retrying", "retry_attempt": 2, "max_retries": 3,
            "failure_context": ["Attempt 1: TypeError: undefined is not a function", "Test failed: AuthService.register"],
            "timestamp": "2025-12-27T10:30:00Z"}"#;
        let record: CheckpointRecord = serde_json::from_str(example).unwrap();
        assert_eq!(record.lane, Some(LaneId::new("SL-AUTH").unwrap()));
        assert_eq!(record.failure_context.len(), 2);
    }
}
