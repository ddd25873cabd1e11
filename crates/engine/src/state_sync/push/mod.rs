//! Pushes a run's state: one ref, moved only if the remote is where this clone left it, or at a state that the log continues.

pub(crate) mod follow;
pub(crate) mod pack;
mod secrets;

use lanewright_git::{PushRequest, Remote, force_reference, forget_reference};
use lanewright_model::{CommitId, RunId};

use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::manifest::Manifest;
use crate::state_sync::pull::{ReceivedState, fetch};
use crate::state_sync::push::pack::{Packed, Packer};
use crate::state_sync::{Source, outgoing_reference, seen_reference, state_reference};

#[derive(Debug)]
pub struct Sent {
    pub commit: CommitId,
    pub manifest: Manifest,
    pub reference: String,
}

/// Pushes the state of a run as it is now. Asked again, it does nothing. With `force` whatever the remote has is
/// overwritten.
///
/// # Errors
/// [`StateSyncError::Superseded`] when another clone pushed a different continuation, [`StateSyncError::Claimed`] while
/// another process has a claim, [`StateSyncError::Fenced`] when that of this process does not hold any more; nothing was
/// pushed then.
pub fn send(source: &Source, remote: &Remote, force: bool) -> Result<Sent> {
    if !force && source.claim.is_none() {
        refuse_claimed(source, remote)?;
    }
    StatePusher::new(source.clone(), remote.clone()).push(force)
}

/// The claim of another process may be what this clone pulled or pushed over last, so that its push would succeed.
fn refuse_claimed(source: &Source, remote: &Remote) -> Result<()> {
    match fetch(&source.repository, remote, &source.run) {
        Ok(theirs) if theirs.manifest.claim.is_some() && !theirs.manifest.is_over() => {
            Err(refused(source, remote, &theirs.manifest))
        }
        // Any other state of the remote is checked by the push.
        _ => Ok(()),
    }
}

/// Pushes the state of a run again and again: after the first time only what changed.
pub struct StatePusher {
    pub(crate) source: Source,
    pub(crate) remote: Remote,
    packer: Packer,
}

impl StatePusher {
    pub fn new(source: Source, remote: Remote) -> Self {
        Self { source, remote, packer: Packer::default() }
    }

    /// As [`send`]. After an error the next push packs everything again.
    pub fn push(&mut self, force: bool) -> Result<Sent> {
        let mut packer = std::mem::take(&mut self.packer);
        let (source, remote) = (&self.source, &self.remote);
        let packed = packer.pack(source)?;
        let seen = seen_reference(remote, &source.run);
        let expected = source.repository.commit_at(&seen)?;
        source.pushes.add(&packed.commit);
        if !push(source, remote, &packed, expected.as_ref())? {
            let theirs = replaceable_state(source, remote, &packed, force)?;
            if !push(source, remote, &packed, theirs.as_ref().map(|theirs| &theirs.commit))? {
                return Err(refused(source, remote, &packed.manifest));
            }
        }
        force_reference(&source.repository, &seen, &packed.commit)?;
        forget_reference(&source.repository, &outgoing_reference(&source.run))?;
        self.packer = packer;
        let reference = state_reference(&source.run);
        Ok(Sent { commit: packed.commit, manifest: packed.manifest, reference })
    }
}

/// Whether the remote has the state that this process pushed last; also where it cannot be reached.
pub(crate) fn is_ours(source: &Source, remote: &Remote) -> bool {
    let ours = source.repository.commit_at(&seen_reference(remote, &source.run));
    match (ours, remote.commit_at(&state_reference(&source.run))) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        _ => true,
    }
}

/// Removes the state of a run from a remote if it still is `expected`. `false`: it was not.
pub fn drop_state(remote: &Remote, run: &RunId, expected: &CommitId) -> Result<bool> {
    let reference = &state_reference(run);
    Ok(remote.push(&PushRequest::new(reference, None, Some(expected)))?)
}

/// Whether the remote was where it was expected, and has the state now.
fn push(source: &Source, remote: &Remote, packed: &Packed, expected: Option<&CommitId>) -> Result<bool> {
    let reference = state_reference(&source.run);
    let request = PushRequest::new(&reference, Some(&packed.commit), expected);
    Ok(remote.push(&PushRequest { is_similar: true, ..request })?)
}

/// What the remote has, if the local log continues it, for example after a push whose answer was lost.
fn replaceable_state(source: &Source, remote: &Remote, packed: &Packed, force: bool) -> Result<Option<ReceivedState>> {
    let received = match fetch(&source.repository, remote, &source.run) {
        Err(StateSyncError::NoState { .. }) => {
            return if source.claim.is_some() { Err(StateSyncError::fenced(remote, &source.run)) } else { Ok(None) };
        }
        // What cannot be read is overwritten by force only.
        received => received?,
    };
    let may_replace = match &received.manifest.claim {
        claim if source.claim.is_some() => *claim == source.claim && source.pushes.has(&received.commit),
        Some(_) if !received.manifest.is_over() => force,
        _ => force || received.manifest.is_continued_by(&packed.log),
    };
    if may_replace { Ok(Some(received)) } else { Err(refused(source, remote, &received.manifest)) }
}

fn refused(source: &Source, remote: &Remote, theirs: &Manifest) -> StateSyncError {
    match &theirs.claim {
        _ if source.claim.is_some() => StateSyncError::fenced(remote, &source.run),
        Some(claim) if !theirs.is_over() => StateSyncError::Claimed {
            remote: remote.name().to_owned(),
            run: theirs.run_id.clone(),
            host: claim.host.clone(),
            at: claim.at,
        },
        _ => superseded(remote, theirs),
    }
}

fn superseded(remote: &Remote, theirs: &Manifest) -> StateSyncError {
    StateSyncError::Superseded {
        remote: remote.name().to_owned(),
        run: theirs.run_id.clone(),
        host: theirs.host.clone(),
        at: theirs.at,
        records: theirs.records,
    }
}
