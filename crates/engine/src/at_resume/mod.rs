//! What a resume does before the run continues: replays its log, checks its plan, refuses what may not be resumed
//! (SPEC §9, seed 001), and finds what happened while no process worked on the run.

pub mod agent_names;
pub mod external_changes;
pub mod partial_rounds;
pub mod unrecorded_snapshots;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use lanewright_files::regular_file;
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, Record, RunOutcome, RunStarted};
use lanewright_model::{CommitId, JobId, LaneId, Plan, RunId, Timestamp};
use lanewright_programs::process::{self, Observation, ProcessError};
use lanewright_schedule::{Fault, RunState};
use lanewright_store::RunDirectory;
use lanewright_view::answers::commands::Commands;

#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error("run {0} is complete; there is nothing to resume")]
    Complete(RunId),
    /// INVALID_STATE: no checkpoint was ever reached.
    #[error("run {0} has no checkpoint: no lane of it had begun")]
    NoCheckpoint(RunId),
    #[error("a rollback of {} in run {run} was interrupted", names(.lanes))]
    HalfRolledBack {
        run: RunId,
        lanes: Vec<LaneId>,
        /// What it was to take them back to; empty: their start.
        to: String,
        /// Whether it undoes merged work.
        undoes: bool,
    },
    #[error("the log of run {0} does not begin with the start of that run; put the right file there")]
    NoBeginning(RunId),
    #[error("line {line} of the log of run {run} does not fit what is before it: {fault}")]
    Contradiction { run: RunId, line: u64, fault: Fault },
}

impl ResumeError {
    /// The command that does something about it, if there is one.
    pub fn remedy(&self) -> Option<Vec<String>> {
        let Self::HalfRolledBack { run, lanes, to, undoes } = self else { return None };
        let program = ["lanewright".to_owned()];
        let to = Some(to.as_str()).filter(|to| !to.is_empty());
        Some(Commands { program: &program, run }.finish_rollback(lanes, to, *undoes))
    }
}

/// `SL-1, SL-2`
pub(crate) fn names(lanes: &[LaneId]) -> String {
    lanes.iter().map(LaneId::as_str).collect::<Vec<_>>().join(", ")
}

pub fn beginning<'a>(run: &RunId, records: &'a [Record]) -> Result<&'a RunStarted, ResumeError> {
    match records.first().map(|record| &record.event) {
        Some(Event::RunStarted(started)) if started.run_id == *run => Ok(started),
        _ => Err(ResumeError::NoBeginning(run.clone())),
    }
}

/// The checksums of the plan that a run works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanOnRecord<'a> {
    /// Of the plan's file; see [`RunStarted::plan_sha256`].
    pub source: &'a str,
    /// Of `plan.json` as the run last wrote it; empty where an older version started the run.
    pub pinned: &'a str,
}

impl<'a> PlanOnRecord<'a> {
    /// From the last record that names them; empty if there is none.
    pub fn of(records: &'a [Record]) -> Self {
        let mut on_record = Self { source: "", pinned: "" };
        for record in records {
            match &record.event {
                Event::RunStarted(started) => {
                    on_record = Self { source: &started.plan_sha256, pinned: &started.pinned_sha256 };
                }
                Event::RunResumed { plan_sha256, pinned_sha256, .. } => {
                    on_record.source = plan_sha256.as_deref().unwrap_or(on_record.source);
                    on_record.pinned = pinned_sha256.as_deref().unwrap_or(on_record.pinned);
                }
                _ => {}
            }
        }
        on_record
    }

    pub fn is_foreign(&self, sha256: &str) -> bool {
        !self.pinned.is_empty() && self.pinned != sha256
    }
}

/// What the pinned plan's file holds, or held before a process died that replaced it and did not record that.
pub fn pinned_text(directory: &RunDirectory, records: &[Record]) -> io::Result<Vec<u8>> {
    let text = regular_file::read(directory.plan())?;
    let on_record = PlanOnRecord::of(records);
    if !on_record.is_foreign(&sha256(&text)) {
        return Ok(text);
    }
    let previous = regular_file::read(directory.previous_plan()).ok();
    Ok(previous.filter(|previous| !on_record.is_foreign(&sha256(previous))).unwrap_or(text))
}

