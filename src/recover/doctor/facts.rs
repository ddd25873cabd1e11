//! What is there, as it was seen; nothing here judges.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::expected::{Expected, Holding, Owned};
use crate::event::Record;
use crate::git::{Prunable, Slot, Standing};
use crate::model::{AgentName, CheckpointRecord, CommitId, JobId, LaneId, PhaseId, Plan, ProcessId, RunId, TaskFile};
use crate::process::Observation;
use crate::schedule::Fault;
use crate::store::salvage::Salvage;

/// Everything that was seen.
#[derive(Debug)]
pub struct Facts {
    /// The runs that were asked about.
    pub runs: Vec<RunFacts>,
    /// What all runs share.
    pub shared: SharedFacts,
}

/// One run.
#[derive(Debug)]
pub struct RunFacts {
    /// Which.
    pub run: RunId,
    /// Its log's place.
    pub log_path: PathBuf,
    /// The rest of its files.
    pub directory: PathBuf,
    /// Whether a live session holds it; it is not looked at then.
    pub held: bool,
    /// Its log.
    pub log: LogSeen,
    /// What the log says that there is, if it says so for certain.
    pub expected: Option<Expected>,
    /// Its plan.
    pub plan: PlanSeen,
    /// The `task.json` of each lane that has one.
    pub tasks: Vec<TaskSeen>,
    /// Files of agents' own that cannot be read, and whether an agent may be writing them now.
    pub statuses: Vec<StatusSeen>,
    /// The worktrees that are held.
    pub holdings: Vec<HoldingSeen>,
    /// Jobs that have not ended.
    pub jobs: Vec<(JobId, PathBuf, Result<Observation, String>)>,
    /// Private indexes that cannot be read.
    pub damaged_indexes: Vec<PathBuf>,
    /// The records that `checkpoints.json` should hold.
    pub checkpoints: NewestCheckpoints,
    /// The commit at which the run last knew the integration branch, if that branch is gone.
    pub base_missing: Option<CommitId>,
    /// What there is of the run besides its log, where the log does not tell all.
    pub remains: Option<Remains>,
}

/// The records of a run that `checkpoints.json` should hold.
#[derive(Debug, Default)]
pub struct NewestCheckpoints {
    /// The newest of each lane and stage.
    pub records: Vec<CheckpointRecord>,
    /// Whether a file that differs is one that a killed Lanekeeper had not brought up to date.
    pub late: bool,
}

/// A run log.
#[derive(Debug)]
pub enum LogSeen {
    /// There is none.
    Missing,
    /// It holds no record.
    Empty,
    /// A later Lanekeeper wrote it.
    Newer(String),
    /// It cannot be read, for example for want of permission.
    Unreadable(String),
    /// Every line before the end is a record.
    Whole {
        /// The records.
        records: Vec<Record>,
        /// Whether something that is no record stands at the end.
        torn: bool,
    },
    /// Lines before the end are none.
    Damaged(Box<Salvage>),
}

/// A run's plan.
#[derive(Debug, Default)]
pub struct PlanSeen {
    /// The pinned one; the error is why it cannot be read.
    pub pinned: Option<Result<Arc<Plan>, String>>,
    /// Its file.
    pub path: PathBuf,
    /// The plan as its source says it now, if that is what the run began with.
    pub source: Option<Arc<Plan>>,
    /// The SHA-256 of the source that the run works with.
    pub source_sha256: String,
    /// Whether its source is another plan now, so that a resume needs `--accept-plan-change`.
    pub changed: bool,
    /// Whether another program changed the pinned one: it is neither what the run wrote nor what its source says.
    pub edited: bool,
    /// What in the log does not fit, and in which line.
    pub contradiction: Option<(u64, Fault)>,
}

/// A lane's `task.json`.
#[derive(Debug)]
pub struct TaskSeen {
    /// Which lane.
    pub lane: LaneId,
    /// Where.
    pub path: PathBuf,
    /// Whether there is a file.
    pub exists: bool,
    /// What it holds, if that is JSON.
    pub raw: Option<Value>,
    /// What it holds, if that is what it should be.
    pub found: Option<TaskFile>,
    /// What it should say.
    pub expected: TaskFile,
    /// Whether a file that differs is one that a killed Lanekeeper had not brought up to date.
    pub late: bool,
}

/// An agent's file that cannot be read.
#[derive(Debug)]
pub struct StatusSeen {
    /// Whose.
    pub lane: LaneId,
    /// Whose.
    pub agent: AgentName,
    /// Where.
    pub path: PathBuf,
    /// Whether a job of the agent's has not ended.
    pub open: bool,
}

