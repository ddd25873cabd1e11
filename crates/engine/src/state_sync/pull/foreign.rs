//! What the state of a lane's own run may hold. The agents of its job can push whatever they like in its place, so nothing
//! of it is taken for the work of another lane, for a merge, for an answer of the user, or for what a job left that is not
//! the lane's.

use std::collections::HashSet;

use lanewright_model::event::{Event, Record};
use lanewright_model::id::snapshot_group;
use lanewright_model::{LaneId, PhaseId};

use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::manifest::FILES;
use crate::state_sync::pull::ReceivedState;

impl ReceivedState {
    /// Refuses a state that holds what the own run of `lane` never says, keeps or leaves; `records` are its log.
    pub(crate) fn refuse_content_of_others(
        &self,
        (phase, lane): (&PhaseId, &LaneId),
        records: &[Record],
    ) -> Result<()> {
        self.refuse_foreign_files()?;
        let spaces = snapshot_spaces(phase, lane);
        let is_foreign = |name: &str| !spaces.iter().any(|space| name.starts_with(space.as_str()));
        let damaged = |reason: String| Err(self.damaged(&reason));
        let refuse = |what: String| damaged(format!("{what} is not of lane {lane}"));
        if self.manifest.phase != *phase {
            return refuse(format!("phase {}", self.manifest.phase));
        }
        if let Some(name) = self.manifest.references.keys().find(|name| is_foreign(name)) {
            return refuse(format!("`{name}`"));
        }
        let own = |path: &str| {
            let rest = path.strip_prefix("lanes/")?.strip_prefix(lane.as_str())?.strip_prefix('/')?;
            (!rest.starts_with("merged-tests-")).then_some(())
        };
        let files = self.entries.iter().filter_map(|entry| entry.path.strip_prefix(FILES));
        if let Some(path) = files.filter(|path| path.starts_with("lanes/")).find(|path| own(path).is_none()) {
            return refuse(format!("`{path}`"));
        }
        let said = records.iter().filter(|record| record.origin.is_none() && record.event.lane() == Some(lane));
        for record in said {
            let seq = record.seq;
            match &record.event {
                event if !event.facts().is_of_lane => {
                    return damaged(format!("the event in line {seq} of its log is not allowed for lane {lane}"));
                }
                Event::SnapshotTaken { reference, .. } if is_foreign(reference) => {
                    return refuse(format!("`{reference}`"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses a log that names refs which are no snapshots of its lanes, and refs that the log does not name: they are moved
    /// and deleted as its own. That a name begins with the phase's says nothing: lanes of phase P1-A have names of phase P1.
    pub(crate) fn refuse_foreign_snapshots(&self, records: &[Record]) -> Result<(), StateSyncError> {
        let phase = &self.manifest.phase;
        let mut named = HashSet::new();
        for record in records {
            let Event::SnapshotTaken { lane, reference, .. } = &record.event else { continue };
            if !snapshot_spaces(phase, lane).iter().any(|space| reference.starts_with(space.as_str())) {
                return Err(self.damaged(&format!("`{reference}` is not a snapshot of lane {lane} of phase {phase}")));
            }
            named.insert(reference);
        }
        match self.manifest.references.keys().find(|name| !named.contains(name)) {
            Some(name) => Err(self.damaged(&format!("its log does not name `{name}`"))),
            None => Ok(()),
        }
    }
}

/// How the refs of snapshots of a lane begin.
fn snapshot_spaces(phase: &PhaseId, lane: &LaneId) -> [String; 2] {
    let group = snapshot_group(phase.as_str(), lane.as_str());
    ["refs/lanewright/checkpoint", "refs/tags/checkpoint"].map(|space| format!("{space}/{group}/"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::state_sync::manifest::tests::manifest;
    use lanewright_model::event::{LaneStage, SnapshotReason};
    use lanewright_model::testing::{at, attempt, lane};
    use lanewright_model::{CommitId, HumanGate, JobId, JobRole, TreeEntry, TreeEntryKind};

    fn record(event: Event) -> Record {
        Record { seq: 7, at: at(1), event, origin: None }
    }

    fn refused(path: &str, reference: &str, event: Event) -> Option<String> {
        let entry =
            TreeEntry { path: format!("{FILES}{path}"), kind: TreeEntryKind::File, size: 1, object: "0".repeat(40) };
        let commit = CommitId::new(&"a".repeat(40)).unwrap();
        let references = BTreeMap::from([(reference.to_owned(), commit.clone())]);
        let manifest = crate::state_sync::Manifest { references, ..manifest() };
        let state = ReceivedState { commit, manifest, remote: "x".to_owned(), entries: vec![entry] };
        let phase = PhaseId::new("P1").unwrap();
        state.refuse_content_of_others((&phase, &lane("A")), &[record(event)]).err().map(|error| error.to_string())
    }

    const FILE: &str = "lanes/A/agents/x/tasks/1/attempt-1/exit.json";
    const SNAPSHOT: &str = "refs/lanewright/checkpoint/P1-A/t";

    fn taken(reference: &str) -> Event {
        let commit = CommitId::new(&"a".repeat(40)).unwrap();
        let reason = SnapshotReason::Stop;
        Event::snapshot(lane("A"), None, reason, commit, reference.to_owned())
    }

    #[test]
    fn content_of_own_lane_is_accepted() {
        assert_eq!(refused(FILE, SNAPSHOT, taken(SNAPSHOT)), None);
        assert_eq!(refused("plan.json", "refs/tags/checkpoint/P1-A/t", taken("refs/tags/checkpoint/P1-A/t")), None);
        let of_another = Event::LaneMerged { lane: lane("B"), commit: commit('b'), onto: commit('c'), plan: None };
        assert_eq!(refused(FILE, SNAPSHOT, of_another), None, "it is not copied");
    }

    fn commit(digit: char) -> CommitId {
        CommitId::new(&digit.to_string().repeat(40)).unwrap()
    }

    #[test]
    fn content_of_other_lanes_is_refused() {
        let files = [
            "lanes/B/agents/x/tasks/1/attempt-1/exit.json",
            "lanes/AB/tests-1/exit.json",
            "lanes/A/merged-tests-1/exit.json",
            "lanes/exit.json",
            "lanes/A/tests-1/supervisor.json",
            "lanes/A/tests-1/lock",
            "requests/1.json",
        ];
        for path in files {
            assert!(refused(path, SNAPSHOT, taken(SNAPSHOT)).is_some(), "{path}");
        }
        let names = ["refs/lanewright/checkpoint/P1-B/t", "refs/lanewright/checkpoint/P1-AB/t", "refs/heads/main"];
        for name in names {
            assert!(refused(FILE, name, taken(SNAPSHOT)).is_some(), "{name}");
            assert!(refused(FILE, SNAPSHOT, taken(name)).is_some(), "{name}");
        }
        let id = || lane("A");
        let job = JobId { lane: Some(id()), role: JobRole::MergedTests, number: 1 };
        let gate = HumanGate::Task(attempt("A", "x", 1).task().unwrap().clone());
        let (from, to) = (LaneStage::AwaitingUserApproval, LaneStage::Complete);
        let events = [
            Event::LaneMerged { lane: id(), commit: commit('b'), onto: commit('c'), plan: None },
            Event::planned(job),
            Event::GateAnswered { lane: id(), gate, approved: true, message: String::new() },
            Event::LaneMoved { lane: id(), from, to },
            Event::LaneSkipped { lane: id(), reason: String::new() },
            Event::LaneRolledBack {
                lane: id(),
                integration: None,
                kept: vec!["refs/heads/main".to_owned()],
                point: None,
            },
        ];
        for event in events {
            assert!(refused(FILE, SNAPSHOT, event.clone()).is_some(), "{event:?}");
        }
    }
}
