//! Repairs: each does one thing, is idempotent, and deletes only caches and locks of dead processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanewright_files::{atomic, directory};
use lanewright_git::{self as git, Holder, Repository, Snapshot};
use lanewright_model::event::{AGENT_BRANCHES, Event, LANE_BRANCHES, RunStarted, SnapshotReason, Worktree};
use lanewright_model::text::{counted, listed};
use lanewright_model::{CheckpointRecord, CommitId, LaneId, LaneIndex, Plan, TaskFile, Timestamp};
use lanewright_programs::process;
use lanewright_schedule::RunState;
use lanewright_store::recovery::run_log::{keep_aside, replace_log};
use lanewright_store::{Journal, LaneDirectory, LogError, checkpoints, lane_files, recovery};

use crate::doctor::error::{DoctorError, Result};
use crate::doctor::{IndexTrouble, pool};
use crate::executor::Executor;
use crate::executor::repair::damaged_objects::{LostHead, Restored};

/// One thing that `--fix` does; [`Repair::description`] describes each.
#[derive(Debug, Clone)]
pub enum Repair {
    CutLog(PathBuf),
    ReplaceLog(PathBuf, Vec<u8>),
    WritePlan(PathBuf, Arc<Plan>, Vec<LaneId>),
    WriteTask {
        root: PathBuf,
        lane: LaneDirectory,
        task: Box<TaskFile>,
    },
    SetAside(PathBuf),
    MakeBranch(String, CommitId),
    /// A worktree that is gone, and the head of its branch.
    Reopen(Target, Option<CommitId>),
    /// A worktree, and where it was moved.
    Register(Target, Option<PathBuf>),
    BackToBranch(Target),
    Reclaim(Target),
    DropClaim {
        root: PathBuf,
        claim: PathBuf,
    },
    Forget {
        root: PathBuf,
        entry: PathBuf,
    },
    MakeIndex(IndexTrouble),
    /// The log of a run, what it adds up to, and a lane that needs objects that cannot be read.
    RestoreObjects {
        log: PathBuf,
        state: Box<RunState>,
        lane: LaneIndex,
    },
    RemoveLocks(PathBuf),
    RebuildCheckpoints(PathBuf, Vec<CheckpointRecord>),
    UpdateCheckpoints(PathBuf, Vec<CheckpointRecord>),
}

type AddEvents<'a> = &'a dyn Fn(&Path, &[Event]) -> Result<(), LogError>;
type OpenExecutor<'a> = &'a dyn Fn(&RunStarted, &Arc<Plan>) -> Result<Executor, String>;

pub struct Tools<'a> {
    pub repository: &'a Repository,
    pub now: Timestamp,
    /// Adds events to a run log. A resume compares worktrees with what the log says, so a repair that changes what is
    /// checked out says so there, before it does it: else the resume would take it for a change by the user.
    pub record: AddEvents<'a>,
    pub executor: OpenExecutor<'a>,
}

#[derive(Debug, Clone)]
pub struct Target {
    /// The log of the run that holds it.
    pub log: PathBuf,
    pub root: PathBuf,
    pub holder: Holder,
    /// Where it should be, on which branch; its head is the last that is known.
    pub worktree: Worktree,
}

impl Repair {
    pub(super) fn description(&self) -> String {
        let action = match self {
            Self::CutLog(_) => "cuts the torn end off, as a resume does",
            Self::ReplaceLog(..) => "keeps the damaged log beside it and writes what is certain",
            Self::WritePlan(_, _, retried) => {
                return format!(
                    "--fix writes it again from the plan's source, which is unchanged{}",
                    not_in_source(retried)
                );
            }
            Self::WriteTask { .. } => "writes it again from the run log",
            Self::SetAside(_) => "renames it to .bad",
            Self::MakeBranch(_, commit) => return format!("--fix makes it again at {commit}"),
            Self::Reopen(..) => "makes it again on its branch",
            Self::Register(_, Some(_)) => "moves it back with all that is in it",
            Self::Register(_, None) => "makes git know it again, with every file as it is",
            Self::BackToBranch(_) => "puts it back onto its branch if no commit and no change is lost by that",
            Self::Reclaim(_) => "notes the holder again that the run log names",
            Self::DropClaim { .. } => "renames it; no run holds the slot",
            Self::Forget { .. } => "makes git forget it",
            Self::RemoveLocks(_) => "removes it",
            Self::MakeIndex(_) => {
                "keeps it beside and makes one as the head has it; no file changes, and nothing is staged then"
            }
            Self::RestoreObjects { .. } => {
                "moves what is damaged aside and stores it again from the files of the lane's worktrees; where that is not \
                 possible, the lane continues from what was saved before"
            }
            Self::RebuildCheckpoints(..) => {
                "keeps the file beside it and writes it again from the run logs and what can still be read of it"
            }
            Self::UpdateCheckpoints(..) => "writes them from the run log",
        };
        format!("--fix {action}")
    }

