//! Which process may work: one on a run, one on each lane of a phase, and none beside one that runs the whole phase
//! (SPEC §9, Sessions and locks).
//!
//! A process that decides what it works on holds the phase's choice lock from its look at the other runs until it has
//! its own locks.

use std::path::{Path, PathBuf};

use lanewright_files::lock::exclusively;
use lanewright_model::{Lane, LaneId, PhaseId, Plan, RunId};
use lanewright_schedule::{Claim, contention};
use lanewright_store::lock::{Holder, LockError, is_held, read_holder};
use lanewright_store::{LockScope, RunLock, StateDirectory};

use super::refusal::{WAIT, held, in_words};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

pub(crate) fn lock_run(within: &RepositoryContext, run: &RunId) -> Result<RunLock> {
    let directory = within.state.run(run);
    let working = |by: Option<&Holder>| held(&format!("run {run} is being worked on"), by);
    let own = lock(&directory.lock(), &within.holder(run), working)?;
    refuse_beside_gate(within, run)?;
    Ok(own)
}

/// The same for a command that does not wait for the run.
pub(crate) fn lock_resting_run(within: &RepositoryContext, run: &RunId) -> Result<RunLock> {
    let own = RunLock::acquire(&within.state.run(run).lock(), &within.holder(run))?;
    refuse_beside_gate(within, run)?;
    Ok(own)
}

/// The caller has the run's lock: the process of a gate takes its own first, and looks at that one then.
fn refuse_beside_gate(within: &RepositoryContext, run: &RunId) -> Result<()> {
    let gate = within.state.run(run).gate_lock();
    if is_held(&gate) {
        let by = read_holder(&gate).map_or_else(String::new, |by| format!(" by pid {}", by.owner.process.pid));
        let message = format!("a gate of run {run} is run by hand{by}");
        return Err(ExitStatus::Held.error(message).hint("wait for its end"));
    }
    Ok(())
}

/// Does `work` while no other Lanewright decides what it works on in `phase`.
pub(crate) fn choosing<T>(state: &StateDirectory, phase: &PhaseId, work: impl FnOnce() -> Result<T>) -> Result<T> {
    exclusively(&state.lock(LockScope::Choice(phase))?, |_| work())?
}

/// Locks the branches of `lanes`, on which a run works; empty: those of the whole phase. The caller is [`choosing`].
pub(crate) fn lock_branches(
    within: &RepositoryContext,
    plan: &Plan,
    lanes: &[LaneId],
    run: &RunId,
) -> Result<Vec<RunLock>> {
    let (state, phase, us) = (&within.state, &plan.phase, within.holder(run));
    if lanes.is_empty() {
        return Ok(vec![lock_whole(state, phase, &us)?]);
    }
    let whole = state.lock(LockScope::Phase(phase))?;
    if is_held(&whole) {
        return Err(held_whole(phase, read_holder(&whole).as_ref()));
    }
    refuse_rivals(state, plan, lanes)?;
    let take = |lane: &LaneId| lock(&state.lock(LockScope::Lane(phase, lane))?, &us, |by| held_lane(phase, lane, by));
    lanes.iter().map(take).collect()
}

/// Locks the branches of all lanes of a phase, to repair what runs of it made.
pub(crate) fn lock_phase(within: &RepositoryContext, phase: &PhaseId, run: &RunId) -> Result<RunLock> {
    choosing(&within.state, phase, || lock_whole(&within.state, phase, &within.holder(run)))
}

fn lock_whole(state: &StateDirectory, phase: &PhaseId, us: &Holder) -> Result<RunLock> {
    match state.lane_locks(phase)?.into_iter().find(|(_, path)| is_held(path)) {
        Some((lane, path)) => Err(held_lane(phase, &lane, read_holder(&path).as_ref())),
        None => lock(&state.lock(LockScope::Phase(phase))?, us, |by| held_whole(phase, by)),
    }
}

fn held_whole(phase: &PhaseId, by: Option<&Holder>) -> anyhow::Error {
    held(&format!("phase {phase} is being worked on as a whole"), by)
}

fn held_lane(phase: &PhaseId, lane: &LaneId, by: Option<&Holder>) -> anyhow::Error {
    held(&format!("lane {lane} of phase {phase} is being worked on"), by)
}

fn lock(path: &Path, us: &Holder, held: impl Fn(Option<&Holder>) -> anyhow::Error) -> Result<RunLock> {
    RunLock::acquire(path, us).map_err(|error| match error {
        LockError::Held { holder, .. } => held(holder.as_deref()),
        error => error.into(),
    })
}

/// The lanes of the plan that sessions run by themselves, by the kernel's locks.
pub(crate) fn held_lanes(state: &StateDirectory, plan: &Plan) -> Result<Vec<(LaneId, Option<Holder>)>> {
    let known = |(lane, path): (LaneId, PathBuf)| {
        let held = plan.find(&lane).is_some() && is_held(&path);
        held.then(|| (lane, read_holder(&path)))
    };
    Ok(state.lane_locks(&plan.phase)?.into_iter().filter_map(known).collect())
}

/// Lanes that must not run at the same time must not run in two processes either.
fn refuse_rivals(state: &StateDirectory, plan: &Plan, lanes: &[LaneId]) -> Result<()> {
    let held_by_others = held_lanes(state, plan)?;
    let is_theirs = |lane: &LaneId| held_by_others.iter().any(|(held, _)| held == lane) && !lanes.contains(lane);
    let claim = |lane: &Lane| if is_theirs(&lane.id) { Claim::Live } else { Claim::Free };
    let claims: Vec<Claim> = plan.lanes.iter().map(claim).collect();
    for lane in lanes.iter().filter_map(|lane| plan.find(lane)) {
        if let Some(contention) = contention(plan, &claims, lane) {
            let reason = in_words(plan, "", &contention);
            let message = format!("lane {} cannot begin now: {reason}", plan.lane(lane).id);
            return Err(ExitStatus::Held.error(message).hint(WAIT));
        }
    }
    Ok(())
}
