//! Who may work: one Lanekeeper on a run, one on each lane of a phase, and none beside one that runs the whole phase
//! (SPEC §9, Sessions and locks).
//!
//! Whoever decides what it works on holds the phase's choice lock while it looks at the others and takes its own locks,
//! so that what it has seen still holds when it has them.

use std::path::Path;

use super::site::{holder, host};
use crate::cli::error::{CliError, ExitStatus};
use crate::event::RunStarted;
use crate::model::text::shell_line;
use crate::model::{LaneId, PhaseId, Plan, RunId};
use crate::schedule::{Claim, rivalry};
use crate::store::lock::{self, Holder, LockError, is_held, named, read_holder};
use crate::store::{LockScope, RunLock, StateDirectory};

/// What keeps every other Lanekeeper away, for as long as it lives.
#[derive(Debug)]
pub(in crate::cli) struct Locks {
    pub(super) _run: RunLock,
    /// Of the phase, or of each lane; none where the run's branches have a suffix, for it shares none.
    pub(super) _branches: Vec<RunLock>,
}

/// Whose branches are wanted.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) enum Reach<'a> {
    /// Those of the whole phase.
    Phase,
    /// Those of these lanes.
    Lanes(&'a [LaneId]),
}

impl<'a> Reach<'a> {
    /// What a run works on.
    pub(super) fn of(lanes: &'a [LaneId]) -> Self {
        if lanes.is_empty() { Self::Phase } else { Self::Lanes(lanes) }
    }
}

/// Takes the lock of a run; fails when a live session has it.
pub(super) fn lock_run(state: &StateDirectory, run: &RunId, session_id: &str) -> Result<RunLock, CliError> {
    let held = |by: Option<&Holder>| held(&format!("run {run} is being worked on"), by);
    lock(&state.run(run).lock(), &holder(state, session_id, run), held)
}

/// Does `work` while no other Lanekeeper decides what it works on in `phase`.
pub(super) fn choosing<T>(
    state: &StateDirectory,
    phase: &PhaseId,
    work: impl FnOnce() -> Result<T, CliError>,
) -> Result<T, CliError> {
    lock::exclusively(&state.lock(LockScope::Choice(phase))?, work)?
}

/// Takes the branches that a run works on. The caller is [`choosing`].
pub(super) fn lock_branches(
    state: &StateDirectory,
    plan: &Plan,
    reach: Reach<'_>,
    run: &RunId,
    session_id: &str,
) -> Result<Vec<RunLock>, CliError> {
    let (phase, us) = (&plan.phase, holder(state, session_id, run));
    match reach {
        Reach::Phase => Ok(vec![lock_whole(state, phase, &us)?]),
        Reach::Lanes(lanes) => {
            let whole = state.lock(LockScope::Phase(phase))?;
            if is_held(&whole) {
                return Err(held_whole(phase, read_holder(&whole).as_ref()));
            }
            refuse_rivals(state, plan, lanes)?;
            let take =
                |lane: &LaneId| lock(&state.lock(LockScope::Lane(phase, lane))?, &us, |by| held_lane(phase, lane, by));
            lanes.iter().map(take).collect()
        }
    }
}

/// Takes the branches of all lanes of a phase for a command that repairs or takes back what runs of it made.
pub(in crate::cli) fn lock_phase(
    state: &StateDirectory,
    phase: &PhaseId,
    run: &RunId,
    session_id: &str,
) -> Result<RunLock, CliError> {
    choosing(state, phase, || lock_whole(state, phase, &holder(state, session_id, run)))
}

fn lock_whole(state: &StateDirectory, phase: &PhaseId, us: &Holder) -> Result<RunLock, CliError> {
    match state.lane_locks(phase)?.into_iter().find(|(_, path)| is_held(path)) {
        Some((lane, path)) => Err(held_lane(phase, &lane, read_holder(&path).as_ref())),
        None => lock(&state.lock(LockScope::Phase(phase))?, us, |by| held_whole(phase, by)),
    }
}

