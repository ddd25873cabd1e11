//! What a run began with, and who works on it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::optional_millis;
use crate::{
    AgentName, Budget, CommitId, LaneId, MergeMode, MergeStyle, MustHavesRule, PhaseId, PlanFormat, ProcessId, RunId,
};

/// The first event of a run: everything that the plan does not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Version of the run log's format, `major.minor`.
    pub format: String,
    /// Version of the program that began it.
    pub lanewright: String,
    pub run_id: RunId,
    pub phase: PhaseId,
    /// Where the plan was read; absolute.
    pub plan_path: PathBuf,
    /// What was read there, prompt files included.
    pub plan_sha256: String,
    /// Of `plan.json` as it was written in the run's directory; empty: recorded by an older version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pinned_sha256: String,
    /// The integration branch, without `refs/heads/`.
    pub base_branch: String,
    /// Where it stood.
    pub base_commit: CommitId,
    pub owner: Owner,
    /// What the command line and the settings decided.
    pub options: RunOptions,
}

impl RunStarted {
    /// The branch of a lane, without `refs/heads/`: `lane/<phase>/<lane>`, with the run's suffix if it has one.
    pub fn lane_branch(&self, lane: &LaneId) -> String {
        format!("lane/{}/{lane}{}", self.phase, self.options.branch_suffix)
    }

    /// The branch of an agent that does not share the lane's: `lane-agent/<phase>/<lane>/<agent>`, with the suffix.
    pub fn agent_branch(&self, lane: &LaneId, agent: &AgentName) -> String {
        format!("lane-agent/{}/{lane}/{agent}{}", self.phase, self.options.branch_suffix)
    }
}

/// What the command line and the settings decided, for the whole life of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Agents at once, at least 1.
    pub max_parallel: u32,
    /// How finished lanes reach the integration branch.
    pub merge: MergeMode,
    /// How lanes are merged here that do not say it themselves.
    #[serde(default, skip_serializing_if = "MergeStyle::is_merge")]
    pub merge_style: MergeStyle,
    /// Stop everything at the first failed lane.
    pub fail_fast: bool,
    /// Search the merge that broke a gate.
    #[serde(default)]
    pub bisect_merges: bool,
    /// What becomes of a lane whose must-haves do not all hold.
    #[serde(default)]
    pub must_haves: MustHavesRule,
    /// Only these lanes; empty: all.
    #[serde(default)]
    pub lanes: Vec<LaneId>,
    /// Lanes that count as merged because an earlier run merged them.
    #[serde(default)]
    pub done: Vec<LaneId>,
    /// Where worktrees live; absolute.
    pub worktree_root: PathBuf,
    /// Added to branch names, for a second run of the same phase beside an unfinished one.
    #[serde(default)]
    pub branch_suffix: String,
    /// Keep the pool's slots when the run ends.
    #[serde(default)]
    pub keep_pool: bool,
    /// Keep ignored files in a slot that is reused.
    #[serde(default)]
    pub keep_caches: bool,
    /// Snapshots are tags instead of refs of our own.
    #[serde(default)]
    pub checkpoint_tags: bool,
    /// First delay of a retry; doubles each time.
    #[serde(with = "crate::time::millis")]
    pub backoff: Duration,
    /// How long a network or a quota may be out before the lane fails.
    #[serde(with = "crate::time::millis", default = "outage_limit")]
    pub outage_limit: Duration,
    /// Time limit of a specialist.
    #[serde(with = "crate::time::millis")]
    pub specialist_timeout: Duration,
    /// What supervisors do when Lanewright dies.
    pub on_orphan: crate::OnOrphan,
    /// Time limit of the whole run.
    #[serde(with = "optional_millis", default)]
    pub timeout: Option<Duration>,
    /// The plans that come after this one, absolute; `None`: the run is part of no chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_phases: Option<Vec<PathBuf>>,
    /// Whether Lanewright writes GSD's `ROADMAP.md` and `STATE.md` when it merges a lane.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gsd_tracking: bool,
    /// The run that placed this one, which has one lane of it, on a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_by: Option<RunId>,
    /// How the plan is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_format: Option<PlanFormat>,
    /// What the agents may use, all lanes together.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
}

fn outage_limit() -> Duration {
    crate::retry::OUTAGE_LIMIT
}

/// Who works on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub session_id: String,
    pub process: ProcessId,
    pub host: String,
}
