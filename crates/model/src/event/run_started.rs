//! What a run began with, and who works on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::optional_millis;
use crate::{
    AgentName, Budget, CommitId, Follow, LaneId, ListOptions, MergeMode, MergeStyle, MustHavesRule, PhaseId,
    PlanFormat, ProcessId, RunId,
};

/// What a run was started with: everything that the plan does not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct RunStarted {
    /// The version of this format, `major.minor`.
    pub format: String,
    /// The version of the program.
    pub lanewright: String,
    pub run_id: RunId,
    pub phase: PhaseId,
    /// The plan file.
    pub plan_path: PathBuf,
    /// The SHA-256 of the plan file and its prompt files.
    pub plan_sha256: String,
    /// The SHA-256 of `plan.json` as it was written in the run's directory; absent: recorded by an older version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pinned_sha256: String,
    /// The integration branch.
    pub base_branch: String,
    /// The commit that the integration branch was at.
    pub base_commit: CommitId,
    pub owner: Owner,
    /// The effective command line and settings.
    pub options: RunOptions,
}

/// The directory in which GSD keeps plans.
pub const PLANNING: &str = ".planning";

/// The log of errors that GSD reads there.
pub const SPECIALIST_ERRORS: &str = "specialist-errors.jsonl";

/// What the names of lanes' branches begin with, before a slash.
pub const LANE_BRANCHES: &str = "lane";

/// The same of the branches of agents that do not share their lane's.
pub const AGENT_BRANCHES: &str = "lane-agent";

impl RunStarted {
    /// The directory of GSD that the plan is in, relative to the main worktree `main`; `None`: it is in no such one.
    pub fn planning(&self, main: &Path) -> Option<PathBuf> {
        let plan = self.plan_path.strip_prefix(main).ok()?;
        let planning = plan.ancestors().find(|path| path.ends_with(PLANNING))?;
        (self.options.plan_format == Some(PlanFormat::Gsd)).then(|| planning.to_owned())
    }

    /// The branch of a lane, without `refs/heads/`: `lane/<phase>/<lane>`, with the run's prefix and suffix if it has them.
    pub fn lane_branch(&self, lane: &LaneId) -> String {
        let RunOptions { branch_prefix, branch_suffix, .. } = &self.options;
        format!("{branch_prefix}{LANE_BRANCHES}/{}/{lane}{branch_suffix}", self.phase)
    }

    /// The branch of an agent that does not share the lane's: `lane-agent/<phase>/<lane>/<agent>`, with both as well.
    pub fn agent_branch(&self, lane: &LaneId, agent: &AgentName) -> String {
        let RunOptions { branch_prefix, branch_suffix, .. } = &self.options;
        format!("{branch_prefix}{AGENT_BRANCHES}/{}/{lane}/{agent}{branch_suffix}", self.phase)
    }
}

/// The effective command line and settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunOptions {
    /// How many agents run at once.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_parallel: u32,
    /// How finished lanes reach the integration branch.
    pub merge: MergeMode,
    /// How lanes are merged for which the plan does not say it; absent: `merge`.
    #[serde(default, skip_serializing_if = "MergeStyle::is_merge")]
    pub merge_style: MergeStyle,
    /// Whether the first failed lane stops the run.
    pub fail_fast: bool,
    /// Whether the merge that broke a gate is searched.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "super::added_later"))]
    pub bisect_merges: bool,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "super::added_later"))]
    pub must_haves: MustHavesRule,
    /// The lanes to run; empty: all.
    #[serde(default)]
    pub lanes: Vec<LaneId>,
    /// Lanes that an earlier run merged.
    #[serde(default)]
    pub done: Vec<LaneId>,
    /// The directory of the worktrees.
    pub worktree_root: PathBuf,
    /// What the names of branches begin with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub branch_prefix: String,
    /// Appended to branch names, for a second run of the same phase beside an unfinished one.
    #[serde(default)]
    pub branch_suffix: String,
    /// Whether the worktrees of the pool stay when the run ends.
    #[serde(default)]
    pub keep_pool: bool,
    /// Whether ignored files stay in a worktree that is reused.
    #[serde(default)]
    pub keep_caches: bool,
    /// Which git directory an agent works with; absent: that of the repository.
    #[serde(default, skip_serializing_if = "crate::GitDirectory::is_shared")]
    pub git_directory: crate::GitDirectory,
    /// Globs of files that no lane changes without an approval of its changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// Whether snapshots are tags instead of refs below `refs/lanewright`.
    #[serde(default)]
    pub checkpoint_tags: bool,
    /// The first delay of a retry; it doubles each time.
    #[serde(with = "crate::time::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub backoff: Duration,
    /// How long a network or a service may be unavailable before the lane fails.
    #[serde(with = "crate::time::millis", default = "outage_limit")]
    #[cfg_attr(feature = "schema", schemars(with = "u64", skip_serializing_if = "super::added_later"))]
    pub outage_limit: Duration,
    /// How long a runner must be paused before a `fallback` takes its place.
    #[serde(with = "crate::time::millis", default = "fallback_after")]
    #[cfg_attr(feature = "schema", schemars(with = "u64", skip_serializing_if = "super::added_later"))]
    pub fallback_after: Duration,
    /// How pull requests are followed after they were opened; absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<Follow>,
    /// The time limit of an agent.
    #[serde(with = "crate::time::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub specialist_timeout: Duration,
    pub on_orphan: crate::OnOrphan,
    /// The time limit of the whole run; null: none.
    #[serde(with = "optional_millis", default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub timeout: Option<Duration>,
    /// The plans that come after this one, if the run is part of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_phases: Option<Vec<PathBuf>>,
    /// Whether GSD's `ROADMAP.md` and `STATE.md` are updated when a lane is merged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gsd_tracking: bool,
    /// The run that placed this one on a cluster, to run one lane of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_by: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_format: Option<PlanFormat>,
    /// The part of the plan's list that is run, as `--tag` named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_tag: Option<String>,
    /// How the plan's list became lanes, where it was asked for something else than the default.
    #[serde(default, skip_serializing_if = "ListOptions::is_default")]
    pub list_options: ListOptions,
    /// What the agents of all lanes together may use; absent: no limit.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// What git's own settings of the repository said of commits (`user.name`, `gpg.program`, …) before any agent worked;
    /// absent: what they say when the run is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_settings: Option<BTreeMap<String, String>>,
}

fn outage_limit() -> Duration {
    crate::retry::OUTAGE_LIMIT
}

fn fallback_after() -> Duration {
    crate::retry::FALLBACK_AFTER
}

/// The process that works on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Owner {
    /// The name of its session.
    pub session_id: String,
    pub process: ProcessId,
    /// The machine.
    pub host: String,
    /// The boot ID of that machine; empty: unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
}

impl Owner {
    /// Whether this machine was started again since `earlier` worked on the run: files that were not synced may be as they
    /// were before, empty or gone. Another machine has other boots.
    pub fn is_in_another_boot(&self, earlier: &Self) -> bool {
        let are_known = !self.boot.is_empty() && !earlier.boot.is_empty();
        are_known && self.host == earlier.host && self.boot != earlier.boot
    }
}
