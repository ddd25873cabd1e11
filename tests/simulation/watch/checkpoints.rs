//! What a reader finds in `checkpoints.json` after each record: true of every lane and of the phase, and enough.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lanewright_model::event::{Event, Record, RunOutcome};
use lanewright_model::{CheckpointRecord, CheckpointStatus, LaneId, Plan, Stage};
use lanewright_view::RunHistory;
use lanewright_view::contract::checkpoints::{CheckpointFold, RunFiles};

pub struct Checkpoints {
    fold: CheckpointFold,
    /// What the file holds, as its updates are merged: of each lane, `None` for the phase.
    file: BTreeMap<Option<LaneId>, BTreeMap<Stage, CheckpointRecord>>,
    /// How lanes ended since the run was last resumed, in the words that their newest record has then.
    ends: BTreeMap<LaneId, CheckpointStatus>,
    merged: BTreeSet<LaneId>,
    skipped: BTreeSet<LaneId>,
    begun: BTreeSet<LaneId>,
    half_rolled_back: BTreeSet<LaneId>,
    outcome: Option<RunOutcome>,
}

impl Checkpoints {
    pub fn new(plan: &Plan) -> Self {
        let files = RunFiles::new("/repo/log".into(), "/repo/checkpoints.json".into(), PathBuf::from("/repo"));
        Self {
            fold: CheckpointFold::new(files, RunHistory::for_plan(plan)),
            file: BTreeMap::new(),
            ends: BTreeMap::new(),
            merged: BTreeSet::new(),
            skipped: BTreeSet::new(),
            begun: BTreeSet::new(),
            half_rolled_back: BTreeSet::new(),
            outcome: None,
        }
    }

    pub fn see(&mut self, plan: &Plan, record: &Record) -> Option<String> {
        for record in self.fold.apply(record) {
            self.file.entry(record.lane.clone()).or_default().insert(record.stage, record);
        }
        self.note(&record.event);
        let lanes = plan.lanes.iter().filter(|lane| !self.skipped.contains(&lane.id));
        let wrong = |lane: &lanewright_model::Lane| {
            let missing: Vec<&LaneId> = lane
                .depends_on
                .iter()
                .map(|&on| &plan.lane(on).id)
                .filter(|on| !self.merged.contains(*on) && !self.skipped.contains(*on))
                .collect();
            self.wrong_of_lane(&lane.id, &missing)
        };
        lanes.map(wrong).find(Option::is_some).flatten().or_else(|| self.wrong_of_phase())
    }

    fn note(&mut self, event: &Event) {
        use CheckpointStatus::{Blocked, Failed, RolledBack};
        match event {
            Event::RunResumed { lanes, .. } => {
                self.ends.retain(|lane, _| !lanes.is_empty() && !lanes.contains(lane));
                self.outcome = None;
            }
            Event::RunFinished { outcome, .. } => self.outcome = Some(*outcome),
            Event::LaneMoved { lane, .. } => {
                self.begun.insert(lane.clone());
                if self.ends.get(lane) == Some(&RolledBack) {
                    self.ends.remove(lane);
                }
            }
            Event::LaneMerged { lane, .. } => {
                self.ends.remove(lane);
                self.merged.insert(lane.clone());
            }
            Event::FeedbackReceived { lane, .. } => drop(self.merged.remove(lane)),
            Event::LaneFailed { lane, .. } => drop(self.ends.insert(lane.clone(), Failed)),
            // Lanes that another one holds back may be free again by what becomes of that one.
            Event::LaneBlocked { lane, .. } if self.begun.contains(lane) => {
                self.ends.insert(lane.clone(), Blocked);
            }
            Event::LaneSkipped { lane, .. } => {
                self.ends.remove(lane);
                self.skipped.insert(lane.clone());
            }
            Event::RollbackBegun { lane, .. } => drop(self.half_rolled_back.insert(lane.clone())),
            Event::LaneRolledBack { lane, .. } => {
                self.half_rolled_back.remove(lane);
                self.ends.insert(lane.clone(), RolledBack);
                self.merged.remove(lane);
                self.skipped.remove(lane);
                self.begun.remove(lane);
            }
            _ => {}
        }
    }

