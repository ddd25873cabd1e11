//! States of the runs that single lanes are on a cluster: made here, of another run's records, and fetched again and again.

use std::collections::HashSet;

use lanewright_git::{PushRequest, Remote, Repository, force_reference, forget_reference};
use lanewright_model::{CommitId, RunId};

use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::exchange::ownership::Ownership;
use crate::state_sync::pull::{ReceivedState, state_at};
use crate::state_sync::push::pack::pack_log;
use crate::state_sync::{Source, incoming_reference, outgoing_reference, seen_reference, state_reference};

/// Makes the state of a run that has this log and plan, and the files of the state `before` it. Nothing is pushed.
pub fn make(
    source: &Source,
    remote: &Remote,
    (plan, log): (&[u8], Vec<u8>),
    before: Option<&ReceivedState>,
) -> Result<ReceivedState> {
    let commit = pack_log(source, plan, log, before.map(|before| &before.commit))?;
    state_at(&source.repository, remote, &source.run, commit)
}

/// Pushes states that were made here, each if the remote still has what is `expected` in its place, or none. `false`: it
/// has another one of a run, and none was pushed.
///
/// # Errors
/// What git says, or that another clone has the run that places them.
pub fn push_made(ownership: &mut Ownership, made: &[(&ReceivedState, Option<&CommitId>)]) -> Result<bool> {
    let (repository, remote) = &(ownership.repository().clone(), ownership.remote().clone());
    let references: Vec<String> = made.iter().map(|(state, _)| state_reference(&state.manifest.run_id)).collect();
    let requests = made.iter().zip(&references).map(|((state, expected), reference)| PushRequest {
        is_similar: true,
        ..PushRequest::new(reference, Some(&state.commit), *expected)
    });
    let requests: Vec<PushRequest<'_>> = requests.collect();
    let pushed = requests.is_empty() || ownership.push(&requests)?;
    for (state, _) in made {
        if pushed {
            remember(repository, remote, state)?;
        }
        forget_reference(repository, &outgoing_reference(&state.manifest.run_id))?;
    }
    Ok(pushed)
}

/// Fetches the states of several runs at once. A run that the remote does not have fails the whole fetch; a state that
/// cannot be read fails alone.
pub fn fetch_all(
    repository: &Repository,
    remote: &Remote,
    runs: &[RunId],
) -> Result<Vec<(RunId, Result<ReceivedState>)>> {
    let refspecs = runs.iter().map(|run| format!("+{}:{}", state_reference(run), incoming_reference(run)));
    remote.fetch(&refspecs.collect::<Vec<_>>())?;
    Ok(runs.iter().map(|run| (run.clone(), fetched(repository, remote, run))).collect())
}

fn fetched(repository: &Repository, remote: &Remote, run: &RunId) -> Result<ReceivedState> {
    let commit = repository.commit_at(&incoming_reference(run))?;
    let missing = || StateSyncError::damaged(remote.name(), run, "its ref leads to no commit");
    state_at(repository, remote, run, commit.ok_or_else(missing)?)
}

/// The same for one run.
pub fn fetch_one(repository: &Repository, remote: &Remote, run: &RunId) -> Result<ReceivedState> {
    remote.fetch(&[format!("+{}:{}", state_reference(run), incoming_reference(run))])?;
    fetched(repository, remote, run)
}

/// The state of a run as this clone last pushed or fetched it.
pub fn known(repository: &Repository, remote: &Remote, run: &RunId) -> Result<Option<ReceivedState>> {
    let commit = repository.commit_at(&seen_reference(remote, run))?;
    commit.map(|commit| state_at(repository, remote, run, commit)).transpose()
}

/// Keeps a state, with all that it leads to, as the one that the remote was last seen with.
pub fn remember(repository: &Repository, remote: &Remote, state: &ReceivedState) -> Result<()> {
    let run = &state.manifest.run_id;
    force_reference(repository, &seen_reference(remote, run), &state.commit)?;
    Ok(forget_reference(repository, &incoming_reference(run))?)
}

const MOST_REMOVED: usize = 100;

/// Removes the states of runs from the remote, and what this clone keeps of them.
///
/// # Errors
/// What git says, that one of them was changed meanwhile, or that another clone has the run that placed them.
pub fn drop_all(ownership: &mut Ownership, runs: &[RunId]) -> Result<()> {
    let runs: HashSet<&RunId> = runs.iter().collect();
    let there: Vec<(RunId, CommitId)> = ownership.runs()?.into_iter().filter(|(run, _)| runs.contains(run)).collect();
    for some in there.chunks(MOST_REMOVED) {
        let references: Vec<String> = some.iter().map(|(run, _)| state_reference(run)).collect();
        let removals = references.iter().zip(some);
        let removals = removals.map(|(reference, (_, commit))| PushRequest::new(reference, None, Some(commit)));
        let requests: Vec<PushRequest<'_>> = removals.collect();
        if !ownership.push(&requests)? {
            return Err(StateSyncError::Failed(format!("one of {} was changed meanwhile", references.join(", "))));
        }
    }
    let (repository, remote) = (ownership.repository(), ownership.remote());
    runs.into_iter().try_for_each(|run| Ok(forget_reference(repository, &seen_reference(remote, run))?))
}