    /// Does it and returns what was done. The locks of the run are held.
    pub fn carry_out(&self, tools: &Tools<'_>) -> Result<String> {
        let repository = tools.repository;
        match self {
            Self::CutLog(log) => {
                Journal::open(log)?;
                Ok("cut off".to_owned())
            }
            Self::ReplaceLog(log, text) => Ok(kept(&replace_log(log, text)?)),
            Self::WritePlan(path, plan, retried) => write_plan(path, plan, retried),
            Self::WriteTask { root, lane, task } => {
                directory::create_directory(root)?;
                lane_files::write_task(lane, task)?;
                Ok("written from the run log".to_owned())
            }
            Self::SetAside(path) => {
                let aside = path.with_extension("json.bad");
                atomic::rename(path, &aside)?;
                Ok(kept(&aside))
            }
            Self::MakeBranch(branch, commit) => {
                repository.make_branch(branch, commit)?;
                Ok(format!("made at {commit}"))
            }
            Self::Reopen(target, tip) => reopen(tools, target, tip.as_ref()),
            Self::Register(target, from) => {
                let pool = pool(repository, &target.root);
                pool.restore_registration(&target.worktree)?;
                pool.reclaim(&target.holder, &target.worktree)?;
                let done = from.as_ref().map(|from| format!("brought back from {}", from.display()));
                Ok(done.unwrap_or_else(|| "known to git again".to_owned()))
            }
            Self::BackToBranch(target) => {
                pool(repository, &target.root).back_to_branch(&target.holder, &target.worktree)?;
                Ok(format!("back on {}", target.worktree.branch))
            }
            Self::Reclaim(target) => {
                pool(repository, &target.root).reclaim(&target.holder, &target.worktree)?;
                Ok("its holder is noted again".to_owned())
            }
            Self::DropClaim { root, claim } => Ok(kept(&pool(repository, root).drop_claim(claim)?)),
            Self::Forget { root, entry } => {
                pool(repository, root).forget(entry)?;
                Ok("forgotten".to_owned())
            }
            Self::RestoreObjects { log, state, lane } => restore_objects(tools, log, state, *lane),
            Self::RemoveLocks(worktree) => {
                refuse_in_use(worktree)?;
                repository.remove_locks_in(worktree)?;
                Ok("removed".to_owned())
            }
            Self::MakeIndex(index) => make_index(repository, index),
            Self::RebuildCheckpoints(path, records) => rebuild_checkpoints(path, records),
            Self::UpdateCheckpoints(path, records) => {
                checkpoints::update(path, records)?;
                Ok(format!("{} written", counted(records.len(), "record")))
            }
        }
    }
}

fn kept(aside: &Path) -> String {
    format!("what was there is kept as {}", aside.display())
}

/// What is lost with a pinned plan.
fn not_in_source(retried: &[LaneId]) -> String {
    if retried.is_empty() {
        return String::new();
    }
    let lanes: Vec<String> = retried.iter().map(LaneId::to_string).collect();
    let lanes = listed(&lanes, lanes.len());
    format!("; the prompt or runner that `retry` gave {lanes} is not in it, so give it again with `retry`")
}

fn write_plan(path: &Path, plan: &Plan, retried: &[LaneId]) -> Result<String> {
    let text = serde_json::to_vec_pretty(plan);
    let text = text.map_err(|error| DoctorError::Refused(format!("the plan cannot be written: {error}")))?;
    let aside = path.exists().then(|| keep_aside(path)).transpose()?;
    if let Some(directory) = path.parent() {
        directory::create_directory(directory)?;
    }
    atomic::write(path, &text)?;
    let done = "written from its source; --retries and --runner of the first start are not in it".to_owned()
        + &not_in_source(retried);
    Ok(aside.map_or(done.clone(), |aside| format!("{done}; {}", kept(&aside))))
}

