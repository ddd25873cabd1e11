//! Carrying a rollback out, step by step, each journalled.

use std::path::PathBuf;

use super::merges::{self, Undone};
use super::plan::{KeptWork, LaneToPutBack, RollbackPlan};
use super::{RollbackError, work};
use crate::engine::crash::{CrashPoint, crash_point};
use crate::engine::ports::Ports;
use crate::engine::spine::Log;
use crate::event::{Event, Record, SnapshotReason};
use crate::git;
use crate::model::{CommitId, LaneId, Timestamp};
use crate::process;
use crate::schedule::RunState;
use crate::store::Journal;

/// A lane that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBack {
    /// Which.
    pub lane: LaneId,
    /// What was there, and the refs that hold it.
    pub kept: Vec<KeptWork>,
    /// What was in the place of worktrees of its, and was moved there.
    pub aside: Vec<PathBuf>,
    /// The commit that undid its merge, if it was merged.
    pub undone_by: Option<CommitId>,
}

/// A run's log, its state, and who wants to know.
struct Chronicle<'a> {
    ports: &'a Ports,
    journal: &'a mut Journal,
    state: &'a mut RunState,
    watch: &'a mut dyn FnMut(&[Record]),
}

impl Chronicle<'_> {
    /// Writes down what happened; it is durable afterwards.
    fn write(&mut self, events: impl IntoIterator<Item = Event>) -> Result<(), RollbackError> {
        let mut records = Vec::new();
        for event in events {
            records.push(Log::append(self.journal, self.ports.clock.now(), &event)?);
        }
        Log::sync(self.journal)?;
        for record in &records {
            self.state.apply(record)?;
        }
        (self.watch)(&records);
        Ok(())
    }
}

/// Puts the lanes back. The caller holds the run's lock; `watch` is told of every record once it is durable.
///
/// # Errors
/// [`RollbackError`]. Before `RollbackBegun` nothing was changed but repairs; after it the same rollback, asked for again,
/// finishes.
pub fn carry_out(
    ports: &Ports,
    journal: &mut Journal,
    state: &mut RunState,
    plan: &RollbackPlan,
    watch: &mut dyn FnMut(&[Record]),
) -> Result<Vec<PutBack>, RollbackError> {
    if plan.lanes.is_empty() {
        return Ok(Vec::new());
    }
    let mut chronicle = Chronicle { ports, journal, state, watch };
    repair(&mut chronicle, plan)?;
    check_worktrees(ports, plan)?;
    merges::check(ports, &plan.lanes)?;
    let id = |lane: &LaneToPutBack| ports.plan.lane(lane.lane).id.clone();
    chronicle.write(plan.lanes.iter().map(|lane| Event::RollbackBegun { lane: id(lane) }))?;
    stop_jobs(&mut chronicle, plan)?;
    // The agents that have just stopped may have changed what was looked at above.
    repair(&mut chronicle, plan)?;
    check_worktrees(ports, plan)?;
    let kept: Vec<Vec<KeptWork>> =
        plan.lanes.iter().map(|lane| keep(&mut chronicle, lane)).collect::<Result<_, _>>()?;
    let undone = merges::undo(ports, &plan.lanes)?;
    crash_point(CrashPoint::RollbackStep("undo_merges"));
    let mut put_back = Vec::new();
    for (lane, kept) in plan.lanes.iter().zip(kept) {
        put_back.push(take_apart(&mut chronicle, lane, kept, &undone)?);
    }
    release_final(ports)?;
    empty_pool(&mut chronicle)?;
    Ok(put_back)
}

/// Refuses a rollback that would lose what is in a worktree or take a branch from the user. Changes nothing.
///
/// # Errors
/// [`RollbackError::Embedded`], [`RollbackError::BranchInUse`], [`RollbackError::Git`].
pub fn check_worktrees(ports: &Ports, plan: &RollbackPlan) -> Result<(), RollbackError> {
    plan.lanes.iter().try_for_each(|lane| work::check(ports, lane))
}

/// Restores what was removed of the lanes, such as claims, without which their worktrees are not known.
fn repair(chronicle: &mut Chronicle<'_>, plan: &RollbackPlan) -> Result<(), RollbackError> {
    let repaired = plan.lanes.iter().flat_map(|lane| chronicle.ports.repair_for_rollback(lane.lane, chronicle.state));
    let repaired: Vec<Event> = repaired.collect();
    if repaired.is_empty() { Ok(()) } else { chronicle.write(repaired) }
}

