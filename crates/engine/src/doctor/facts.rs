//! The facts that a scan collects, without any judgement.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use lanewright_git::{KeptOfRemoved, Prunable, Slot, WorktreeState};
use lanewright_model::event::Record;
use lanewright_model::{
    AgentName, CheckpointRecord, CommitId, JobId, LaneId, LaneIndex, PhaseId, Plan, ProcessId, RunId, TaskFile,
};
use lanewright_programs::process::Observation;
use lanewright_schedule::Fault;
use lanewright_store::recovery::run_log::Salvage;
use serde_json::Value;

use crate::doctor::{Expected, Holding, Owned};
use crate::executor::repair::damaged_objects::DamagedCommit;

#[derive(Debug)]
pub struct Facts {
    pub runs: Vec<RunFacts>,
    pub shared: SharedFacts,
}

#[derive(Debug)]
pub struct RunFacts {
    pub run: RunId,
    pub log_path: PathBuf,
    pub directory: PathBuf,
    /// Whether a live session holds it; it is not looked at then.
    pub held: bool,
    pub log: LogSeen,
    /// The state on disk according to the log, if the log is certain.
    pub expected: Option<Expected>,
    pub plan: PlanSeen,
    /// The `task.json` of each lane that has one.
    pub tasks: Vec<TaskSeen>,
    /// Files of agents' own that cannot be read, and whether an agent may be writing them now.
    pub statuses: Vec<StatusSeen>,
    pub holdings: Vec<HoldingSeen>,
    /// What lanes with work left need and cannot be read, each with the lane's directory.
    pub damaged: Vec<DamagedLane>,
    pub jobs: Vec<(JobId, PathBuf, Result<Observation, String>)>,
    pub checkpoints: NewestCheckpoints,
    /// The commit at which the run last knew the integration branch, if that branch is gone.
    pub base_missing: Option<CommitId>,
    /// What exists of the run besides its log, if the log is incomplete.
    pub traces: Option<RunTraces>,
}

/// The records of a run that `checkpoints.json` should hold.
#[derive(Debug, Default)]
pub struct NewestCheckpoints {
    pub records: Vec<CheckpointRecord>,
    /// Whether a file that differs is one that a killed Lanewright had not brought up to date.
    pub late: bool,
}

#[derive(Debug)]
pub enum LogSeen {
    Missing,
    Empty,
    Newer(String),
    /// It cannot be read, for example because of its permissions.
    Unreadable(String),
    /// Every line before the end is a record.
    Whole {
        /// Of a run that is done, only those of its resumes.
        records: Vec<Record>,
        /// Whether the log ends with something that is not a record.
        torn: bool,
    },
    Damaged(Box<Salvage>),
}

#[derive(Debug, Default)]
pub struct PlanSeen {
    /// The pinned one; the error is why it cannot be read.
    pub pinned: Option<Result<Arc<Plan>, String>>,
    pub path: PathBuf,
    /// The plan that its source holds now, if the run began with it.
    pub source: Option<Arc<Plan>>,
    /// Whether that is the plan that the run pinned last, which no retry had changed then.
    pub is_source: bool,
    /// The SHA-256 of the source that the run works with.
    pub source_sha256: String,
    /// Why the run log does not fit that, where it calls lanes or agents otherwise: it is of no use then, and left out.
    pub unfit: Option<Fault>,
    /// Whether its source is another plan now, so that a resume needs `--accept-plan-change`.
    pub changed: bool,
    /// Whether another program changed the pinned one: it is neither what the run wrote nor what its source holds.
    pub edited: bool,
    /// The line of the log that does not fit, and why.
    pub contradiction: Option<(u64, Fault)>,
}

#[derive(Debug)]
pub struct TaskSeen {
    pub lane: LaneId,
    pub path: PathBuf,
    pub exists: bool,
    /// Its contents, if they are JSON.
    pub raw: Option<Value>,
    /// Its contents, if they are valid.
    pub found: Option<TaskFile>,
    pub expected: TaskFile,
    /// Whether a file that differs is one that a killed Lanewright had not brought up to date.
    pub late: bool,
}

#[derive(Debug)]
pub struct StatusSeen {
    pub lane: LaneId,
    pub agent: AgentName,
    pub path: PathBuf,
    /// Whether a job of the agent's has not ended.
    pub open: bool,
}

