//! Claims a run that was offered: of all processes that try, one wins, and from then on only it may push the run.

use std::collections::HashSet;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use lanewright_git::{Bundle, PushRequest, Remote, Repository, force_reference, forget_reference, write_bundle};
use lanewright_model::{CommitId, RunId};

use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::exchange::ownership::Ownership;
use crate::state_sync::manifest::{Claim, Manifest};
use crate::state_sync::pull::{ReceivedState, fetch_into};
use crate::state_sync::{incoming_reference, outgoing_reference, state_reference};

/// The commits that this process made for a run that it claimed, also where the answer to their push was lost. Its claim is
/// in what everybody can fetch, so the claim alone does not say whose push a state is.
#[derive(Debug, Clone, Default)]
pub struct OwnPushes(Arc<Mutex<HashSet<CommitId>>>);

impl OwnPushes {
    /// Notes a commit, before it is pushed.
    pub fn add(&self, commit: &CommitId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(commit.clone());
    }

    pub(crate) fn has(&self, commit: &CommitId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(commit)
    }
}

/// Fetches the state of a run if it still is `offer`.
///
/// # Errors
/// [`StateSyncError::Fenced`] when it is another one; otherwise as for [`crate::state_sync::fetch`].
pub fn fetch_offer(
    repository: &Repository,
    remote: &Remote,
    (run, offer): (&RunId, &CommitId),
    claim: &Claim,
) -> Result<ReceivedState> {
    match fetch_into(repository, remote, run, &own(&incoming_reference(run), claim)) {
        Ok(received) if received.commit == *offer => Ok(received),
        Ok(_) | Err(StateSyncError::NoState { .. }) => Err(StateSyncError::fenced(remote, run)),
        Err(error) => Err(error),
    }
}

/// Puts `claim` into the state that was `offered`, unless another process was quicker. Returns the state as it is then.
///
/// # Errors
/// [`StateSyncError::Fenced`] when it is not offered any more, or what git says. After another error it is unknown whether
/// the claim holds; asked again, this finds out.
pub fn claim(
    repository: &Repository,
    remote: &Remote,
    offered: &ReceivedState,
    claim: &Claim,
) -> Result<ReceivedState> {
    claim_by(repository, remote, offered, claim, |request| Ok(remote.push(request)?))
}

/// As [`claim`], for the process that placed the lane: no other process may push the lane's run then.
///
/// # Errors
/// As for [`claim`]; [`StateSyncError::Taken`] when another clone has the run that placed the lane.
pub fn close(ownership: &mut Ownership, offered: &ReceivedState, claim: &Claim) -> Result<ReceivedState> {
    let (repository, remote) = (ownership.repository().clone(), ownership.remote().clone());
    claim_by(&repository, &remote, offered, claim, |request| ownership.push(slice::from_ref(request)))
}

fn claim_by(
    repository: &Repository,
    remote: &Remote,
    offered: &ReceivedState,
    claim: &Claim,
    push: impl FnOnce(&PushRequest<'_>) -> Result<bool>,
) -> Result<ReceivedState> {
    let manifest = Manifest { claim: Some(claim.clone()), ..offered.manifest.clone() };
    let (run, outgoing) = (&manifest.run_id, own(&outgoing_reference(&manifest.run_id), claim));
    let bundle = Bundle {
        tree: Some(&repository.tree_of(&offered.commit)?),
        removed: &[],
        files: &[manifest.file()?],
        commits: slice::from_ref(&offered.commit),
        message: &format!("Lanewright: run {run} is claimed"),
        at: claim.at,
    };
    let commit = write_bundle(repository, &outgoing, &bundle)?;
    let reference = &state_reference(run);
    let request = PushRequest::new(reference, Some(&commit), Some(&offered.commit));
    let holds = push(&request)? || remote.commit_at(reference)?.as_ref() == Some(&commit);
    forget_reference(repository, &outgoing)?;
    if holds {
        Ok(ReceivedState { commit, manifest, ..offered.clone() })
    } else {
        Err(StateSyncError::fenced(remote, run))
    }
}

/// Takes a claim back under which nothing was pushed: the run is offered again as it was. `false`: the remote has another
/// state.
///
/// # Errors
/// What git says; the claim may then be taken back or not.
pub fn release(remote: &Remote, offered: &ReceivedState, claimed: &ReceivedState) -> Result<bool> {
    let reference = &state_reference(&claimed.manifest.run_id);
    let request = PushRequest::new(reference, Some(&offered.commit), Some(&claimed.commit));
    Ok(remote.push(&PushRequest { is_similar: true, ..request })?)
}

/// Where refs hold what is kept.
pub const KEPT: &str = "refs/lanewright/kept";

/// Keeps the objects of a received state in `repository`, from which other clones borrow them.
pub fn keep(repository: &Repository, received: &ReceivedState) -> Result<()> {
    Ok(force_reference(repository, &format!("{KEPT}/{}", received.manifest.run_id), &received.commit)?)
}

/// A ref that no other process uses at the same time.
fn own(reference: &str, claim: &Claim) -> String {
    match reference.rsplit_once('/') {
        Some((space, run)) => format!("{space}/{}/{run}", claim.id),
        None => reference.to_owned(),
    }
}
