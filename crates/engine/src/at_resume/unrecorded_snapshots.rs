//! Snapshots without a record, because the process that took one died between its ref and its record.

use std::collections::{BTreeMap, HashSet};

use lanewright_git::{self as git, GitError, Repository, Snapshot};
use lanewright_model::event::{Event, Record, RunStarted, SnapshotReason};
use lanewright_model::id::snapshot_group;
use lanewright_model::{AgentName, LaneId, RunId};
use lanewright_schedule::RunState;

use crate::executor::snapshot::REASON;

/// Events for the run's snapshots that `records` lack and that no step requests again.
pub fn unrecorded_snapshots(
    repository: &Repository,
    started: &RunStarted,
    state: &RunState,
    records: &[Record],
) -> Result<Vec<Event>, GitError> {
    let name = |record: &Record| match &record.event {
        Event::SnapshotTaken { reference, .. } => Some(reference.clone()),
        _ => None,
    };
    let recorded: HashSet<String> = records.iter().filter_map(name).collect();
    let found = git::saved_of_phase(repository, &started.phase, started.options.checkpoint_tags)?;
    // By name: two snapshots within a second may be one commit.
    let unrecorded = found.into_iter().filter(|(_, kept)| !recorded.contains(&kept.reference));
    let events = unrecorded.filter_map(|(group, kept)| {
        let trailers = git::trailers_of(repository, &kept.commit);
        let lane = LaneId::new(trailers.get("Lane")?).ok()?;
        let is_its = snapshot_group(started.phase.as_str(), lane.as_str()) == group;
        event(lane, kept, &trailers, &started.run_id).filter(|_| is_its)
    });
    Ok(events.filter(|event| state.has_subject_of(event)).collect())
}

/// The event for a snapshot, from its trailers, if it is one of the run's that is requested only once.
fn event(lane: LaneId, kept: Snapshot, trailers: &BTreeMap<String, String>, run: &RunId) -> Option<Event> {
    let reason = SnapshotReason::from_word(trailers.get(REASON)?).filter(|reason| reason.has_new_name_each_time())?;
    if trailers.get("Run")? != run.as_str() {
        return None;
    }
    let agent = trailers.get("Agent").map(|agent| AgentName::new(agent)).transpose().ok()?;
    let Snapshot { commit, reference } = kept;
    Some(Event::snapshot(lane, agent, reason, commit, reference))
}