/// A worktree that should be there.
#[derive(Debug)]
pub struct HoldingSeen {
    /// Whose.
    pub owned: Owned,
    /// What it should be.
    pub holding: Holding,
    /// What it is.
    pub standing: Standing,
    /// Where its branch is; `None`: there is none.
    pub branch: Option<CommitId>,
    /// Where a branch that is gone can be made again, and who says so.
    pub origin: Option<(CommitId, String)>,
    /// Who holds its slot.
    pub claim: Claimed,
    /// Whether the checkout of the slot was not completed; the next resume repeats it.
    pub incomplete: bool,
    /// A job that works in it now.
    pub busy: Option<JobId>,
    /// The newest snapshot of it that is still there.
    pub snapshot: Option<String>,
    /// The newest snapshot of it that the run log tells of, if its commit is gone.
    pub lost_snapshot: Option<String>,
}

/// Who holds a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// Who should.
    Rightly,
    /// Nobody.
    ByNobody,
    /// Somebody else.
    ByAnother(String),
    /// The claim cannot be read.
    Damaged(String),
}

/// What there is of a run besides its log.
#[derive(Debug, Default)]
pub struct Remains {
    /// Its phase, if somebody knows.
    pub phase: Option<String>,
    /// Its plan's file, if somebody knows.
    pub plan: Option<PathBuf>,
    /// Its records in `checkpoints.json`.
    pub records: Vec<CheckpointRecord>,
    /// The slots that it holds.
    pub slots: Vec<Slot>,
    /// Branches that have the names of its lanes' and agents'.
    pub branches: Vec<(String, CommitId)>,
    /// Snapshots that have the names of its lanes'.
    pub snapshots: Vec<(String, CommitId)>,
    /// The directories of its jobs, relative to the run's.
    pub jobs: Vec<PathBuf>,
    /// Commits of the run on the integration branch that the log does not know.
    pub unknown_merges: Vec<CommitId>,
    /// Whether its directory holds a plan or jobs.
    pub has_directory: bool,
}

/// What all runs share.
#[derive(Debug, Default)]
pub struct SharedFacts {
    /// The checkpoint file.
    pub checkpoints_path: PathBuf,
    /// Its records; the error is why it cannot be read.
    pub checkpoints: Option<Result<Vec<CheckpointRecord>, String>>,
    /// Runs that a live session works on.
    pub held: Vec<RunId>,
    /// The same by their phase, where they work on its branches.
    pub held_phases: BTreeMap<PhaseId, RunId>,
    /// The records that it should hold, of every run whose log can be read.
    pub known_records: Vec<CheckpointRecord>,
    /// The slots that the logs say are held.
    pub held_slots: BTreeSet<PathBuf>,
    /// Whether every run's log tells all that the run has.
    pub all_known: bool,
    /// The slots, by the root of their pool.
    pub slots: BTreeMap<PathBuf, Vec<Slot>>,
    /// Worktrees of the pools that git knows and that are gone.
    pub prunable: Vec<(PathBuf, Prunable)>,
    /// Locks of git's, each with the worktree it is in, whether that is ours, and the gits that work there; `None`:
    /// nobody can tell.
    pub index_locks: Vec<IndexTrouble>,
    /// Git's locks on packed refs and integration branches, likewise.
    pub reference_locks: Vec<IndexTrouble>,
    /// Git's indexes that cannot be read, likewise.
    pub damaged_indexes: Vec<IndexTrouble>,
    /// Snapshots of no run that is known.
    pub stray_references: Vec<(String, CommitId)>,
    /// Supervisors of no job that is known to run.
    pub stray_supervisors: Vec<(ProcessId, PathBuf)>,
    /// How much is free where, in bytes, of how much.
    pub disks: Vec<(PathBuf, u64, u64)>,
}

/// Git's lock on an index, or an index that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexTrouble {
    /// The lock, or the index.
    pub path: PathBuf,
    /// The worktree.
    pub worktree: PathBuf,
    /// The root of the pool that it is a slot of; `None`: it is the user's.
    pub pool: Option<PathBuf>,
    /// Whether a git or a job of ours is at work there; `None`: the system does not tell.
    pub in_use: Option<bool>,
}

/// The fields in which two `task.json` differ; what others add is not compared.
pub(super) fn differing(found: &TaskFile, expected: &TaskFile) -> Vec<&'static str> {
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
pub(super) fn is_same_record(one: &CheckpointRecord, other: &CheckpointRecord) -> bool {
    let story = |record: &CheckpointRecord| CheckpointRecord {
        resume_hint: "".into(),
        rollback_hint: "".into(),
        ..record.clone()
    };
    let is_near = (&one.lane, one.stage, one.timestamp) == (&other.lane, other.stage, other.timestamp);
    is_near && story(one) == story(other)
}
