//! The records that `checkpoints.json` should hold of a run.

use std::collections::BTreeMap;
use std::path::Path;

use lanewright_model::event::Record;
use lanewright_model::{CheckpointRecord, LaneId, Plan, Stage};
use lanewright_view::RunHistory;
use lanewright_view::contract::checkpoints::{CheckpointFold, RunFiles};

use super::{Scope, has_ended};
use crate::doctor::facts::{NewestCheckpoints, is_same_record};

/// `found`: those that it holds.
pub(super) fn expected(
    scope: &Scope<'_>,
    log_path: &Path,
    plan: Option<&Plan>,
    events: &[Record],
    found: &[&CheckpointRecord],
) -> NewestCheckpoints {
    let files =
        RunFiles::new(log_path.to_owned(), scope.state.checkpoints(), scope.repository.main_worktree().to_owned());
    let mut fold = CheckpointFold::new(files, plan.map_or_else(RunHistory::default, RunHistory::for_plan));
    let mut newest = NewestOfStages::among(found);
    let mut late = !has_ended(events);
    for record in events.iter().flat_map(|record| fold.apply(record)) {
        newest.put(record);
        late = late || newest.are_found();
    }
    // Where the process could still write, nothing is at work; where it was killed, a resume writes that.
    for record in fold.interrupted() {
        newest.put(record);
    }
    NewestCheckpoints { records: newest.records.into_iter().flatten().collect(), late }
}

type LaneAndStage = (Option<LaneId>, Stage);

/// The newest record of each stage of a lane, compared with those that were found as they change.
struct NewestOfStages<'f> {
    /// In the order in which they were made; `None`: a newer one follows.
    records: Vec<Option<CheckpointRecord>>,
    places: BTreeMap<LaneAndStage, usize>,
    found: BTreeMap<LaneAndStage, Vec<&'f CheckpointRecord>>,
    found_count: usize,
    /// How many of the newest were found.
    equal: usize,
}

impl<'f> NewestOfStages<'f> {
    fn among(all: &[&'f CheckpointRecord]) -> Self {
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        all.iter().for_each(|&record| found.entry(stage_of(record)).or_default().push(record));
        Self { records: Vec::new(), places: BTreeMap::new(), found, found_count: all.len(), equal: 0 }
    }

    fn put(&mut self, record: CheckpointRecord) {
        let before = self.places.insert(stage_of(&record), self.records.len());
        let before = before.and_then(|before| self.records[before].take());
        self.equal -= usize::from(before.is_some_and(|before| self.is_found(&before)));
        self.equal += usize::from(self.is_found(&record));
        self.records.push(Some(record));
    }

    fn is_found(&self, record: &CheckpointRecord) -> bool {
        let found = self.found.get(&stage_of(record)).into_iter().flatten();
        found.into_iter().any(|known| is_same_record(record, known))
    }

    /// Whether they are all that was found, and nothing else was.
    fn are_found(&self) -> bool {
        self.places.len() == self.found_count && self.equal == self.found_count
    }
}

fn stage_of(record: &CheckpointRecord) -> LaneAndStage {
    (record.lane.clone(), record.stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lane: &str, stage: &str, status: &str) -> CheckpointRecord {
        let text = format!(
            r#"{{"run_id":"r","phase":"P1","lane":"{lane}","stage":"{stage}","status":"{status}","base_branch":"main",
            "worktree_path":"/w","log_path":"/l","timestamp":"2026-01-01T00:00:00.000Z","notes":"","resume_hint":"",
            "rollback_hint":""}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn newest_records_are_compared_with_those_found() {
        let (a, a_new) = (record("A", "pre_pr", "in_progress"), record("A", "pre_pr", "complete"));
        let b = record("B", "pre_pr", "in_progress");
        let late = |found: &[&CheckpointRecord]| {
            let mut newest = NewestOfStages::among(found);
            let steps = [&a, &b, &a_new].map(|record| {
                newest.put(record.clone());
                newest.are_found()
            });
            assert_eq!(newest.records.iter().flatten().collect::<Vec<_>>(), [&b, &a_new]);
            steps
        };
        assert_eq!(late(&[&b, &a_new]), [false, false, true]);
        assert_eq!(late(&[&a, &b]), [false, true, false], "one that was newest for a while");
        assert_eq!(late(&[&a]), [true, false, false]);
        assert_eq!(late(&[&a_new, &b, &record("C", "pre_pr", "complete")]), [false; 3], "more than there should be");
        assert_eq!(late(&[]), [false; 3]);
    }
}