/// Creates a worktree again. What was staged in the old one is only in its index, which is about to be removed.
fn reopen(tools: &Tools<'_>, target: &Target, tip: Option<&CommitId>) -> Result<String> {
    let (repository, worktree) = (tools.repository, &target.worktree);
    let staged = match tip {
        Some(tip) => repository.staged_in_missing(&worktree.path, tip)?,
        None => None,
    };
    let mut rescued = None;
    if let Some(lane) = target.holder.lane.clone() {
        let agent = target.holder.agent.clone();
        let mut events = Vec::new();
        if let Some(commit) = staged {
            let name = format!("refs/lanewright/checkpoint/{}/{}", rescue_name(&worktree.branch), tools.now.compact());
            let Snapshot { commit, reference } = git::keep(repository, &name, commit)?;
            rescued = Some(reference.clone());
            let (lane, agent) = (lane.clone(), agent.clone());
            // It may be nowhere else, so it outlives the merge.
            let reason = SnapshotReason::External;
            events.push(Event::snapshot(lane, agent, reason, commit, reference));
        }
        let head = Some(tip.unwrap_or(&worktree.head).clone());
        events.push(Event::WorktreeLost { lane, agent, head });
        (tools.record)(&target.log, &events)?;
    }
    pool(repository, &target.root).reopen(&target.holder, worktree)?;
    let done = format!("made again on {}", worktree.branch);
    Ok(rescued.map_or(done.clone(), |name| format!("{done}; what was staged in the old one is kept as {name}")))
}

/// `P1-SL-1` of `lane/P1/SL-1` and of `lane-agent/P1/SL-1/engineer`, as snapshots are named.
fn rescue_name(branch: &str) -> String {
    let own = [AGENT_BRANCHES, LANE_BRANCHES].into_iter().find_map(|names| branch.split_once(&format!("{names}/")));
    own.map_or(branch, |(_, own)| own).split('/').take(2).collect::<Vec<_>>().join("-")
}

fn restore_objects(tools: &Tools<'_>, log: &Path, state: &RunState, lane: LaneIndex) -> Result<String> {
    let started = state.started().ok_or_else(|| DoctorError::Refused("the run has not started".to_owned()))?;
    let executor = (tools.executor)(started, state.plan()).map_err(DoctorError::Refused)?;
    let Restored { events, blocked } = executor.restore_lane(lane, state, LostHead::Refuse)?;
    (tools.record)(log, &events)?;
    match blocked.into_iter().next() {
        Some((_, reason)) => Err(DoctorError::Refused(reason)),
        None => {
            let said = events.iter().filter_map(|event| match event {
                Event::Noted { message, .. } => Some(message.clone()),
                Event::SnapshotDamaged { reference, error, .. } => Some(format!("lost of {reference}: {error}")),
                _ => None,
            });
            Ok(said.collect::<Vec<_>>().join("; "))
        }
    }
}

fn make_index(repository: &Repository, index: &IndexTrouble) -> Result<String> {
    refuse_in_use(&index.worktree)?;
    let aside = keep_aside(&index.path)?;
    repository.make_index(&index.worktree)?;
    Ok(kept(&aside))
}

fn refuse_in_use(worktree: &Path) -> Result<()> {
    match process::at_work_in(worktree, "git") {
        Some(gits) if gits.is_empty() => Ok(()),
        _ => Err(DoctorError::Refused(format!("a git is at work in {} now", worktree.display()))),
    }
}

fn rebuild_checkpoints(path: &Path, records: &[CheckpointRecord]) -> Result<String> {
    Ok(match recovery::checkpoints::repair(path, records)? {
        Some(repaired) => {
            let recovered = counted(repaired.recovered, "record");
            let logged = counted(records.len(), "record");
            format!(
                "written again: {logged} from the run logs, {recovered} could still be read; {}",
                kept(&repaired.aside)
            )
        }
        None => "it can be read now".to_owned(),
    })
}