    fn wrong_of_lane(&self, lane: &LaneId, missing: &[&LaneId]) -> Option<String> {
        use CheckpointStatus::{Blocked, Complete, Failed, InProgress, Retrying, RolledBack};
        let Some(records) = self.file.get(&Some(lane.clone())) else { return Some(format!("{lane} has no record")) };
        let newest = newest(records)?;
        let says = |what: &str| Some(format!("{lane} {what}, and its newest record is {}", words(newest)));
        if let Some(wrong) = records.values().find_map(|record| wrong_in_itself(record, newest)) {
            return Some(format!("{lane}: {wrong}"));
        }
        if self.half_rolled_back.contains(lane) {
            return (newest.status != Blocked).then(|| says("is half rolled back"))?;
        }
        match self.ends.get(lane) {
            Some(end) if newest.status != *end => return says(&format!("is {end}")),
            Some(_) => return None,
            None => {}
        }
        if self.merged.contains(lane) {
            let open = records.values().find(|record| !matches!(record.status, Complete | RolledBack));
            return open
                .and_then(|_| says("is merged"))
                .or_else(|| (newest.status != Complete).then(|| says("is merged"))?);
        }
        // Failed tests say so until it is decided what follows.
        let failed_tests = newest.stage == Stage::AfterLaneTests && newest.status == Failed;
        if failed_tests && self.outcome.is_none() {
            return None;
        }
        if matches!(newest.status, Failed | RolledBack) || (newest.stage == Stage::PrePr && newest.status == Complete) {
            return says("goes on");
        }
        if self.outcome.is_some() && matches!(newest.status, InProgress | Retrying) {
            return says("belongs to a run that is over");
        }
        if !self.begun.contains(lane) && !missing.is_empty() {
            let waits_for = newest.notes.strip_prefix("waits for lane ");
            let is_named =
                |names: &str| names.contains(" more") || missing.iter().all(|on| names.contains(on.as_str()));
            let named = waits_for.is_none_or(is_named);
            return (newest.status != Blocked || !named).then(|| says("waits for other lanes"))?;
        }
        None
    }

    fn wrong_of_phase(&self) -> Option<String> {
        let Some(records) = self.file.get(&None) else { return Some("the phase has no record".to_owned()) };
        let newest = newest(records)?;
        let expected = match self.outcome? {
            RunOutcome::Done => CheckpointStatus::Complete,
            RunOutcome::Failed => CheckpointStatus::Failed,
            RunOutcome::Blocked => CheckpointStatus::Blocked,
            RunOutcome::Stopped => CheckpointStatus::Ready,
            RunOutcome::RolledBack => CheckpointStatus::RolledBack,
        };
        // Lanes of a run that is over may be skipped or rolled back, which leaves something to do.
        let red_gate = newest.stage == Stage::AfterLaneTests && newest.status == CheckpointStatus::Failed;
        let is_true = newest.status == expected || newest.status == CheckpointStatus::Ready || red_gate;
        (!is_true).then(|| format!("the run is over, {:?}, and the newest record is {}", self.outcome, words(newest)))
    }
}

fn newest(records: &BTreeMap<Stage, CheckpointRecord>) -> Option<&CheckpointRecord> {
    records.values().max_by_key(|record| record.timestamp)
}

fn wrong_in_itself(record: &CheckpointRecord, newest: &CheckpointRecord) -> Option<String> {
    use CheckpointStatus::{Blocked, InProgress, Ready, Retrying};
    let is_open = matches!(record.status, Blocked | InProgress | Ready | Retrying);
    match () {
        () if record.notes.is_empty() => Some(format!("no notes in {}", words(record))),
        () if !record.resume_hint.starts_with("lanewright -C /repo ") => {
            Some(format!("the hint {}", record.resume_hint))
        }
        () if is_open && record.stage != newest.stage => {
            Some(format!("{} is passed, the newest being {}", words(record), words(newest)))
        }
        () => None,
    }
}

fn words(record: &CheckpointRecord) -> String {
    format!("{} {} ({})", record.stage, record.status, record.notes)
}