#[derive(Debug)]
pub struct HoldingSeen {
    pub owned: Owned,
    pub holding: Holding,
    pub state: WorktreeState,
    pub branch: Option<CommitId>,
    /// Where a branch that is gone can be created again, and the evidence for it.
    pub origin: Option<(CommitId, String)>,
    pub claim: Claimed,
    /// Whether the checkout of the slot was not completed; the next resume repeats it.
    pub incomplete: bool,
    pub busy: Option<JobId>,
    /// The newest snapshot of it that is still there.
    pub snapshot: Option<String>,
    /// The newest snapshot of it in the run log, if its commit is gone.
    pub lost_snapshot: Option<String>,
}

#[derive(Debug)]
pub struct DamagedLane {
    pub lane: LaneIndex,
    pub directory: PathBuf,
    pub commits: Vec<DamagedCommit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    Rightly,
    ByNobody,
    ByAnother(String),
    Damaged(String),
}

#[derive(Debug, Default)]
pub struct RunTraces {
    pub phase: Option<String>,
    pub plan: Option<PathBuf>,
    pub records: Vec<CheckpointRecord>,
    pub slots: Vec<Slot>,
    /// Branches that have the names of its lanes' and agents'.
    pub branches: Vec<(String, CommitId)>,
    pub snapshots: Vec<(String, CommitId)>,
    pub jobs: Vec<PathBuf>,
    /// Commits of the run on the integration branch that the log does not know.
    pub unknown_merges: Vec<CommitId>,
    pub has_directory: bool,
}

#[derive(Debug, Default)]
pub struct SharedFacts {
    pub checkpoints_path: PathBuf,
    /// Its records; the error is why it cannot be read.
    pub checkpoints: Option<Result<Vec<CheckpointRecord>, String>>,
    pub held: Vec<RunId>,
    /// The same by their phase, where they work on its branches.
    pub held_phases: BTreeMap<PhaseId, RunId>,
    /// The records that it should hold, of every run whose log can be read, if it cannot be read itself.
    pub known_records: Vec<CheckpointRecord>,
    pub held_slots: BTreeSet<PathBuf>,
    /// Whether every run's log is complete.
    pub all_known: bool,
    /// The slots, by the root of their pool.
    pub slots: BTreeMap<PathBuf, Vec<Slot>>,
    /// Worktrees of the pools that git knows and that are gone.
    pub prunable: Vec<(PathBuf, Prunable)>,
    /// What waits in the trash of the pools.
    pub trash: Vec<PathBuf>,
    /// Locks of git's, each with the worktree it is in, whether that is ours, and the gits that work there; `None`:
    /// unknown on this system.
    pub index_locks: Vec<IndexTrouble>,
    /// Git's locks on packed refs and integration branches, likewise.
    pub reference_locks: Vec<IndexTrouble>,
    pub damaged_indexes: Vec<IndexTrouble>,
    pub stray_references: Vec<(String, CommitId)>,
    /// What was kept of agents whose worktrees were removed: refs and git directories.
    pub kept_of_removed: KeptOfRemoved,
    pub stray_supervisors: Vec<(ProcessId, PathBuf)>,
    /// Free and total bytes of each disk.
    pub disks: Vec<(PathBuf, u64, u64)>,
}

/// Git's lock on an index, or an index that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexTrouble {
    pub path: PathBuf,
    pub worktree: PathBuf,
    /// The root of the pool that it is a slot of; `None`: it is the user's.
    pub pool: Option<PathBuf>,
    /// Whether a git or a job of ours is at work there; `None`: unknown on this system.
    pub in_use: Option<bool>,
}

/// The fields in which two `task.json` differ; what others add is not compared.
pub(crate) fn differing(found: &TaskFile, expected: &TaskFile) -> Vec<&'static str> {
    let agents = expected.agents.iter().all(|(name, agent)| found.agents.get(name) == Some(agent));
    let fields = [
        ("task_name", found.task_name == expected.task_name),
        ("session_id", found.session_id == expected.session_id),
        ("state", found.state == expected.state),
        ("created", found.created == expected.created),
        ("phase", found.phase == expected.phase),
        ("required_agents", found.required_agents == expected.required_agents),
        ("agents", agents),
        ("checkpoint", found.checkpoint == expected.checkpoint),
        ("transition_log", found.transition_log == expected.transition_log),
    ];
    fields.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

/// Whether two records are the same; hints may be worded otherwise by another version.
pub(crate) fn is_same_record(one: &CheckpointRecord, other: &CheckpointRecord) -> bool {
    let story = |record: &CheckpointRecord| CheckpointRecord {
        resume_hint: "".into(),
        rollback_hint: "".into(),
        ..record.clone()
    };
    let is_near = (&one.lane, one.stage, one.timestamp) == (&other.lane, other.stage, other.timestamp);
    is_near && story(one) == story(other)
}
