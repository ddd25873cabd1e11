//! Snapshots that the run log does not tell of, since whoever took one died between its ref and its record.

use std::collections::{BTreeMap, HashSet};

use crate::engine::names_what_is_known;
use crate::engine::ports::keep::REASON;
use crate::event::{Event, Record, RunStarted, SnapshotReason};
use crate::git::{self, GitError, Repository, Snapshot};
use crate::model::{AgentName, LaneId, RunId};
use crate::schedule::RunState;

/// What is to be told of the run's snapshots that `records` do not tell of and nobody asks for again.
///
/// # Errors
/// What git says.
pub fn untold_snapshots(
    repository: &Repository,
    started: &RunStarted,
    state: &RunState,
    records: &[Record],
) -> Result<Vec<Event>, GitError> {
    let name = |record: &Record| match &record.event {
        Event::SnapshotTaken { reference, .. } => Some(reference.clone()),
        _ => None,
    };
    let told: HashSet<String> = records.iter().filter_map(name).collect();
    let found = git::kept_of_phase(repository, &started.phase, started.options.checkpoint_tags)?;
    // By name: two snapshots within a second may be one commit.
    let untold = found.into_iter().filter(|(_, kept)| !told.contains(&kept.reference));
    let events = untold.filter_map(|(lane, kept)| {
        let trailers = git::trailers_of(repository, &kept.commit);
        event(lane, kept, &trailers, &started.run_id)
    });
    Ok(events.filter(|event| names_what_is_known(state, event)).collect())
}

/// What a snapshot says of itself, where it is one of the run's that is asked for only once.
fn event(lane: LaneId, kept: Snapshot, trailers: &BTreeMap<String, String>, run: &RunId) -> Option<Event> {
    let reason = SnapshotReason::from_word(trailers.get(REASON)?).filter(|reason| reason.is_asked_for_once())?;
    if trailers.get("Run")? != run.as_str() || trailers.get("Lane")? != lane.as_str() {
        return None;
    }
    let agent = trailers.get("Agent").map(|agent| AgentName::new(agent)).transpose().ok()?;
    Some(Event::SnapshotTaken { lane, agent, reason, commit: kept.commit, reference: kept.reference })
}