/// Closes the jobs that started according to the log and of which nothing is on disk, because the run's directory was
/// removed: as jobs that had not begun they would be begun a second time, beside the first.
pub fn close_removed_jobs(
    state: &RunState,
    records: &[Record],
    directory: &RunDirectory,
) -> Result<Vec<JobId>, ProcessError> {
    let started = |record: &Record| match &record.event {
        Event::JobStarted { job, .. } => Some(job.clone()),
        _ => None,
    };
    let started: HashSet<JobId> = records.iter().filter_map(started).collect();
    let mut closed = Vec::new();
    for job in state.running_jobs().filter(|job| started.contains(job)) {
        let place = directory.job(job);
        if process::observe(&place)? == Observation::Absent {
            process::close_removed(&place)?;
            closed.push(job.clone());
        }
    }
    Ok(closed)
}

/// Closes the jobs that run according to the log and that ended with the machine: what they wrote may be empty or gone,
/// also where they say that they have ended.
///
/// # Errors
/// An exit cannot be written.
pub fn close_jobs_of_earlier_boot(state: &RunState, directory: &RunDirectory) -> Result<(), ProcessError> {
    state.running_jobs().try_for_each(|job| process::close_unsynced(&directory.job(job)))
}

/// The moves of the integration branch that the run recorded, or was about to make, at a time that is `wanted`: from where
/// to where. Of a rollback only the end is known.
pub fn publications(records: &[Record], wanted: impl Fn(Timestamp) -> bool) -> Vec<(Option<CommitId>, CommitId)> {
    let publication = |record: &Record| match &record.event {
        Event::MergeStaged { onto, commit, .. } | Event::LaneMerged { onto, commit, .. } => {
            Some((Some(onto.clone()), commit.clone()))
        }
        Event::LaneRolledBack { integration, .. } => Some((None, integration.clone()?)),
        _ => None,
    };
    records.iter().filter(|record| wanted(record.at)).filter_map(publication).collect()
}

/// What happens to a job that runs according to the log, as [`process::observe`] sees it, and whether the machine was
/// started again since. One line for the user.
pub fn job_forecast(job: &JobId, seen: &Observation, is_in_another_boot: bool) -> String {
    match seen {
        Observation::Exited(_) if is_in_another_boot => {
            format!("{job} ended with the machine, which was started again; its work is saved and it runs again")
        }
        Observation::Absent | Observation::Planned => format!("{job} had not begun"),
        Observation::Running(supervisor) => {
            format!("{job} still runs (supervisor {}); it is not disturbed", supervisor.pid)
        }
        Observation::Starting => format!("{job} is about to run; it is not disturbed"),
        Observation::Exited(_) => format!("{job} ended meanwhile; its exit is collected"),
        Observation::Lost(_) => format!("{job} died without recording an exit; its work is saved and it runs again"),
    }
}

pub fn replay(run: &RunId, plan: &Arc<Plan>, records: &[Record]) -> Result<RunState, ResumeError> {
    RunState::replay(plan, records).map_err(|(line, fault)| ResumeError::Contradiction {
        run: run.clone(),
        line,
        fault,
    })
}

pub fn check(run: &RunId, state: &RunState, records: &[Record]) -> Result<(), ResumeError> {
    if state.finished().is_some_and(|(outcome, _)| outcome == RunOutcome::Done) {
        return Err(ResumeError::Complete(run.clone()));
    }
    let plan = state.plan();
    let half_way: Vec<_> = plan.indices().filter(|&lane| state.lane(lane).is_half_rolled_back()).collect();
    let undoes = half_way.iter().any(|&lane| state.lane(lane).merged().is_some());
    let lanes: Vec<LaneId> = half_way.into_iter().map(|lane| plan.lane(lane).id.clone()).collect();
    if !lanes.is_empty() {
        let begun = records.iter().rev().find_map(|record| match &record.event {
            Event::RollbackBegun { to, .. } => Some(to.clone()),
            _ => None,
        });
        return Err(ResumeError::HalfRolledBack { run: run.clone(), lanes, to: begun.unwrap_or_default(), undoes });
    }
    if !has_begun(records) {
        return Err(ResumeError::NoCheckpoint(run.clone()));
    }
    Ok(())
}

/// Whether there is something to resume: a lane reached a checkpoint, or it was blocked because its preconditions did
/// not hold, or there was nothing to do but the final gate.
pub fn has_begun(records: &[Record]) -> bool {
    let moved = |lane: &LaneId| {
        records.iter().any(|record| matches!(&record.event, Event::LaneMoved { lane: moved, .. } if moved == lane))
    };
    records.iter().any(|record| match &record.event {
        Event::CheckpointReached { .. } | Event::FinalOpened { .. } => true,
        Event::LaneBlocked { lane, .. } => moved(lane),
        _ => false,
    })
}
