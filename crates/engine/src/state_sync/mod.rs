//! Transfers a run's log, files, branches and checkpoints through a git remote to another clone.
//!
//! All of a run is one commit under one ref, `refs/lanewright/state/<run>`: its files are the commit's tree, the commits
//! that the log names are its parents. So a push is one ref that moves by compare-and-set, log and commits can never
//! disagree, and nothing of the remote's branches is touched. `docs/state.md` describes how it is used.

mod error;
pub mod exchange;
mod manifest;
mod published;
mod pull;
mod push;

use std::collections::HashSet;

use error::Result;
use lanewright_git::{Remote, Repository, forget_reference, remove_dead_locks_on};
use lanewright_model::RunId;
use lanewright_model::digest::sha256;
use lanewright_store::RunDirectory;

pub use error::StateSyncError;
pub use exchange::claim::close;
pub use exchange::claim::{KEPT, OwnPushes, claim, fetch_offer, keep, release};
pub use exchange::ownership::Ownership;
pub use exchange::probe::{Probe, ProbeAnswer, is_probe};
pub use manifest::{Claim, Manifest};
pub use published::{is_all_in_base, unpublished};
pub use pull::job_files::jobs_of;
pub use pull::restore::{Destination, LocalRun, Restored, check, local_run, lost_job};
pub use pull::{Offer, ReceivedState, fetch, offers, runs_of};
pub use push::follow::{Follower, Pace, PushNow};
pub use push::{Sent, StatePusher, drop_state, send};

const STATES: &str = "refs/lanewright/state/";

const OWNERS: &str = "refs/lanewright/owner/";

#[derive(Debug, Clone)]
pub struct Source {
    pub repository: Repository,
    pub directory: RunDirectory,
    pub run: RunId,
    pub host: String,
    /// What this process pushes under, where it claimed the run.
    pub claim: Option<Claim>,
    /// What it pushed under it.
    pub pushes: OwnPushes,
}

/// The run whose state `reference` holds; `None`: it holds that of none.
pub fn run_of(reference: &str) -> Option<RunId> {
    RunId::new(reference.strip_prefix(STATES)?).ok()
}

/// The ref on a remote that holds the state of a run.
pub fn state_reference(run: &RunId) -> String {
    format!("{STATES}{run}")
}

/// The ref that holds the state of a run as a remote had it when we last pushed or pulled: what the remote must still
/// be at for us to overwrite it.
fn seen_reference(remote: &Remote, run: &RunId) -> String {
    format!("refs/lanewright/remotes/{}/{run}", remote_directory(remote))
}

/// The directory of refs that are about a remote.
fn remote_directory(remote: &Remote) -> String {
    let name = remote.name();
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_name { name.to_owned() } else { sha256(name)[..16].to_owned() }
}

fn outgoing_reference(run: &RunId) -> String {
    format!("refs/lanewright/outgoing/{run}")
}

/// The ref that holds what was fetched and is looked at.
fn incoming_reference(run: &RunId) -> String {
    format!("refs/lanewright/incoming/{run}")
}

/// Where this clone keeps what it knows of states on remotes.
fn spaces() -> [String; 4] {
    ["remotes", "outgoing", "incoming", "owner"].map(|space| format!("refs/lanewright/{space}"))
}

/// Removes the locks on what this clone knows of the states of `runs`, which no other process works on.
pub fn remove_dead_locks(repository: &Repository, runs: impl IntoIterator<Item = RunId>) -> Result<()> {
    let runs: HashSet<String> = runs.into_iter().map(|run| run.to_string()).collect();
    Ok(remove_dead_locks_on(repository, &spaces(), &runs)?)
}

/// Forgets what this clone knows of the states of `run` on any remote; the remotes keep them.
pub fn forget(repository: &Repository, run: &RunId) -> Result<()> {
    let end = format!("/{run}");
    for space in &spaces() {
        for (name, _) in repository.references(space)? {
            if name.ends_with(&end) {
                forget_reference(repository, &name)?;
            }
        }
    }
    Ok(())
}