fn held_whole(phase: &PhaseId, by: Option<&Holder>) -> CliError {
    held(&format!("phase {phase} is being worked on as a whole"), by)
}

fn held_lane(phase: &PhaseId, lane: &LaneId, by: Option<&Holder>) -> CliError {
    held(&format!("lane {lane} of phase {phase} is being worked on"), by)
}

/// The branches that a run goes on with, as it began.
pub(super) fn lock_branches_of(
    state: &StateDirectory,
    plan: &Plan,
    started: &RunStarted,
    reach: Reach<'_>,
    session_id: &str,
) -> Result<Vec<RunLock>, CliError> {
    if !started.options.branch_suffix.is_empty() {
        return Ok(Vec::new());
    }
    choosing(state, &plan.phase, || lock_branches(state, plan, reach, &started.run_id, session_id))
}

fn lock(path: &Path, us: &Holder, held: impl Fn(Option<&Holder>) -> CliError) -> Result<RunLock, CliError> {
    RunLock::acquire(path, us).map_err(|error| match error {
        LockError::Held { holder, .. } => held(holder.as_deref()),
        error => error.into(),
    })
}

/// Who works on which lane of the plan by itself, seen by the kernel's locks.
pub(super) fn held_lanes(state: &StateDirectory, plan: &Plan) -> Result<Vec<(LaneId, Option<Holder>)>, CliError> {
    let known = |(lane, path): (LaneId, std::path::PathBuf)| {
        let held = plan.find(&lane).is_some() && is_held(&path);
        held.then(|| (lane, read_holder(&path)))
    };
    Ok(state.lane_locks(&plan.phase)?.into_iter().filter_map(known).collect())
}

/// Lanes that must not run at the same time do not do so in two processes either.
fn refuse_rivals(state: &StateDirectory, plan: &Plan, lanes: &[LaneId]) -> Result<(), CliError> {
    let held_by_others = held_lanes(state, plan)?;
    let is_theirs = |lane: &LaneId| held_by_others.iter().any(|(held, _)| held == lane) && !lanes.contains(lane);
    let claim = |lane: &crate::model::Lane| if is_theirs(&lane.id) { Claim::Live } else { Claim::Free };
    let claims: Vec<Claim> = plan.lanes.iter().map(claim).collect();
    for lane in lanes.iter().filter_map(|lane| plan.find(lane)) {
        if let Some(rivalry) = rivalry(plan, &claims, lane) {
            let reason = super::claims::in_words(plan, "", &rivalry);
            let message = format!("lane {} cannot begin now: {reason}", plan.lane(lane).id);
            return Err(CliError::new(ExitStatus::Held, message).hint(WAIT));
        }
    }
    Ok(())
}

/// How to have a lock waited for.
pub(super) const WAIT: &str = "to wait until it is free, repeat the command with --on-lock-conflict wait";

/// Somebody who lives has what is wanted.
pub(super) fn held(what: &str, by: Option<&Holder>) -> CliError {
    let error = CliError::new(ExitStatus::Held, format!("{what} by {}", named(by)));
    let Some(by) = by else { return error.hint("`lanekeeper status` tells what is worked on").hint(WAIT) };
    // The lock is the kernel's, so the holder lives; its process id says something on its own machine only.
    let elsewhere =
        (by.owner.host != host()).then(|| format!("the process lives on another machine, {}", by.owner.host));
    let error = elsewhere.into_iter().fold(error, CliError::hint);
    let line = |words: &[&str]| shell_line(by.program.iter().map(String::as_str).chain(words.iter().copied()));
    let run = by.run.as_str();
    error
        .hint(format!("to watch it: {}", line(&["status", run, "--watch"])))
        .hint(format!("to stop what it does: {}", line(&["stop", run])))
        .hint(WAIT)
}