/// Stops what still runs under supervisors, all at once, and collects how it ended.
fn stop_jobs(chronicle: &mut Chronicle<'_>, plan: &RollbackPlan) -> Result<(), RollbackError> {
    let directories = plan.jobs.iter().map(|job| chronicle.ports.run.job(job));
    let directories: Vec<_> = directories.collect();
    for directory in &directories {
        process::stop(directory, false)?;
    }
    for (job, directory) in plan.jobs.iter().zip(&directories) {
        let exit = process::wait_without_secrets(directory, None, &chronicle.ports.redactor)?;
        crash_point(CrashPoint::RollbackStep("stop_job"));
        chronicle.write([Event::JobExited {
            job: job.clone(),
            exit,
            report: None,
            reading: None,
            transcript: None,
        }])?;
    }
    Ok(())
}

/// Keeps what the lane holds; answers all that is kept of it now.
fn keep(chronicle: &mut Chronicle<'_>, lane: &LaneToPutBack) -> Result<Vec<KeptWork>, RollbackError> {
    let ports = chronicle.ports;
    let id = ports.plan.lane(lane.lane).id.clone();
    let mut kept = work::existing(ports, &lane.kept)?;
    let at = began(chronicle, lane);
    work::keep(ports, lane, at, &mut |work| {
        crash_point(CrashPoint::RollbackStep("keep"));
        kept.push(work.clone());
        chronicle.write([Event::SnapshotTaken {
            lane: id.clone(),
            agent: work.agent,
            reason: SnapshotReason::Rollback,
            commit: work.commit,
            reference: work.reference,
        }])
    })?;
    Ok(kept)
}

/// Since when the rollback of a lane goes on, also when it is asked for again.
fn began(chronicle: &Chronicle<'_>, lane: &LaneToPutBack) -> Timestamp {
    chronicle.state.lane(lane.lane).stands_since.unwrap_or_else(|| chronicle.ports.clock.now())
}

fn take_apart(
    chronicle: &mut Chronicle<'_>,
    lane: &LaneToPutBack,
    kept: Vec<KeptWork>,
    undone: &Undone,
) -> Result<PutBack, RollbackError> {
    let ports = chronicle.ports;
    let id = ports.plan.lane(lane.lane).id.clone();
    let mut aside = Vec::new();
    let at = began(chronicle, lane);
    work::release(ports, lane.lane, at, &mut |path| {
        let message = format!("what was in the place of a worktree is now {}", path.display());
        aside.push(path);
        chronicle.write([Event::Noted { lane: Some(id.clone()), message }])
    })?;
    crash_point(CrashPoint::RollbackStep("release"));
    work::delete_branches(ports, lane)?;
    crash_point(CrashPoint::RollbackStep("delete_branches"));
    let undone_by = undone.by.iter().find(|(it, _)| *it == lane.lane).map(|(_, commit)| commit.clone());
    let references = kept.iter().map(|work| work.reference.clone()).collect();
    let integration = undone_by.as_ref().and(undone.tip.clone());
    chronicle.write([Event::LaneRolledBack { lane: id.clone(), integration, kept: references }])?;
    Ok(PutBack { lane: id, kept, aside, undone_by })
}

/// Gives the slot of the final gate back, which judged what is no more. What the gate left in it is no work.
fn release_final(ports: &Ports) -> Result<(), RollbackError> {
    for slot in ports.pool.held_by(&ports.facts.run_id)?.iter().filter(|slot| slot.holder.lane.is_none()) {
        ports.pool.throw_away(slot, &ports.integration()?)?;
    }
    Ok(())
}

/// A run that holds nothing any more needs no pool until it is resumed.
fn empty_pool(chronicle: &mut Chronicle<'_>) -> Result<(), RollbackError> {
    let ports = chronicle.ports;
    let run = &ports.facts.run_id;
    if ports.facts.options.keep_pool || !ports.pool.held_by(run)?.is_empty() {
        return Ok(());
    }
    let left = ports.pool.empty(run)?;
    let kept = left.iter().map(|left: &git::Kept| format!("{}: {}", left.path.display(), left.reason)).collect();
    chronicle.write([Event::PoolEmptied { kept }])
}
